"""Scans directories one by one, whatever they are and whatever is wrong with them: topic ID, sizes, staged record.

Nearly all directories are live replicas as a broker writes them, which ``fast_path`` scans many at a time; the others
come here. A live broker renames and deletes meanwhile, so a directory that is gone gives no row, and the caller counts
the rows.

The replicas of one topic have the same 43 bytes in ``partition.metadata``, so a dictionary from the whole content to
the topic ID answers nearly always, after three system calls. Another form, damage, a FIFO, a link or a file that is
too large take the slow path, through ``read_small_file`` and ``layout``, and give a state and a sentence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from layout import partition_metadata
from layout.directory_name import DirectoryKind, DirectoryName, split_live
from layout.errors import DamagedFileError
from layout.ids import TopicId
from layout.ours import STAGED_RECORD, STAGED_RECORD_LIMIT, StagedRecord, parse_record
from layout.partition_metadata import EmptyFileError, PartitionMetadata, ZeroTopicIdError
from layout.segment_name import FileKind, Transient
from logstore.errors import UnreadableFileError
from logstore.fs import FIRST_READ, READ_FLAGS, read_small_file, refusal
from logstore.rows import MetadataState, Row
from logstore.scan.listing import Folder, NameRule

Weight: TypeAlias = tuple[int | None, int | None, int | None, int | None, int | None, int | None]
"""Bytes, bytes on disk, files, leftovers, segments, newest mtime in ms: the columns of these names."""

UNKNOWN_WEIGHT: Weight = (None,) * 6
FILE_TYPE, PLAIN_FILE = 0o170000, 0o100000
"""The bits of a mode that hold the file type, and their value for a plain file."""

_LIVE = DirectoryKind.LIVE.value
_SEGMENT = FileKind.LOG.value
_LEFTOVER_SUFFIXES = tuple(suffix.value for suffix in Transient)
_NAME_MAY_BE_CUT = frozenset({DirectoryKind.DELETE, DirectoryKind.STRAY})
_IN_CHECKPOINT = frozenset({DirectoryKind.LIVE, DirectoryKind.FUTURE})


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """The options of one scan, and its cache of topic IDs; threads may share it."""

    sizes: bool
    recovery_points: Mapping[tuple[str, int], int] = field(default_factory=dict)
    topic_ids: dict[bytes, str] = field(default_factory=dict)
    """Content of ``partition.metadata`` → topic ID text."""


def scan_directories(options: ScanOptions, folder: Folder, entries: Sequence[tuple[str, int]]) -> list[Row]:
    """Scan directories of one folder; return a row for each that is still there, in order.

    Args:
        options: what to read of each directory.
        folder: the folder of the directories.
        entries: their names and inodes.
    """
    rows: list[Row] = []
    may_be_plain = folder.rule is NameRule.REPLICAS
    for name, inode in entries:
        plain = split_live(name) if may_be_plain else None
        try:
            if plain is None:
                rows.append(_other_row(options, folder, name, inode))
            else:
                rows.append(_live_row(options, folder, name, inode, *plain))
        except VanishedError:
            continue
    return rows


def _live_row(options: ScanOptions, folder: Folder, name: str, inode: int, topic: str, partition: int) -> Row:  # noqa: PLR0917
    """Make a row for a live replica with a plain name, as nearly all have."""
    path = folder.path + name
    weight, obstacle = weigh(path) if options.sizes else (UNKNOWN_WEIGHT, None)
    topic = folder.namespace + topic
    found = read_topic_id(path, topic, partition, options.topic_ids) if obstacle is None else unreadable(obstacle)
    offset = options.recovery_points.get((topic, partition)) if options.recovery_points else None
    return folder.prefix + name, _LIVE, topic, partition, *found[:3], *weight, inode, None, offset


def _other_row(options: ScanOptions, folder: Folder, name: str, inode: int) -> Row:
    """Make a row for any other directory."""
    read = folder.parse(name)
    path = folder.path + name
    weight, obstacle = weigh(path) if options.sizes else (UNKNOWN_WEIGHT, None)
    kind, topic = read.kind, None if read.topic is None else folder.namespace + read.topic
    found: TopicIdFound = (None, None, read.problem or obstacle, None)
    record: StagedRecord | None = None
    if kind is not DirectoryKind.FOREIGN and read.partition is not None:
        sure_topic = None if kind in _NAME_MAY_BE_CUT else topic
        found = unreadable(obstacle) if obstacle else read_topic_id(path, sure_topic, read.partition, options.topic_ids)
        found = check_against_name(found, read.topic_id)
        if kind is DirectoryKind.STAGED:
            record, problem = _staged_record(path, read)
            found = (*found[:2], found[2] or problem, None if record is None else record.topic)
        elif kind is DirectoryKind.STRAY:
            record, _ = _staged_record(path, read)
            if record is not None:  # staged in place, or renamed as stray by a broker and given a due time by us
                kind, topic = DirectoryKind.STAGED, record.topic
                found = check_against_name(found, record.topic_id)
    elif not os.path.lexists(path):
        raise VanishedError
    topic = topic or found[3]
    offset = None
    if kind in _IN_CHECKPOINT and topic is not None and read.partition is not None:
        offset = options.recovery_points.get((topic, read.partition))
    due_ms = None if record is None else record.due_ms
    return folder.prefix + name, kind.value, topic, read.partition, *found[:3], *weight, inode, due_ms, offset


def weigh(path: str) -> tuple[Weight, str | None]:
    """Add up the plain files of a directory, not of its subdirectories; or say in a clause why that failed."""
    files = size = blocks = leftovers = segments = newest = 0
    base = path + "/"
    try:
        for name in os.listdir(path):
            try:
                status = os.lstat(base + name)
            except FileNotFoundError:
                continue
            if status[0] & FILE_TYPE == PLAIN_FILE:
                files += 1
                size += status[6]
                blocks += status.st_blocks
                modified = status.st_mtime_ns
                if modified > newest:  # noqa: PLR1730 - half a million times; max() would be a call each time
                    newest = modified
                if name.endswith(_SEGMENT):
                    segments += 1
                elif name.endswith(_LEFTOVER_SUFFIXES):
                    leftovers += 1
    except (FileNotFoundError, NotADirectoryError):
        raise VanishedError from None
    except OSError as error:
        return UNKNOWN_WEIGHT, f"the directory {refusal(error)}"
    return (size, 512 * blocks, files, leftovers, segments, newest // 1_000_000 if files else None), None


def replica_created_ms(log_dir: str, name: str) -> int | None:
    """Find since when a replica lies where it lies, in ms since 1970; None: nothing says so.

    That is the time of ``partition.metadata``, which a broker writes once, when it makes the directory.
    """
    try:
        return os.lstat(f"{log_dir}/{name}/{partition_metadata.FILE_NAME}").st_mtime_ns // 1_000_000
    except OSError:
        return None


def _staged_record(path: str, read: DirectoryName) -> tuple[StagedRecord | None, str | None]:
    """Read the record of a staged replica, its origin and due time; or say why there is none."""
    file = STAGED_RECORD
    try:
        data = read_small_file(f"{path}/{file}", STAGED_RECORD_LIMIT)
        if data is None:
            return None, f"there is no {file}: nothing says what this was or when it is due, so no purge takes it"
        record = parse_record(data, read.text)
    except UnreadableFileError as error:
        return None, f"{file} {error}, so no purge takes this"
    except DamagedFileError as error:
        return None, f"{error}; no purge takes this"
    if record.partition != read.partition or read.topic_id not in (None, record.topic_id):
        return None, f"{file} is the record of {record.topic}-{record.partition}, not of this, so no purge takes this"
    return record, None


METADATA_LIMIT = 1 << 16
"""Largest ``partition.metadata`` in bytes. A broker writes 43, and reads no more than two lines."""

TopicIdFound: TypeAlias = tuple[str | None, str | None, str | None, str | None]
"""Topic ID, state, problem: the columns of these names; and the topic that the file names, in the few forms that do."""

_FILE = partition_metadata.FILE_NAME
_BELOW = "/" + _FILE
_OK, _MISSING, _UNREADABLE = (
    state.value for state in (MetadataState.OK, MetadataState.MISSING, MetadataState.UNREADABLE)
)


class VanishedError(Exception):
    """A directory vanished after the listing of its log dir: a live broker renames and deletes."""


def read_topic_id(path: str, topic: str | None, partition: int | None, known: dict[bytes, str]) -> TopicIdFound:
    """Read ``partition.metadata`` of the directory at ``path``.

    Args:
        path: of the directory.
        topic: full topic name of the directory, to compare with the file; None: the directory's name leaves it open.
        partition: partition number of the directory; None as for ``topic``.
        known: content → topic ID text; new contents are added, only from files as a broker writes them.

    Raises:
        VanishedError: the directory is gone.
    """
    try:
        descriptor = os.open(path + _BELOW, READ_FLAGS)
        try:
            data = os.read(descriptor, FIRST_READ)
        finally:
            os.close(descriptor)
    except OSError:
        return _read_slowly(path, topic, partition)
    text = known.get(data) or _learn(data, known)
    return _read_slowly(path, topic, partition) if text is None else (text, _OK, None, None)


def read_topic_ids_fast(
    folder: str, names: Iterable[str], known: dict[bytes, str], statuses: list[os.stat_result] | None = None
) -> list[str] | None:
    """Read ``partition.metadata`` of several directories, if all of the files are as a broker writes them.

    Args:
        folder: path of their folder, ending in ``/``.
        names: of the directories.
        known: as for :func:`read_topic_id`.
        statuses: gets the status of each file. That costs half as much for an open file as by a path.

    Returns:
        The topic ID texts; None: one file has another form, so call :func:`read_topic_id` for each.
    """
    topic_ids: list[str] = []
    try:
        for name in names:
            descriptor = os.open(folder + name + _BELOW, READ_FLAGS)
            try:
                data = os.read(descriptor, FIRST_READ)
                if statuses is not None:
                    statuses.append(os.fstat(descriptor))
            finally:
                os.close(descriptor)
            text = known.get(data) or _learn(data, known)
            if text is None:
                return None
            topic_ids.append(text)
    except OSError:
        return None
    return topic_ids


def _learn(data: bytes, known: dict[bytes, str]) -> str | None:
    """Add a new content to the dictionary, if it is as a broker writes it."""
    raw = partition_metadata.fast_topic_id(data)
    if raw is None:
        return None
    text = known[data] = str(TopicId(raw))
    return text


def unreadable(obstacle: str) -> TopicIdFound:
    """Give the topic ID columns of a directory that cannot be read, for a reason in a clause."""
    return None, _UNREADABLE, f"{obstacle}; a broker takes the log dir offline", None


def check_against_name(found: TopicIdFound, of_name: TopicId | None) -> TopicIdFound:
    """Compare the topic ID in a directory's name with the one in its file, if both have one."""
    topic_id, state, problem, topic = found
    if of_name is None or of_name.is_zero:
        return found
    if topic_id is not None and topic_id != str(of_name):
        contradiction = f"{_FILE} holds topic ID {topic_id}, and the directory's name {of_name}"
        return topic_id, MetadataState.CONTRADICTS.value, contradiction, topic
    return str(of_name), state, problem, topic


def _read_slowly(path: str, topic: str | None, partition: int | None) -> TopicIdFound:
    """Read the file with all checks, and describe its damage."""
    try:
        data = read_small_file(path + _BELOW, METADATA_LIMIT)
        if data is None:
            if not os.path.lexists(path):
                raise VanishedError
            return None, _MISSING, None, None
        found = partition_metadata.parse(data)
    except UnreadableFileError as error:
        return unreadable(f"{_FILE} {error}")
    except DamagedFileError as error:
        return None, _damage(error).value, f"{error}; {error.effect}", None
    contradiction = _contradiction(found, topic, partition)
    if contradiction is None:
        return str(found.topic_id), _OK, None, found.topic
    problem = f"{_FILE} contradicts its directory: {contradiction}"
    return str(found.topic_id), MetadataState.CONTRADICTS.value, problem, None


def _damage(error: DamagedFileError) -> MetadataState:
    if isinstance(error, EmptyFileError):
        return MetadataState.EMPTY
    return MetadataState.ZERO_ID if isinstance(error, ZeroTopicIdError) else MetadataState.MALFORMED


def _contradiction(found: PartitionMetadata, topic: str | None, partition: int | None) -> str | None:
    """Compare the file with its directory, as far as the directory's name gives topic and partition."""
    topic = found.topic if topic is None else topic
    partition = found.partition if partition is None else partition
    if topic is None or partition is None:
        return None
    return partition_metadata.contradiction(found, topic, partition)
