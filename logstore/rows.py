"""The rows of a scan: one Arrow schema that every format, both audits and every inventory share.

A row stands for one thing in a log dir. For a directory entry ``kind`` is one of ``live``, ``future``, ``delete``,
``stray``, ``staged``, ``internal`` and ``foreign``. Three more kinds carry what is true of the log dir as a whole, so
that an inventory file says everything an Observation says: ``log_dir`` (exactly one per scan, also when the log dir is
absent), ``checkpoint_entry`` (an offset checkpoint names a partition that has no directory) and ``leftover`` (a
transient file beside the partition dirs).

Unknown is null, never a sentinel: ``bytes`` is null when sizes were not asked for, ``node_id`` when no identity was
read.
"""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa

SCHEMA_VERSION = 1
"""Raised whenever a column changes its meaning or goes; a new column at the end does not raise it."""

VERSION_KEY = b"logstore.schema_version"


class Kind(StrEnum):
    """What a row stands for."""

    LIVE = "live"
    FUTURE = "future"
    DELETE = "delete"
    STRAY = "stray"
    """A broker moved it aside, and nothing says when it may go."""
    STAGED = "staged"
    """It lies in a staging directory; or it has a stray's name and a record, which says when it may go."""
    INTERNAL = "internal"
    FOREIGN = "foreign"
    LOG_DIR = "log_dir"
    CHECKPOINT_ENTRY = "checkpoint_entry"
    LEFTOVER = "leftover"


class MetadataState(StrEnum):
    """State of ``partition.metadata`` in a replica's row, and of ``meta.properties`` in a ``log_dir`` row."""

    OK = "ok"
    MISSING = "missing"
    EMPTY = "empty"
    MALFORMED = "malformed"
    ZERO_ID = "zero_id"
    CONTRADICTS = "contradicts"
    UNREADABLE = "unreadable"
    ABSENT = "absent"
    """Of a ``log_dir`` row only: no such directory, not a directory, or not the one that was expected."""


ROW_SCHEMA = pa.schema(
    [
        pa.field("host", pa.string()),  # name of the machine that scanned
        pa.field("cluster_id", pa.string()),  # cluster.id of meta.properties
        pa.field("node_id", pa.int32()),  # node.id or broker.id
        pa.field("directory_id", pa.string()),  # directory.id, base64url; null before Kafka 3.7
        pa.field("log_dir", pa.string()),  # absolute path; bytes that are not UTF-8 stand as \xNN
        pa.field("name", pa.string()),  # path below the log dir; "." for the log dir itself
        pa.field("kind", pa.string()),  # a Kind
        pa.field("namespace", pa.string()),  # tiers joined by ":"; "" is the default namespace
        pa.field("topic", pa.string()),  # full name, namespace included; null where none can be told
        pa.field("partition", pa.int32()),
        pa.field("topic_id", pa.string()),  # canonical base64url; null where the disk holds none
        pa.field("metadata_state", pa.string()),  # a MetadataState; null where none is expected
        pa.field("problem", pa.string()),  # one sentence, null where all is well
        pa.field("bytes", pa.int64()),  # sum of the files' lengths
        pa.field("disk_bytes", pa.int64()),  # what they occupy: 512 × st_blocks; preallocated indexes make it smaller
        pa.field("files", pa.int32()),
        pa.field("leftovers", pa.int32()),  # files with a transient suffix: .deleted, .cleaned, .swap, .tmp
        pa.field("segments", pa.int32()),  # .log files among them; a broker never leaves a replica without one
        pa.field("modified_ms", pa.int64()),  # newest mtime in the directory, ms since 1970
        pa.field("inode", pa.int64()),
        pa.field("due_ms", pa.int64()),  # staged only: when a purge may take it, ms since 1970
        pa.field("end_offset", pa.int64()),  # recovery point of the checkpoint: a lower bound of the log end offset
        pa.field("leader_epoch", pa.int32()),  # last epoch of leader-epoch-checkpoint; read for duplicates only
        pa.field("scanned_ms", pa.int64()),  # when this log dir was looked at, ms since 1970
        pa.field("clean_shutdown", pa.bool_()),  # the log dir has the marker that a clean stop leaves
    ],
    metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()},
)
