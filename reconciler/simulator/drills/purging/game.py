"""A game with purges of one log dir: each of them meets one obstacle, and a second one goes to the end.

What is due goes whole or is known to be half gone; what is not due, or wanted again, stays whole and can be restored;
what is reported to be gone is gone for good; and nothing outside of what was staged is touched. The disk is read here
by other code than the engine's own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from random import Random
from typing import Final

from layout import partition_metadata
from layout.ids import TopicId
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import LogDir, LogStore, LogStoreError, StoreOptions
from logstore.fs import Directory, make_directory, sync_all, write_new_file
from logstore.fs.crash_disk import MachineDisks
from logstore.log_dir import StagingBeside
from logstore.purge import LogDirPurge, PurgeRules, Throttle, purge
from logstore.staging import Candidate, Placement, Staged, list_staged, restore, stage
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import PowerCut
from reconciler.simulator.drills.clock import WaitingClock
from reconciler.simulator.drills.fault import Fault, open_after
from reconciler.simulator.drills.made import make_log_dir
from reconciler.simulator.drills.purging.one_shot import OneShot

_BLOCK: Final = 4096
_DELAYS_MS: Final = (0, 1_000, 60_000)
_LONGER_MS: Final = 100_000
"""Longer than each of them."""

_RATE: Final = 100.0
"""Files a second of a throttled purge."""

_BACK_MS: Final = 7_200_000
"""How far a clock is put back."""

_OUTSIDE: Final = "outside"
_STRANGER: Final = "a file of somebody else"


class Obstacle(StrEnum):
    """What a purge meets."""

    FAULT = "fault"
    CANCELLED = "cancelled"
    EARLY = "cancelled before it is due"
    WANTED = "wanted"
    REPLACED = "replaced"
    LINKED = "linked"
    HELD = "held"
    BESIDE = "beside"
    UNLOCKED = "unlocked"
    THROTTLED = "throttled"


_ANYWHERE: Final = (
    *(Obstacle.FAULT, Obstacle.FAULT, Obstacle.FAULT, Obstacle.CANCELLED, Obstacle.CANCELLED),
    *(Obstacle.EARLY, Obstacle.WANTED, Obstacle.REPLACED, Obstacle.LINKED, Obstacle.THROTTLED),
)


@dataclass(slots=True)
class _Replica:
    """What is known of one replica.

    Attributes:
        files: name → bytes, when it was staged.
        due_ms: when it may go.
        is_wanted: whether somebody wants it again.
        may_go: whether the purge at hand may take it.
    """

    at: TopicPartition
    files: dict[str, bytes]
    due_ms: int = 0
    is_wanted: bool = False
    may_go: bool = False


class PurgeGame:
    """One log dir, in which replicas are staged and purged, some at a time."""

    def __init__(self, disks: MachineDisks, random: Random, fault: Fault, one_shot: OneShot) -> None:
        """Make the log dir, ours or a broker's, without replicas."""
        self._disks, self._random, self._fault, self._one_shot = disks, random, fault, one_shot
        self._path, self._mounted = disks.log_dirs[0], os.path.dirname(disks.log_dirs[0])
        self._placement = random.choice((Placement.INSIDE, Placement.SIBLING, Placement.IN_PLACE))
        self._clock, self._topic_id = WaitingClock(), TopicId(random.randbytes(16))
        self._replicas: list[_Replica] = []
        disk, scheme = disks.disk, Scheme.FLAT if self._placement is Placement.INSIDE else None
        with Directory.open(self._mounted) as mounted:
            make_directory(disk, mounted, _OUTSIDE).close()
        make_log_dir(self._path, disk, disk.names, scheme)
        self._log_dir = LogDir.open(self._path, disk=disk)

    def end(self) -> None:
        """Close what is open."""
        self._log_dir.abandon()

    def play(self, number: int) -> str:
        """Stage some replicas, purge them with an obstacle, and then to the end; gives what the obstacle was."""
        obstacle = self._drawn_obstacle(number)
        self._replicas = [self._made(number, each) for each in range(self._random.randint(2, 4))]
        with self._unlocked(obstacle) as beside:
            self._stage()
            self._clock.advance(self._random.choice((0, 1_000, 70_000)))
            if beside is not None:
                self._purge([beside])
                self._look(goes=False)
        try:
            self._purge_with(obstacle)
        except PowerCut:
            self._crash()
            self._look()
        self._restore_one()
        self._purge_to_the_end()
        return obstacle

    def _drawn_obstacle(self, number: int) -> Obstacle:
        choices = list(_ANYWHERE)
        if self._placement is not Placement.INSIDE:
            choices += [Obstacle.BESIDE] * 2
        if self._placement is Placement.SIBLING and not number:
            choices += [Obstacle.UNLOCKED] * 4
        if self._random.random() < 0.1:
            choices = [Obstacle.HELD]  # it looks at all processes, which takes as long as several other games
        return self._random.choice(choices)

    def _made(self, number: int, partition: int) -> _Replica:
        """Make a live replica with files of one to three blocks."""
        at, disk = TopicPartition(f"orders-{number}", partition), self._disks.disk
        files = {
            f"{base:020}.log": self._random.randbytes(_BLOCK * self._random.randint(1, 3))
            for base in range(self._random.randint(1, 3))
        }
        files[partition_metadata.FILE_NAME] = partition_metadata.encode(self._topic_id)
        with make_directory(disk, self._log_dir.root, str(at)) as made:
            for name, data in files.items():
                write_new_file(disk, made, name, data, durable=True)
        return _Replica(at, files)

    def _stage(self) -> None:
        now_ms, candidates = self._clock.now_ms(), list[Candidate]()
        for each in self._replicas:
            delay_ms = self._random.choice(_DELAYS_MS)
            each.due_ms = now_ms + delay_ms
            candidates.append(Candidate(str(each.at), each.at, self._topic_id, "S", "a drill", delay_ms))
        stage(self._log_dir, candidates, now_ms, placement=self._placement)

    @contextmanager
    def _unlocked(self, obstacle: Obstacle) -> Iterator[StagingBeside | None]:
        """Open the staging root beside the log dir before there is one; None: that is not the obstacle."""
        if obstacle is not Obstacle.UNLOCKED:
            yield None
            return
        with StagingBeside.open(self._path, disk=self._disks.disk) as beside:
            yield beside

    def _purge_with(self, obstacle: Obstacle) -> None:
        purges: dict[Obstacle, Callable[[], None]] = {
            Obstacle.FAULT: self._purge_with_a_fault,
            Obstacle.CANCELLED: partial(self._purge_cancelled, before_due=False),
            Obstacle.EARLY: partial(self._purge_cancelled, before_due=True),
            Obstacle.WANTED: self._purge_unwanted,
            Obstacle.REPLACED: self._purge_replaced,
            Obstacle.LINKED: self._purge_linked,
            Obstacle.HELD: self._purge_held,
            Obstacle.BESIDE: self._purge_beside,
            Obstacle.UNLOCKED: self._purge_with_a_fault,
            Obstacle.THROTTLED: self._purge_throttled,
        }
        purges[obstacle]()

    def _purge(self, log_dirs: list[LogDir | StagingBeside], *, look: bool = False, **rules: object) -> LogDirPurge:
        """Purge what is due by now, in steps of a block."""
        now_ms = self._clock.now_ms()
        for each in self._replicas:
            each.may_go |= not each.is_wanted and (bool(rules.get("before_due")) or each.due_ms <= now_ms)
        asked = PurgeRules(now_ms, step_bytes=_BLOCK, **rules)  # type: ignore[arg-type]
        (report,) = purge(log_dirs, asked, workers=1, look_at_processes=look).log_dirs
        return report

    def _purge_with_a_fault(self) -> None:
        self._fault.announce()
        report = self._purge([self._log_dir])
        self._fault.disarm()
        if self._log_dir.offline is not None:
            self._crash()
        self._look(report)

    def _purge_cancelled(self, *, before_due: bool) -> None:
        """Cancel a purge in its middle; what it began before its time, the next one ends all the same."""
        cancel = threading.Event()
        self._one_shot.announce(self._random.randrange(1, 20), cancel.set)
        report = self._purge([self._log_dir], before_due=before_due, cancel=cancel)
        self._one_shot.forget()
        self._look(report, is_calm=True)
        if before_due:
            begun = [each for each, staged in self._staged() if staged.may_be_partly_purged]
            self._look(self._purge([self._log_dir]), is_calm=True)
            if left := [str(each.at) for each, _ in self._staged() if each in begun]:
                raise BrokenInvariantError(f"a purge has begun with {', '.join(left)}, and the next one leaves it")

    def _purge_unwanted(self) -> None:
        for each in self._replicas:
            each.is_wanted = self._random.random() < 0.5
        wanted = {each.at for each in self._replicas if each.is_wanted}
        report = self._purge(
            [self._log_dir], veto=lambda staged: "it is wanted" if staged.partition in wanted else None
        )
        self._look(report, is_calm=True)
        for each in self._replicas:
            each.is_wanted = False

    def _purge_replaced(self) -> None:
        """While a purge removes the first directories, another directory takes the place of the last one."""
        chosen = self._random.choice(self._replicas)
        place = next(self._place(staged) for each, staged in self._staged() if each is chosen)
        disk, name = self._disks.disk, os.path.basename(place)

        def replace(staged: Staged) -> str | None:
            if staged.partition == chosen.at:
                with Directory.open(os.path.dirname(place)) as parent, Directory.open(self._outside) as outside:
                    disk.rename(parent.descriptor, name, outside.descriptor, str(chosen.at))
                    with make_directory(disk, parent, name) as made:
                        write_new_file(disk, made, _STRANGER, b"", durable=True)
                    sync_all(disk, (parent, outside))
            return None

        report = self._purge([self._log_dir], veto=replace)
        if chosen.may_go and not os.path.exists(f"{place}/{_STRANGER}"):
            raise BrokenInvariantError(f"{place} is another directory by now, and the purge has taken from it")
        self._look(report, is_calm=not chosen.may_go, apart=chosen)

    def _purge_linked(self) -> None:
        """Purge files that have another name outside, whose space is not freed and whose bytes stay."""
        kept, disk, expected = dict[str, bytes](), self._disks.disk, 0
        for each, staged in self._staged():
            name, data = next((name, data) for name, data in each.files.items() if name.endswith(".log"))
            other = f"{each.at}-{name}"
            kept[other] = data
            with Directory.open(self._place(staged)) as place, Directory.open(self._outside) as outside:
                disk.link(place.descriptor, name, outside.descriptor, other)
            if each.due_ms <= self._clock.now_ms():
                expected += sum(-(-len(data) // _BLOCK) * _BLOCK for file, data in each.files.items() if file != name)
        report = self._purge([self._log_dir])
        self._look(report, is_calm=True)
        if report.expected_bytes != expected:
            raise BrokenInvariantError(f"a purge says that {report.expected_bytes} bytes are freed, not {expected}")
        for name, data in kept.items():
            with open(f"{self._outside}/{name}", "rb") as file:
                if file.read() != data:
                    raise BrokenInvariantError(f"{name} has another name outside, and the purge has changed it")

    def _purge_held(self) -> None:
        """Purge files that a process holds open, which go, and keep their length until it lets go."""
        held = dict[str, tuple[int, int]]()
        for each, staged in self._staged():
            name, data = max(each.files.items(), key=lambda file: len(file[1]))
            descriptor = os.open(f"{self._place(staged)}/{name}", os.O_RDONLY)
            held[f"{staged.location}/{name}"] = descriptor, len(data)
        try:
            report = self._purge([self._log_dir], look=True)
            for name, (descriptor, length) in held.items():
                if os.fstat(descriptor).st_size != length:
                    raise BrokenInvariantError(f"{name} is held open, and the purge has cut it")
            gone = {name for name in held if any(name.startswith(f"{each.location}/") for each in report.purged)}
            if {each.name for each in report.held} != gone:
                raise BrokenInvariantError(f"{gone} are gone and held open, and the purge names {report.held}")
        finally:
            for descriptor, _ in held.values():
                os.close(descriptor)
        self._look(report, is_calm=True)

    def _purge_beside(self) -> None:
        """Purge while a broker has the log dir: only what is staged beside it goes, the rest is counted."""
        self._log_dir.close()
        with StagingBeside.open(self._path, disk=self._disks.disk) as beside:
            report = self._purge([beside])
        self._log_dir = LogDir.open(self._path, disk=self._disks.disk)
        goes = self._placement is Placement.SIBLING
        due = sum(each.due_ms <= self._clock.now_ms() for each in self._replicas)
        if report.waiting != (0 if goes else due):
            raise BrokenInvariantError(f"{due} are due, and a purge beside the broker lets {report.waiting} wait")
        self._look(report, is_calm=True, goes=goes)

    def _purge_throttled(self) -> None:
        """Purge at a rate, while the clock is put back: for what is removed it waits as long as the rate says."""
        now_ms, before = self._clock.now_ms(), self._clock.waited
        throttle = Throttle(self._clock, unlinks_per_s=_RATE)
        files = sum(len(each.files) + 1 for each in self._replicas if each.due_ms <= now_ms)
        self._one_shot.announce(self._random.randrange(8), lambda: self._clock.advance(-_BACK_MS))
        report = self._purge([self._log_dir], throttle=throttle)
        self._one_shot.forget()
        self._clock.advance(_BACK_MS)
        waited = self._clock.waited - before
        # Of several waits each counts what is owed, so the sum grows with the square of the files.
        if waited > files * files / _RATE:
            raise BrokenInvariantError(f"a purge of {files} files at {_RATE} a second waits for {waited} s")
        self._look(report, is_calm=True)

    def _crash(self) -> None:
        """Lose the power, perhaps once more while a store recovers what that left."""
        self._one_shot.forget()
        options = StoreOptions(self._clock, disk=self._disks.disk, jobs=0, placement=self._placement)
        open_after(self._lose_power, lambda: LogStore.open([self._path], options).close(), self._fault)
        self._fault.disarm()
        self._log_dir = LogDir.open(self._path, disk=self._disks.disk)

    def _lose_power(self) -> None:
        self._log_dir.abandon()
        self._disks.crash(self._random)

    @property
    def _outside(self) -> str:
        return f"{self._mounted}/{_OUTSIDE}"

    def _place(self, staged: Staged) -> str:
        return os.path.normpath(f"{self._path}/{staged.location}")

    def _staged(self) -> list[tuple[_Replica, Staged]]:
        """Give what is staged by now of the replicas of this game."""
        listed = {each.partition: each for each in list_staged(self._log_dir)}
        return [(each, listed[each.at]) for each in self._replicas if each.at in listed]

    def _look(
        self,
        report: LogDirPurge | None = None,
        *,
        is_calm: bool = False,
        goes: bool = True,
        apart: _Replica | None = None,
    ) -> None:
        """Look at each replica.

        Args:
            report: of the purge; None: it came to no end.
            is_calm: nothing failed, so that what is whole is said to be.
            goes: whether the purge may have taken anything.
            apart: lies elsewhere by now.
        """
        staged, left = dict[TopicPartition, Staged](), list[_Replica]()
        for replica, each in self._staged():
            staged[replica.at] = each
        for replica in self._replicas:
            if replica is apart and replica.may_go:
                left.append(replica)
                continue
            found = staged.get(replica.at)
            if found is None:
                if not (goes and replica.may_go):
                    raise BrokenInvariantError(f"{replica.at} is gone, and no purge may take it by now")
                continue
            left.append(replica)
            self._look_at(replica, found, is_calm=is_calm, goes=goes)
        if report is not None:
            gone = {each.partition for each in report.purged}
            if said := [str(each.at) for each in left if each.at in gone]:
                raise BrokenInvariantError(f"{', '.join(said)} is said to be purged, and is there")
            silent = [str(each.at) for each in self._replicas if each not in left and each.at not in gone]
            if silent and is_calm:
                raise BrokenInvariantError(f"{', '.join(silent)} is gone, and the purge does not say so")
        self._replicas = left

    def _look_at(self, replica: _Replica, staged: Staged, *, is_calm: bool, goes: bool) -> None:
        place = self._place(staged)
        files = {name: os.path.getsize(f"{place}/{name}") for name in os.listdir(place)}
        is_whole = files == {name: len(data) for name, data in replica.files.items()}
        if not is_whole and not (goes and replica.may_go):
            raise BrokenInvariantError(f"{replica.at} is no longer whole, and no purge may take it by now")
        if not is_whole and not staged.may_be_partly_purged:
            raise BrokenInvariantError(f"{replica.at} holds {files}, and is said to be whole")
        if is_whole and staged.may_be_partly_purged and (is_calm or not replica.may_go):
            raise BrokenInvariantError(f"{replica.at} is whole, and is said to be half purged")

    def _restore_one(self) -> None:
        """Restore one replica, which works where it is whole and never where a purge has begun with it."""
        staged = self._staged()
        if not staged or self._random.random() < 0.5:
            return
        replica, found = self._random.choice(staged)
        if not os.path.exists(f"{self._place(found)}/{partition_metadata.FILE_NAME}"):
            return
        try:
            restore(self._log_dir, found)
        except LogStoreError as error:
            if not found.may_be_partly_purged:
                raise BrokenInvariantError(f"{replica.at} is whole, and is not restored: {error}") from error
            return
        if found.may_be_partly_purged:
            raise BrokenInvariantError(f"{replica.at} is half purged, and is restored")
        self._replicas.remove(replica)

    def _purge_to_the_end(self) -> None:
        """Purge when all is due; a crash brings nothing of it back."""
        self._clock.advance(_LONGER_MS)
        report = self._purge([self._log_dir])
        if left := [str(each.at) for each, _ in self._staged()]:
            raise BrokenInvariantError(f"{', '.join(left)} is due, and stays: {report}")
        self._crash()
        if left := [str(each.at) for each, _ in self._staged()]:
            raise BrokenInvariantError(f"{', '.join(left)} was purged, and a crash brings it back")
        # What a purge said it could not confirm may be back, and belongs to no later game.
        self._purge([self._log_dir])
        if left := [each.location for each in list_staged(self._log_dir)]:
            raise BrokenInvariantError(f"{', '.join(left)} is due, and stays after a second purge")
