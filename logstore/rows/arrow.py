"""The rows of a scan in Arrow: one schema that every format, both audits and every inventory share, and tables of it.

Host, log dir and identity are the same in every row of a log dir, and are added at the end. This module is apart from
``rows`` because Arrow takes long to import, and a scan imports it while its workers look already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from layout.topic import NAMESPACE_SEPARATOR, namespace_of
from logstore.rows.rows import SCHEMA_VERSION, VARYING, VERSION_KEY, Columns, LogDirFacts, Row, Value, by_column, utf8

ROW_SCHEMA = pa.schema(
    [
        pa.field("host", pa.string()),
        pa.field("cluster_id", pa.string()),
        pa.field("node_id", pa.int32()),
        pa.field("directory_id", pa.string()),
        pa.field("log_dir", pa.string()),
        pa.field("name", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("namespace", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("topic_id", pa.string()),
        pa.field("metadata_state", pa.string()),
        pa.field("problem", pa.string()),
        pa.field("bytes", pa.int64()),
        pa.field("disk_bytes", pa.int64()),
        pa.field("files", pa.int32()),
        pa.field("leftovers", pa.int32()),
        pa.field("segments", pa.int32()),
        pa.field("modified_ms", pa.int64()),
        pa.field("inode", pa.int64()),
        pa.field("due_ms", pa.int64()),
        pa.field("end_offset", pa.int64()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("scanned_ms", pa.int64()),
        pa.field("clean_shutdown", pa.bool_()),
    ],
    metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()},
)
"""The columns of a scan, of which each row is a directory or the log dir itself.

- ``host``: name of the machine that scanned
- ``cluster_id``: ``cluster.id`` of ``meta.properties``
- ``node_id``: ``node.id`` or ``broker.id``
- ``directory_id``: ``directory.id``, base64url; null before Kafka 3.7
- ``log_dir``: absolute path; bytes that are not UTF-8 stand as ``\\xNN``
- ``name``: path below the log dir; ``.`` for the log dir itself
- ``kind``: a :class:`logstore.rows.Kind`
- ``namespace``: tiers joined by ``:``; empty for the default namespace
- ``topic``: full name, namespace included; null where unknown
- ``partition``: number of the partition; null where unknown
- ``topic_id``: canonical base64url; null where the disk holds none
- ``metadata_state``: a :class:`logstore.rows.MetadataState`; null where none is expected
- ``problem``: one sentence, null where all is well
- ``bytes``: sum of the files' lengths
- ``disk_bytes``: space on disk: 512 × st_blocks; preallocated indexes make it smaller
- ``files``: number of files
- ``leftovers``: files with a transient suffix: ``.deleted``, ``.cleaned``, ``.swap``, ``.tmp``
- ``segments``: ``.log`` files among them; a broker never leaves a replica without one
- ``modified_ms``: newest mtime in the directory, ms since 1970
- ``inode``: inode of the directory
- ``due_ms``: staged only: when a purge may remove it, ms since 1970
- ``end_offset``: recovery point of the checkpoint: a lower bound of the log end offset
- ``leader_epoch``: last epoch of ``leader-epoch-checkpoint``; read for duplicates only
- ``scanned_ms``: when this log dir was looked at, ms since 1970
- ``clean_shutdown``: the log dir has the marker that a clean stop leaves
"""


_TOPIC = VARYING.index("topic")
BATCH_SCHEMA = pa.schema([*(ROW_SCHEMA.field(name) for name in VARYING), ROW_SCHEMA.field("namespace")])

# A schema makes its fields anew whenever it is asked, which is most of the work on a log dir with few replicas.
_VARYING_TYPES = [BATCH_SCHEMA.field(name).type for name in VARYING]
_PLACES = {field.name: number for number, field in enumerate(BATCH_SCHEMA)}
_ROW_COLUMNS = [(field.name, field.type, _PLACES.get(field.name)) for field in ROW_SCHEMA]
"""The name and the type of each column of a row, and its number in a batch; None: it is the same in every row."""


def to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Turn rows into one Arrow batch of :data:`BATCH_SCHEMA`."""
    return columns_to_batch(by_column(rows))


def columns_to_batch(columns: Columns) -> pa.RecordBatch:
    """Turn columns into one Arrow batch of :data:`BATCH_SCHEMA`."""
    arrays = [_array(kind, column) for kind, column in zip(_VARYING_TYPES, columns, strict=True)]
    return pa.RecordBatch.from_arrays([*arrays, _namespaces(columns[_TOPIC])], schema=BATCH_SCHEMA)


def to_table(batches: Iterable[pa.RecordBatch], facts: LogDirFacts) -> pa.Table:
    """Join the batches of one log dir into a table of the whole row schema."""
    table = pa.Table.from_batches(batches, BATCH_SCHEMA)
    same: dict[str, Value] = {
        "host": utf8(facts.host),
        "log_dir": utf8(facts.log_dir),
        "scanned_ms": facts.scanned_ms,
        "cluster_id": facts.cluster_id,
        "node_id": facts.node_id,
        "directory_id": facts.directory_id,
        "leader_epoch": None,
        "clean_shutdown": facts.clean_shutdown,
    }
    lengths = [batch.num_rows for batch in table.to_batches()]
    columns = [
        _repeated(same[name], kind, lengths) if place is None else table.column(place)
        for name, kind, place in _ROW_COLUMNS
    ]
    return pa.Table.from_arrays(columns, schema=ROW_SCHEMA)


def _repeated(value: Value, kind: pa.DataType, lengths: Sequence[int]) -> pa.ChunkedArray:
    """Repeat one value for every row of some batches, which share the memory of the longest."""
    longest = pa.repeat(pa.scalar(value, kind), max(lengths, default=0))
    return pa.chunked_array([longest.slice(0, length) for length in lengths], kind)


def _array(kind: pa.DataType, values: Sequence[Value]) -> pa.Array:
    if values and values[0] is None and values.count(None) == len(values):
        return pa.nulls(len(values), kind)
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([utf8(value) if isinstance(value, str) else value for value in values], kind)


def _namespaces(topics: Sequence[Value]) -> pa.Array:
    """Give the namespace of each topic. Nearly always all are in the default one, so the separator is sought first."""
    texts = [topic for topic in topics if isinstance(topic, str)]
    if len(texts) == len(topics) and NAMESPACE_SEPARATOR not in "".join(texts):
        return pa.repeat(pa.scalar("", pa.string()), len(topics))
    of = {topic: utf8(namespace_of(topic)) for topic in set(texts)}
    return pa.array([of.get(topic) if isinstance(topic, str) else None for topic in topics], pa.string())
