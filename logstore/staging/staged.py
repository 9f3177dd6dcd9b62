"""What lies staged in a log dir: every staged directory with its record, or with the reason why the record is no use.

Three places are looked at: the staging directory of a log dir that is ours, the sibling of a real broker's, and the
``-stray`` directories in the log dir itself, which are staged in place where they carry a record, and otherwise were
left by a broker. Nothing is believed on its word: a record must speak of the topic ID and partition that its
directory's name says, and lead back to a place that this log dir would give to that replica. Nothing here changes
anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from layout import partition_metadata
from layout.directory_name import (
    MAX_DIRECTORY_NAME,
    DirectoryKind,
    DirectoryName,
    parse,
    parse_staged,
    split_live,
)
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.ours import STAGED_RECORD, STAGED_RECORD_LIMIT, RecordFile, StagedRecord, is_shared_records, parse_records
from layout.scheme import Scheme, partition_path
from layout.topic import TopicPartition
from logstore.errors import DamagedRecordError, LogStoreError, UnreadableFileError
from logstore.fs import Directory, read_small_file
from logstore.log_dir import LogDir, LogDirView
from logstore.parallel import AdaptiveThreadPool, map_chunks
from logstore.scan import METADATA_LIMIT
from logstore.staging.spare_records import FallbackRecords
from logstore.staging.staging_root import Placement, name_below_log_dir, staging_roots

_REMEMBERED = 256
"""Shared files of records that are kept in memory, each of some 120 kB."""

_BATCH, _PIECE, _FEWEST_WAITS = 1024, 64, 8
"""Directories in a batch and in a piece of it, and waits for the disk from which on threads pay (``pace``)."""


@dataclass(frozen=True, slots=True)
class Staged:
    """One directory that waits for its purge, or for somebody to bring it back.

    Attributes:
        log_dir: path of its log dir.
        placement: where it is staged.
        name: of the directory, within its staging root.
        location: how a scan calls it: its path below the log dir, or with ``../`` in front.
        record: what it was; None where that cannot be told.
        problem: why there is no record, one sentence; None where there is one.
        topic_id: of the record, else what ``partition.metadata`` says; None: neither.
        partition: of the record, else what the name says; None: neither, or the name may be cut.
        inode: of the directory, so that a swap is noticed.
    """

    log_dir: str
    placement: Placement
    name: str
    location: str
    record: StagedRecord | None
    problem: str | None
    topic_id: TopicId | None
    partition: TopicPartition | None
    inode: int

    @property
    def due_ms(self) -> int | None:
        """When a purge may take it, in ms since 1970; None: never, because nothing says so."""
        return None if self.record is None else self.record.due_ms

    def is_due(self, now_ms: int) -> bool:
        """Whether a purge may take it; never without a record, and never before it was staged."""
        return self.record is not None and self.record.is_due(now_ms)


def list_staged(log_dir: LogDir, spare: FallbackRecords | None = None) -> list[Staged]:
    """Everything staged in a log dir, and every stray that a broker left, sorted by location.

    Raises:
        OfflineLogDirError: the log dir is offline, or fails now.
    """
    log_dir.check_online()
    try:
        return find_staged(log_dir, spare)
    except OSError as error:
        raise log_dir.failed("what is staged cannot be listed", error) from error


def find_staged(log_dir: LogDirView, spare: FallbackRecords | None = None) -> list[Staged]:
    """The same for a log dir that is only looked at: no lock is needed, so a broker may run on it.

    Raises:
        OSError: the system refuses.
    """
    return sorted(_everything(log_dir, spare or FallbackRecords(None)), key=lambda staged: staged.location)


def _everything(log_dir: LogDirView, spare: FallbackRecords) -> list[Staged]:
    reader = RecordReader(log_dir, spare)
    with closing(staging_roots(log_dir)) as roots:
        return [each for placement, root in roots for each in _everything_in(log_dir, placement, root, reader)]


def _everything_in(
    log_dir: LogDirView, placement: Placement, root: Directory, reader: RecordReader
) -> Iterator[Staged]:
    def looked_at(piece: Sequence[str]) -> list[Staged]:
        found = []
        for text in piece:
            name = parse(text) if placement is Placement.IN_PLACE else parse_staged(text)
            if name.kind in (DirectoryKind.STAGED, DirectoryKind.STRAY):
                with suppress(FileNotFoundError):
                    found.append(look_at(log_dir, placement, root, name, reader))
        return found

    # In this order those that share a file of records come together, and it is read once.
    names = root.directories()
    with AdaptiveThreadPool(looked_at) as pace:
        for start in range(0, len(names), _BATCH):
            yield from map_chunks(pace, names[start : start + _BATCH], _PIECE, _FEWEST_WAITS)


def look_at(
    log_dir: LogDirView, placement: Placement, root: Directory, name: DirectoryName, reader: RecordReader
) -> Staged:
    """What one staged directory says of itself.

    Raises:
        OSError: it is gone, or cannot be opened.
    """
    record, problem = None, None
    partition = _partition_of(name)
    try:
        with root.child(name.text) as directory:
            inode = directory.key[1]
            topic_id = topic_id_in(directory)
            try:
                record = reader.read(directory, name, root)
            except DamagedRecordError as error:
                problem = str(error)
    except LogStoreError as error:
        inode, topic_id, problem = 0, None, str(error)
    if record is not None:
        topic_id, partition = record.topic_id, TopicPartition(record.topic, record.partition)
    elif problem is None:
        problem = "a broker left it; nothing says when it may go"
    location = name_below_log_dir(log_dir, placement, name.text)
    return Staged(log_dir.path, placement, name.text, location, record, problem, topic_id, partition, inode)


def restored_path(log_dir: LogDirView, record: StagedRecord) -> str:
    """Where a staged replica belongs, below the log dir: where it was, or where the scheme has it by now.

    Raises:
        DamagedRecordError: the record claims a place that is not this replica's.
    """
    flat = log_dir.scheme is Scheme.FLAT and "/" not in record.path
    if flat and split_live(record.path) == (record.topic, record.partition):
        return record.path  # the short way for nearly all
    partition = TopicPartition(record.topic, record.partition)
    topic_id = None if record.topic_id.is_zero else record.topic_id
    if log_dir.is_ours:
        try:
            return partition_path(log_dir.scheme, partition, topic_id)
        except LayoutError as error:
            raise DamagedRecordError(f"the record's replica has no place in {log_dir.path}: {error}") from error
    # A broker's log dir may hold names that no client could create (FACTS §1.3), and they come back as they were.
    former = parse(record.path)
    said = (former.topic, former.partition)
    if former.kind is not DirectoryKind.LIVE or said != (record.topic, record.partition) or "/" in record.path:
        raise DamagedRecordError(
            f"the record of {str(partition)!r:.80} says that it was {record.path!r:.80}, another replica's place"
        )
    return record.path


def check_record(log_dir: LogDirView, directory: Directory, name: DirectoryName, record: StagedRecord) -> None:
    """Hold a record against the name of the directory that it is said to be of.

    Raises:
        DamagedRecordError: it speaks of another replica, or claims a place that is not this replica's.
    """
    said = (record.topic_id, record.partition)
    if name.kind is DirectoryKind.STAGED and said != (name.topic_id, name.partition):
        raise DamagedRecordError(
            f"{directory.path}: its record speaks of topic ID {record.topic_id}, partition {record.partition}"
        )
    if name.kind is DirectoryKind.STRAY and name.partition != record.partition:
        raise DamagedRecordError(f"{directory.path}: its record speaks of partition {record.partition}")
    restored_path(log_dir, record)


def read_record(
    log_dir: LogDirView, directory: Directory, name: DirectoryName, spare: FallbackRecords
) -> StagedRecord | None:
    """The record of a staged directory; None: a stray without one.

    Raises:
        DamagedRecordError: it has none and should, or one that is damaged or speaks of something else.
    """
    return RecordReader(log_dir, spare).read(directory, name)


def record_of_live(log_dir: LogDirView, directory: Directory, path: str) -> StagedRecord | None:
    """The record in a live replica; None: its bytes did not reach the disk, so nothing was done after it either.

    One that speaks of another replica is not believed: offsets of others are not its to give.
    """
    try:
        data = read_small_file(STAGED_RECORD, STAGED_RECORD_LIMIT, directory.descriptor)
        records = {} if data is None else parse_records(data)
        return next((record for record in records.values() if restored_path(log_dir, record) == path), None)
    except (DamagedRecordError, UnreadableFileError, LayoutError):
        return None


class RecordReader:
    """Reads the records of many staged directories; a file that several of them share is read once, by each thread."""

    def __init__(self, log_dir: LogDirView, spare: FallbackRecords) -> None:
        """Read records of one log dir."""
        self._log_dir, self._spare = log_dir, spare
        self._shared: dict[tuple[int, int, int, int], RecordFile] = {}
        self._left: dict[tuple[int, int], Mapping[str, StagedRecord]] = {}
        """By staging root: what its files of records say, where a staging came to no end."""

    def read(self, directory: Directory, name: DirectoryName, root: Directory | None = None) -> StagedRecord | None:
        """The record of a staged directory; None: a stray without one.

        Args:
            directory: open.
            name: of it.
            root: the staging root; where it is given, a crash may have left the record there for recovery to hand on.

        Raises:
            DamagedRecordError: it has none and should, or one that is damaged or speaks of something else.
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
            data = self._spare.read(self._log_dir, name.text)
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
    """What a file of records in a staging root says, by name; nothing where it never became durable."""
    try:
        data = read_small_file(file, STAGED_RECORD_LIMIT, root.descriptor)
        return {} if data is None else parse_records(data)
    except (UnreadableFileError, LayoutError):
        return {}


def topic_id_in(directory: Directory) -> TopicId | None:
    """The topic ID that ``partition.metadata`` holds; None: there is none that can be read."""
    try:
        data = read_small_file(partition_metadata.FILE_NAME, METADATA_LIMIT, directory.descriptor)
        return None if data is None else partition_metadata.parse(data).topic_id
    except (UnreadableFileError, LayoutError):
        return None


def _partition_of(name: DirectoryName) -> TopicPartition | None:
    """What a stray's name says it was; None of other names, and of one that may have been cut to fit (FACTS §1.2)."""
    if name.topic is None or name.partition is None or len(name.text) >= MAX_DIRECTORY_NAME:
        return None
    return TopicPartition(name.topic, name.partition)
