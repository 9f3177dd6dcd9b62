"""Shares the directories that are due in a staging root among workers: threads, or in a large purge processes.

Threads share an interpreter, which two of them use up where the disk does not keep them waiting. So where a large purge
has several workers, each is a forked process. It shares the log dir's lock, which belongs to the open file: if the
first process is killed, the lock is held until the last worker has noticed (:class:`SharedCancel`) and ended. A worker
that is killed costs nothing but a part of the report, because the first process repeats the batches that the worker
has not reported. A single worker is the first process itself.

Some disks make each removal wait: an ext4 that discards free blocks, a share of another machine. They serve several
removals at once. Where the first directories of a batch show such waits, the rest is dealt out to more threads.

Three kinds of purge have threads alone: a throttled one and one that selects directories, which wait or have little to
remove; and a short one, which is over before processes pay.
"""

from __future__ import annotations

import logging
import mmap
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from types import TracebackType
from typing import Final, Self, TypeAlias

from logstore.fs import Disk
from logstore.parallel import AdaptiveThreadPool, can_fork, map_chunks, paused_gc, spread
from logstore.purge.eligibility import DueDirectory, RemovalResult, StagingRoot
from logstore.purge.remove import Removal
from logstore.tunables import (
    PURGE_BATCH_SIZE,
    PURGE_BATCHES_EACH,
    PURGE_PROCESSES_FROM,
    PURGE_SMALLEST_BATCH,
    PURGE_THREADS,
    PURGE_WAITS_PAY_FROM,
    PURGED_PER_PIECE,
)

logger = logging.getLogger(__name__)

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_Range: TypeAlias = list[int]
"""Start and stop of a batch, as positions among the directories. A list, because it passes through ``marshal``."""


class PurgeWorkers:
    """The removal of directories of one staging root.

    Attributes:
        done: the directories that were tried, in any order; filled also when the disk fails.
        cancelled: some directories were left because the purge was cancelled.
    """

    def __init__(self, staging: StagingRoot, disk: Disk, workers: int, *, may_fork: bool = False) -> None:
        """Take a staging root, the disk it is on, and the number of workers."""
        self._staging, self._disk = staging, disk
        self._workers = workers if disk.is_shared else 1
        rules = staging.rules
        self._may_fork = may_fork and can_fork() and disk.is_shared and rules.throttle is None and rules.only is None
        # A throttled purge waits, but not for the disk.
        self._fewest_waits = PURGE_WAITS_PAY_FROM if disk.is_shared and rules.throttle is None else sys.maxsize
        self._due: Sequence[DueDirectory] = ()
        self._is_forked = False
        self._begun: mmap.mmap | bytearray = bytearray()
        """By batch, whether any process began it; forked ones write it too."""
        self._left: Iterator[_Range] = iter(())
        self._taking = threading.Lock()
        self._given_up = False
        self.done: list[DueDirectory] = []
        self.cancelled = False

    def purge(self, due: Sequence[DueDirectory]) -> None:
        """Remove directories until all are done or the purge is cancelled.

        Raises:
            OSError: the disk fails.
        """
        self._due = due
        is_large = len(due) >= PURGE_PROCESSES_FROM
        shares = self._workers * (PURGE_BATCHES_EACH if is_large else 1)
        size = min(PURGE_BATCH_SIZE, max(PURGE_SMALLEST_BATCH, -(-len(due) // shares)))
        ranges = [[start, min(start + size, len(due))] for start in range(0, len(due), size)]
        if self._may_fork and is_large and self._workers > 1:
            self._purge_by_processes(ranges)
        else:
            self._purge_by_threads(ranges)

    def _purge_by_threads(self, ranges: list[_Range]) -> None:
        self._left = iter(ranges)
        workers = min(self._workers, len(ranges))
        if workers == 1:
            with paused_gc():
                self._work()
            return
        with ThreadPoolExecutor(workers, thread_name_prefix="purge") as pool:
            running = [pool.submit(self._work) for _ in range(workers)]
            try:
                for each in as_completed(running):
                    each.result()
            finally:
                self._given_up = True

    def _work(self) -> None:
        """Remove batches in one thread."""
        with self._removing() as pool:
            while (batch := self._take()) is not None:
                self.done += batch
                map_chunks(pool, batch, PURGED_PER_PIECE, self._fewest_waits)

    def _removing(self) -> AdaptiveThreadPool[Sequence[DueDirectory], list[bool]]:
        removal = Removal(self._staging, self._disk)
        return AdaptiveThreadPool(lambda piece: [removal.remove(due) for due in piece], PURGE_THREADS)

    def _take(self) -> Sequence[DueDirectory] | None:
        """Take the next batch; None: there is none, or the purge is cancelled or failed."""
        with self._taking:
            taken = None if self._given_up else next(self._left, None)
        if taken is None:
            return None
        if self._staging.rules.cancel.is_set():
            self.cancelled = True
            return None
        return self._due[slice(*taken)]

    def _purge_by_processes(self, ranges: list[_Range]) -> None:
        rules = self._staging.rules

        def enter() -> None:
            for number in _ENDING:
                signal.signal(number, signal.SIG_IGN)  # the first process decides when its workers end
            self._staging.rules = replace(rules, cancel=shared.in_child())
            self._is_forked = True

        def take(number: int, results: list[RemovalResult] | None) -> None:
            batch = self._due[slice(*ranges[number])]
            if results is None:
                self.cancelled = True
                for due in batch if self._begun[number] else ():
                    due.touched = True  # by a process that was killed, or it would have said so
                return
            for due, result in zip(batch, results, strict=True):
                due.result = result
            self.done += batch
            if rules.progress is not None:
                rules.progress(sum(due.removed for due in batch), sum(due.bytes for due in batch))

        self._begun = mmap.mmap(-1, len(ranges))
        self._staging.rules = replace(rules, progress=None)  # a call in a forked process would not reach the caller
        try:
            with paused_gc(), SharedCancel(rules.cancel) as shared:
                spread(self._purged, ranges, min(self._workers, len(ranges)), take, enter)
        finally:
            self._staging.rules = rules

    def _purged(self, ranges: Iterable[tuple[int, _Range]]) -> Iterator[tuple[int, list[RemovalResult] | None]]:
        """Remove batches in one process; yields each when it is done, or None where it was cancelled before.

        The first process removes what a forked one has left.
        """
        cancel = self._staging.rules.cancel
        with self._removing() as pool:
            for place, (number, range_) in enumerate(ranges):
                if place == 0 and not self._is_forked and not cancel.is_set():
                    logger.warning(
                        "%s: a process of this purge ended before its time, or could not be started; its part is "
                        "purged now, but what it removed last may be missing in the report",
                        self._staging.root.path,
                    )
                batch = self._due[slice(*range_)]
                if not cancel.is_set():
                    self._begun[number] = 1
                    try:
                        map_chunks(pool, batch, PURGED_PER_PIECE, self._fewest_waits)
                    except OSError:
                        self.done += batch  # in a forked process this means nothing: the first one tries it again
                        raise
                    yield number, [due.result for due in batch]
                elif self._is_forked:
                    break  # the first process takes what was not reported, when all others have ended
                else:
                    yield number, None


BEAT_S: Final = 0.05
"""Interval at which each side polls, in seconds."""


class SharedCancel:
    """Cancels the forked processes of a purge when an event is set, or when their parent is gone.

    Enter it before the fork, and leave it when all children are gone.
    """

    def __init__(self, cancel: threading.Event) -> None:
        """Take the parent's event, which a signal handler or a thread may set."""
        self._cancel, self._process = cancel, os.getpid()
        self._is_set = mmap.mmap(-1, 1)  # unlike all other memory, shared with children
        self._is_over = threading.Event()
        self._announcer = threading.Thread(target=self._announce, name="shared-cancel", daemon=True)

    def in_child(self) -> threading.Event:
        """Make the child's own event, which is set soon after the parent's, and when the parent is gone."""
        cancel = threading.Event()
        threading.Thread(target=self._listen, args=(cancel,), name="shared-cancel", daemon=True).start()
        return cancel

    def __enter__(self) -> Self:
        self._announcer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._announcer.join()
        self._is_set.close()

    def _announce(self) -> None:
        # A signal handler may set the event in the middle of any call, so no thread may wait for it and hold its lock.
        while not self._is_over.wait(BEAT_S):
            if self._cancel.is_set():
                self._is_set[0] = 1
                return

    def _listen(self, cancel: threading.Event) -> None:
        while not self._is_set[0] and os.getppid() == self._process:
            time.sleep(BEAT_S)
        cancel.set()
