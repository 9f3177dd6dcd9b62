"""Stages replicas: moves them aside, whole, with a record of what they were, so that nothing is lost by mistake.

In which order, and why (DESIGN §5)::

    1  files with the records of many go into the staging root   a crash here leaves files that say nothing
    2  those are synced, by one barrier                          from here on recovery knows the way back of each
    3  each partition dir is looked at again, and gets a link    a crash here leaves each replica live or staged, whole,
    4  to its file, and is renamed into the staging root         and recovery gives it its link: ``shared_records``
    5  links and renames are synced, one barrier                 from here on they are staged
    6  the files of records lose their own names                 the links stay: each replica carries its own way back
    7  the offset checkpoints are written without them           old entries do no harm, and the records hold them

A few replicas, each that is unusual in any way, and all where the disk is too full to note that it must be recovered,
have a record of their own instead: it is written into the partition dir and synced, before that is renamed. Whatever
fails before step 5 is done is undone, and nothing was staged. A live replica that is found with a record in it, after a
crash, is live: recovery takes the record away again.

Many replicas go by batches. One batch is renamed while the disk makes the files of the next durable, and one barrier
serves both what was written and what was renamed before it began::

    here       files 1   files 2   renames 1, files 3   renames 2            renames 3
    the disk             files 1   files 2              files 3, renames 1   renames 2   renames 3

Source: KIP516-6, DESIGN §5.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final, TypeAlias

from layout.topic import named
from logstore.errors import ChangeRefusedError
from logstore.log_dir import DISK_FAILURES, LogDir
from logstore.parallel import paused_gc
from logstore.staging.batch import StagingBatch
from logstore.staging.candidate import Candidate, StagingOutcome
from logstore.staging.fallback_records import FallbackRecords
from logstore.staging.listing import Staged
from logstore.staging.placement import Placement, choose_placement, placements
from logstore.staging.session import StagingSession

logger = logging.getLogger(__name__)

STAGING_BATCH_SIZE: Final = 1000
"""Replicas behind one barrier."""

_FEW = 4
"""Records, or files of them, up to which each is synced by itself: for more, a barrier over the file system is less."""

_MANY = 256
"""Replicas from which on one listing of the staging root costs less than a look for each name."""

OnCommitted: TypeAlias = Callable[[Sequence[Staged]], None]
"""Told of the replicas of a batch when they are staged for good, whatever becomes of later batches."""


def stage(
    log_dir: LogDir,
    candidates: Iterable[Candidate],
    now_ms: int,
    *,
    placement: Placement | None = None,
    spare: FallbackRecords | None = None,
    settled: OnCommitted | None = None,
    partly: bool = False,
) -> StagingOutcome:
    """Stage replicas of one log dir, durably, with one barrier for each thousand.

    Each candidate is looked at first. One that has changed since, is a link, or lies under a mount point, is refused
    and the others go on. Every replica that is staged is logged at WARN with the time at which it will be deleted.

    Args:
        log_dir: that holds them.
        candidates: any number; up to a thousand are staged together or not at all.
        now_ms: in ms since 1970.
        placement: where they go; None: chosen by looking.
        spare: where records go that find no room in the log dir.
        settled: told batch by batch what is staged; what it was told of stays staged when a later batch fails.
        partly: where the disk is too full for the names of all, stage those that find room, and refuse the others: no
            other way cleans such a disk, and it is none for whoever needs all of them staged.

    Raises:
        OfflineLogDirError: the log dir is offline, or failed now; opening it again sorts out what was under way.
        ChangeFailedError: the system refused, for example for lack of space; the replicas that it names, and all for
            which ``settled`` was not called, are live as they were.
        UnsafePathError: the staging root is a link, or lies on another file system; or a replica was swapped for
            something else while it was staged.
        ChangeRefusedError: nobody would look for staged replicas in such a place.
    """
    wanted = list(candidates)
    if placement is not None and placement not in placements(log_dir):
        usual = " or ".join(placements(log_dir))
        raise ChangeRefusedError(f"{log_dir.path}: nothing is staged {placement} here, only {usual}")
    where, spare, many = placement or choose_placement(log_dir), spare or FallbackRecords(None), len(wanted) >= _MANY
    with log_dir.changing(_what(wanted)), ExitStack() as opened, paused_gc():
        place = StagingSession(log_dir, where, spare, now_ms, opened, many=many, partly=partly)
        staging = _Staging(place, wanted, settled)
        staging.run()
        log_dir.write_checkpoints()
    return staging.outcome


class _Staging:
    """The batches of one call.

    Attributes:
        outcome: of those that were settled, and whatever was refused.
    """

    def __init__(self, place: StagingSession, candidates: Sequence[Candidate], settled: OnCommitted | None) -> None:
        self._place, self._log_dir, self._tell = place, place.log_dir, settled
        self._few = len(candidates) <= _FEW
        starts = range(0, len(candidates), STAGING_BATCH_SIZE)
        self._left = deque(candidates[start : start + STAGING_BATCH_SIZE] for start in starts)
        self._under_way: list[StagingBatch] = []
        """Batches that are not settled, in the order in which they began."""
        self._failure: tuple[StagingBatch, OSError] | None = None
        self.outcome = StagingOutcome()

    def run(self) -> None:
        """Stage them all; where that fails, what is not settled is undone."""
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="staging-barrier") as barriers:
                self._stage(barriers)
        except BaseException as error:
            undone = [candidate for batch in self._under_way for candidate in batch.candidates]
            self._undo()
            if isinstance(error, OSError):
                raise self._failed(undone, error) from error
            raise
        if self._place.files:
            self._place.forget_files()
        if self._failure is not None:
            batch, failure = self._failure
            raise self._failed(batch.candidates, failure) from failure

    def _undo(self) -> None:
        while self._under_way:
            self._under_way.pop().undo()

    def _stage(self, barriers: ThreadPoolExecutor) -> None:
        """Take each batch through its stages: its files are written; they are durable; it is renamed; durably."""
        written, durable, renamed = self._begin(), None, None
        while written or durable or renamed:
            if self._log_dir.disk.is_shared and (durable or self._left):
                barrier = barriers.submit(self._sync, written, renamed)
                try:
                    following = self._advance(durable)
                finally:
                    barrier.result()
            else:
                self._sync(written, renamed)
                following = self._advance(durable)
            if renamed is not None:
                self._settle(renamed)
            if self._failure is not None:
                self._undo()
                return
            written, durable, renamed = following, written, durable

    def _begin(self) -> StagingBatch | None:
        """Write the files of the next batch, if there is one."""
        if not self._left:
            return None
        batch = StagingBatch(self._place, self._left.popleft(), each_synced=self._few)
        self._under_way.append(batch)
        batch.write_records()
        return batch

    def _sync(self, written: StagingBatch | None, renamed: StagingBatch | None) -> None:
        """One barrier, for the files of one batch and for what was done to another before it began."""
        many = (renamed is not None and renamed.files > 0) or (written is not None and written.files > _FEW)
        if many and self._log_dir.disk.sync_file_system(self._log_dir.root.descriptor):
            return
        if written is not None:
            written.sync_records()
        if renamed is not None:
            renamed.sync_renamed()

    def _advance(self, durable: StagingBatch | None) -> StagingBatch | None:
        """Rename a batch, and begin another. That the system refuses the one is no reason to give up earlier ones."""
        try:
            if durable is not None:
                durable.rename()
                self.outcome.refused += durable.refused
            return self._begin()
        except OSError as error:
            if error.errno in DISK_FAILURES or durable is None:
                raise
            self._failure = durable, error
            return None

    def _settle(self, batch: StagingBatch) -> None:
        """What comes when a batch is staged for good."""
        self._under_way.remove(batch)
        staged = batch.staged()
        self._log_dir.checkpoints.take_out(step.candidate.partition for step in batch.steps)
        self.outcome.staged += staged
        if self._tell is not None:
            self._tell(staged)
        self._warn(batch, staged)
        batch.drop_files()

    def _warn(self, batch: StagingBatch, staged: Sequence[Staged]) -> None:
        """Log each replica with the time at which it will be deleted (KIP516-6)."""
        if not logger.isEnabledFor(logging.WARNING):
            return
        due = {moment: _time_text(moment) for moment in {step.record.due_ms for step in batch.steps}}
        text = "%s: %s (topic ID %s) is staged as %s because of %s, and will be deleted at %s"
        # The same lines tell of them all, so where those stand is found out once: it takes as long as all the rest.
        file, line, function, _ = logger.findCaller()
        usual = logging.getLogRecordFactory() is logging.LogRecord

        def made(values: tuple[object, ...]) -> logging.LogRecord:
            return logger.makeRecord(logger.name, logging.WARNING, file, line, text, values, None, function)

        first = made(())
        for each, step in zip(staged, batch.steps, strict=True):
            told = (self._log_dir.path, step.candidate.partition, each.topic_id, each.location, step.candidate.verdict)
            values = (*told, due[step.record.due_ms])
            if usual:
                # The moment and the process are the same as well, and are not looked up for each.
                record = logging.LogRecord.__new__(logging.LogRecord)
                record.__dict__.update(first.__dict__, args=values)
            else:
                record = made(values)
            logger.handle(record)

    def _failed(self, candidates: Sequence[Candidate], error: OSError) -> Exception:
        self._log_dir.leave_unclean = True  # what was undone may not be, after a crash
        return self._log_dir.failed(_what(candidates), error)


def _what(candidates: Sequence[Candidate]) -> str:
    return f"{named([each.partition for each in candidates])} cannot be staged"


def _time_text(milliseconds: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(milliseconds // 1000))
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms since 1970"
