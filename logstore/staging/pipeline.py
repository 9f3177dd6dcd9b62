"""Stages replicas: renames them into the staging root, whole, with a record of what they were.

In which order, and why (DESIGN §5)::

    1  files with the records of many go into the staging root   a crash here leaves files that mean nothing
    2  the files are synced, by one barrier                      from here on recovery can restore each replica
    3  each partition dir is checked again, and gets a link      a crash here leaves each replica live or staged, whole,
    4  to its file, and is renamed into the staging root         and recovery makes missing links: ``records``
    5  links and renames are synced, by one barrier              from here on the replicas are staged
    6  the files of records lose their own names                 the links stay: each replica carries its own record
    7  the offset checkpoints are written without the replicas   stale entries do no harm, and the records hold them

A record of its own, written into the partition dir and synced before that is renamed, is used instead for a few
replicas, for a replica on the slow path (``batch``), and for all where the disk is too full to be marked for recovery.
Whatever fails before the end of step 5 is undone, and nothing was staged. A live replica with a record in it, after a
crash, is live: recovery removes the record.

Many replicas are staged in batches. One batch is renamed while the disk makes the files of the next durable, and one
barrier serves both the files that were written and the renames that were done before it began::

    here       files 1   files 2   renames 1, files 3   renames 2            renames 3
    the disk             files 1   files 2              files 3, renames 1   renames 2   renames 3

Source: KIP516-6, DESIGN §5.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final, TypeAlias

from layout.topic import named
from logstore.clock import date_text
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
"""Records, or files of records, up to which each is synced by itself; for more, one barrier costs less."""

_WILL_GO: Final = "will be deleted at %s"
_MAY_GO: Final = "may be purged from %s on; 'logstore purge' does it"

_MANY = 256
"""Replicas from which one listing of the staging root costs less than a look-up for each name."""

OnCommitted: TypeAlias = Callable[[Sequence[Staged]], None]
"""Called with the replicas of a batch when they are staged for good, whatever happens to later batches."""


def stage(
    log_dir: LogDir,
    candidates: Iterable[Candidate],
    now_ms: int,
    *,
    placement: Placement | None = None,
    fallback: FallbackRecords | None = None,
    on_committed: OnCommitted | None = None,
    partly: bool = False,
    has_purger: bool = False,
) -> StagingOutcome:
    """Stage replicas of one log dir, durably, with one barrier for each thousand.

    Each candidate is checked first. One that has changed, is a link, or lies under a mount point, is refused, and
    the others go on. Every staged replica is logged at WARN with the time from which on it may be deleted.

    Args:
        log_dir: holds the replicas.
        candidates: any number; a batch of up to a thousand is staged together or not at all.
        now_ms: in ms since 1970.
        placement: where they go; None: chosen by :func:`choose_placement`.
        fallback: the fallback records, for which the log dir has no room.
        on_committed: called batch by batch with what is staged; those replicas stay staged when a later batch fails.
        partly: where the disk is too full for the names of all, stage as many as have room, and refuse the rest.
            Nothing else can clean a full disk; do not use it where all or none must be staged.
        has_purger: something in this program purges what is due, so that the log can say that it will be deleted.

    Raises:
        OfflineLogDirError: the log dir is offline, or failed now; opening it again sorts out what was under way.
        ChangeFailedError: the system refused, for example for lack of space; the replicas that the error names, and
            all for which ``on_committed`` was not called, are live as they were.
        UnsafePathError: the staging root is a link, or lies on another file system; or a replica was swapped for
            something else while it was staged.
        ChangeRefusedError: staged replicas are not searched for in that placement.
    """
    wanted = list(candidates)
    if placement is not None and placement not in placements(log_dir):
        possible = " or ".join(placements(log_dir))
        raise ChangeRefusedError(f"{log_dir.path}: nothing is staged {placement} here, only {possible}")
    where, fallback, many = (
        placement or choose_placement(log_dir),
        fallback or FallbackRecords(None),
        len(wanted) >= _MANY,
    )
    with log_dir.changing(_what(wanted)), ExitStack() as opened, paused_gc():
        session = StagingSession(log_dir, where, fallback, now_ms, opened, many=many, partly=partly)
        staging = _Staging(session, wanted, on_committed, has_purger=has_purger)
        staging.run()
        log_dir.write_checkpoints()
    return staging.outcome


class _Staging:
    """The batches of one call.

    Attributes:
        outcome: the replicas of committed batches, and all refused candidates.
    """

    def __init__(
        self,
        session: StagingSession,
        candidates: Sequence[Candidate],
        on_committed: OnCommitted | None,
        *,
        has_purger: bool,
    ) -> None:
        self._session, self._log_dir, self._on_committed = session, session.log_dir, on_committed
        self._fate = _WILL_GO if has_purger else _MAY_GO
        self._few = len(candidates) <= _FEW
        starts = range(0, len(candidates), STAGING_BATCH_SIZE)
        self._left = deque(candidates[start : start + STAGING_BATCH_SIZE] for start in starts)
        self._under_way: list[StagingBatch] = []
        """Batches that are not committed, in the order in which they began."""
        self._failure: tuple[StagingBatch, OSError] | None = None
        self.outcome = StagingOutcome()

    def run(self) -> None:
        """Stage all batches; where that fails, undo those that are not committed."""
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="staging-barrier") as barriers:
                self._stage(barriers)
        except BaseException as error:
            undone = [candidate for batch in self._under_way for candidate in batch.candidates]
            self._undo()
            if isinstance(error, OSError):
                raise self._failed(undone, error) from error
            raise
        if self._session.files:
            self._session.forget_files()
        if self._failure is not None:
            batch, failure = self._failure
            raise self._failed(batch.candidates, failure) from failure

    def _undo(self) -> None:
        while self._under_way:
            self._under_way.pop().undo()

    def _stage(self, barriers: ThreadPoolExecutor) -> None:
        """Take each batch through its stages: files written, files durable, renamed, renames durable."""
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
                self._commit(renamed)
            if self._failure is not None:
                self._undo()
                return
            written, durable, renamed = following, written, durable

    def _begin(self) -> StagingBatch | None:
        """Write the files of the next batch; None: there is no further batch."""
        if not self._left:
            return None
        batch = StagingBatch(self._session, self._left.popleft(), each_synced=self._few)
        self._under_way.append(batch)
        batch.write_records()
        return batch

    def _sync(self, written: StagingBatch | None, renamed: StagingBatch | None) -> None:
        """Make the files of one batch and the renames of another durable, with one barrier where they are many."""
        many = (renamed is not None and renamed.files > 0) or (written is not None and written.files > _FEW)
        if many and self._log_dir.disk.sync_file_system(self._log_dir.root.descriptor):
            return
        if written is not None:
            written.sync_records()
        if renamed is not None:
            renamed.sync_renamed()

    def _advance(self, durable: StagingBatch | None) -> StagingBatch | None:
        """Rename a batch, and begin another. Where the system refuses the rename, earlier batches still complete."""
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

    def _commit(self, batch: StagingBatch) -> None:
        """Finish a batch that is staged for good: checkpoints, outcome, log lines, files of records."""
        self._under_way.remove(batch)
        staged = batch.staged()
        self._log_dir.checkpoints.take_out(move.candidate.partition for move in batch.moves)
        self.outcome.staged += staged
        if self._on_committed is not None:
            self._on_committed(staged)
        self._warn(batch, staged)
        batch.drop_files()

    def _warn(self, batch: StagingBatch, staged: Sequence[Staged]) -> None:
        """Log each replica with the time from which on it may be deleted (KIP516-6)."""
        if not logger.isEnabledFor(logging.WARNING):
            return
        due = {moment: date_text(moment) for moment in {move.record.due_ms for move in batch.moves}}
        text = f"%s: %s (topic ID %s) is staged as %s because of %s, and {self._fate}"
        # All records come from the same source line, so it is looked up once: that takes as long as all the rest.
        file, line, function, _ = logger.findCaller()
        is_plain = logging.getLogRecordFactory() is logging.LogRecord

        def made(values: tuple[object, ...]) -> logging.LogRecord:
            return logger.makeRecord(logger.name, logging.WARNING, file, line, text, values, None, function)

        first = made(())
        for each, move in zip(staged, batch.moves, strict=True):
            replica = (
                self._log_dir.path,
                move.candidate.partition,
                each.topic_id,
                each.location,
                move.candidate.verdict,
            )
            values = (*replica, due[move.record.due_ms])
            if is_plain:
                # The moment and the process are the same as well, and are copied.
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
