"""Purges the directories of one staging root by batches, and lets nobody wait for the disk while there is work.

Each worker has two threads. One empties batch after batch; the other makes a batch durable and then finishes it, while
the first is at the next batch already (``remove_staged`` says what these mean, and why in this order)::

    first     empty 1   empty 2              empty 3
    second              barrier 1, finish 1  barrier 2, finish 2   barrier 3, finish 3, sync of the staging root

A barrier comes after everything that its worker did before, so barrier 2 makes the end of batch 1 durable as well. The
last batch has nothing beside which to end.

Some disks are waited for at every file that goes: an ext4 that tells the disk which blocks are free, a share of another
machine. They take several at once. So where the first directories of a batch show that (``pace``), the others are dealt
out to more threads, whether they are to be emptied or finished; what comes before what is the same for each directory.

What the workers of a purge are, threads or processes, is told by ``purge_workers``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from layout.directory_name import DirectoryName
from logstore.fs import Disk
from logstore.log_dir import DISK_FAILURES
from logstore.parallel import AdaptiveThreadPool, map_chunks
from logstore.purge.eligibility import DueDirectory, PrefetchedDirectory
from logstore.purge.remove import Removal
from logstore.purge.report import KeptDirectory

EMPTYING: Final = 4
"""Threads that empty a batch where each file is waited for; more of them win nothing."""

FINISHING: Final = 2
"""Threads that finish a batch then: that is a record and a directory each, and not some five files."""

_PIECE = 25
"""Directories that a thread takes at a time."""

_FEWEST_WAITS = _PIECE // 2
"""Waits for the disk during one piece from which on threads pay. Where no file is waited for there are up to four, and
where each is, some seventy, or twenty-five at the end of a batch."""

_FEW = 4
"""Directories up to which each is synced by itself: a barrier waits for all that others wrote to the disk."""


@dataclass(slots=True)
class PurgeBatch:
    """What became of some directories.

    Attributes:
        names: of the directories.
        seen: what was seen of each ahead, or when it is due, until it is emptied; without that, and where it is None, a
            directory is looked at when its turn comes.
        number: which batch of all it is, for whoever asks.
        kept: those that stay.
        partly: those that were not emptied to the end.
        emptied: those that were.
        failure: why the disk did not confirm that, one sentence, so that all of these keep their records; None: it did.
        had_record_inside: for each that was emptied and confirmed, whether its record lay in it, and not elsewhere.
    """

    names: Sequence[DirectoryName]
    seen: Sequence[PrefetchedDirectory | int | None] = ()
    number: int = 0
    kept: list[KeptDirectory] = field(default_factory=list)
    partly: list[DueDirectory] = field(default_factory=list)
    emptied: list[DueDirectory] = field(default_factory=list)
    failure: str | None = None
    had_record_inside: list[bool] = field(default_factory=list)


class BatchWorker:
    """One worker; use it as a context manager.

    Attributes:
        gone: its batches whose end is durable; filled also when a disk that fails ends its work.
    """

    def __init__(self, removal: Removal, disk: Disk) -> None:
        """Take what removes the directories, and the disk they are on."""
        self._removal, self._disk, self._root = removal, disk, removal.staging.root
        self._second = ThreadPoolExecutor(1, thread_name_prefix="purge-end")
        self._emptying = AdaptiveThreadPool(self._all_emptied, EMPTYING)
        self._finishing = AdaptiveThreadPool(self._all_finished, FINISHING)
        is_throttled = removal.staging.rules.throttle is not None  # then it waits, but not for the disk
        self._fewest_waits = _FEWEST_WAITS if disk.is_shared and not is_throttled else sys.maxsize
        self._former: PurgeBatch | None = None
        self._finished: PurgeBatch | None = None
        self.gone: list[PurgeBatch] = []

    def purge(self, batch: PurgeBatch) -> None:
        """Empty a batch, and meanwhile bring the one before to its end.

        Raises:
            OSError: the disk fails.
        """
        former, self._former = self._former, None
        if former is None or not self._disk.is_shared:
            if former is not None:
                self._bring_to_end(former)
            self._empty(batch)
        else:
            ending = self._second.submit(self._bring_to_end, former)
            try:
                self._empty(batch)
            finally:
                ending.result()
        self._former = batch

    def end(self) -> None:
        """Bring to its end what is not: no batch follows.

        Raises:
            OSError: the disk fails.
        """
        if self._former is not None:
            self._bring_to_end(self._former)
        if self._finished is not None:
            if self._finished.emptied:
                self._disk.sync(self._root.descriptor)
            self.gone.append(self._finished)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._second.__exit__(kind, error, trace)
        for pace in (self._emptying, self._finishing):
            pace.__exit__(kind, error, trace)

    def _bring_to_end(self, batch: PurgeBatch) -> None:
        self._make_durable(batch)
        if self._finished is not None:
            if batch.failure is not None or not batch.emptied:
                self._disk.sync(self._root.descriptor)  # there was no barrier after it
            self.gone.append(self._finished)
        if batch.failure is None:
            batch.had_record_inside = map_chunks(self._finishing, batch.emptied, _PIECE, self._fewest_waits)
        self._finished = batch

    def _empty(self, batch: PurgeBatch) -> None:
        found, batch.seen = batch.seen or [None] * len(batch.names), ()
        both = list(zip(batch.names, found, strict=True))
        for outcome in map_chunks(self._emptying, both, _PIECE, self._fewest_waits):
            if isinstance(outcome, KeptDirectory):
                batch.kept.append(outcome)
            elif outcome is not None:
                is_empty = outcome.problem is None and not outcome.cancelled
                (batch.emptied if is_empty else batch.partly).append(outcome)

    def _all_emptied(
        self, piece: Sequence[tuple[DirectoryName, PrefetchedDirectory | int | None]]
    ) -> list[DueDirectory | KeptDirectory | None]:
        return [self._emptied(name, seen) for name, seen in piece]

    def _all_finished(self, piece: Sequence[DueDirectory]) -> list[bool]:
        return [self._removal.finish(due) for due in piece]

    def _emptied(
        self, name: DirectoryName, seen: PrefetchedDirectory | int | None
    ) -> DueDirectory | KeptDirectory | None:
        if isinstance(seen, PrefetchedDirectory):
            return self._removal.empty_seen(name, seen)
        return self._removal.empty(name) if seen is None else self._removal.staging.not_due(name.text, seen)

    def _make_durable(self, batch: PurgeBatch) -> None:
        """The barrier. Where it fails nobody knows what came through: the records stay, and what was emptied is due."""
        if not batch.emptied:
            return
        try:
            if len(batch.emptied) > _FEW and self._disk.sync_file_system(self._root.descriptor):
                return
            for due in batch.emptied:
                with self._root.child(due.name) as directory:
                    self._disk.sync(directory.descriptor)
            self._disk.sync(self._root.descriptor)
        except OSError as error:
            if error.errno in DISK_FAILURES:
                raise
            batch.failure = (
                f"{self._root.path}: {len(batch.emptied)} directories were emptied, and keep their records, because "
                f"the disk does not confirm it ({os.strerror(error.errno or 0)})"
            )
