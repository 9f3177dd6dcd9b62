"""Scans directories one by one, whatever they are and whatever is wrong with them: topic ID, sizes, staged record.

Nearly all directories are live replicas as a broker writes them, which ``fast_path`` scans many at a time; the others
come here. A live broker renames and deletes meanwhile, so a directory that is gone gives no row, and the caller counts
the rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from layout import partition_metadata
from layout.directory_name import DirectoryKind, DirectoryName, split_live
from layout.ours import Ledger, LedgerEvent, StagedRecord
from layout.scheme import LEDGER_FILE
from layout.segment_name import FileKind, Transient
from logstore.errors import UnreadableFileError
from logstore.fs import Directory, refusal
from logstore.log_dir import FallbackRecords, read_ledger
from logstore.rows import MetadataState, Row
from logstore.scan.listing import Folder, NameRule
from logstore.scan.metadata_file import TopicIdFound, VanishedError, check_against_name, read_topic_id, unreadable

Weight: TypeAlias = tuple[int | None, int | None, int | None, int | None, int | None, int | None]
"""Bytes, bytes on disk, files, leftovers, segments, newest mtime in ms: the columns of these names."""

UNKNOWN_WEIGHT: Weight = (None,) * 6
_FILE_TYPE, _PLAIN_FILE = 0o170000, 0o100000
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
    ledgers: dict[str, FolderLedger] = field(default_factory=dict)
    """Path of a folder → its ledger, which is read when the first staged directory there is scanned."""
    elsewhere: FolderLedger | None = None
    """The ledger on another disk of what found no room in those; None: there is none."""
    staged: bool = True
    """Whether staging directories are scanned too."""

    def takes(self, folder: Folder) -> bool:
        """Whether the directories of a folder are scanned."""
        return self.staged or folder.rule is not NameRule.STAGED


@dataclass(frozen=True, slots=True)
class FolderLedger:
    """What the ledger of a folder says, or why it cannot be read, a clause."""

    ledger: Ledger
    problem: str | None = None


def ledger_elsewhere(fallback: FallbackRecords, log_dir: str) -> FolderLedger | None:
    """Read what the fallback records say of a log dir, or why they cannot be read; None: they say nothing of it."""
    try:
        found = fallback.read(log_dir)
    except UnreadableFileError as error:
        return FolderLedger(Ledger(), f"{fallback.path_of(log_dir)}/{LEDGER_FILE} {error}")
    return None if found is None else FolderLedger(found)


def _ledger_of(options: ScanOptions, folder: Folder) -> FolderLedger:
    found = options.ledgers.get(folder.path)
    if found is None:
        try:
            with Directory.open(folder.path) as opened:
                found = FolderLedger(read_ledger(opened) or Ledger())
        except UnreadableFileError as error:
            found = FolderLedger(Ledger(), str(error))
        except OSError as error:
            found = FolderLedger(Ledger(), refusal(error))
        options.ledgers[folder.path] = found
    return found


def scan_directories(options: ScanOptions, folder: Folder, entries: Sequence[tuple[str, int]]) -> list[Row]:
    """Scan directories of one folder; return a row for each that is still there, in order.

    ``entries``: the directories' names and inodes.
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


_DAMAGED = frozenset(state.value for state in (MetadataState.EMPTY, MetadataState.MALFORMED, MetadataState.ZERO_ID))


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
            record, problem = _staged_record(options, folder, read)
            if record is not None and found[1] in _DAMAGED:
                # No broker reads it where it lies, and the record says what it is: the damage is why it was staged.
                problem = "its partition.metadata is damaged, as it was when it was staged"
                found = check_against_name((None, MetadataState.MISSING.value, None, None), read.topic_id)
            found = (*found[:2], found[2] or problem, None if record is None else record.topic)
        elif kind is DirectoryKind.STRAY:
            record, _ = _staged_record(options, folder, read)
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


def _staged_record(options: ScanOptions, folder: Folder, read: DirectoryName) -> tuple[StagedRecord | None, str | None]:
    """Find the record of a staged replica, its origin and due time; or say why there is none."""
    own, elsewhere = _ledger_of(options, folder), options.elsewhere
    entry = own.ledger.entries.get(read.text)
    if entry is None and elsewhere is not None:
        entry = elsewhere.ledger.entries.get(read.text)
    if entry is None or entry.event is LedgerEvent.RESTORED:
        return None, _why_no_line(own, elsewhere)
    record = entry.record
    if record is None:
        return None, f"its line in {LEDGER_FILE} cannot be read, so no purge takes this"
    if record.partition != read.partition or read.topic_id not in (None, record.topic_id):
        other = f"{record.topic}-{record.partition}"
        return None, f"its line in {LEDGER_FILE} is about {other}, not about this, so no purge takes this"
    return record, None


def _why_no_line(own: FolderLedger, elsewhere: FolderLedger | None) -> str:
    """Say why nothing is known of a staged directory, as a clause."""
    if own.problem is not None:
        return f"{LEDGER_FILE} {own.problem}, so no purge takes this"
    if elsewhere is not None and elsewhere.problem is not None:
        return f"{elsewhere.problem}, so no purge takes this"
    lost = [f"line {bad.number} of it cannot be read, because {bad.reason}; " for bad in own.ledger.damaged[-1:]]
    said = "".join(lost) + "nothing says what this was or when it is due, so no purge takes it"
    return f"{LEDGER_FILE} has no line about it: {said}"
