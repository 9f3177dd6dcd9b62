"""One lot of replicas on its way into the staging root; ``staging`` tells the steps, their order, and why."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from typing import Final

from layout import partition_metadata, staged_record
from layout.errors import LayoutError
from logstore.candidate import Candidate, Refused, change_since
from logstore.directory import DIRECTORY_FLAGS, Directory
from logstore.durable import TEMPORARY, barrier, remove_file, sync_all, write_new_file
from logstore.errors import LogStoreError, UnsafePathError
from logstore.log_dir import DISK_FAILURES
from logstore.small_file import PIECE, READ_FLAGS
from logstore.staged import Staged, home_of, record_of_live
from logstore.staging_place import NO_SPACE, Place, Step
from logstore.staging_root import name_below_log_dir

logger = logging.getLogger(__name__)

_TOGETHER = 64
"""Replicas that share one file of records, linked into each of them."""

SHARED_RECORDS: Final = staged_record.FILE_NAME + TEMPORARY
"""That file's name in the staging root, until all its links are made."""


class Lot:
    """Some candidates, step by step.

    Attributes:
        candidates: all of them.
        steps: those that are what they were said to be.
        refused: the others.
    """

    def __init__(self, place: Place, candidates: Sequence[Candidate], *, each_synced: bool) -> None:
        """Take candidates; nothing happens yet.

        Args:
            place: where they come from and go to.
            candidates: of one log dir.
            each_synced: sync each record by itself, so that the lot needs no barrier.
        """
        self.candidates, self._place, self._each_synced = candidates, place, each_synced
        self._log_dir = place.log_dir
        self.steps: list[Step] = []
        self.refused: list[Refused] = []

    def write_records(self) -> None:
        """Step 1; a candidate that is not what it was said to be is refused."""
        for start in range(0, len(self.candidates), _TOGETHER):
            together = self.candidates[start : start + _TOGETHER]
            if self._each_synced or not self._link_records(together):
                with ExitStack() as opened:
                    for step, directory in list(self._look_at(together, opened)):
                        self._write_record(step, directory, durable=self._each_synced)

    def make_durable(self) -> bool:
        """Step 2; whether that made everything durable that had happened on the file system before."""
        if self._each_synced:
            return False
        with closing(self._with_records()) as directories:
            return barrier(self._log_dir.disk, self._log_dir.root, directories)

    def _look_at(self, candidates: Iterable[Candidate], opened: ExitStack) -> Iterator[tuple[Step, Directory]]:
        """Open every candidate, and choose its name; one that is not what it was said to be is refused."""
        for candidate in candidates:
            try:
                parent = self._place.parent(candidate.path)
                directory = opened.enter_context(parent.child(candidate.path.rpartition("/")[2]))
                change = change_since(candidate, directory)
                if candidate.path in self._place.taken:
                    change = "it was named before"
                record = self._place.record(candidate, self._kept(candidate, directory))
                home_of(self._log_dir, record)  # what could not come back must not go
                staged_record.check(record)
                name = self._place.free_name(candidate.partition, record.topic_id)
                step = Step(candidate, record, parent, directory.key[1], name)
            except FileNotFoundError:
                change = "it is gone"
            except NotADirectoryError:
                change = "it is no directory"
            except (LogStoreError, LayoutError) as error:
                change = str(error)
            if change is None:
                self._place.taken.add(candidate.path)
                self.steps.append(step)
                yield step, directory
            else:
                self.refused.append(Refused(candidate, f"{candidate.path} was left where it is: {change}"))

    def _link_records(self, candidates: Sequence[Candidate]) -> bool:
        """Put one file with all their records into all of them, where nothing about any of them is unusual.

        Returns:
            False: something is, or the system refused. Nothing has changed, and each is to be looked at by itself.
        """
        place, before = self._place, len(self.steps)
        opened: list[int] = []
        try:
            for candidate in candidates:
                step = self._glance(candidate, opened)
                if step is None:
                    break
                self.steps.append(step)
                place.taken.add(candidate.path)
            steps = self.steps[before:]
            if len(steps) == len(candidates) and self._linked(steps, opened):
                return True
        finally:
            for descriptor in opened:
                os.close(descriptor)
        del self.steps[before:]
        place.taken.difference_update(step.candidate.path for step in steps)
        place.promised.difference_update(step.name for step in steps)
        return False

    def _glance(self, candidate: Candidate, opened: list[int]) -> Step | None:
        """Take a quick look at a candidate, and choose its name; None: it wants a closer look, which has the words.

        What the quick look leaves out, the link fails on: a former record, and a mount point between the two. The
        descriptor of the partition dir is put among those that are open.
        """
        place = self._place
        folder, _, name = candidate.path.rpartition("/")
        if candidate.topic_id is None or candidate.path in place.taken:
            return None
        try:
            parent = place.parents.get(folder) or place.parent(candidate.path)
            descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=parent.descriptor)
            opened.append(descriptor)
            status = os.fstat(descriptor)
            file = os.open(partition_metadata.FILE_NAME, READ_FLAGS, dir_fd=descriptor)
            try:
                data = os.read(file, PIECE)
            finally:
                os.close(file)
            if status.st_dev != parent.device or candidate.inode not in (None, status.st_ino):
                return None
            usual = data == partition_metadata.encode(candidate.topic_id)
            if not usual and (len(data) == PIECE or partition_metadata.parse(data).topic_id != candidate.topic_id):
                return None
            record = self._place.record(candidate, {})
            home_of(self._log_dir, record)  # what could not come back must not go
            staged_record.check(record)
        except (OSError, LogStoreError, LayoutError):
            return None
        return Step(candidate, record, parent, status.st_ino, place.free_name(candidate.partition, record.topic_id))

    def _linked(self, steps: Sequence[Step], opened: Sequence[int]) -> bool:
        """Make the file, and link it into the open partition dirs; False: that cannot be done, and nothing was."""
        disk, root, name = self._log_dir.disk, self._place.root, staged_record.FILE_NAME
        data = staged_record.encode_many({step.name: step.record for step in steps})
        if len(data) > staged_record.MOST_BYTES:
            return False
        try:
            write_new_file(disk, root, SHARED_RECORDS, data, durable=False)
            for step, descriptor in zip(steps, opened, strict=True):
                step.inside = True
                try:
                    disk.link(root.descriptor, SHARED_RECORDS, descriptor, name)
                except FileExistsError:
                    step.inside = False  # that is a former record, which may hold the replica's offsets
                    raise
            disk.unlink(root.descriptor, SHARED_RECORDS)
        except OSError as error:
            if error.errno in DISK_FAILURES:
                raise
            for step, descriptor in zip(steps, opened, strict=True):
                if step.inside:
                    with suppress(FileNotFoundError):
                        disk.unlink(descriptor, name)
                    step.inside = False
            remove_file(disk, root, SHARED_RECORDS, durable=False)
            return False
        return True

    def _write_record(self, step: Step, directory: Directory, *, durable: bool) -> None:
        """Put the record into the partition dir; where it finds no room, outside, under the name to come."""
        disk, data = self._log_dir.disk, staged_record.encode(step.record)
        step.inside = True
        try:
            write_new_file(disk, directory, staged_record.FILE_NAME, data, durable=durable)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            # Durably, for an empty file that came back after a crash would be read before the record outside.
            remove_file(disk, directory, staged_record.FILE_NAME)
            spare = self._place.spare
            try:
                written = spare.write(self._log_dir, step.name, data)
            except (OSError, LogStoreError) as failure:
                # That folder is on another disk, whose failure says nothing of this one.
                logger.warning("the folder for spare records, %s, cannot be used: %s", spare.folder, failure)
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
        """Step 3.

        Raises:
            OSError: as the system gives it.
            UnsafePathError: what was renamed is not what was looked at.
        """
        disk, root = self._log_dir.disk, self._place.root
        for step in self.steps:
            disk.rename(step.parent.descriptor, step.former, root.descriptor, step.name)
            step.renamed = True
            status = root.status(step.name)
            if status is None or status.st_ino != step.inode:
                raise UnsafePathError(f"{root.path_of(step.name)} is not the directory that was looked at before")

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
            log_dir.leave_unclean |= any(step.inside for step in self.steps)
            with closing(self._with_records()) as directories:
                for directory in directories:
                    remove_file(disk, directory, staged_record.FILE_NAME, durable=False)
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

    def _staged(self, step: Step) -> Staged:
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


def _record_in(directory: Directory) -> os.stat_result | None:
    """What lies in a partition dir where its record goes; None: nothing.

    Raises:
        UnsafePathError: a directory, which no record replaces.
    """
    found = directory.status(staged_record.FILE_NAME)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise UnsafePathError(f"a directory called {staged_record.FILE_NAME} takes the place of its record")
    return found
