"""What a row of a scan stands for: the words that every format, both audits and every inventory share.

A row stands for one thing in a log dir. For a directory entry ``kind`` is one of ``live``, ``future``, ``delete``,
``stray``, ``staged``, ``internal`` and ``foreign``. Three more kinds carry what is true of the log dir as a whole, so
that an inventory file says everything an Observation says: ``log_dir`` (exactly one per scan, also when the log dir is
absent), ``checkpoint_entry`` (an offset checkpoint names a partition that has no directory) and ``leftover`` (a
transient file beside the partition dirs).

Unknown is null, never a sentinel: ``bytes`` is null when sizes were not asked for, ``node_id`` when no identity was
read. The columns are in ``row_schema``, apart from these words, because who looks needs no Arrow.
"""

from __future__ import annotations

from enum import StrEnum

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
