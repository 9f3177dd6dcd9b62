"""Stages replicas: moves them aside, whole, with a record of what they were, so that nothing is lost by mistake.

In which order, and why (DESIGN §5)::

    1  the record goes into the partition dir                    a crash here leaves a live replica with a file too many
    2  the records are synced, one barrier for many              from here on the replica carries its own way back
    3  each partition dir is renamed into the staging root       a crash here leaves each replica live or staged, whole
    4  the directories that lost and gained entries are synced   from here on they are staged
    5  the offset checkpoints are written without them           old entries do no harm, and the records hold them

Whatever fails before step 4 is undone, and nothing was staged. A live replica that is found with a record in it, after
a crash, is live: recovery takes the record away again.

Many replicas go by lots. While the disk makes the records of one lot durable, those of the next are written, and the
barrier of a lot is step 4 of the lot before it::

    here       records 1   records 2   rename 1   records 3   rename 2   rename 3   sync of the directories
    barrier                1                      2           3

Source: KIP516-6, DESIGN §5.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final, TypeAlias

from layout.topic import named
from logstore.candidate import Candidate, StagingOutcome
from logstore.errors import ChangeRefusedError
from logstore.log_dir import DISK_FAILURES, LogDir
from logstore.paused_gc import paused_gc
from logstore.spare_records import SpareRecords
from logstore.staged import Staged
from logstore.staging_lot import Lot
from logstore.staging_place import Place
from logstore.staging_root import Placement, choose_placement, placements

logger = logging.getLogger(__name__)

LOT: Final = 1000
"""Replicas behind one barrier."""

_FEW = 4
"""Records up to which each is synced by itself; for more, one barrier over the file system costs less."""

_MANY = 256
"""Replicas from which on one listing of the staging root costs less than a look for each name."""

Settled: TypeAlias = Callable[[Sequence[Staged]], None]
"""Told of the replicas of a lot when they are staged for good, whatever becomes of later lots."""


def stage(
    log_dir: LogDir,
    candidates: Iterable[Candidate],
    now_ms: int,
    *,
    placement: Placement | None = None,
    spare: SpareRecords | None = None,
    settled: Settled | None = None,
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
        settled: told lot by lot what is staged; what it was told of stays staged when a later lot fails.

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
    where, spare, many = placement or choose_placement(log_dir), spare or SpareRecords(None), len(wanted) >= _MANY
    with log_dir.changing(_what(wanted)), ExitStack() as opened, paused_gc():
        place = Place(log_dir, where, spare, now_ms, opened, many=many)
        staging = _Staging(place, wanted, settled)
        staging.run()
        log_dir.write_checkpoints()
    return staging.outcome


class _Staging:
    """The lots of one call.

    Attributes:
        outcome: of those that were settled, and whatever was refused.
    """

    def __init__(self, place: Place, candidates: Sequence[Candidate], settled: Settled | None) -> None:
        self._place, self._log_dir, self._tell = place, place.log_dir, settled
        few = len(candidates) <= _FEW
        lots = [candidates[start : start + LOT] for start in range(0, len(candidates), LOT)]
        self._left: Iterator[Lot] = (Lot(place, lot, each_synced=few) for lot in lots)
        self._under_way: list[Lot] = []
        """Lots that are not settled, in the order in which they began."""
        self._failure: tuple[Lot, OSError] | None = None
        self.outcome = StagingOutcome()

    def run(self) -> None:
        """Stage them all; where that fails, what is not settled is undone."""
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="staging-barrier") as barriers:
                self._stage(barriers)
        except BaseException as error:
            undone = [candidate for lot in self._under_way for candidate in lot.candidates]
            for lot in reversed(self._under_way):
                lot.undo()
            if isinstance(error, OSError):
                raise self._failed(undone, error) from error
            raise
        if self._failure is not None:
            lot, failure = self._failure
            raise self._failed(lot.candidates, failure) from failure

    def _stage(self, barriers: ThreadPoolExecutor) -> None:
        former: Lot | None = None
        lot = self._begin(next(self._left, None))
        while lot is not None:
            following = next(self._left, None)
            if following is None or not self._log_dir.disk.is_shared:
                everything = lot.make_durable()
                following = self._begin(following)
            else:
                durable = barriers.submit(lot.make_durable)
                try:
                    following = self._begin(following)
                finally:
                    everything = durable.result()
            if former is not None:
                if not everything:
                    self._place.sync()
                self._settle(former)
            lot.rename()
            former, lot = lot, following
        if former is not None:
            self._place.sync()
            self._settle(former)

    def _begin(self, lot: Lot | None) -> Lot | None:
        """Write the records of a lot, if there is one; None: the system refused them, and no other lot is begun."""
        if lot is None:
            return None
        self._under_way.append(lot)
        try:
            lot.write_records()
        except OSError as error:
            if error.errno in DISK_FAILURES or len(self._under_way) == 1:
                raise
            # That is no reason to give up the lots before it.
            lot.undo()
            self._log_dir.check_online()
            self._under_way.remove(lot)
            self._failure = lot, error
            self._left = iter(())
            return None
        self.outcome.refused += lot.refused
        return lot

    def _settle(self, lot: Lot) -> None:
        """What comes when a lot is staged for good."""
        self._under_way.remove(lot)
        staged = lot.staged()
        self._log_dir.checkpoints.take_out(step.candidate.partition for step in lot.steps)
        self.outcome.staged += staged
        if self._tell is not None:
            self._tell(staged)
        self._warn(lot, staged)

    def _warn(self, lot: Lot, staged: Sequence[Staged]) -> None:
        """Log each replica with the time at which it will be deleted (KIP516-6)."""
        if not logger.isEnabledFor(logging.WARNING):
            return
        due = {moment: _time_text(moment) for moment in {step.record.due_ms for step in lot.steps}}
        text = "%s: %s (topic ID %s) is staged as %s because of %s, and will be deleted at %s"
        # The same lines tell of them all, so where those stand is found out once: it takes as long as all the rest.
        file, line, function, _ = logger.findCaller()
        for each, step in zip(staged, lot.steps, strict=True):
            told = (self._log_dir.path, step.candidate.partition, each.topic_id, each.location, step.candidate.verdict)
            values = (*told, due[step.record.due_ms])
            logger.handle(logger.makeRecord(logger.name, logging.WARNING, file, line, text, values, None, function))

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
