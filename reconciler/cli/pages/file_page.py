"""Explains a plain file of a log dir or of a partition dir: its purpose, whether it parses, and what depends on it.

:mod:`layout` has the formats; this module adds the words.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from layout import checkpoint, clean_shutdown, meta_properties, partition_metadata, segment_name
from layout.directory_name import DirectoryKind
from layout.errors import BrokerEffect, DamagedFileError
from layout.scheme import LEDGER_FILE
from layout.segment_files import (
    parse_offset_index,
    parse_producer_snapshot,
    parse_time_index,
    parse_transaction_index,
    removed_at_load,
)
from layout.segment_name import FileKind, Transient
from logstore import UnreadableFileError
from logstore.fs import crc32c_of, kind_of_file, read_small_file
from logstore.log_dir import CHECKPOINT_LIMIT, LOCK_FILE, find_lock_holder, read_identity
from reconciler.cli.frame import PathInLogDir
from reconciler.cli.pages.directory_page import read_name
from reconciler.cli.pages.explanation import Explanation
from reconciler.text import count, moment, size

Facts = list[tuple[str, str]]

_OF_LOG_DIR: Mapping[str, str] = {
    meta_properties.FILE_NAME: "the identity of the log dir: cluster, broker, and since 3.7 the directory ID",
    checkpoint.RECOVERY_POINT_CHECKPOINT: "the recovery points: from where on each partition may be unflushed",
    checkpoint.LOG_START_CHECKPOINT: "the log start offsets, of each partition from which records were deleted",
    checkpoint.HIGH_WATERMARK_CHECKPOINT: "the high watermarks: up to where in each partition consumers may read",
    checkpoint.CLEANER_CHECKPOINT: "the cleaner's checkpoint: how far each compacted partition is cleaned",
    clean_shutdown.FILE_NAME: "the mark of a clean stop: it lets the next start skip recovery, and is removed there",
    LOCK_FILE: "the lock file: what counts is whether a process holds a lock on it, not that it exists",
    "bootstrap.checkpoint": "the first records of a new KRaft metadata log",
    "_rlmm_committed_offsets": "offsets of tiered storage, of 3.4 and 3.5 alone",
    LEDGER_FILE: "the ledger of this tool: what is staged beside it, why, until when, and the way back",
}
_OF_PARTITION: Mapping[FileKind, str] = {
    FileKind.LOG: "a segment: records from offset {offset} on",
    FileKind.OFFSET_INDEX: "the offset index of the segment from {offset} on",
    FileKind.TIME_INDEX: "the time index of the segment from {offset} on",
    FileKind.TRANSACTION_INDEX: "the index of aborted transactions of the segment from offset {offset} on",
    FileKind.PRODUCER_SNAPSHOT: "the state of producers before offset {offset}",
    FileKind.METADATA_SNAPSHOT: "a snapshot of the cluster's metadata before offset {offset}",
    FileKind.LEADER_EPOCH_CHECKPOINT: "the leader epochs of the partition, each with its first offset",
    FileKind.PARTITION_METADATA: "the topic ID of the replica",
    FileKind.QUORUM_STATE: "the election state of a KRaft node; a node that cannot read it does not start",
    FileKind.REMOTE_LOG_SNAPSHOT: "a snapshot of tiered storage, of 3.6 and 3.7 alone",
    FileKind.OTHER: "no file of Kafka's; a broker passes it over",
}
_TRANSIENT: Mapping[Transient, str] = {
    Transient.DELETED: "it awaits removal, and goes at the next start at the latest",
    Transient.CLEANED: "it is what a compaction had written when it was interrupted, and goes at the next start",
    Transient.SWAP: "it is finished output of a compaction, and takes its place at the next start",
    Transient.PART: "it is a snapshot that was being written, and goes at the next start",
    Transient.TMP: "it was being written, is never read, and is written over by the next write",
}
_UNCOMMITTED = "it is output of a compaction that was not finished, and goes at the next start"
_NOT_LOADED = (DirectoryKind.FOREIGN, DirectoryKind.STAGED)


def explain_file(path: str, home: PathInLogDir | None) -> Explanation:
    """Explain a path that is no directory, by its name and the place where it lies."""
    name = os.path.basename(path)
    mode = os.lstat(path).st_mode
    facts: Facts = [("log dir", "none above it" if home is None else home.log_dir)]
    facts.append(("is", kind_of_file(mode)))
    facts.append(("size on disk", size(os.lstat(path).st_blocks * 512)))
    facts.append(("length", size(os.lstat(path).st_size)))
    if name == LEDGER_FILE or (home is not None and "/" not in home.name):
        what = _OF_LOG_DIR.get(name.removesuffix(".tmp"), "no file of Kafka's; a broker passes over plain files")
        rule = "a file of this name at the top of a log dir"
        if name == LEDGER_FILE:
            rule = "a file of this name beside what is staged"
        if name.endswith(".tmp"):
            what = f"{what}; this one was being written, is never read, and is written over by the next write"
    else:
        return _explain_in_partition(path, home, facts)
    return Explanation(path, what, rule, (*facts, *_content(path, name)))


def _explain_in_partition(path: str, home: PathInLogDir | None, facts: Facts) -> Explanation:
    """Explain a file of a partition dir, by its name and by the names beside it."""
    name = os.path.basename(path)
    read = segment_name.parse(name)
    what, rule = _OF_PARTITION[read.kind].format(offset=read.offset), "a file of this name in a partition dir"
    is_removed = name in _removed_beside(path, home)
    if read.transient is not None:
        is_uncommitted = is_removed and read.transient is Transient.SWAP
        what = f"{what}; {_UNCOMMITTED if is_uncommitted else _TRANSIENT[read.transient]}"
    elif is_removed:
        facts.append(("removed at start", "no segment of this offset lies beside it"))
    if read.problem is not None:
        facts.append(("stops a broker", read.problem))
    if read.kind in _OF_SEGMENTS and read.offset is not None:
        facts += _of_segment(path, read.kind, read.offset, is_removed=is_removed)
    else:
        facts += _content(path, name)
    return Explanation(path, what, rule, tuple(facts))


def _removed_beside(path: str, home: PathInLogDir | None) -> list[str]:
    """Name the files of a partition dir that a broker removes when it loads the replica; none where it loads none."""
    folder = os.path.dirname(os.path.abspath(path))
    if read_name(folder, home).kind in _NOT_LOADED:
        return []
    try:
        with os.scandir(folder) as entries:
            return removed_at_load([entry.name for entry in entries if entry.is_file(follow_symlinks=False)])
    except OSError:
        return []  # the file itself is read below, and says why it cannot be


def _content(path: str, name: str) -> Facts:
    """Describe the content of the file, or say why it cannot be read."""
    reader = _READERS.get(name)
    if reader is None:
        return []
    try:
        return reader(path)
    except UnreadableFileError as error:
        return [("content", f"{name} {error}")]
    except DamagedFileError as error:
        effect = str(error.effect)
        if error.effect is BrokerEffect.NONE:
            effect = checkpoint.AFTER_A_BAD_NUMBER.get(name, effect)
        return [("content", f"{error.problem}; what a broker does: {effect}")]


def _of_segment(path: str, kind: FileKind, offset: int, *, is_removed: bool) -> Facts:
    """Describe the content of a file beside a segment, or say why it cannot be read."""
    reader, after_damage = _OF_SEGMENTS[kind]
    if is_removed:
        after_damage = "it removes the file when it starts"
    try:
        return reader(read_small_file(path, _SEGMENT_FILE_LIMIT) or b"", offset)
    except UnreadableFileError as error:
        return [("content", f"{os.path.basename(path)} {error}")]
    except DamagedFileError as error:
        return [("content", f"{error.problem}; what a broker does: {after_damage}")]


def _identity(path: str) -> Facts:
    found = read_identity(os.path.dirname(path))
    if found.identity is None:
        return [("content", found.problem or "")]
    shown = meta_properties.to_properties(found.identity)
    return [*shown.items(), ("content", found.problem or "in order")]


def _offsets(path: str) -> Facts:
    data = read_small_file(path, CHECKPOINT_LIMIT) or b""
    entries = checkpoint.parse_offsets(data, os.path.basename(path)) if data else {}
    return [("content", f"{count(len(entries), 'entry', 'entries')}" if data else "empty, which is normal")]


def _leader_epochs(path: str) -> Facts:
    entries = checkpoint.parse_leader_epochs(read_small_file(path, CHECKPOINT_LIMIT) or b"")
    last = f", the last of epoch {entries[-1][0]} from offset {entries[-1][1]}" if entries else ""
    return [("content", f"{count(len(entries), 'epoch')}{last}")]


def _partition_metadata(path: str) -> Facts:
    found = partition_metadata.parse(read_small_file(path, 1 << 16) or b"")
    return [("topic ID", str(found.topic_id)), ("version", str(found.version))]


def _clean_shutdown(path: str) -> Facts:
    epoch = clean_shutdown.parse_broker_epoch(read_small_file(path, 1 << 16) or b"")
    return [("broker epoch", "none, as releases before 3.7 write it" if epoch is None else str(epoch))]


def _lock(path: str) -> Facts:
    holder = find_lock_holder(os.path.dirname(path))
    return [("held by", "nobody who can be seen from here" if holder is None else str(holder))]


def _offset_index(data: bytes, base_offset: int) -> Facts:
    found = parse_offset_index(data, base_offset)
    last = found.entries[-1] if found.entries else None
    at = "" if last is None else f", the last for offset {last.offset} at position {last.position}"
    return _entries(len(found.entries), at, len(data), found.preallocated)


def _time_index(data: bytes, base_offset: int) -> Facts:
    found = parse_time_index(data, base_offset)
    last = found.entries[-1] if found.entries else None
    at = "" if last is None else f", the last for {moment(last.timestamp_ms)} at offset {last.offset}"
    return _entries(len(found.entries), at, len(data), found.preallocated)


def _entries(number: int, last: str, length: int, preallocated: int) -> Facts:
    """Weigh an index by what was written to it; what is preallocated counts apart."""
    facts = [("content", f"{count(number, 'entry', 'entries')} in {size(length - preallocated)}{last}")]
    if preallocated:
        zeros = f"{size(preallocated)} of zeros, as while a broker writes to the segment, or after it stopped uncleanly"
        facts.append(("preallocated", zeros))
    return facts


def _transaction_index(data: bytes, base_offset: int) -> Facts:
    found = parse_transaction_index(data, base_offset)
    last = f", the last from offset {found[-1].first_offset} to {found[-1].last_offset}" if found else ""
    return [("content", f"{count(len(found), 'aborted transaction')}{last}")]


def _producer_snapshot(data: bytes, _: int) -> Facts:
    found = parse_producer_snapshot(data, crc32c_of)
    last = max((each.last_offset for each in found if each.last_offset is not None), default=None)
    open_from = [each.transaction_first_offset for each in found if each.transaction_first_offset is not None]
    wrote = "" if last is None else f", the last record at offset {last}"
    opened = (
        f"; {count(len(open_from), 'open transaction')}, the first from offset {min(open_from)}" if open_from else ""
    )
    return [("content", f"{count(len(found), 'producer')}{wrote}{opened}")]


_SEGMENT_FILE_LIMIT = 1 << 28
"""Bytes: ``segment.index.bytes`` is 10 MiB where nobody sets it."""
_TAKEN = "it does not look, and reads by it; it rebuilds it only with the segment's recovery, as after an unclean stop"
_LOOKED_AT = (
    "it recovers the segment and rebuilds its indexes where a transaction ends before the segment, or after an unclean "
    "stop; else it reads by it"
)
_OF_SEGMENTS: Mapping[FileKind, tuple[Callable[[bytes, int], Facts], str]] = {
    FileKind.OFFSET_INDEX: (_offset_index, _TAKEN),
    FileKind.TIME_INDEX: (_time_index, _TAKEN),
    FileKind.TRANSACTION_INDEX: (_transaction_index, _LOOKED_AT),
    FileKind.PRODUCER_SNAPSHOT: (_producer_snapshot, "it removes the snapshot and takes an older one"),
}
"""How each file beside a segment is described, and what a broker does with a damaged one (FACTS §2.10).

Releases 2.8, 3.9 and 4.3 check no offset and time index when they load a replica, and of a transaction index only where
its transactions end. All else stays as it is until the segment is recovered.
"""

_READERS: Mapping[str, Callable[[str], Facts]] = {
    meta_properties.FILE_NAME: _identity,
    **dict.fromkeys(checkpoint.OFFSET_CHECKPOINTS, _offsets),
    checkpoint.LEADER_EPOCH_CHECKPOINT: _leader_epochs,
    partition_metadata.FILE_NAME: _partition_metadata,
    clean_shutdown.FILE_NAME: _clean_shutdown,
    LOCK_FILE: _lock,
}
