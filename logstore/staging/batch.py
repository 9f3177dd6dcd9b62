"""One batch of replicas on its way into the staging root; ``staging`` tells the steps, their order, and why."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing

from layout import partition_metadata
from layout.errors import LayoutError
from layout.ours import STAGED_RECORD, check_record, encode_record, shared_records_name
from logstore.errors import LogStoreError, UnsafePathError
from logstore.fs import (
    DIRECTORY_FLAGS,
    FIRST_READ,
    READ_FLAGS,
    Directory,
    barrier,
    remove_file,
    sync_all,
    write_new_file,
)
from logstore.log_dir import DISK_FAILURES
from logstore.staging import records as shared_records
from logstore.staging.candidate import Candidate, Refused, revalidate
from logstore.staging.listing import Staged
from logstore.staging.placement import name_below_log_dir
from logstore.staging.records import record_of_live, restored_path
from logstore.staging.session import NO_SPACE, StagingMove, StagingSession

logger = logging.getLogger(__name__)

_TO_START_FROM = DIRECTORY_FLAGS | getattr(os, "O_PATH", 0)
"""Opens a directory whose entries are used by name and never listed; quicker where the system tells."""


class _NoRoomError(Exception):
    """The staging root has no room for one more name, and had some for others; its text is the system's."""


class StagingBatch:
    """Some candidates, step by step.

    Attributes:
        candidates: all of them.
        steps: those that are on their way, and were what they were said to be.
        refused: those that were not.
    """

    def __init__(self, place: StagingSession, candidates: Sequence[Candidate], *, each_synced: bool) -> None:
        """Take candidates; nothing happens yet.

        Args:
            place: where they come from and go to.
            candidates: of one log dir.
            each_synced: each has a record of its own, which is synced by itself, so that the batch needs no barrier.
        """
        self.candidates, self._place, self._each_synced = candidates, place, each_synced
        self._log_dir = place.log_dir
        self._files: dict[int, list[StagingMove]] = {}
        """Replicas by the number of the file that holds their records."""
        self._unusual: list[Candidate] = []
        """Those that want a closer look, and a record of their own."""
        self.steps: list[StagingMove] = []
        self.refused: list[Refused] = []

    @property
    def files(self) -> int:
        """How many files hold the records of its replicas."""
        return len(self._files)

    def write_records(self) -> None:
        """Step 1: write files with the records of all that seem usual by what is known of them. Raises OSError."""
        if self._each_synced or not self._log_dir.is_marked:
            self._unusual += self.candidates
            return
        for start in range(0, len(self.candidates), shared_records.REPLICAS_PER_FILE):
            together = self.candidates[start : start + shared_records.REPLICAS_PER_FILE]
            steps = [step for candidate in together if (step := self._planned(candidate)) is not None]
            number, records = self._place.next_number(), {step.name: step.record for step in steps}
            if steps and shared_records.write_shared_records(self._log_dir.disk, self._place.root, number, records):
                self._files[number] = steps
            else:
                for step in steps:
                    self._put_back(step)

    def _planned(self, candidate: Candidate) -> StagingMove | None:
        """Choose the name of a candidate, and make its record; nothing is looked at yet."""
        place, path = self._place, candidate.path
        folder, _, former = path.rpartition("/")
        if candidate.topic_id is not None and path not in place.taken:
            try:
                record = place.record(candidate, {})
                restored_path(self._log_dir, record)  # what could not come back must not go
                check_record(record)
                parent = place.parents.get(folder) or place.parent(folder)
            except (OSError, LogStoreError, LayoutError):
                pass
            else:
                place.taken.add(path)
                name = place.free_name(candidate.partition, candidate.topic_id)
                return StagingMove(candidate, record, parent, former, candidate.inode or 0, name)
        self._unusual.append(candidate)
        return None

    def _put_back(self, step: StagingMove) -> None:
        """Put a planned one back among those that want a closer look, which has the words for what is wrong."""
        self._place.give_back(step)
        self._unusual.append(step.candidate)

    def sync_records(self) -> None:
        """Step 2, where no call syncs a whole file system. Raises OSError."""
        if self._files:
            shared_records.sync_shared_records(self._log_dir.disk, self._place.root, list(self._files))

    def rename(self) -> None:
        """Steps 3 and 4, for each replica; one that is not what it was said to be is refused.

        The staging root of a full disk may have room for some names and for no others; where that is allowed for, those
        are refused as well.

        Raises:
            OSError: as the system gives it; where there is no room, not even for the first name.
            UnsafePathError: what was renamed is not what was looked at.
        """
        try:
            for number, steps in self._files.items():
                file = shared_records_name(number)
                for step in steps:
                    if self._linked(step, file):
                        self._rename(step)
                    else:
                        self._put_back(step)
            if self._unusual:
                self._stage_unusual()
        except _NoRoomError as error:
            self._leave_the_rest(str(error))

    def _linked(self, step: StagingMove, file: str) -> bool:
        """Take a quick look at a replica, and link the file with its record into it; False: that cannot be done so.

        What the quick look leaves out, the link fails on: a former record, and a mount point, of whatever file system.
        """
        disk, root, parent = self._log_dir.disk, self._place.root.descriptor, step.parent
        try:
            descriptor = os.open(step.former, _TO_START_FROM, dir_fd=parent.descriptor)
        except OSError:
            return False
        try:
            status = os.fstat(descriptor)
            if step.inode not in (0, status.st_ino):
                return False
            step.inode = status.st_ino
            if not _holds_id(descriptor, step):
                return False
            step.inside = True
            self.steps.append(step)
            try:
                disk.link(root, file, descriptor, STAGED_RECORD)
            except OSError as error:
                self.steps.pop()  # where it is a former record, that may hold the replica's offsets
                if error.errno in DISK_FAILURES:
                    raise
                return False
        finally:
            os.close(descriptor)
        return True

    def _rename(self, step: StagingMove) -> None:
        disk, root = self._log_dir.disk, self._place.root
        try:
            disk.rename(step.parent.descriptor, step.former, root.descriptor, step.name)
        except OSError as error:
            if self._place.partly and error.errno in NO_SPACE and any(step.renamed for step in self.steps):
                raise _NoRoomError(os.strerror(error.errno or 0)) from error
            raise
        step.renamed = True
        status = root.status(step.name)
        if status is None or status.st_ino != step.inode:
            raise UnsafePathError(f"{root.path_of(step.name)} is not the directory that was looked at before")

    def _leave_the_rest(self, reason: str) -> None:
        """Refuse all that are not renamed; those that were about to be lose their records again."""
        left = [step for step in self.steps if not step.renamed]
        self._log_dir.leave_unclean = True  # a record that goes here may come back after a crash
        with closing(self._with_records(left)) as directories:
            for directory in directories:
                remove_file(self._log_dir.disk, directory, STAGED_RECORD, durable=False)
        for step in left:
            self._place.spare.remove(self._log_dir, step.name)
        self.steps = [step for step in self.steps if step.renamed]
        settled = {id(step.candidate) for step in self.steps} | {id(refused.candidate) for refused in self.refused}
        for candidate in self.candidates:
            if id(candidate) not in settled:
                self._refuse(candidate, f"{self._place.root.path} has no room for one more name ({reason})")

    def _stage_unusual(self) -> None:
        """Look closely, write a record of its own into each that may go, make those durable, and rename."""
        before = len(self.steps)
        for candidate in self._unusual:
            with ExitStack() as opened:
                found = self._look_at(candidate, opened)
                if found is not None:
                    self.steps.append(found[0])
                    self._write_record(*found)
        steps = self.steps[before:]
        if not self._each_synced:
            with closing(self._with_records(steps)) as directories:
                barrier(self._log_dir.disk, self._log_dir.root, directories)
        for step in steps:
            self._rename(step)

    def _look_at(self, candidate: Candidate, opened: ExitStack) -> tuple[StagingMove, Directory] | None:
        """Open a candidate, and choose its name; None: it is not what it was said to be, and is refused."""
        place = self._place
        folder, _, former = candidate.path.rpartition("/")
        if candidate.path in place.taken:
            self._refuse(candidate, "it was named before")
            return None
        try:
            parent = place.parent(folder)
            directory = opened.enter_context(parent.child(former))
            change = revalidate(candidate, directory)
            record = place.record(candidate, self._kept(candidate, directory))
            restored_path(self._log_dir, record)  # what could not come back must not go
            check_record(record)
        except FileNotFoundError:
            change = "it is gone"
        except NotADirectoryError:
            change = "it is no directory"
        except (LogStoreError, LayoutError) as error:
            change = str(error)
        if change is not None:
            self._refuse(candidate, change)
            return None
        place.taken.add(candidate.path)
        name = place.free_name(candidate.partition, record.topic_id)
        return StagingMove(candidate, record, parent, former, directory.key[1], name), directory

    def _refuse(self, candidate: Candidate, why: str) -> None:
        self.refused.append(Refused(candidate, f"{candidate.path} was left where it is: {why}"))

    def _write_record(self, step: StagingMove, directory: Directory) -> None:
        """Put the record into the partition dir; where it finds no room, outside, under the name to come."""
        disk, data = self._log_dir.disk, encode_record(step.record)
        step.inside = True
        try:
            write_new_file(disk, directory, STAGED_RECORD, data, durable=self._each_synced)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            # Durably, for an empty file that came back after a crash would be read before the record outside.
            remove_file(disk, directory, STAGED_RECORD)
            spare = self._place.spare
            if self._files:
                # One of them may speak of the name too, and recovery would take its word before the record outside.
                step.name = self._place.free_name(step.candidate.partition, step.record.topic_id)
            try:
                written = spare.write(self._log_dir, step.name, data)
            except (OSError, LogStoreError) as failure:
                # That folder is on another disk, whose failure says nothing of this one.
                logger.warning("the folder for spare records, %s, cannot be used: %s", spare.folder, failure)
                written = False
            if not written:
                raise
            step.inside = False

    def _with_records(self, steps: Iterable[StagingMove]) -> Generator[Directory, None, None]:
        """The partition dirs that records were put into, one after the other; what is another thing by now is none."""
        for step in steps:
            if step.inside:
                with ExitStack() as opened:
                    try:
                        directory = opened.enter_context(step.parent.child(step.former))
                    except (FileNotFoundError, NotADirectoryError, UnsafePathError):
                        continue
                    yield directory

    def sync_renamed(self) -> None:
        """Step 5, where no call syncs a whole file system, or none is needed. Raises OSError."""
        disk, root = self._log_dir.disk, self._place.root
        if self._files:
            for step in self.steps:
                with root.child(step.name) as directory:
                    disk.sync(directory.descriptor)
        self._place.sync()

    def drop_files(self) -> None:
        """Remove the files of records, whose links are durable. Raises OSError: the disk fails."""
        for number in self._files:
            try:
                remove_file(self._log_dir.disk, self._place.root, shared_records_name(number), durable=False)
            except OSError as error:
                if error.errno in DISK_FAILURES:
                    raise
                self._log_dir.leave_unclean = True  # the next one to open it sees to that

    def staged(self) -> list[Staged]:
        """What is staged by now, in the order of the steps."""
        return [self._staged(step) for step in self.steps]

    def undo(self) -> None:
        """Bring everything back to where it was. Where that fails too, the disk is failing and goes offline.

        A record goes only when its replica is durably back: a crash may lose the way back alone, and what then lies
        staged must have its record. One that comes back after a crash is for the next open to see.
        """
        log_dir, disk, root = self._log_dir, self._log_dir.disk, self._place.root
        try:
            for step in reversed(self.steps):
                if step.renamed:
                    disk.rename(root.descriptor, step.name, step.parent.descriptor, step.former)
            if any(step.renamed for step in self.steps):
                sync_all(disk, [*self._place.parents.values(), root])
            log_dir.leave_unclean |= bool(self._files) or any(step.inside for step in self.steps)
            with closing(self._with_records(self.steps)) as directories:
                for directory in directories:
                    remove_file(disk, directory, STAGED_RECORD, durable=False)
            self.drop_files()
        except OSError as error:
            log_dir.leave_unclean = True
            log_dir.go_offline(
                f"{log_dir.path}: what was staged so far could not be brought back ({error.strerror}); the log dir is "
                "offline, and opening it again sorts it out"
            )
        for step in self.steps:
            self._place.spare.remove(log_dir, step.name)

    def _kept(self, candidate: Candidate, directory: Directory) -> Mapping[str, int]:
        """The offsets of a former record: a restore that a crash cut short leaves them there alone."""
        former = None if _record_in(directory) is None else record_of_live(self._log_dir, directory, candidate.path)
        return {} if former is None else former.checkpoints

    def _staged(self, step: StagingMove) -> Staged:
        return Staged(
            log_dir=self._log_dir.path,
            placement=self._place.placement,
            name=step.name,
            location=name_below_log_dir(self._log_dir, self._place.placement, step.name),
            record=step.record,
            problem=None,
            topic_id=step.record.topic_id,
            partition=step.candidate.partition,
            inode=step.inode,
        )


def _holds_id(descriptor: int, step: StagingMove) -> bool:
    """Whether a partition dir's ``partition.metadata`` has the topic ID that is expected, and nothing odd about it."""
    topic_id = step.record.topic_id
    try:
        file = os.open(partition_metadata.FILE_NAME, READ_FLAGS, dir_fd=descriptor)
        try:
            data = os.read(file, FIRST_READ)
        finally:
            os.close(file)
        usual = data == partition_metadata.encode(topic_id)
        return usual or (len(data) < FIRST_READ and partition_metadata.parse(data).topic_id == topic_id)
    except (OSError, LayoutError):
        return False


def _record_in(directory: Directory) -> os.stat_result | None:
    """What lies in a partition dir where its record goes; None: nothing.

    Raises:
        UnsafePathError: a directory, which no record replaces.
    """
    found = directory.status(STAGED_RECORD)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise UnsafePathError(f"a directory called {STAGED_RECORD} takes the place of its record")
    return found
