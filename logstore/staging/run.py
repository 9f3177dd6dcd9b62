"""Stages replicas: renames them into the staging root, whole, after the ledger says what they were.

In which order, and why (DESIGN §5)::

    1  each candidate is checked                                  one that has changed is refused
    2  a line for each goes to the ledger, behind one sync        a crash here leaves lines that mean nothing
    3  each partition dir is renamed into the staging root        a crash here leaves each replica live or staged, whole
    4  the directories that gained and lost them are synced       from here on the replicas are staged
    5  the offset checkpoints are written without them            stale entries do no harm, and the lines hold them

Two syncs serve a thousand replicas. Whatever fails before the end of step 4 is undone, and nothing was staged. After a
crash a line without its directory means that the replica is live, or is live again.

Source: KIP516-6, DESIGN §5.
"""

from __future__ import annotations

import errno
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, TypeAlias

from layout.errors import LayoutError
from layout.ids import TopicId
from layout.ours import LedgerEvent, StagedRecord, encode_staged
from layout.topic import named
from logstore.errors import ChangeRefusedError, LogStoreError, UnreadableFileError, UnsafePathError
from logstore.fs import Directory, sync_all
from logstore.log_dir import NO_SPACE, FallbackRecords, LedgerFile, LogDir, read_ledger
from logstore.parallel import paused_gc
from logstore.staging.candidate import Candidate, Refused, StagingOutcome, revalidate, unchanged_inode
from logstore.staging.listing import Staged
from logstore.staging.log_lines import log_staged
from logstore.staging.placement import (
    Placement,
    choose_placement,
    free_name,
    name_below_log_dir,
    open_staging_root,
    placements,
)
from logstore.staging.records import restored_path
from logstore.staging.root_ledger import RootLedger, note_event
from logstore.tunables import LISTING_PAYS_FROM, STAGING_BATCH_SIZE

logger = logging.getLogger(__name__)

_LONGEST_EVIDENCE: Final = 4096
"""Characters of evidence that are kept."""

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
    """Stage replicas of one log dir, durably, a thousand behind two syncs.

    Each candidate is checked first. One that has changed, is a link, or lies under a mount point, is refused, and
    the others go on. Every staged replica is logged at WARN with the time from which on it may be deleted.

    Args:
        log_dir: holds the replicas.
        candidates: any number; a batch of up to a thousand is staged together or not at all.
        now_ms: in ms since 1970.
        placement: where they go; None: chosen by :func:`choose_placement`.
        fallback: the fallback records, for which the log dir has no room.
        on_committed: called batch by batch with what is staged; those replicas stay staged when a later batch fails.
        partly: where the disk is too full for the names or lines of all, stage as many as have room, and refuse the
            rest. Nothing else can clean a full disk; do not use it where all or none must be staged.
        has_purger: something in this program purges what is due, so that the log can say that it will be deleted.

    Raises:
        OfflineLogDirError: the log dir is offline, or failed now; opening it again sorts out what was under way.
        ChangeFailedError: the system refused, for example for lack of space; the replicas that the error names, and
            all for which ``on_committed`` was not called, are live as they were.
        UnsafePathError: the staging root is a link, or lies on another file system; or a replica was swapped for
            something else while it was staged.
        ChangeRefusedError: staged replicas are not searched for in that placement, or its ledger cannot be used.
    """
    wanted = list(candidates)
    if placement is not None and placement not in placements(log_dir):
        possible = " or ".join(placements(log_dir))
        raise ChangeRefusedError(f"{log_dir.path}: nothing is staged {placement} here, only {possible}")
    where, fallback = placement or choose_placement(log_dir), fallback or FallbackRecords(None)
    with log_dir.changing(_what(wanted)), ExitStack() as opened, paused_gc():
        staging = _Staging(log_dir, where, fallback, now_ms, opened, many=len(wanted) >= LISTING_PAYS_FROM)
        staging.on_committed, staging.partly = on_committed, partly
        staging.has_purger = has_purger
        staging.run(wanted)
        log_dir.write_checkpoints()
    return staging.outcome


_Place: TypeAlias = tuple[Directory, str, int]
"""The open parent of a partition dir, its name in it, and its inode."""


@dataclass(slots=True)
class _Move:
    """A candidate on its way into the staging root."""

    candidate: Candidate
    record: StagedRecord
    line: bytes
    """Of the ledger."""
    parent: Directory
    former: str
    """Name in its parent while it is live."""
    inode: int
    name: str
    """Name in the staging root."""
    renamed: bool = False


class _Staging:
    """One call of :func:`stage`.

    Attributes:
        outcome: the replicas of committed batches, and all refused candidates.
        on_committed, partly, has_purger: as for :func:`stage`.
    """

    on_committed: OnCommitted | None = None
    partly = False
    has_purger = False

    def __init__(
        self,
        log_dir: LogDir,
        placement: Placement,
        fallback: FallbackRecords,
        now_ms: int,
        opened: ExitStack,
        *,
        many: bool,
    ) -> None:
        """Open or make the staging root; everything that is opened here is closed with ``opened``.

        For many replicas the names in the staging root are listed once. Nobody else takes a name meanwhile: the log dir
        is locked, and a rename onto a staged directory, which is never empty, fails.
        """
        self._log_dir, self._placement, self._fallback, self._now_ms = log_dir, placement, fallback, now_ms
        self._opened = opened
        self._root = opened.enter_context(self._staging_root())
        self._prefix = name_below_log_dir(log_dir, self._placement, "-")[:-1]
        self._full: OSError | None = None
        self._ledger = self._own_ledger()
        self._elsewhere = _names_in(fallback, log_dir)
        if self._ledger is None:
            # It may be there all the same, and its lines count before those in the other folder.
            known = read_ledger(self._root)
            self._elsewhere |= set() if known is None else known.entries.keys()
        self._former = self._unfinished() if log_dir.leave_unclean else {}
        self._parents: dict[str, Directory] = {}
        self._listed = many
        self._promised = self._root.names() if many else set[str]()
        self._taken: set[str] = set()
        self.outcome = StagingOutcome()

    def _staging_root(self) -> Directory:
        """Open the staging root; where there is no room for a new directory, replicas are staged in place."""
        try:
            root = open_staging_root(self._log_dir, self._placement, make=True)
        except OSError as error:
            if self._placement is not Placement.SIBLING or error.errno not in NO_SPACE:
                raise
            self._placement = Placement.IN_PLACE
            root = open_staging_root(self._log_dir, self._placement)
        assert root is not None, "a staging root that is made is there"
        return root

    def _own_ledger(self) -> LedgerFile | None:
        """Open the ledger of the staging root; None: the disk has no room for one."""
        try:
            return self._log_dir.ledgers.of(self._root)
        except OSError as error:
            if error.errno not in NO_SPACE or self._fallback.folder is None:
                raise
            self._full = error
            return None

    def _unfinished(self) -> dict[str, StagedRecord]:
        """Find the records of replicas that a crash made live again, by path: nothing else may hold their offsets."""
        known = RootLedger(self._log_dir, self._root, self._fallback)
        return {record.path: record for name, record in known.staged() if not self._root.holds(name)}

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Stage all candidates, batch by batch; a batch that fails is undone."""
        left, size = deque(candidates), STAGING_BATCH_SIZE
        while left:
            batch = [left.popleft() for _ in range(min(size, len(left)))]
            moves = self._checked(batch)
            try:
                if not self._written(moves):
                    size = self._put_back(moves, left)
                    continue
                self._rename(moves)
                sync_all(self._log_dir.disk, [self._root, *self._parents.values()])
            except BaseException as error:
                self._undo(moves)
                if isinstance(error, OSError):
                    raise self._failed(batch, error) from error
                raise
            self._commit([move for move in moves if move.renamed])

    def _checked(self, candidates: Iterable[Candidate]) -> list[_Move]:
        """Step 1: check candidates, choose their names and write their lines; what has changed is refused."""
        moves = []
        # Calls of the system that follow each other take less time than between other work: first all are looked at.
        for candidate, place in [(candidate, self._place_of(candidate)) for candidate in candidates]:
            found: _Move | str
            try:
                found = place if isinstance(place, str) else self._move(candidate, place)
            except (LogStoreError, LayoutError) as error:
                found = str(error)
            if isinstance(found, _Move):
                moves.append(found)
            else:
                self._refuse(candidate, "it was named before" if candidate.path in self._taken else found)
        return moves

    def _place_of(self, candidate: Candidate) -> _Place | str:
        """Look at one candidate; gives the reason why it is refused as a clause."""
        folder, _, former = candidate.path.rpartition("/")
        try:
            if folder not in self._parents:
                self._parents[folder] = self._opened.enter_context(self._log_dir.root.below(folder))
            parent = self._parents[folder]
            inode = unchanged_inode(candidate, parent, former)
            if inode is None:
                with parent.child(former) as directory:
                    change, inode = revalidate(candidate, directory), directory.key[1]
                if change is not None:
                    return change
        except FileNotFoundError:
            return "it is gone"
        except NotADirectoryError:
            return "it is no directory"
        except (LogStoreError, LayoutError) as error:
            return str(error)
        return parent, former, inode

    def _move(self, candidate: Candidate, place: _Place) -> _Move | str:
        """Choose the name of one candidate and write its line; gives the reason why it is refused as a clause."""
        if candidate.path in self._taken:
            return "it was named before"
        record = self._record(candidate)
        restored_path(self._log_dir, record)  # a replica that could not be restored must not be staged
        name = free_name(self._is_taken, self._placement, candidate.partition, record.topic_id, self._log_dir.disk)
        line = encode_staged(name, record)
        self._taken.add(candidate.path)
        self._promised.add(name)
        return _Move(candidate, record, line, *place, name)

    def _is_taken(self, name: str) -> bool:
        """Whether a name in the staging root is used, is to be, or a line speaks of it."""
        return (
            name in self._promised
            or (self._ledger is not None and name in self._ledger.ledger.entries)
            or name in self._elsewhere
            or (not self._listed and self._root.holds(name))
        )

    def _record(self, candidate: Candidate) -> StagedRecord:
        partition, topic_id = candidate.partition, candidate.topic_id or TopicId.ZERO
        offsets = self._log_dir.checkpoints.offsets(partition)
        former = self._former.get(candidate.path)
        if former is not None and former.topic_id == topic_id:
            offsets = {**former.checkpoints, **offsets}
        who = (partition.topic, partition.partition, topic_id, candidate.path)
        why = (candidate.verdict, candidate.evidence[:_LONGEST_EVIDENCE])
        return StagedRecord(*who, *why, self._now_ms, self._now_ms + candidate.delay_ms, offsets)

    def _written(self, moves: Sequence[_Move]) -> bool:
        """Step 2: write the lines, to the fallback folder where the disk has no room; False: a part may have room.

        Raises:
            OSError: from the system; for lack of space, if not even one line had room, or ``partly`` is not set.
        """
        records, lines = {move.name: move.record for move in moves}, [move.line for move in moves]
        if not records:
            return True
        full = self._full
        if self._ledger is not None:
            try:
                self._ledger.stage(records, lines)
                return True
            except OSError as error:
                if error.errno not in NO_SPACE:
                    raise
                full = error
        try:
            with self._fallback.ledger(self._log_dir.path, make=True) as other:
                if other is not None:
                    other.stage(records, lines)
                    return True
        except (OSError, LogStoreError) as failure:
            # That folder is on another disk, whose failure says nothing about this one.
            logger.warning("the folder for spare records, %s, cannot be used: %s", self._fallback.folder, failure)
        assert full is not None, "a ledger that is there was tried"
        if not self.partly or (len(moves) == 1 and not self.outcome.staged):
            raise full
        return False

    def _put_back(self, moves: Sequence[_Move], left: deque[Candidate]) -> int:
        """Put candidates back for which there was no room, and give the size of the next batch.

        Where there is no room even for one, all that are left are refused.
        """
        self._promised.difference_update(move.name for move in moves)
        self._forget(moves)
        left.extendleft(move.candidate for move in reversed(moves))
        if len(moves) == 1:
            for candidate in left:
                self._refuse(candidate, f"the ledger in {self._root.path} has no room for one more line")
            left.clear()
        return max(1, len(moves) // 4)

    def _rename(self, moves: Sequence[_Move]) -> None:
        """Step 3. The staging root of a full disk may have room for some names, and the rest is refused (``partly``).

        Raises:
            OSError: from the system; for lack of space, if not even the first name had room, or ``partly`` is not set.
            UnsafePathError: the directory that was renamed is not the one that was checked.
        """
        disk, root = self._log_dir.disk, self._root
        for number, move in enumerate(moves):
            try:
                disk.rename(move.parent.descriptor, move.former, root.descriptor, move.name)
            except OSError as error:
                if error.errno == errno.EBUSY:
                    place = move.parent.path_of(move.former)
                    self._refuse(move.candidate, f"something is mounted at {place}; it is never entered")
                    self._forget([move])
                    continue
                if self.partly and error.errno in NO_SPACE and number:
                    for left in moves[number:]:
                        reason = f"{root.path} has no room for one more name ({os.strerror(error.errno or 0)})"
                        self._refuse(left.candidate, reason)
                    self._forget(moves[number:])
                    return
                raise
            move.renamed = True
            status = root.status(move.name)
            if status is None or status.st_ino != move.inode:
                raise UnsafePathError(f"{root.path_of(move.name)} is not the directory that was looked at before")

    def _undo(self, moves: Sequence[_Move]) -> None:
        """Rename back what is renamed; where that fails too, the log dir goes offline."""
        log_dir = self._log_dir
        try:
            renamed = [move for move in moves if move.renamed]
            for move in reversed(renamed):
                log_dir.disk.rename(self._root.descriptor, move.name, move.parent.descriptor, move.former)
            if renamed:
                sync_all(log_dir.disk, [*self._parents.values(), self._root])
        except OSError as error:
            log_dir.leave_unclean = True
            log_dir.go_offline(
                f"{log_dir.path}: what was staged so far could not be brought back ({error.strerror}); the log dir is "
                "offline, and opening it again sorts it out"
            )
            return
        self._forget(moves)

    def _forget(self, moves: Sequence[_Move]) -> None:
        """Say in the ledger that replicas are not staged after all. Where that fails, the next open does it."""
        self._taken.difference_update(move.candidate.path for move in moves)
        names = [move.name for move in moves]
        try:
            note_event(self._log_dir, self._root, self._fallback, LedgerEvent.RESTORED, names, durable=False)
        except (OSError, LogStoreError):
            self._log_dir.leave_unclean = True  # until then, their lines mean nothing

    def _commit(self, moves: Sequence[_Move]) -> None:
        """Finish a batch that is staged for good: checkpoints, outcome, log lines."""
        staged = [self._staged(move) for move in moves]
        self._log_dir.checkpoints.take_out(move.candidate.partition for move in moves)
        self.outcome.staged += staged
        if self.on_committed is not None:
            self.on_committed(staged)
        log_staged(staged, has_purger=self.has_purger)

    def _staged(self, move: _Move) -> Staged:
        record, place = move.record, (self._log_dir.path, self._placement, move.name, self._prefix + move.name)
        return Staged(*place, record, None, move.inode)

    def _refuse(self, candidate: Candidate, why: str) -> None:
        self.outcome.refused.append(Refused(candidate, f"{candidate.path} was left where it is: {why}"))

    def _failed(self, candidates: Sequence[Candidate], error: OSError) -> Exception:
        self._log_dir.leave_unclean = True  # what was undone may not be, after a crash
        return self._log_dir.failed(_what(candidates), error)


def _names_in(fallback: FallbackRecords, log_dir: LogDir) -> set[str]:
    """Give the names of which the ledger in the fallback folder speaks; one that cannot be read is not used either."""
    try:
        found = fallback.read(log_dir.path)
    except UnreadableFileError:
        found = None
    return set() if found is None else set(found.entries)


def _what(candidates: Sequence[Candidate]) -> str:
    return f"{named([each.partition for each in candidates])} cannot be staged"
