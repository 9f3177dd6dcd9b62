"""Looks into the directories of a log dir: the part of a scan that is done 100,000 times.

A look takes the topic ID and, when sizes are asked for, the length of every file. What makes it fast: paths as text,
columns instead of row objects, and no system call that is not needed. Everything rarer than a plainly named live
replica with a usual ``partition.metadata`` takes a longer way. A live broker renames and deletes meanwhile, so a
directory that is gone gives no row, and the caller counts the rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from layout import partition_metadata, staged_record
from layout.directory_name import DirectoryKind, DirectoryName, parse, split_live
from layout.errors import DamagedFileError
from layout.segment_name import FileKind, Transient
from layout.staged_record import StagedRecord
from logstore.columns import Columns, Row, by_column
from logstore.entries import Place
from logstore.errors import UnreadableFileError
from logstore.replica_id import (
    IdFound,
    VanishedError,
    held_against_name,
    read_topic_id,
    read_usual_topic_ids,
    unreadable,
)
from logstore.rows import MetadataState
from logstore.small_file import read_small_file, refusal

Weight: TypeAlias = tuple[int | None, int | None, int | None, int | None, int | None, int | None]
"""Bytes, bytes on disk, files, leftovers, segments, newest mtime in ms: the columns of that name."""

_UNKNOWN: Weight = (None,) * 6
_LIVE = DirectoryKind.LIVE.value
_FILE_TYPE, _PLAIN_FILE = 0o170000, 0o100000
_METADATA = partition_metadata.FILE_NAME
_SEGMENT = FileKind.LOG.value
_LEFTOVER_SUFFIXES = tuple(suffix.value for suffix in Transient)
_SEGMENT_END, *_TRANSIENT_ENDS = (f"{suffix}\0" for suffix in (_SEGMENT, *_LEFTOVER_SUFFIXES))
"""The same, with what stands behind each name when many are one text."""
_NAME_MAY_BE_CUT = frozenset({DirectoryKind.DELETE, DirectoryKind.STRAY})
_IN_CHECKPOINT = frozenset({DirectoryKind.LIVE, DirectoryKind.FUTURE})


@dataclass(frozen=True, slots=True)
class Glance:
    """What one scan looks for, and what it remembers between directories; threads may share it."""

    sizes: bool
    recovery_points: Mapping[tuple[str, int], int] = field(default_factory=dict)
    topic_ids: dict[bytes, str] = field(default_factory=dict)
    """Content of ``partition.metadata`` → topic ID text."""


def look(glance: Glance, place: Place, entries: Sequence[tuple[str, int]]) -> list[Row]:
    """Look into directories of one place; a row for each that is still there, in their order.

    Args:
        glance: what to look for.
        place: where the directories lie.
        entries: their names and inodes.
    """
    rows: list[Row] = []
    usual = place.parse is parse
    for name, inode in entries:
        plain = split_live(name) if usual else None
        try:
            if plain is None:
                rows.append(_unusual_row(glance, place, name, inode))
            else:
                rows.append(_live_row(glance, place, name, inode, *plain))
        except VanishedError:
            continue
    return rows


def look_at_many(glance: Glance, place: Place, names: Sequence[str], inodes: Sequence[int]) -> Columns:
    """What :func:`look` tells, column by column.

    Where all of them are usual, most columns are made by one step for all, which is faster than row by row. As soon as
    one is not, ``look`` tells of them all, and what was read before is read again: so give some dozens at a time.

    Args:
        glance: what to look for.
        place: where the directories lie.
        names: their names.
        inodes: their inodes, in the same order.
    """
    columns = _usual_columns(glance, place, names, inodes) if place.parse is parse and names else None
    return by_column(look(glance, place, list(zip(names, inodes, strict=True)))) if columns is None else columns


def _usual_columns(glance: Glance, place: Place, names: Sequence[str], inodes: Sequence[int]) -> Columns | None:
    """The columns of live replicas with usual names and files; None: there is something else among them."""
    replicas = [replica for replica in map(split_live, names) if replica is not None]
    if len(replicas) < len(names):
        return None
    statuses: list[os.stat_result] | None = [] if glance.sizes else None
    topic_ids = read_usual_topic_ids(place.path, names, glance.topic_ids, statuses)
    if topic_ids is None:
        return None
    weights = [_UNKNOWN] * len(names) if statuses is None else _usual_weights(place.path, names, statuses)
    if weights is None:
        return None
    if place.namespace:
        replicas = [(place.namespace + topic, partition) for topic, partition in replicas]
    topics, partitions = zip(*replicas, strict=True)
    paths = [place.prefix + name for name in names]
    live, ok = [_LIVE] * len(names), [MetadataState.OK.value] * len(names)
    nothing = [None] * len(names)
    offsets = [glance.recovery_points.get(replica) for replica in replicas] if glance.recovery_points else nothing
    weighed = zip(*weights, strict=True)
    return [paths, live, topics, partitions, topic_ids, ok, nothing, *weighed, inodes, nothing, offsets]


def _usual_weights(base: str, names: Sequence[str], statuses: Sequence[os.stat_result]) -> list[Weight] | None:
    """The weights of directories, of which the status of ``partition.metadata`` is known.

    None: one of them is gone, or cannot be weighed.
    """
    weights: list[Weight] = []
    try:
        for name, status in zip(names, statuses, strict=True):
            weight = _usual_weight(base + name, status)
            if weight is None:
                weight, obstacle = _weigh(base + name)
                if obstacle:
                    return None
            weights.append(weight)
    except VanishedError:
        return None
    return weights


def _live_row(glance: Glance, place: Place, name: str, inode: int, topic: str, partition: int) -> Row:  # noqa: PLR0917
    """A row for a live replica whose name is spelt as usual: nearly all of them."""
    path = place.path + name
    weight, obstacle = _weigh(path) if glance.sizes else (_UNKNOWN, None)
    topic = place.namespace + topic
    found = read_topic_id(path, topic, partition, glance.topic_ids) if obstacle is None else unreadable(obstacle)
    offset = glance.recovery_points.get((topic, partition)) if glance.recovery_points else None
    return place.prefix + name, _LIVE, topic, partition, *found[:3], *weight, inode, None, offset


def _unusual_row(glance: Glance, place: Place, name: str, inode: int) -> Row:
    """A row for any other directory."""
    read = place.parse(name)
    path = place.path + name
    weight, obstacle = _weigh(path) if glance.sizes else (_UNKNOWN, None)
    kind, topic = read.kind, None if read.topic is None else place.namespace + read.topic
    found: IdFound = (None, None, read.problem or obstacle, None)
    record: StagedRecord | None = None
    if kind is not DirectoryKind.FOREIGN and read.partition is not None:
        surely = None if kind in _NAME_MAY_BE_CUT else topic
        found = unreadable(obstacle) if obstacle else read_topic_id(path, surely, read.partition, glance.topic_ids)
        found = held_against_name(found, read.topic_id)
        if kind is DirectoryKind.STAGED:
            record, problem = _staged_record(path, read)
            found = (*found[:2], found[2] or problem, None if record is None else record.topic)
        elif kind is DirectoryKind.STRAY:
            record, _ = _staged_record(path, read)
            if record is not None:  # it was staged in place, or a broker moved it aside and we gave it a due time
                kind, topic = DirectoryKind.STAGED, record.topic
                found = held_against_name(found, record.topic_id)
    elif not os.path.lexists(path):
        raise VanishedError
    topic = topic or found[3]
    offset = None
    if kind in _IN_CHECKPOINT and topic is not None and read.partition is not None:
        offset = glance.recovery_points.get((topic, read.partition))
    due_ms = None if record is None else record.due_ms
    return place.prefix + name, kind.value, topic, read.partition, *found[:3], *weight, inode, due_ms, offset


def _usual_weight(path: str, metadata: os.stat_result) -> Weight | None:
    """The weight of a directory that holds plain files only, none of them transient; None: ask :func:`_weigh`."""
    base = path + "/"
    try:
        names = os.listdir(path)
        statuses = [os.lstat(base + name) for name in names if name != _METADATA]
    except OSError:
        return None
    statuses.append(metadata)
    size = blocks = newest = 0
    for status in statuses:
        if status[0] & _FILE_TYPE != _PLAIN_FILE:
            return None
        size += status[6]
        blocks += status.st_blocks
        modified = status.st_mtime_ns
        if modified > newest:  # noqa: PLR1730 - half a million times; max() would be a call each time
            newest = modified
    text = "\0".join(names) + "\0"
    for suffix in _TRANSIENT_ENDS:
        if suffix in text:
            return None
    return size, 512 * blocks, len(statuses), 0, text.count(_SEGMENT_END), newest // 1_000_000


def _weigh(path: str) -> tuple[Weight, str | None]:
    """Add up the plain files of a directory, not of those below it; or say, in a clause, why that cannot be done."""
    files = size = blocks = leftovers = segments = newest = 0
    base = path + "/"
    try:
        for name in os.listdir(path):
            try:
                status = os.lstat(base + name)
            except FileNotFoundError:
                continue
            if status[0] & _FILE_TYPE == _PLAIN_FILE:
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
        return _UNKNOWN, f"the directory {refusal(error)}"
    return (size, 512 * blocks, files, leftovers, segments, newest // 1_000_000 if files else None), None


def _staged_record(path: str, read: DirectoryName) -> tuple[StagedRecord | None, str | None]:
    """The record of a staged replica; or why there is none, so that nothing says what this was and when it is due."""
    file = staged_record.FILE_NAME
    try:
        data = read_small_file(f"{path}/{file}", staged_record.MOST_BYTES)
        if data is None:
            return None, f"there is no {file}: nothing says what this was or when it is due, so no purge takes it"
        record = staged_record.parse(data, read.text)
    except UnreadableFileError as error:
        return None, f"{file} {error}, so no purge takes this"
    except DamagedFileError as error:
        return None, f"{error}; no purge takes this"
    if record.partition != read.partition or read.topic_id not in (None, record.topic_id):
        return None, f"{file} is the record of {record.topic}-{record.partition}, not of this, so no purge takes this"
    return record, None
