"""Purges the directories of one staging root by lots, and lets nobody wait for a barrier while there is work.

Each worker empties a lot of directories. While the disk makes that durable, the worker empties its next lot, and then
finishes the one before (``remove_staged`` says what that means, and why in this order)::

    worker    empty 1   empty 2   finish 1   empty 3   finish 2   finish 3   sync of the staging root
    barrier             1                    2         3

In a large purge forked processes look at the lots to come meanwhile (``ahead``): the threads here share an interpreter,
and while they have nothing to do but remove, they hardly wait for each other. Only this process, which holds the log
dir's lock, changes anything.

A barrier comes after everything that its worker did before, so barrier 2 makes the end of lot 1 durable as well. The
last lot of a worker has nothing beside which to wait, so a purge of one lot does everything in the thread that asks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from layout.directory_name import DirectoryName
from logstore.ahead import Ahead
from logstore.durable import Disk
from logstore.judge_staged import Due, Seen
from logstore.log_dir import DISK_FAILURES
from logstore.paused_gc import paused_gc
from logstore.purge_report import Kept
from logstore.remove_staged import Removal
from logstore.seen_ahead import Look, look_at_all, seen

LOT: Final = 1000
"""Directories behind one barrier."""

AHEAD_FROM: Final = 2 * LOT
"""Directories from which on it pays to have other processes look ahead."""

_SMALLEST_LOT = 25
"""Directories that are not worth a second worker."""

_FEW = 4
"""Directories up to which each is synced by itself: a barrier waits for all that others wrote to the disk."""


@dataclass(slots=True)
class Lot:
    """What became of some directories.

    Attributes:
        names: of the directories.
        seen: what was seen of each ahead, until it is emptied; None: each is looked at when its turn comes.
        kept: those that stay.
        partly: those that were not emptied to the end.
        emptied: those that were.
        failure: why the disk did not confirm that, one sentence, so that all of these keep their records; None: it did.
        had_record_inside: for each that was emptied and confirmed, whether its record lay in it, and not elsewhere.
    """

    names: Sequence[DirectoryName]
    seen: list[Look] | None = None
    kept: list[Kept] = field(default_factory=list)
    partly: list[Due] = field(default_factory=list)
    emptied: list[Due] = field(default_factory=list)
    failure: str | None = None
    had_record_inside: list[bool] = field(default_factory=list)


class Lots:
    """The purge of one staging root.

    Attributes:
        gone: the lots whose end is durable, in no order; filled also when a disk that fails ends the purge.
        cancelled: something was left because the purge was cancelled.
    """

    def __init__(
        self, removal: Removal, disk: Disk, names: Sequence[DirectoryName], workers: int, *, ahead: bool = False
    ) -> None:
        """Take what is staged there, how many threads remove it, and whether as many processes look ahead."""
        self._removal, self._disk, self._cancel = removal, disk, removal.staging.rules.cancel
        self._root = removal.staging.root
        size = min(LOT, max(_SMALLEST_LOT, -(-len(names) // workers)))
        lots = [Lot(names[start : start + size]) for start in range(0, len(names), size)]
        self._workers = min(workers, len(lots)) if disk.is_shared else 1
        self._lots, self._left = lots, iter(lots)
        # A slow purge would remove hours later what was seen, one that means few has little to see, and a short one
        # is over before it pays.
        rules = removal.staging.rules
        of_all = rules.throttle is None and rules.only is None and disk.is_shared
        self._lookers = self._workers if ahead and of_all and len(names) >= AHEAD_FROM else 0
        self._ahead: Ahead[Sequence[DirectoryName], list[Look]] | None = None
        self._taking = threading.Lock()
        self._given_up = False
        self.gone: list[Lot] = []
        self.cancelled = False

    def purge(self) -> None:
        """Purge them all, or until it is cancelled.

        Raises:
            OSError: the disk fails.
        """
        with ExitStack() as opened:
            if self._lookers:
                opened.enter_context(paused_gc())
                look = partial(look_at_all, self._removal.staging)
                self._ahead = opened.enter_context(Ahead(look, [lot.names for lot in self._lots], self._lookers))
            barriers = opened.enter_context(ThreadPoolExecutor(self._workers, thread_name_prefix="purge-barrier"))
            if self._workers == 1:
                self._work(barriers)
                return
            pool = opened.enter_context(ThreadPoolExecutor(self._workers, thread_name_prefix="purge"))
            running = [pool.submit(self._work, barriers) for _ in range(self._workers)]
            try:
                for each in as_completed(running):
                    each.result()
            finally:
                self._given_up = True

    def _work(self, barriers: ThreadPoolExecutor) -> None:
        """What one worker does."""
        former: Lot | None = None
        lot = self._take()
        if lot is not None:
            self._empty(lot)
        while lot is not None:
            following = self._take()
            if following is None:
                self._make_durable(lot)
            elif not self._disk.is_shared:
                self._make_durable(lot)
                self._empty(following)
            else:
                self._make_durable_beside(lot, following, barriers)
            if former is not None:
                if lot.failure is not None or not lot.emptied:
                    self._disk.sync(self._root.descriptor)  # there was no barrier after it
                self.gone.append(former)
            self._finish(lot)
            former, lot = lot, following
        if former is not None:
            if former.emptied:
                self._disk.sync(self._root.descriptor)
            self.gone.append(former)

    def _take(self) -> Lot | None:
        """The next lot; None: there is none, or the purge is cancelled or failed."""
        with self._taking:
            lot = None if self._given_up else next(self._left, None)
            if lot is not None and self._ahead is not None:
                lot.seen = self._ahead.next()
        if lot is not None and self._cancel.is_set():
            self.cancelled = True
            return None
        return lot

    def _empty(self, lot: Lot) -> None:
        looks, lot.seen = lot.seen or [None] * len(lot.names), None
        for name, look in zip(lot.names, looks, strict=True):
            outcome = self._emptied(name, seen(look))
            if isinstance(outcome, Kept):
                lot.kept.append(outcome)
            elif outcome is not None:
                is_empty = outcome.problem is None and not outcome.cancelled
                (lot.emptied if is_empty else lot.partly).append(outcome)

    def _emptied(self, name: DirectoryName, found: Seen | int | None) -> Due | Kept | None:
        if isinstance(found, Seen):
            return self._removal.empty_seen(name, found)
        return self._removal.empty(name) if found is None else self._removal.staging.not_due(name.text, found)

    def _make_durable_beside(self, lot: Lot, following: Lot, barriers: ThreadPoolExecutor) -> None:
        """Make one lot durable, and meanwhile empty the next."""
        durable = barriers.submit(self._make_durable, lot)
        try:
            self._empty(following)
        finally:
            durable.result()

    def _make_durable(self, lot: Lot) -> None:
        """The barrier. Where it fails nobody knows what came through: the records stay, and what was emptied is due."""
        if not lot.emptied:
            return
        try:
            if len(lot.emptied) > _FEW and self._disk.sync_file_system(self._root.descriptor):
                return
            for due in lot.emptied:
                with self._root.child(due.name) as directory:
                    self._disk.sync(directory.descriptor)
            self._disk.sync(self._root.descriptor)
        except OSError as error:
            if error.errno in DISK_FAILURES:
                raise
            lot.failure = (
                f"{self._root.path}: {len(lot.emptied)} directories were emptied, and keep their records, because the "
                f"disk does not confirm it ({os.strerror(error.errno or 0)})"
            )

    def _finish(self, lot: Lot) -> None:
        if lot.failure is None:
            lot.had_record_inside = [self._removal.finish(due) for due in lot.emptied]
