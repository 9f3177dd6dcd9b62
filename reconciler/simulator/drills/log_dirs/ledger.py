"""A game with a ledger on a disk that writes back pages in any order, or is full, and with a copy by hard links.

    order    of what was not synced a crash may keep the end and lose the middle; it is never taken for damage
    refused  a sync fails, and the next one does not; then all of it is durable, with what the first one was to write
    full     where there is no room for one more replica, there is room to say that a purge has begun
    copied   a folder that was copied by hard links, as a snapshot, does not change with the one that is in use

What was written is remembered here, and the lines are read again by the reader alone. Source: DESIGN §5.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.ours import LedgerEvent, StagedRecord
from layout.scheme import LEDGER_FILE
from logstore.fs import Directory, make_directory
from logstore.fs.crash_disk import memory_folder
from logstore.log_dir import LedgerFile, read_ledger
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.log_dirs.page_cache import PageCache

_ROUNDS, _CHANGES, _REFUSED = 3, 4, 0.3
"""Rounds, each of which ends with a crash; changes in a round; how likely the first sync of a change fails."""

_EVIDENCE: Final = 1_500
"""Characters of the evidence of a replica on a full disk: with as many, some 40 lines fill the space of a ledger."""

_PURGED: Final = 30
"""Directories of which a full ledger has room to say that a purge has begun."""

_Event = LedgerEvent | None


class _Game:
    """One ledger, the directories of which it speaks, and what may be said of each."""

    def __init__(self, folder: Directory, random: Random) -> None:
        self.disk, self.folder, self._random = PageCache(), folder, random
        self.may_be: dict[str, list[_Event]] = {}
        """The last one is what was written last; there are others until a sync has confirmed it."""
        self._records: dict[str, StagedRecord] = {}

    def records(self, count: int, evidence: str) -> dict[str, StagedRecord]:
        """Draw replicas of which nothing was said yet."""
        made = dict[str, StagedRecord]()
        for number in range(len(self._records), len(self._records) + count):
            topic_id = TopicId(self._random.randbytes(16))
            made[f"{topic_id}_{number}"] = StagedRecord(
                "orders", number, topic_id, f"orders-{number}", "STALE_ID", evidence, 5, 9
            )
        self._records |= made
        return made

    def change(self, ledger: LedgerFile) -> None:
        """Append lines, whose sync may fail."""
        staged = [name for name, events in self.may_be.items() if events == [LedgerEvent.STAGED]]
        self.disk.refuses_sync = self._random.random() < _REFUSED
        try:
            if staged and self._random.random() < 0.4:
                chosen = self._random.sample(staged, 1)
                self.written(chosen, LedgerEvent.PURGING)
                durable = self._random.random() < 0.6
                ledger.note(LedgerEvent.PURGING, chosen, durable=durable)
                if not durable:
                    return
            else:
                records = self.records(self._random.randint(1, 4), "a drill")
                self.may_be |= {name: [None] for name in records}
                self.written(records, LedgerEvent.STAGED)
                ledger.stage(records)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return
        finally:
            self.disk.refuses_sync = False
        self.confirmed()

    def written(self, names: Iterable[str], event: LedgerEvent) -> None:
        """Remember what was written, and may be lost."""
        for name in names:
            self.may_be[name].append(event)

    def confirmed(self) -> None:
        """Remember that all that was written is durable."""
        for events in self.may_be.values():
            del events[:-1]

    def look(self) -> None:
        """Compare the file with what was written, and know from then on what it is."""
        said = read_ledger(self.folder)
        if said is None or said.damaged:
            raise BrokenInvariantError(
                f"nothing damaged a ledger, and these lines are said to be: {said and said.damaged[:2]}"
            )
        if unknown := said.entries.keys() - self.may_be.keys():
            raise BrokenInvariantError(f"a ledger speaks of {', '.join(sorted(unknown))}, which nobody staged")
        for name, events in self.may_be.items():
            entry = said.entries.get(name)
            found = None if entry is None else entry.event
            if found not in events or (entry is not None and entry.record != self._records[name]):
                raise BrokenInvariantError(f"a ledger says {found} of {name}, and should one of {events}")
            self.may_be[name] = [found]


def play_ledger(random: Random) -> str:
    """Play with one ledger; gives what it was.

    Raises:
        BrokenInvariantError: a promise is broken.
    """
    with memory_folder() as path, Directory.open(path) as top:
        disk = PageCache()
        with make_directory(disk, top, "staged") as folder, make_directory(disk, top, "copy") as copy:
            game = _Game(folder, random)
            if random.random() < 0.3:
                _fill(game)
                return "ledger_full"
            with LedgerFile.open(game.disk, folder) as ledger:
                game.change(ledger)
            for _ in range(_ROUNDS):
                game.disk.crash(folder, LEDGER_FILE, random)
                game.look()
                before = _copied(game, copy)
                with LedgerFile.open(game.disk, folder) as ledger:
                    game.look()
                    for _ in range(random.randint(1, _CHANGES)):
                        game.change(ledger)
                if Path(copy.path, LEDGER_FILE).read_bytes() != before:
                    raise BrokenInvariantError("a ledger that was copied by hard links has changed in the copy too")
                game.disk.unlink(copy.descriptor, LEDGER_FILE)
    return "ledger_pages"


def _copied(game: _Game, copy: Directory) -> bytes:
    """Copy the ledger by a hard link, as ``cp -al`` does; gives its bytes."""
    game.disk.link(game.folder.descriptor, LEDGER_FILE, copy.descriptor, LEDGER_FILE)
    return Path(copy.path, LEDGER_FILE).read_bytes()


def _fill(game: _Game) -> None:
    """Stage until the disk is full; then a purge can begin, and all of it is found."""
    with LedgerFile.open(game.disk, game.folder) as ledger:
        game.disk.room = 0
        count, evidence = 16, "e" * _EVIDENCE
        while count:
            records = game.records(count, evidence)
            try:
                ledger.stage(records)
            except OSError:
                count //= 2
                continue
            game.may_be |= {name: [LedgerEvent.STAGED] for name in records}
        chosen = list(game.may_be)[:_PURGED]
        try:
            ledger.note(LedgerEvent.PURGING, chosen, durable=True)
        except OSError as error:
            raise BrokenInvariantError(
                f"a full disk cannot be purged: {len(chosen)} lines: {error.strerror}"
            ) from error
    game.written(chosen, LedgerEvent.PURGING)
    game.confirmed()
    game.look()
