"""Turns what was seen into Arrow: rows as tuples, then a table with what is true of the whole log dir added.

A row of a scan differs from its neighbours in the columns of :data:`VARYING` only. Those travel as plain tuples, or
column by column where there are many, and become Arrow arrays many at a time; host, log dir and identity are added
once, at the end. What the columns mean is in ``rows``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import pyarrow as pa

from layout.topic import NAMESPACE_SEPARATOR, namespace_of
from logstore.rows import ROW_SCHEMA

Value: TypeAlias = str | int | None
Row: TypeAlias = tuple[Value, ...]
"""The values of :data:`VARYING`, in that order."""
Columns: TypeAlias = Sequence[Sequence[Value]]
"""The same for many rows: a column for each of :data:`VARYING`, all of one length."""

VARYING = (
    "name", "kind", "topic", "partition", "topic_id", "metadata_state", "problem", "bytes", "disk_bytes", "files",
    "leftovers", "segments", "modified_ms", "inode", "due_ms", "end_offset",
)  # fmt: skip
"""The columns in which the rows of one log dir differ; ``namespace`` follows from ``topic``."""

_TOPIC = VARYING.index("topic")
BATCH_SCHEMA = pa.schema([*(ROW_SCHEMA.field(name) for name in VARYING), ROW_SCHEMA.field("namespace")])


@dataclass(frozen=True, slots=True)
class LogDirFacts:
    """What is the same in every row of one log dir; names as in :data:`logstore.rows.ROW_SCHEMA`."""

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
    """A row for something that is no directory, and so has no topic ID, bytes, files or due time of its own."""
    nothing = (None,) * 6
    return name, kind, topic, partition, None, metadata_state, problem, *nothing, inode, None, end_offset


def utf8(text: str) -> str:
    r"""The text as Arrow can hold it: a byte of a name that is not UTF-8 stands as ``\xNN``."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Turn rows into one Arrow batch of :data:`BATCH_SCHEMA`."""
    return columns_to_batch(by_column(rows))


def by_column(rows: Sequence[Row]) -> Columns:
    """The same values, column by column."""
    return tuple(zip(*rows, strict=True)) or ((),) * len(VARYING)


def joined(pieces: Sequence[Columns]) -> Columns:
    """The rows of all the pieces, one after the other."""
    return [list(chain.from_iterable(column)) for column in zip(*pieces, strict=True)]


def columns_to_batch(columns: Columns) -> pa.RecordBatch:
    """Turn columns into one Arrow batch of :data:`BATCH_SCHEMA`."""
    arrays = [_array(name, column) for name, column in zip(VARYING, columns, strict=True)]
    return pa.RecordBatch.from_arrays([*arrays, _namespaces(columns[_TOPIC])], schema=BATCH_SCHEMA)


def to_table(batches: Iterable[pa.RecordBatch], facts: LogDirFacts) -> pa.Table:
    """Join the batches of one log dir into a table of the whole row schema."""
    table = pa.Table.from_batches(batches, BATCH_SCHEMA)
    same = {
        "host": utf8(facts.host),
        "log_dir": utf8(facts.log_dir),
        "scanned_ms": facts.scanned_ms,
        "cluster_id": facts.cluster_id,
        "node_id": facts.node_id,
        "directory_id": facts.directory_id,
        "leader_epoch": None,
        "clean_shutdown": facts.clean_shutdown,
    }
    return pa.Table.from_arrays(
        [
            pa.repeat(pa.scalar(same[field.name], field.type), table.num_rows)
            if field.name in same
            else table.column(field.name)
            for field in ROW_SCHEMA
        ],
        schema=ROW_SCHEMA,
    )


def _array(name: str, values: Sequence[Value]) -> pa.Array:
    kind = ROW_SCHEMA.field(name).type
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([utf8(value) if isinstance(value, str) else value for value in values], kind)


def _namespaces(topics: Sequence[Value]) -> pa.Array:
    """The namespace of each topic. Nearly always all are in the default one, so the separator is sought first."""
    texts = [topic for topic in topics if isinstance(topic, str)]
    if len(texts) == len(topics) and NAMESPACE_SEPARATOR not in "".join(texts):
        return pa.repeat(pa.scalar("", pa.string()), len(topics))
    of = {topic: utf8(namespace_of(topic)) for topic in set(texts)}
    return pa.array([of.get(topic) if isinstance(topic, str) else None for topic in topics], pa.string())
