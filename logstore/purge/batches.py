"""Purges batches of directories of one staging root, so that no worker waits for the disk while there is work.

Each worker has two threads. One empties batch after batch; the other makes a batch durable and then finishes it, while
the first is at the next batch already (``remove`` explains these steps and their order)::

    first     empty 1   empty 2              empty 3
    second              barrier 1, finish 1  barrier 2, finish 2   barrier 3, finish 3, sync of the staging root

A barrier covers everything that its worker did before, so barrier 2 makes the end of batch 1 durable as well. Nothing
runs beside the end of the last batch.

Some disks make each removal wait: an ext4 that discards free blocks, a share of another machine. They serve several
removals at once. Where the first directories of a batch show such waits, the rest is dealt out to more threads, to be
emptied as well as to be finished. The order of steps for one directory stays the same.
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
from logstore.purge.eligibility import DueDirectory
from logstore.purge.remove import Removal
from logstore.purge.report import KeptDirectory

EMPTYING: Final = 4
"""Threads that empty a batch where each removal waits; more threads gain nothing."""

FINISHING: Final = 2
"""Threads that finish a batch there: one record and one directory each, not some five files."""

_PIECE = 25
"""Directories in a piece, which a thread takes at a time."""

_FEWEST_WAITS = _PIECE // 2
"""Waits for the disk during one piece from which threads pay. A piece has up to four where removals do not wait, and
where they do, some seventy while it is emptied and twenty-five while it is finished."""

_FEW = 4
"""Directories up to which each is synced by itself: a barrier also waits for everything that others wrote."""


@dataclass(slots=True)
class PurgeBatch:
    """Some directories, and what became of them.

    Attributes:
        names: of the directories.
        number: the position of the batch among all.
        kept: the directories that stay.
        partly: the directories that were emptied in part.
        emptied: the directories that were emptied whole.
        failure: why the disk did not confirm that, one sentence, so that ``emptied`` keep their records; None: it did.
        had_record_inside: for each of ``emptied``, once confirmed, whether its record lay in it, and not elsewhere.
    """

    names: Sequence[DirectoryName]
    number: int = 0
    kept: list[KeptDirectory] = field(default_factory=list)
    partly: list[DueDirectory] = field(default_factory=list)
    emptied: list[DueDirectory] = field(default_factory=list)
    failure: str | None = None
    had_record_inside: list[bool] = field(default_factory=list)


class BatchWorker:
    """Purges batch after batch; use it as a context manager.

    Attributes:
        gone: the batches whose end is durable; filled also when the disk fails.
    """

    def __init__(self, removal: Removal, disk: Disk) -> None:
        """Take the removal of one staging root, and the disk it is on."""
        self._removal, self._disk, self._root = removal, disk, removal.staging.root
        self._second = ThreadPoolExecutor(1, thread_name_prefix="purge-end")
        self._emptying = AdaptiveThreadPool(self._all_emptied, EMPTYING)
        self._finishing = AdaptiveThreadPool(self._all_finished, FINISHING)
        is_throttled = removal.staging.rules.throttle is not None  # a throttled purge waits, but not for the disk
        self._fewest_waits = _FEWEST_WAITS if disk.is_shared and not is_throttled else sys.maxsize
        self._former: PurgeBatch | None = None
        self._finished: PurgeBatch | None = None
        self.gone: list[PurgeBatch] = []

    def purge(self, batch: PurgeBatch) -> None:
        """Empty a batch, and meanwhile finish the one before.

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
        """Finish all batches; none follows.

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
        for outcome in map_chunks(self._emptying, batch.names, _PIECE, self._fewest_waits):
            if isinstance(outcome, KeptDirectory):
                batch.kept.append(outcome)
            elif outcome is not None:
                is_empty = outcome.problem is None and not outcome.cancelled
                (batch.emptied if is_empty else batch.partly).append(outcome)

    def _all_emptied(self, piece: Sequence[DirectoryName]) -> list[DueDirectory | KeptDirectory | None]:
        return [self._removal.empty(name) for name in piece]

    def _all_finished(self, piece: Sequence[DueDirectory]) -> list[bool]:
        return [self._removal.finish(due) for due in piece]

    def _make_durable(self, batch: PurgeBatch) -> None:
        """Make the removals durable. Where that fails, nobody knows which are: the records stay, still due."""
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
