"""Looks into the directories of a log dir, one by one: whatever they are, and whatever is wrong with them.

A look takes the topic ID and, when sizes are asked for, the length of every file. A live broker renames and deletes
meanwhile, so a directory that is gone gives no row, and the caller counts the rows. Nearly all directories are live
replicas as a broker writes them, which ``usual_replicas`` looks at many at a time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from layout.directory_name import DirectoryKind, DirectoryName, split_live
from layout.errors import DamagedFileError
from layout.ours import STAGED_RECORD, STAGED_RECORD_LIMIT, StagedRecord, parse_record
from layout.segment_name import FileKind, Transient
from logstore.errors import UnreadableFileError
from logstore.fs import read_small_file, refusal
from logstore.rows import Row
from logstore.scan.entries import Folder, NameRule
from logstore.scan.replica_id import IdFound, VanishedError, held_against_name, read_topic_id, unreadable

Weight: TypeAlias = tuple[int | None, int | None, int | None, int | None, int | None, int | None]
"""Bytes, bytes on disk, files, leftovers, segments, newest mtime in ms: the columns of that name."""

UNKNOWN: Weight = (None,) * 6
FILE_TYPE, PLAIN_FILE = 0o170000, 0o100000
"""The bits of a mode that tell what a file is, and what they tell of a plain one."""

_LIVE = DirectoryKind.LIVE.value
_SEGMENT = FileKind.LOG.value
_LEFTOVER_SUFFIXES = tuple(suffix.value for suffix in Transient)
_NAME_MAY_BE_CUT = frozenset({DirectoryKind.DELETE, DirectoryKind.STRAY})
_IN_CHECKPOINT = frozenset({DirectoryKind.LIVE, DirectoryKind.FUTURE})


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What one scan looks for, and what it remembers between directories; threads may share it."""

    sizes: bool
    recovery_points: Mapping[tuple[str, int], int] = field(default_factory=dict)
    topic_ids: dict[bytes, str] = field(default_factory=dict)
    """Content of ``partition.metadata`` → topic ID text."""


def scan_directories(glance: ScanOptions, place: Folder, entries: Sequence[tuple[str, int]]) -> list[Row]:
    """Look into directories of one place; a row for each that is still there, in their order.

    Args:
        glance: what to look for.
        place: where the directories lie.
        entries: their names and inodes.
    """
    rows: list[Row] = []
    usual = place.reading is NameRule.REPLICAS
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


def _live_row(glance: ScanOptions, place: Folder, name: str, inode: int, topic: str, partition: int) -> Row:  # noqa: PLR0917
    """A row for a live replica whose name is spelt as usual: nearly all of them."""
    path = place.path + name
    weight, obstacle = weigh(path) if glance.sizes else (UNKNOWN, None)
    topic = place.namespace + topic
    found = read_topic_id(path, topic, partition, glance.topic_ids) if obstacle is None else unreadable(obstacle)
    offset = glance.recovery_points.get((topic, partition)) if glance.recovery_points else None
    return place.prefix + name, _LIVE, topic, partition, *found[:3], *weight, inode, None, offset


def _unusual_row(glance: ScanOptions, place: Folder, name: str, inode: int) -> Row:
    """A row for any other directory."""
    read = place.parse(name)
    path = place.path + name
    weight, obstacle = weigh(path) if glance.sizes else (UNKNOWN, None)
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


def weigh(path: str) -> tuple[Weight, str | None]:
    """Add up the plain files of a directory, not of those below it; or say, in a clause, why that cannot be done."""
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
        return UNKNOWN, f"the directory {refusal(error)}"
    return (size, 512 * blocks, files, leftovers, segments, newest // 1_000_000 if files else None), None


def _staged_record(path: str, read: DirectoryName) -> tuple[StagedRecord | None, str | None]:
    """The record of a staged replica; or why there is none, so that nothing says what this was and when it is due."""
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
