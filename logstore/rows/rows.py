"""The rows of a scan: their kinds and states, and the tuples and columns in which they travel before they are Arrow.

A row stands for one thing in a log dir. For a directory entry ``kind`` is one of ``live``, ``future``, ``delete``,
``stray``, ``staged``, ``internal`` and ``foreign``. Three more kinds carry facts about the log dir as a whole, so that
an inventory file holds everything that an Observation holds: ``log_dir`` (exactly one per scan, also when the log dir
is absent), ``checkpoint_entry`` (an offset checkpoint names a partition that has no directory) and ``leftover`` (a
transient file beside the partition dirs).

An unknown value is null, never a sentinel: ``bytes`` is null when sizes were not asked for, ``node_id`` when no
identity was read. ``ROW_SCHEMA`` in ``arrow`` says what each column means.

The rows of one log dir differ only in the columns of :data:`VARYING`. Those travel from process to process as plain
tuples and lists, because a worker needs no Arrow. ``arrow`` turns many rows at a time into Arrow, and adds host, log
dir and identity once, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import NamedTuple, TypeAlias

SCHEMA_VERSION = 1
"""Raised whenever a column changes its meaning or goes; a new column at the end keeps the version."""

VERSION_KEY = b"logstore.schema_version"


class Kind(StrEnum):
    """The kind of thing that a row stands for."""

    LIVE = "live"
    FUTURE = "future"
    DELETE = "delete"
    STRAY = "stray"
    """A broker renamed it as stray, and no record says when it may be purged."""
    STAGED = "staged"
    """It lies in a staging directory, or it has a stray's name and a record with its due time."""
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
    """Of a ``log_dir`` row only: no such directory, no directory, or another identity than expected."""


Value: TypeAlias = str | int | None
Row: TypeAlias = tuple[Value, ...]
"""The values of :data:`VARYING`, in that order."""
Columns: TypeAlias = Sequence[Sequence[Value]]
"""Many rows as columns: one for each name of :data:`VARYING`, all of one length."""

VARYING = (
    "name", "kind", "topic", "partition", "topic_id", "metadata_state", "problem", "bytes", "disk_bytes", "files",
    "leftovers", "segments", "modified_ms", "inode", "due_ms", "end_offset",
)  # fmt: skip
"""The columns in which the rows of one log dir differ; ``namespace`` follows from ``topic``."""


class LogDirOnHost(NamedTuple):
    """A log dir as the rows of one inventory name it."""

    host: str
    """Empty where the rows name none."""
    log_dir: str


@dataclass(frozen=True, slots=True)
class LogDirFacts:
    """Values that are the same in every row of one log dir; names as in :data:`logstore.rows.ROW_SCHEMA`."""

    host: str
    log_dir: str
    scanned_ms: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    clean_shutdown: bool | None = None


def plain_row(
    name: str,
    kind: str,
    *,
    topic: str | None = None,
    partition: int | None = None,
    metadata_state: str | None = None,
    problem: str | None = None,
    inode: int | None = None,
    end_offset: int | None = None,
) -> Row:
    """Make a row for something that is no directory, and so has no topic ID, bytes, files or due time."""
    nothing = (None,) * 6
    return name, kind, topic, partition, None, metadata_state, problem, *nothing, inode, None, end_offset


def utf8(text: str) -> str:
    r"""Escape a text for Arrow: each byte that is not UTF-8 becomes ``\xNN``."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def by_column(rows: Sequence[Row]) -> Columns:
    """Turn rows into columns."""
    return tuple(zip(*rows, strict=True)) or ((),) * len(VARYING)


def concat_columns(pieces: Sequence[Columns]) -> Columns:
    """Join the rows of all pieces, in order."""
    return [list(chain.from_iterable(column)) for column in zip(*pieces, strict=True)]
