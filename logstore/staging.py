"""Stages replicas: moves them aside, whole, with a record of what they were, so that nothing is lost by mistake.

In which order, and why (DESIGN §5)::

    1  the record goes into the partition dir                    a crash here leaves a live replica with a file too many
    2  the records are synced, one barrier for many              from here on the replica carries its own way back
    3  each partition dir is renamed into the staging root       a crash here leaves each replica live or staged, whole
    4  the directories that lost and gained entries are synced   from here on they are staged
    5  the offset checkpoints are written without them           old entries do no harm, and the records hold them

Whatever fails before step 4 is undone, and nothing was staged. A live replica that is found with a record in it, after
a crash, is live: recovery takes the record away again. Source: KIP516-6, DESIGN §5.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from layout import staged_record
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.staged_record import StagedRecord
from layout.topic import TopicPartition, named
from logstore.candidate import Candidate, Refused, StagingOutcome, change_since
from logstore.directory import Directory
from logstore.durable import TEMPORARY, barrier, link_anew, remove_file, sync_all, write_new_file
from logstore.errors import ChangeRefusedError, LogStoreError, UnsafePathError
from logstore.log_dir import DISK_FAILURES, LogDir
from logstore.spare_records import SpareRecords
from logstore.staged import Staged, home_of, record_of_live
from logstore.staging_root import (
    Placement,
    choose_placement,
    free_name,
    name_below_log_dir,
    open_staging_root,
    placements,
)

logger = logging.getLogger(__name__)

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})

_FEW = 4
"""Records up to which each is synced by itself; for more, one barrier over the file system costs less."""

_LONGEST_EVIDENCE = 4096
"""Characters of evidence that are kept, so that no record is larger than its reader takes."""

_TOGETHER = 64
"""Replicas that share one file of records, linked into each of them."""

SHARED_RECORDS = staged_record.FILE_NAME + TEMPORARY
"""That file's name in the staging root, until all its links are made."""


def stage(
    log_dir: LogDir,
    candidates: Iterable[Candidate],
    now_ms: int,
    *,
    placement: Placement | None = None,
    spare: SpareRecords | None = None,
) -> StagingOutcome:
    """Stage replicas of one log dir, durably, with one barrier for all of them.

    Each candidate is looked at first. One that has changed since, is a link, or lies under a mount point, is refused
    and the others go on. Every replica that is staged is logged at WARN with the time at which it will be deleted.

    Args:
        log_dir: that holds them.
        candidates: at best about a thousand at a time.
        now_ms: in ms since 1970.
        placement: where they go; None: chosen by looking.
        spare: where records go that find no room in the log dir.

    Raises:
        OfflineLogDirError: the log dir is offline, or failed now; opening it again sorts out what was under way.
        ChangeFailedError: the system refused, for example for lack of space; nothing was staged.
        UnsafePathError: the staging root is a link, or lies on another file system; or a replica was swapped for
            something else while it was staged.
        ChangeRefusedError: nobody would look for staged replicas in such a place.
    """
    wanted = list(candidates)
    if placement is not None and placement not in placements(log_dir):
        usual = " or ".join(placements(log_dir))
        raise ChangeRefusedError(f"{log_dir.path}: nothing is staged {placement} here, only {usual}")
    with log_dir.changing(f"{named([each.partition for each in wanted])} cannot be staged"), ExitStack() as opened:
        batch = _Batch(log_dir, placement or choose_placement(log_dir), spare or SpareRecords(None), now_ms, opened)
        try:
            batch.write_records(wanted)
            batch.rename()
        except BaseException:
            batch.undo()
            raise
        batch.settle()
    for staged, step in zip(batch.outcome.staged, batch.steps, strict=True):
        logger.warning(
            "%s: %s (topic ID %s) is staged as %s because of %s, and will be deleted at %s",
            *(log_dir.path, step.candidate.partition, staged.topic_id, staged.location, step.candidate.verdict),
            _time_text(step.record.due_ms),
        )
    return batch.outcome


@dataclass(slots=True)
class _Step:
    """One candidate on its way."""

    candidate: Candidate
    record: StagedRecord
    parent: Directory
    inode: int
    name: str
    """In the staging root."""
    inside: bool = False
    """The record lies in the partition dir."""
    renamed: bool = False

    @property
    def former(self) -> str:
        """Its name while it is live."""
        return self.candidate.path.rpartition("/")[2]


class _Batch:
    """The candidates of one call, step by step."""

    def __init__(
        self, log_dir: LogDir, placement: Placement, spare: SpareRecords, now_ms: int, opened: ExitStack
    ) -> None:
        self.log_dir, self.placement, self.spare, self.now_ms = log_dir, placement, spare, now_ms
        self.opened = opened
        self.root = opened.enter_context(self._staging_root())
        self.parents: dict[str, Directory] = {}
        self.steps: list[_Step] = []
        self.promised: set[str] = set()
        self.outcome = StagingOutcome()

    def _staging_root(self) -> Directory:
        """Open the staging root; where there is no room for a new directory, replicas are staged in place."""
        try:
            root = open_staging_root(self.log_dir, self.placement, make=True)
        except OSError as error:
            if self.placement is not Placement.SIBLING or error.errno not in NO_SPACE:
                raise
            self.placement = Placement.IN_PLACE
            root = open_staging_root(self.log_dir, self.placement)
        assert root is not None, "a staging root that is made is there"
        return root

    def write_records(self, candidates: Sequence[Candidate]) -> None:
        """Steps 1 and 2; a candidate that is not what it was said to be is refused."""
        few = len(candidates) <= _FEW
        for start in range(0, len(candidates), _TOGETHER):
            with ExitStack() as looked_at:
                lot = list(self._look_at(candidates[start : start + _TOGETHER], looked_at))
                if few or not self._link_records(lot):
                    for step, directory in lot:
                        self._write_record(step, directory, durable=few)
        if not few:
            with closing(self._with_records()) as directories:
                barrier(self.log_dir.disk, self.log_dir.root, directories)

    def _look_at(self, candidates: Iterable[Candidate], opened: ExitStack) -> Iterator[tuple[_Step, Directory]]:
        """Open every candidate, and choose its name; one that is not what it was said to be is refused."""
        for candidate in candidates:
            try:
                parent = self._parent(candidate.path)
                directory = opened.enter_context(parent.child(candidate.path.rpartition("/")[2]))
                change = change_since(candidate, directory)
                record = self._record(candidate, directory)
                home_of(self.log_dir, record)  # what could not come back must not go
                staged_record.check(record)
                step = _Step(candidate, record, parent, directory.key[1], self._free_name(record))
            except FileNotFoundError:
                change = "it is gone"
            except NotADirectoryError:
                change = "it is no directory"
            except (LogStoreError, LayoutError) as error:
                change = str(error)
            if change is None:
                self.steps.append(step)
                yield step, directory
            else:
                self.outcome.refused.append(Refused(candidate, f"{candidate.path} was left where it is: {change}"))

    def _link_records(self, lot: Sequence[tuple[_Step, Directory]]) -> bool:
        """Put one file with all their records into all of them; False: that cannot be done here, and nothing was."""
        disk, root = self.log_dir.disk, self.root
        data = staged_record.encode_many({step.name: step.record for step, _ in lot})
        if len(data) > staged_record.MOST_BYTES:
            return False
        try:
            write_new_file(disk, root, SHARED_RECORDS, data, durable=False)
            for step, directory in lot:
                step.inside = True
                link_anew(disk, root, SHARED_RECORDS, directory, staged_record.FILE_NAME)
            disk.unlink(root.descriptor, SHARED_RECORDS)
        except OSError as error:
            if error.errno in DISK_FAILURES:
                raise
            for step, directory in lot:
                remove_file(disk, directory, staged_record.FILE_NAME, durable=False)
                step.inside = False
            remove_file(disk, root, SHARED_RECORDS, durable=False)
            return False
        return True

    def _write_record(self, step: _Step, directory: Directory, *, durable: bool) -> None:
        """Put the record into the partition dir; where it finds no room, outside, under the name to come."""
        disk, data = self.log_dir.disk, staged_record.encode(step.record)
        step.inside = True
        try:
            write_new_file(disk, directory, staged_record.FILE_NAME, data, durable=durable)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            # Durably, for an empty file that came back after a crash would be read before the record outside.
            remove_file(disk, directory, staged_record.FILE_NAME)
            try:
                written = self.spare.write(self.log_dir, step.name, data)
            except (OSError, LogStoreError) as failure:
                # That folder is on another disk, whose failure says nothing of this one.
                logger.warning("the folder for spare records, %s, cannot be used: %s", self.spare.folder, failure)
                written = False
            if not written:
                raise
            step.inside = False

    def _with_records(self) -> Generator[Directory, None, None]:
        """The partition dirs that records were put into, one after the other; what is another thing by now is none."""
        for step in self.steps:
            if step.inside:
                with ExitStack() as opened:
                    try:
                        directory = opened.enter_context(step.parent.child(step.former))
                    except (FileNotFoundError, NotADirectoryError, UnsafePathError):
                        continue
                    yield directory

    def rename(self) -> None:
        """Steps 3 and 4."""
        disk = self.log_dir.disk
        for step in self.steps:
            disk.rename(step.parent.descriptor, step.former, self.root.descriptor, step.name)
            step.renamed = True
            status = self.root.status(step.name)
            if status is None or status.st_ino != step.inode:
                raise UnsafePathError(f"{self.root.path_of(step.name)} is not the directory that was looked at before")
        if self.steps:
            sync_all(disk, [self.root, *self.parents.values()])

    def settle(self) -> None:
        """Step 5."""
        self.log_dir.checkpoints.take_out(step.candidate.partition for step in self.steps)
        self.log_dir.write_checkpoints()
        self.outcome.staged = [self._staged(step) for step in self.steps]

    def undo(self) -> None:
        """Bring everything back to where it was. Where that fails too, the disk is failing and goes offline.

        A record goes only when its replica is durably back: a crash may lose the way back alone, and what then lies
        staged must have its record. One that comes back after a crash is for the next open to see.
        """
        disk = self.log_dir.disk
        try:
            for step in reversed(self.steps):
                if step.renamed:
                    disk.rename(self.root.descriptor, step.name, step.parent.descriptor, step.former)
            if any(step.renamed for step in self.steps):
                sync_all(disk, [*self.parents.values(), self.root])
            self.log_dir.leave_unclean |= any(step.inside for step in self.steps)
            with closing(self._with_records()) as directories:
                for directory in directories:
                    remove_file(disk, directory, staged_record.FILE_NAME, durable=False)
        except OSError as error:
            self.log_dir.leave_unclean = True
            self.log_dir.go_offline(
                f"{self.log_dir.path}: what was staged so far could not be brought back ({error.strerror}); the log "
                "dir is offline, and opening it again sorts it out"
            )
        for step in self.steps:
            self.spare.remove(self.log_dir, step.name)

    def _parent(self, path: str) -> Directory:
        folder = path.rpartition("/")[0]
        if folder not in self.parents:
            self.parents[folder] = self.opened.enter_context(self.log_dir.root.below(folder))
        return self.parents[folder]

    def _record(self, candidate: Candidate, directory: Directory) -> StagedRecord:
        # A restore that a crash cut short leaves a live replica whose offsets are in its former record alone.
        former = record_of_live(self.log_dir, directory, candidate.path)
        kept = {} if former is None else former.checkpoints
        return StagedRecord(
            topic=candidate.partition.topic,
            partition=candidate.partition.partition,
            topic_id=candidate.topic_id or TopicId.ZERO,
            path=candidate.path,
            verdict=candidate.verdict,
            evidence=candidate.evidence[:_LONGEST_EVIDENCE],
            staged_ms=self.now_ms,
            due_ms=self.now_ms + candidate.delay_ms,
            checkpoints={**kept, **self.log_dir.checkpoints.offsets(candidate.partition)},
        )

    def _free_name(self, record: StagedRecord) -> str:
        partition = TopicPartition(record.topic, record.partition)
        name = free_name(self.root, self.placement, partition, record.topic_id, self.promised, disk=self.log_dir.disk)
        self.promised.add(name)
        return name

    def _staged(self, step: _Step) -> Staged:
        return Staged(
            log_dir=self.log_dir.path,
            placement=self.placement,
            name=step.name,
            location=name_below_log_dir(self.log_dir, self.placement, step.name),
            record=step.record,
            problem=None,
            topic_id=step.record.topic_id,
            partition=step.candidate.partition,
            inode=step.inode,
        )


def _time_text(milliseconds: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(milliseconds // 1000))
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms since 1970"
