"""Reads and checks the records of staged directories; writes records that many share, and recovers those after a crash.

A record is believed only where it speaks of the topic ID and partition in its directory's name, and leads back to a
path that this log dir would give to that replica.

Replicas that are staged together share a file of records. It is made durable in the staging root before any of them is
touched. Then each gets a link to it as its record, and is renamed. The file's own name is removed when links and
renames are durable. So no order is needed between a link and its rename, and one barrier serves both. A crash leaves
each replica in one of four states, and in all of them the file still exists::

    no link, not renamed     live, as it was
    a link, not renamed      live: recovery removes the record
    a link, and renamed      staged
    renamed, and no link     staged: recovery makes the link

This is done only in a log dir that is marked for recovery. Source: DESIGN §5.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from layout import partition_metadata
from layout.directory_name import DirectoryKind, DirectoryName, parse, parse_staged, split_live
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.ours import (
    STAGED_RECORD,
    STAGED_RECORD_LIMIT,
    RecordFile,
    StagedRecord,
    encode_records,
    is_shared_records,
    parse_records,
    shared_records_name,
)
from layout.scheme import Scheme, partition_path
from layout.topic import TopicPartition
from logstore.errors import DamagedRecordError, FailedReadError, LogStoreError, UnreadableFileError
from logstore.fs import Directory, Disk, read_small_file, remove_file, write_new_file
from logstore.log_dir import DISK_FAILURES, LogDir, LogDirView
from logstore.scan import METADATA_LIMIT
from logstore.staging.fallback_records import FallbackRecords
from logstore.staging.placement import Placement

logger = logging.getLogger(__name__)

REPLICAS_PER_FILE: Final = 128
"""Replicas that share one file. In a larger file, reading the record of a single replica would take long."""

_REMEMBERED = 256
"""Shared files of records that a reader keeps in memory, each of some 120 kB."""


def restored_path(log_dir: LogDirView, record: StagedRecord) -> str:
    """Give the path below the log dir that a staged replica returns to: its former path, or the present scheme's.

    Raises:
        DamagedRecordError: the record claims a path that is not this replica's.
    """
    flat = log_dir.scheme is Scheme.FLAT and "/" not in record.path
    if flat and split_live(record.path) == (record.topic, record.partition):
        return record.path  # the fast path, for nearly all
    partition = TopicPartition(record.topic, record.partition)
    topic_id = None if record.topic_id.is_zero else record.topic_id
    if log_dir.is_ours:
        try:
            return partition_path(log_dir.scheme, partition, topic_id)
        except LayoutError as error:
            raise DamagedRecordError(f"the record's replica has no place in {log_dir.path}: {error}") from error
    # A broker's log dir may hold names that no client could create (FACTS §1.3). They come back unchanged.
    former = parse(record.path)
    said = (former.topic, former.partition)
    if former.kind is not DirectoryKind.LIVE or said != (record.topic, record.partition) or "/" in record.path:
        raise DamagedRecordError(
            f"the record of {str(partition)!r:.80} says that it was {record.path!r:.80}, another replica's place"
        )
    return record.path


def check_record(log_dir: LogDirView, directory: Directory, name: DirectoryName, record: StagedRecord) -> None:
    """Check a record against the name of its directory.

    Raises:
        DamagedRecordError: the record is another replica's, or claims a path that is not this replica's.
    """
    said = (record.topic_id, record.partition)
    if name.kind is DirectoryKind.STAGED and said != (name.topic_id, name.partition):
        raise DamagedRecordError(
            f"{directory.path}: its record speaks of topic ID {record.topic_id}, partition {record.partition}"
        )
    if name.kind is DirectoryKind.STRAY and name.partition != record.partition:
        raise DamagedRecordError(f"{directory.path}: its record speaks of partition {record.partition}")
    restored_path(log_dir, record)


def record_of_live(log_dir: LogDirView, directory: Directory, path: str) -> StagedRecord | None:
    """Read the record in a live replica; None: it never became durable, so nothing was done after it either.

    The record of another replica is ignored: its offsets must not be given to this one.
    """
    try:
        data = read_small_file(STAGED_RECORD, STAGED_RECORD_LIMIT, directory.descriptor)
        records = {} if data is None else parse_records(data)
        return next((record for record in records.values() if restored_path(log_dir, record) == path), None)
    except (DamagedRecordError, UnreadableFileError, LayoutError):
        return None


class RecordReader:
    """Reads the records of many staged directories; each thread reads a shared file of records once."""

    def __init__(self, log_dir: LogDirView, fallback: FallbackRecords) -> None:
        """Read records of one log dir."""
        self._log_dir, self._fallback = log_dir, fallback
        self._shared: dict[tuple[int, int, int, int], RecordFile] = {}
        self._left: dict[tuple[int, int], Mapping[str, StagedRecord]] = {}
        """By staging root: the records in the files that an unfinished staging left there."""

    def read(self, directory: Directory, name: DirectoryName, root: Directory | None = None) -> StagedRecord | None:
        """Read the record of a staged directory; None: a stray without a record.

        Args:
            directory: open.
            name: of the directory.
            root: the staging root, to find a record for which recovery has not made the link yet; None: not searched.

        Raises:
            DamagedRecordError: the record is missing, damaged, or another replica's.
        """
        try:
            record = self._found(directory, name, root)
        except (UnreadableFileError, LayoutError) as error:
            raise DamagedRecordError(f"{directory.path}: {error}") from error
        if record is None:
            return None
        check_record(self._log_dir, directory, name, record)
        return record

    def _found(self, directory: Directory, name: DirectoryName, root: Directory | None) -> StagedRecord | None:
        status = directory.status(STAGED_RECORD)
        shared = status is not None and status.st_nlink > 1
        key = (0, 0, 0, 0) if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if shared and key in self._shared:
            return self._shared[key].record_of(name.text)
        data = None
        if status is not None:
            data = read_small_file(STAGED_RECORD, STAGED_RECORD_LIMIT, directory.descriptor)
        if data is None:
            data = self._fallback.read(self._log_dir, name.text)
        if data is None:
            left = None if root is None else self._left_in(root).get(name.text)
            if left is not None and topic_id_in(directory) == left.topic_id:
                return left
            if name.kind is DirectoryKind.STRAY:
                return None
            raise DamagedRecordError(f"{directory.path} has no {STAGED_RECORD}, so nothing says what it was")
        found = RecordFile(data)
        if shared:
            if len(self._shared) >= _REMEMBERED:
                self._shared.clear()
            self._shared[key] = found
        return found.record_of(name.text)

    def _left_in(self, root: Directory) -> Mapping[str, StagedRecord]:
        if root.key not in self._left:
            files = [name for name, _ in root.entries() if is_shared_records(name)]
            self._left[root.key] = {name: each for file in files for name, each in records_in(root, file).items()}
        return self._left[root.key]


def records_in(root: Directory, file: str) -> Mapping[str, StagedRecord]:
    """Read a file of records in a staging root, by directory name; empty where it never became durable."""
    try:
        data = read_small_file(file, STAGED_RECORD_LIMIT, root.descriptor)
        return {} if data is None else parse_records(data)
    except (UnreadableFileError, LayoutError):
        return {}


def topic_id_in(directory: Directory) -> TopicId | None:
    """Read the topic ID from ``partition.metadata``; None: there is no readable ID."""
    try:
        return readable_topic_id_in(directory)
    except FailedReadError:
        return None


def readable_topic_id_in(directory: Directory) -> TopicId | None:
    """Read the topic ID from ``partition.metadata``; None: what is there is no topic ID.

    Raises:
        FailedReadError: the system refuses to read it, so there may be one.
    """
    try:
        data = read_small_file(partition_metadata.FILE_NAME, METADATA_LIMIT, directory.descriptor)
        return None if data is None else partition_metadata.parse(data).topic_id
    except FailedReadError:
        raise
    except (UnreadableFileError, LayoutError):
        return None


def write_shared_records(disk: Disk, root: Directory, number: int, records: Mapping[str, StagedRecord]) -> bool:
    """Write a file of checked records, by the names that the replicas will get.

    Returns:
        False: the file would be too long, or the system has no room or refuses.

    Raises:
        OSError: the disk fails.
    """
    data = encode_records(records)
    if len(data) > STAGED_RECORD_LIMIT:
        return False
    try:
        write_new_file(disk, root, shared_records_name(number), data, durable=False)
    except OSError as error:
        if error.errno in DISK_FAILURES:
            raise
        return False
    return True


def sync_shared_records(disk: Disk, root: Directory, numbers: Sequence[int]) -> None:
    """Make files of records durable one by one, where no call syncs the whole file system. Raises OSError."""
    for number in numbers:
        descriptor = disk.open_to_change(root.descriptor, shared_records_name(number))
        try:
            disk.sync(descriptor)
        finally:
            os.close(descriptor)
    disk.sync(root.descriptor)


def finish_shared_records(log_dir: LogDir, placement: Placement, root: Directory) -> Iterator[str]:
    """Recover one staging root: make the missing links of renamed replicas, then remove the files of records.

    Yields:
        A sentence for each file.

    Raises:
        OSError: the disk fails.
    """
    for name, is_directory in root.entries():
        if is_directory or not is_shared_records(name):
            continue
        linked, is_done = _link_where_missing(log_dir, placement, root, name)
        if is_done:
            remove_file(log_dir.disk, root, name)
            given = f"; {linked} of its replicas had no record yet, and have it now" if linked else ""
            yield f"{name} in {root.path} was left by a staging that did not finish, and is removed{given}"
        else:
            log_dir.leave_unclean = True  # the file stays, for it alone says what those replicas were


def _link_where_missing(log_dir: LogDir, placement: Placement, root: Directory, file: str) -> tuple[int, bool]:
    """Make missing links; gives how many were made, and whether no link is missing any more."""
    linked, is_done = 0, True
    for name, record in records_in(root, file).items():
        try:
            with suppress(FileNotFoundError, NotADirectoryError, LogStoreError), root.child(name) as directory:
                if _lacks(log_dir, placement, directory, name, record):
                    log_dir.disk.link(root.descriptor, file, directory.descriptor, STAGED_RECORD)
                    log_dir.disk.sync(directory.descriptor)
                    linked += 1
        except OSError as error:
            if error.errno in DISK_FAILURES:
                raise
            logger.warning("%s cannot get its record back: %s", root.path_of(name), error.strerror)
            is_done = False
    return linked, is_done


def _lacks(log_dir: LogDir, placement: Placement, directory: Directory, name: str, record: StagedRecord) -> bool:
    """Whether a directory is the staged replica of a record, and holds no record itself.

    A directory that a purge has begun to empty has no topic ID any more, and is left alone.

    Raises:
        LogStoreError: the directory is another replica's.
    """
    parsed = parse(name) if placement is Placement.IN_PLACE else parse_staged(name)
    if parsed.kind not in (DirectoryKind.STAGED, DirectoryKind.STRAY) or directory.holds(STAGED_RECORD):
        return False
    check_record(log_dir, directory, parsed, record)
    return topic_id_in(directory) == record.topic_id
