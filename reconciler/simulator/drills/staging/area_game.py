"""A game with the staging area of one log dir, on a disk that may be full, beside a spare folder on another one.

What is staged comes back whole and with its checkpoint entries, or is purged when its line says that it is due, and
never before. Of a batch each replica is staged or refused, and where it fails, all of it is live. A stray that a broker
left goes only while it has a record. The disk is read here by other code than the engine's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from layout import partition_metadata
from layout.checkpoint import OFFSET_CHECKPOINTS
from layout.ids import TopicId
from layout.ours import LedgerEvent
from layout.scheme import LEDGER_FILE, Scheme
from layout.topic import TopicPartition
from logstore import ChangeRefusedError, LogDir, LogStore, LogStoreError, StoreOptions
from logstore.fs import Directory, make_directory, write_new_file
from logstore.fs.crash_disk import MachineDisks
from logstore.log_dir import FallbackRecords
from logstore.purge import PurgeRules, Throttle, purge
from logstore.staging import (
    Candidate,
    Placement,
    Staged,
    adopt_stray,
    damaged_lines,
    forget_stray,
    list_staged,
    restore,
    stage,
)
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import PowerCut
from reconciler.simulator.drills.clock import WaitingClock
from reconciler.simulator.drills.fault import Fault, open_after
from reconciler.simulator.drills.kept_replicas import NUMBER_FILE, Where
from reconciler.simulator.drills.made import make_log_dir
from reconciler.simulator.drills.staging.damage import damage_line

_REPLICAS: Final = 6
_STRAY: Final = f"orders-9.{'0c' * 16}-stray"
_DELAYS_MS: Final = (0, 1_000, 60_000)
_STEPS_MS: Final = (1, 1_000, 70_000, -1, -3_600_000)
_RATE: Final = 1000.0
"""Unlinks a second of a purge."""


@dataclass(slots=True)
class _Replica:
    """What is known of one replica.

    Attributes:
        may_be: where it may be found.
        offsets: its checkpoint entries.
        times: when it was staged the last time, and when it is due.
        is_announced: whether each purge of it had room to say so; where one had not, it warns that what is due must not
            be restored, for it may be half purged and comes back so.
        may_lack_offsets: whether a crash came while a disk was full, so that its entries may be behind.
        comes_back: as what a crash may bring it back, after a purge that said that the disk did not confirm it.
    """

    at: TopicPartition
    topic_id: TopicId
    offsets: dict[str, int]
    may_be: set[Where] = field(default_factory=lambda: {Where.LIVE})
    times: tuple[int, int] = (0, 0)
    is_announced: bool = True
    may_lack_offsets: bool = False
    comes_back: set[Where] = field(default_factory=set)

    def has(self, offsets: Mapping[str, int]) -> bool:
        """Whether these checkpoint entries are its own; once they are complete, they stay so."""
        if self.may_lack_offsets and offsets.items() <= self.offsets.items():
            self.may_lack_offsets = dict(offsets) != self.offsets
            return True
        return dict(offsets) == self.offsets


class AreaGame:
    """One log dir with replicas, and a stray where it is a real broker's."""

    def __init__(self, disks: MachineDisks, random: Random, fault: Fault) -> None:
        """Make all of it, well; ``fault`` is announced for many of the changes."""
        self._disks, self._random, self._fault = disks, random, fault
        self._path, (spare, _) = disks.log_dirs[0], os.path.split(disks.log_dirs[1])
        self._placement = random.choice((Placement.INSIDE, Placement.SIBLING, Placement.IN_PLACE))
        self._fallback = FallbackRecords(f"{spare}/spare", disks.disk)
        self._clock, self._topic_id = WaitingClock(), TopicId(random.randbytes(16))
        self._replicas = [self._drawn(number) for number in range(_REPLICAS)]
        self._stray: set[Where] = {Where.NOWHERE if self._placement is Placement.INSIDE else Where.LIVE}
        self._stray_comes_back = set[Where]()
        with Directory.open(spare) as mounted:
            make_directory(disks.disk, mounted, "spare").close()
        self._make()
        self._log_dir = LogDir.open(self._path, disk=disks.disk)
        for file in OFFSET_CHECKPOINTS[:2]:
            self._log_dir.checkpoints.update(file, {each.at: each.offsets[file] for each in self._replicas})
        self._log_dir.checkpoints.write(disks.disk)

    def _drawn(self, number: int) -> _Replica:
        offsets = {file: self._random.randrange(1 << 40) for file in OFFSET_CHECKPOINTS[:2]}
        return _Replica(TopicPartition("orders", number), self._topic_id, offsets)

    def _make(self) -> None:
        disk, scheme = self._disks.disk, Scheme.FLAT if self._placement is Placement.INSIDE else None
        make_log_dir(self._path, disk, disk.names, scheme)
        with Directory.open(self._path) as root:
            for name in (*(f"orders-{number}" for number in range(_REPLICAS)), *([] if scheme else [_STRAY])):
                with make_directory(disk, root, name) as made:
                    data = partition_metadata.encode(self._topic_id)
                    write_new_file(disk, made, partition_metadata.FILE_NAME, data, durable=True)
                    write_new_file(disk, made, NUMBER_FILE, name.encode(), durable=True)

    def play(self) -> str:
        """Make one change, perhaps cut short, and look at what is left; gives what it was."""
        moves = [("stage", self._stage), ("stage", self._stage), ("restore", self._restore), ("purge", self._purge)]
        if self._stray & {Where.LIVE, Where.STAGED}:
            moves += [("adopt", self._adopt), ("forget", self._forget)]
        name, act = self._random.choice(moves)
        self._clock.advance(self._random.choice(_STEPS_MS))
        for number in range(2):
            if self._random.random() < 0.2:
                self._disks.fill(number)
        try:
            act()
            self._look()
        except PowerCut:
            self._crash()
        return name

    def end(self) -> None:
        """Close what is open."""
        self._log_dir.abandon()

    @property
    def _strained(self) -> bool:
        return bool(self._disks.full)

    def _known(self, where: Where) -> list[_Replica]:
        return [each for each in self._replicas if each.may_be == {where}]

    def _stage(self) -> None:
        live = self._known(Where.LIVE)
        chosen = self._random.sample(live, min(len(live), self._random.randint(1, 4)))
        now_ms, delay_ms = self._clock.now_ms(), self._random.choice(_DELAYS_MS)
        candidates = list[Candidate]()
        for each in chosen:
            each.may_be, each.times = {Where.LIVE, Where.STAGED}, (now_ms, now_ms + delay_ms)
            candidates.append(
                Candidate(f"orders-{each.at.partition}", each.at, each.topic_id, "S", "a drill", delay_ms)
            )
        self._fault.arm()
        try:
            outcome = stage(
                self._log_dir, candidates, now_ms, placement=self._placement, fallback=self._fallback, partly=True
            )
        except LogStoreError:
            self._after_an_error(chosen)
            return
        staged, refused = (
            [each.partition for each in outcome.staged],
            [each.candidate.partition for each in outcome.refused],
        )
        if sorted(filter(None, [*staged, *refused])) != sorted(each.at for each in chosen):
            raise BrokenInvariantError(
                f"of {[str(each.at) for each in chosen]}, {staged} are staged and {refused} refused"
            )
        for each in chosen:
            each.may_be = {Where.STAGED if each.at in staged else Where.LIVE}

    def _after_an_error(self, chosen: list[_Replica]) -> None:
        """What was refused is live as it was, and after a crash too, unless the log dir is offline."""
        if self._log_dir.offline is None:
            for each in chosen:
                each.may_be = {Where.LIVE}
            self._look()
        self._crash()

    def _restore(self) -> None:
        kept = [each for each in self._replicas if each.may_be <= {Where.STAGED, Where.BEGUN}]
        if not kept:
            return
        replica = self._random.choice(kept)
        staged = self._staged()[f"orders-{replica.at.partition}"]
        was = next(iter(replica.may_be))
        is_other = self._random.random() < 0.1
        if is_other:
            staged = staged._replace(inode=staged.inode + 1)
        elif was is Where.STAGED:
            replica.may_be = {Where.STAGED, Where.LIVE}
        self._fault.arm()
        try:
            restore(self._log_dir, staged, fallback=self._fallback)
        except LogStoreError:
            if replica.may_be > {was}:
                self._crash()  # which may bring back what was undone
            return
        if is_other or was is Where.BEGUN:
            raise BrokenInvariantError(f"{replica.at} is restored, and was {was}, or is another directory by now")
        replica.may_be = {Where.LIVE}

    def _purge(self) -> None:
        now_ms, due = self._clock.now_ms(), list[_Replica]()
        for each in self._replicas:
            if each.may_be <= {Where.STAGED, Where.BEGUN} and (each.may_be == {Where.BEGUN} or each.times[1] <= now_ms):
                each.may_be |= {Where.BEGUN, Where.NOWHERE}
                each.is_announced &= not self._strained
                due.append(each)
        stray_goes = not self._stray.isdisjoint({Where.STAGED, Where.BEGUN})
        if stray_goes:
            self._stray |= {Where.BEGUN, Where.NOWHERE}
        throttle, before = Throttle(self._clock, unlinks_per_s=_RATE), self._clock.waited
        self._clock.advance(self._random.choice(_STEPS_MS))
        self._fault.arm()
        rules = PurgeRules(now_ms, throttle)
        (report,) = purge([self._log_dir], rules, workers=1, fallback=self._fallback, look_at_processes=False).log_dirs
        if self._clock.waited - before > 10 * (_REPLICAS + 1) / _RATE:
            raise BrokenInvariantError(f"a purge of {len(due)} replicas waits {self._clock.waited - before} s")
        comes_back = set[Where]()
        if report.error is not None or report.failures:
            comes_back |= {Where.BEGUN} if report.error is None and not self._strained else {Where.BEGUN, Where.STAGED}
        if stray_goes:
            self._stray_comes_back = comes_back
        for each in due:
            each.comes_back = comes_back
            if not comes_back and not self._strained:
                each.may_be = {Where.NOWHERE}

    def _adopt(self) -> None:
        self._change_stray(Where.STAGED, lambda stray: adopt_stray(self._log_dir, stray, ("S", "it"), 1, 1))

    def _forget(self) -> None:
        self._change_stray(Where.LIVE, lambda stray: forget_stray(self._log_dir, stray))

    def _change_stray(self, to: Where, act: Callable[[Staged], object]) -> None:
        """Give a stray a record, or take it back; one of another inode is left alone."""
        stray, is_other = self._staged().get(_STRAY), self._random.random() < 0.3
        if stray is None:
            return
        was = set(self._stray)
        refused = is_other or was in ({to}, {Where.BEGUN})
        if not refused:
            self._stray |= {to}
        self._fault.arm()
        try:
            act(stray._replace(inode=stray.inode + is_other))
        except LogStoreError:
            if not refused:
                self._crash()
            return
        if refused:
            raise BrokenInvariantError(f"a stray that is {was} or another directory by now is {to}")
        self._stray = {to}

    def _crash(self) -> None:
        """Lose the power, perhaps once more while a store recovers what that left."""
        strained = self._strained
        for each in self._replicas:
            each.may_be |= each.comes_back
            each.comes_back = set()
        self._stray |= self._stray_comes_back
        self._stray_comes_back = set()
        for may_be in (self._stray, *(each.may_be for each in self._replicas)):
            if Where.BEGUN in may_be:
                may_be.add(Where.NOWHERE)  # recovery removes what a purge has emptied
        for number in self._disks.full:
            self._disks.make_room(number)
        options = StoreOptions(
            self._clock,
            disk=self._disks.disk,
            fallback_records=self._fallback.folder,
            jobs=0,
            placement=self._placement,
        )
        open_after(self._lose_power, lambda: LogStore.open([self._path], options).close(), self._fault)
        self._log_dir = LogDir.open(self._path, disk=self._disks.disk)
        for each in self._replicas:
            # A full disk has no room for the mark of a crash, perhaps, and then nobody gives the entries back.
            each.may_lack_offsets |= strained
        self._look()

    def _lose_power(self) -> None:
        self._log_dir.abandon()
        self._disks.crash(self._random)

    def _staged(self) -> dict[str, Staged]:
        """Give what is listed, by the name that is in its file, or in its record where that is gone."""
        found = dict[str, Staged]()
        for each in list_staged(self._log_dir, self._fallback):
            place, name = os.path.normpath(f"{self._path}/{each.location}"), str(each.partition)
            if each.name == _STRAY:
                name = _STRAY
            elif os.path.exists(f"{place}/{NUMBER_FILE}"):
                with open(f"{place}/{NUMBER_FILE}", encoding="ascii") as file:
                    name = file.read()
            if name in found:
                raise BrokenInvariantError(f"{name} lies in two places; one is {each.location}")
            found[name] = each
        return found

    def _look(self) -> None:
        """Find each replica, and know from then on what it is."""
        staged, live = self._staged(), set(os.listdir(self._path))
        for each in self._replicas:
            name = str(each.at)
            found = Where.LIVE if name in live else self._where(staged.get(name))
            if found not in each.may_be or (name in live and name in staged):
                raise BrokenInvariantError(f"{name} is {found}, and should be {' or '.join(sorted(each.may_be))}")
            each.may_be = {found}
            if found is Where.LIVE:
                self._look_at_live(each)
            elif found is Where.STAGED:
                self._look_at_staged(each, staged[name])
        stray = staged.get(_STRAY)
        found = Where.LIVE if stray is not None and stray.record is None else self._where(stray)
        if found not in self._stray:
            raise BrokenInvariantError(f"a broker's stray is {found}, and should be {' or '.join(sorted(self._stray))}")
        self._stray = {found}

    @staticmethod
    def _where(staged: Staged | None) -> Where:
        if staged is None:
            return Where.NOWHERE
        return Where.BEGUN if staged.may_be_partly_purged else Where.STAGED

    def _look_at_live(self, replica: _Replica) -> None:
        if not replica.is_announced:
            return  # half of it is gone perhaps, and without its topic ID nobody knows that the entries are its own
        files = sorted(os.listdir(f"{self._path}/{replica.at}"))
        if files != sorted((NUMBER_FILE, partition_metadata.FILE_NAME)):
            raise BrokenInvariantError(f"{replica.at} is live, and not whole")
        found = self._log_dir.checkpoints.offsets(replica.at)
        if not replica.has(found):
            raise BrokenInvariantError(
                f"{replica.at} is live with the checkpoint entries {found}, not {replica.offsets}"
            )

    def _look_at_staged(self, replica: _Replica, staged: Staged) -> None:
        record = staged.record
        if record is None or staged.in_doubt:
            raise BrokenInvariantError(f"{replica.at} is staged, and {staged.problem or 'in doubt'}")
        files = sorted(os.listdir(f"{self._path}/{staged.location}"))
        if replica.is_announced and files != sorted((NUMBER_FILE, partition_metadata.FILE_NAME)):
            raise BrokenInvariantError(
                f"{replica.at} is staged, and not whole: it holds {', '.join(files) or 'nothing'}"
            )
        if (record.staged_ms, record.due_ms) != replica.times or not replica.has(record.checkpoints):
            raise BrokenInvariantError(f"{replica.at} is staged with {record}, not {replica.times}, {replica.offsets}")

    def damage(self) -> bool:
        """Damage a line, and see that it is named, and what comes back and what is purged; False: there is none."""
        for number in self._disks.full:
            self._disks.make_room(number)
        self._log_dir.close()
        folders = {Placement.INSIDE: f"{self._path}/deleting", Placement.SIBLING: f"{self._path}.deleting"}
        folder = folders.get(self._placement, self._path)
        damaged = None
        if os.path.exists(f"{folder}/{LEDGER_FILE}"):
            with Directory.open(folder) as opened:
                damaged = damage_line(self._disks.disk, opened, self._random)
        self._log_dir = LogDir.open(self._path, disk=self._disks.disk)
        if damaged is None:
            return False
        if [f"line {damaged.number} of " in each for each in damaged_lines(self._log_dir, self._fallback)] != [True]:
            raise BrokenInvariantError(f"line {damaged.number} in {folder} is damaged, and nobody says so")
        before, lost = self._staged(), set[str]()
        for name, each in before.items():
            said = damaged.said.get(each.name)
            if said is None or not said.has_record:
                # What a purge has emptied needs no line: nothing is lost with it.
                lost |= {name} if os.listdir(f"{self._path}/{each.location}") else set()
            elif said.in_doubt and said.event is LedgerEvent.STAGED:
                self._refuses_in_doubt(each)
        self._clock.advance(100 * 3_600_000)
        purge(
            [self._log_dir],
            PurgeRules(self._clock.now_ms()),
            workers=1,
            fallback=self._fallback,
            look_at_processes=False,
        )
        after = self._staged()
        kept_elsewhere = self._fallback.read(self._path)
        elsewhere = set() if kept_elsewhere is None else set(kept_elsewhere.entries)
        for name in lost:
            if name not in after and before[name].name not in elsewhere and before[name].record is None:
                raise BrokenInvariantError(f"{name} is purged, and no line that can be read says that it is due")
        return True

    def _refuses_in_doubt(self, staged: Staged) -> None:
        try:
            restore(self._log_dir, staged, fallback=self._fallback)
        except ChangeRefusedError:
            return
        raise BrokenInvariantError(f"{staged.location} is restored, and a damaged line may say that it is half purged")
