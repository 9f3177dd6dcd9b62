"""Lists what lies staged in a log dir: every staged directory with its record, or with the reason why it has none.

Three places are searched: the staging directory of a log dir that is ours, the sibling of a real broker's log dir, and
the ``-stray`` directories in the log dir itself. A stray with a record was staged in place; without one, a broker left
it. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from layout.directory_name import (
    MAX_DIRECTORY_NAME,
    DirectoryKind,
    DirectoryName,
    parse,
    parse_staged,
)
from layout.ids import TopicId
from layout.ours import StagedRecord
from layout.topic import TopicPartition
from logstore.errors import DamagedRecordError, FailedReadError, LogStoreError
from logstore.fs import Directory
from logstore.log_dir import LogDir, LogDirView
from logstore.parallel import AdaptiveThreadPool, map_chunks
from logstore.staging.fallback_records import FallbackRecords
from logstore.staging.placement import Placement, name_below_log_dir, staging_roots
from logstore.staging.records import RecordReader, readable_topic_id_in

_BATCH, _PIECE, _FEWEST_WAITS = 1024, 64, 8
"""Directories in a batch, directories in a piece of it, and waits for the disk in a piece from which threads pay."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A directory that waits to be purged or restored.

    Attributes:
        log_dir: path of its log dir.
        placement: where it is staged.
        name: of the directory, within its staging root.
        location: its name in a scan: the path below the log dir, with ``../`` for a sibling.
        record: None: it has no valid record.
        problem: why it has no record, one sentence; None where it has one.
        topic_id: from the record, else from ``partition.metadata``; None: neither has one.
        partition: from the record, else from the name; None: no record, and the name says nothing or may be cut.
        inode: of the directory, so that a swap is noticed.
        unread: whether the system refused to read a file of it, so that what it is may not be known.
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
    unread: bool = False

    @property
    def due_ms(self) -> int | None:
        """When a purge may delete it, in ms since 1970; None: never, for it has no record."""
        return None if self.record is None else self.record.due_ms

    def is_due(self, now_ms: int) -> bool:
        """Whether a purge may delete it; never without a record, and never before it was staged."""
        return self.record is not None and self.record.is_due(now_ms)


def list_staged(log_dir: LogDir, fallback: FallbackRecords | None = None) -> list[Staged]:
    """List everything staged in a log dir, and every stray that a broker left, sorted by location.

    Raises:
        OfflineLogDirError: the log dir is offline, or fails now.
    """
    log_dir.check_online()
    try:
        return find_staged(log_dir, fallback)
    except OSError as error:
        raise log_dir.failed("what is staged cannot be listed", error) from error


def find_staged(log_dir: LogDirView, fallback: FallbackRecords | None = None) -> list[Staged]:
    """List the same for a log dir that is only read: no lock is needed, so a broker may run on it.

    Raises:
        OSError: from the system.
    """
    return sorted(_find_all(log_dir, fallback or FallbackRecords(None)), key=lambda staged: staged.location)


def _find_all(log_dir: LogDirView, fallback: FallbackRecords) -> list[Staged]:
    reader = RecordReader(log_dir, fallback)
    with closing(staging_roots(log_dir)) as roots:
        return [each for placement, root in roots for each in _find_in(log_dir, placement, root, reader)]


def _find_in(log_dir: LogDirView, placement: Placement, root: Directory, reader: RecordReader) -> Iterator[Staged]:
    def read_piece(piece: Sequence[str]) -> list[Staged]:
        found = []
        for text in piece:
            name = parse(text) if placement is Placement.IN_PLACE else parse_staged(text)
            if name.kind in (DirectoryKind.STAGED, DirectoryKind.STRAY):
                with suppress(FileNotFoundError):
                    found.append(read_staged(log_dir, placement, root, name, reader))
        return found

    # Directories that share a file of records follow one another in this order, so that it is read once.
    names = root.directories()
    with AdaptiveThreadPool(read_piece) as pace:
        for start in range(0, len(names), _BATCH):
            yield from map_chunks(pace, names[start : start + _BATCH], _PIECE, _FEWEST_WAITS)


def read_staged(
    log_dir: LogDirView, placement: Placement, root: Directory, name: DirectoryName, reader: RecordReader
) -> Staged:
    """Read one staged directory.

    Raises:
        OSError: the directory is gone, or cannot be opened.
    """
    record, topic_id, problem, unread = None, None, None, False
    partition = _partition_of(name)
    try:
        with root.child(name.text) as directory:
            inode = directory.key[1]
            try:
                topic_id = readable_topic_id_in(directory)
            except FailedReadError:
                unread = True
            try:
                record = reader.read(directory, name, root)
            except DamagedRecordError as error:
                problem, unread = str(error), unread or isinstance(error.__cause__, FailedReadError)
    except LogStoreError as error:
        inode, problem = 0, str(error)
    if record is not None:
        topic_id, partition = record.topic_id, TopicPartition(record.topic, record.partition)
    elif problem is None:
        problem = "a broker left it; nothing says when it may go"
    location = name_below_log_dir(log_dir, placement, name.text)
    return Staged(log_dir.path, placement, name.text, location, record, problem, topic_id, partition, inode, unread)


def _partition_of(name: DirectoryName) -> TopicPartition | None:
    """The partition in a stray's name; None for other names, and for a name that may be cut (FACTS §1.2)."""
    if name.topic is None or name.partition is None or len(name.text) >= MAX_DIRECTORY_NAME:
        return None
    return TopicPartition(name.topic, name.partition)
