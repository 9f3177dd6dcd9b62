"""A game with one ledger on a crash disk: each line is written to be read again, whatever goes wrong meanwhile.

What was confirmed to be durable is found after every crash, and nothing that nobody wrote. A crash is never taken for
damage. A damaged line costs what it said, and that alone: it is named, and each directory of which no later line
speaks is in doubt, even after a compaction. The lines are read here by other code than the engine's own.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.ours import Ledger, LedgerEvent, StagedRecord
from logstore.fs import Directory, make_directory
from logstore.fs.crash_disk import MachineDisks
from logstore.log_dir import Ledgers, read_ledger
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.bench import PowerCut
from reconciler.simulator.drills.fault import CALM_FROM, Fault
from reconciler.simulator.drills.staging.damage import Said, damage_line

_MOST_STAGED: Final = 3
"""Lines of one call, of which half are written at most where the disk is full: so no line of it is left over whole."""

_LAST_OF_COMPACTION: Final = 4
"""Changes of a disk before the last of a compaction: a temporary file is made, written, synced and renamed."""

_NEXT: Final = {
    LedgerEvent.STAGED: (LedgerEvent.RESTORED, LedgerEvent.PURGING, LedgerEvent.PURGING),
    LedgerEvent.PURGING: (LedgerEvent.PURGED, LedgerEvent.PURGED, LedgerEvent.KEPT),
}
_BEGUN: Final = (LedgerEvent.PURGING, LedgerEvent.PURGED)


@dataclass(slots=True)
class _Directory:
    """What was said of one directory.

    Attributes:
        record: with which it was staged.
        lines: what the lines said of it, one after the other, each with whether that was confirmed; None: no line. What
            is surely durable comes first.
    """

    record: StagedRecord
    lines: list[tuple[LedgerEvent | None, bool]] = field(default_factory=lambda: [(None, True)])

    @property
    def known(self) -> LedgerEvent | None:
        """What the newest line says, where that is certain."""
        return self.lines[0][0] if len(self.lines) == 1 else None

    def synced(self) -> None:
        """Forget what a confirmed line has overruled."""
        self.lines = self.lines[max(place for place, (_, is_sure) in enumerate(self.lines) if is_sure) :]

    def may_say(self, *, crashed: bool) -> set[LedgerEvent | None]:
        """Give what may be found: without a crash nothing that a confirmed line has overruled."""
        first = 0 if crashed else max(place for place, (_, is_sure) in enumerate(self.lines) if is_sure)
        return {event for event, _ in self.lines[first:]}


class LedgerGame:
    """One ledger in a folder of its own, with the directories of which it speaks."""

    def __init__(self, disks: MachineDisks, random: Random, fault: Fault) -> None:
        """Make the folder; ``fault`` is announced for many of the changes."""
        self._disks, self._random, self._fault = disks, random, fault
        with Directory.open(os.path.dirname(disks.log_dirs[0])) as mounted:
            self._folder = make_directory(disks.disk, mounted, "staged")
            disks.disk.sync(mounted.descriptor)
        self._there = dict[str, _Directory]()
        self._number = 0
        self._open()

    def _open(self) -> None:
        self._ledgers = Ledgers(self._disks.disk)
        self._ledger = self._ledgers.of(self._folder)

    def play(self) -> str:
        """Make one change, perhaps cut short, and look at what is left; gives what it was."""
        name, act = self._random.choice(
            (
                *(("stage", self._stage), ("stage", self._stage), ("note", self._note), ("note", self._note)),
                *(("compact", self._compact), ("reopen", self._reopen), ("used_name", self._use_again)),
                ("half_compacted", self._compact_and_stage),
            )
        )
        try:
            self._fault.arm()
            act()
        except PowerCut:
            self._crash()
            return name
        except OSError:
            # What was written of it may be found or not.
            if name == "reopen":
                self._crash()
        self._check(crashed=False)
        if self._random.random() < 0.25:
            self._crash()
        return name

    def end(self) -> None:
        """Close what is open."""
        self._ledgers.close()
        self._folder.close()

    def _stage(self) -> None:
        for name in self._stage_in_words():
            make_directory(self._disks.disk, self._folder, name).close()

    def _stage_in_words(self) -> Iterable[str]:
        """Write the lines of directories that are not there yet; gives their names."""
        records = dict[str, StagedRecord]()
        for _ in range(self._random.randint(1, _MOST_STAGED)):
            topic_id = TopicId(self._random.randbytes(16))
            offsets = {"recovery-point-offset-checkpoint": self._random.randrange(1 << 40)}
            record = StagedRecord(
                "orders", self._number, topic_id, f"orders-{self._number}", "STALE_ID", "a drill", 5, 9
            )
            records[f"{topic_id}_{self._number}"] = record._replace(checkpoints=offsets)
            self._number += 1
        for name, record in records.items():
            self._there[name] = _Directory(record)
        self._said(records, LedgerEvent.STAGED, lambda: self._ledger.stage(records), durable=True)
        return records

    def _note(self) -> None:
        known = [name for name, each in self._there.items() if each.known in _NEXT]
        if not known:
            return
        state = self._there[self._random.choice(known)].known
        assert state is not None, "it is known"
        own = [name for name in known if self._there[name].known is state]
        chosen = self._random.sample(own, min(len(own), self._random.randint(1, _MOST_STAGED)))
        event, durable = self._random.choice(_NEXT[state]), self._random.random() < 0.5
        self._said(chosen, event, lambda: self._ledger.note(event, chosen, durable=durable), durable=durable)
        if durable and event is LedgerEvent.RESTORED:
            for name in chosen:
                self._disks.disk.rmdir(self._folder.descriptor, name)
        # What is purged stays, as where a crash has brought it back.

    def _said(self, names: Iterable[str], event: LedgerEvent, act: Callable[[], None], *, durable: bool) -> None:
        """Write lines; what is refused may have been written all the same."""
        means = LedgerEvent.STAGED if event is LedgerEvent.KEPT else event
        for name in names:
            self._there[name].lines.append((means, False))
        act()
        for name in names:
            self._there[name].lines[-1] = (means, True)
        if durable:
            self._all_synced()

    def _all_synced(self) -> None:
        for each in self._there.values():
            each.synced()

    def _compact(self) -> None:
        present = self._folder.directories()
        for name in self._there.keys() - set(present):
            del self._there[name]
        if self._ledger.compact(present, 1):
            self._all_synced()

    def _compact_and_stage(self) -> None:
        """The new file takes the place of the old one, and the system refuses to make that durable; then lines follow.

        A crash right behind may bring the old file back, but not without the lines that were confirmed.
        """
        self._fault.refuse(_LAST_OF_COMPACTION)
        try:
            self._compact()
        except OSError:
            self._check(crashed=False)
        self._fault.disarm()
        self._stage_in_words()
        self._crash()

    def _reopen(self) -> None:
        """Close it in order, which makes all lines durable, and open it again, which may compact it."""
        self._ledgers.sync()
        self._all_synced()
        self._ledgers.close()
        for name in self._there.keys() - set(self._folder.directories()):
            del self._there[name]
        self._open()

    def _use_again(self) -> None:
        """A name that is staged, or rather one that a purge may have emptied, is not used again."""
        self._note()
        taken = [name for name, each in self._there.items() if each.known in _BEGUN]
        taken = taken or [name for name, each in self._there.items() if each.known is LedgerEvent.STAGED]
        if not taken:
            return
        name = self._random.choice(taken)
        try:
            self._ledger.stage({name: self._there[name].record})
        except ValueError:
            return
        raise BrokenInvariantError(f"{name} is staged once more, and was {self._there[name].known} before")

    def _crash(self) -> None:
        """Lose the power, perhaps once more while the ledger is opened again."""
        for tries in itertools.count():
            self.end()
            self._disks.crash(self._random)
            self._folder = Directory.open(self._folder.path)
            self._check(crashed=True)
            for name in self._there.keys() - set(self._folder.directories()):
                del self._there[name]
            try:
                self._fault.arm(tries)
                self._open()
            except (PowerCut, OSError) as error:
                if tries >= CALM_FROM:
                    raise BrokenInvariantError(f"a ledger does not open after a crash: {error}") from error
                continue
            self._check(crashed=False)
            return

    def _check(self, *, crashed: bool) -> None:
        """Read the file anew, and compare it; after a crash it is known again what is so."""
        said = self._read()
        if said.damaged:
            raise BrokenInvariantError(f"{said.damaged[0]} of a ledger is taken for damage, and nothing damaged it")
        for name, each in self._there.items():
            entry = said.entries.get(name)
            found = None if entry is None else entry.event
            if found not in (may := each.may_say(crashed=crashed)):
                raise BrokenInvariantError(f"the ledger says {found} of {name}, and should {_words(may)}")
            if entry is not None:
                if entry.record != each.record:
                    raise BrokenInvariantError(f"the ledger has the record {entry.record} of {name}")
                if entry.may_be_partly_purged is not (found in _BEGUN) or entry.in_doubt:
                    raise BrokenInvariantError(f"{name} is {found}, and is said to be whole or in doubt")
            if crashed:
                each.lines = [(found, True)]

    def _read(self) -> Ledger:
        said = read_ledger(self._folder)
        if said is None:
            raise BrokenInvariantError(f"the ledger of {', '.join(self._there)} is gone")
        return said

    def damage(self) -> bool:
        """Damage one durable line, and look at what that costs; False: there is none."""
        self._reopen()
        damaged = damage_line(self._disks.disk, self._folder, self._random)
        if damaged is None:
            return False
        self._look(damaged.said, damaged.number)
        self._ledgers.close()
        self._open()
        present = self._folder.directories()
        self._ledger.compact(present, 1)
        self._look({name: each for name, each in damaged.said.items() if name in present}, None)
        return True

    def _look(self, expected: dict[str, Said], number: int | None) -> None:
        """Compare a ledger with a damaged line; ``number``: of that line, None: any."""
        said = self._read()
        if len(said.damaged) != 1 or number not in (None, said.damaged[0].number):
            raise BrokenInvariantError(f"line {number} of a ledger is damaged, and {said.damaged} is said to be")
        for name, each in expected.items():
            entry = said.entries.get(name)
            found = None if entry is None else Said(entry.event, entry.in_doubt, entry.record is not None)
            if found != each:
                raise BrokenInvariantError(f"beside a damaged line {name} is {found}, and {each} is right")


def _words(may: Iterable[LedgerEvent | None]) -> str:
    return " or ".join(sorted("nothing" if event is None else str(event) for event in may))
