"""The Spark data source ``kafka_metadata``: the content of a metadata source, as tables for Spark.

    spark.dataSource.register(KafkaMetadata)
    spark.read.format("kafka_metadata").options(path="kraft:/disks/__cluster_metadata-0", table="topics").load()

Options: ``path`` (a spec of :mod:`reconciler.sources`) and ``table`` (``replicas``, ``topics``, ``brokers`` or
``identity``; ``replicas`` by default). Every table has the cluster ID in front, "" where the source names none. One
task decodes the source, on an executor that must see the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from reconciler.audit.spark.log_dirs import ddl
from reconciler.desired import BROKER_SCHEMA, REPLICA_SCHEMA, TOPIC_SCHEMA, DesiredState, MetadataIdentity, in_memory
from reconciler.errors import UsageError
from reconciler.sources import load

IDENTITY_SCHEMA = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("location", pa.string()),
        pa.field("completeness", pa.string()),
        pa.field("scope", pa.list_(pa.int32())),  # brokers; null: all of the cluster
        pa.field("offset", pa.int64()),
        pa.field("epoch", pa.int64()),
        pa.field("timestamp_ms", pa.int64()),
        pa.field("as_of_from", pa.string()),  # what that time rests on; empty: the newest record
        pa.field("tail_uncommitted", pa.bool_()),
        pa.field("digest", pa.string()),
        pa.field("problems", pa.list_(pa.string())),
        pa.field("ends_early", pa.list_(pa.string())),
        pa.field("uncommitted", pa.list_(pa.string())),  # topic IDs
        pa.field("keeper", pa.int32()),  # node.id of the log dir in which it lies; null: no node's
        pa.field("keeper_runs", pa.bool_()),  # the node held its lock when it was read
        pa.field("keeper_decides", pa.bool_()),  # the node is the only voter
    ]
)
"""One row per desired state: :class:`reconciler.desired.MetadataIdentity`."""

TABLES: Mapping[str, pa.Schema] = {
    "replicas": REPLICA_SCHEMA,
    "topics": TOPIC_SCHEMA,
    "brokers": BROKER_SCHEMA,
    "identity": IDENTITY_SCHEMA,
}

_CLUSTER = pa.field("cluster", pa.string())
_BATCH_ROWS = 1 << 16


class KafkaMetadata(DataSource):
    """``spark.read.format("kafka_metadata")``; see the module for its options."""

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format``."""
        return "kafka_metadata"

    def schema(self) -> str:
        """Return the columns of the chosen table as DDL, with ``cluster`` in front.

        Raises:
            UsageError: there is no such table.
        """
        return ddl(_schema(_table(self.options)))

    def reader(self, schema: object) -> MetadataReader:
        """Make a reader for the given options.

        Raises:
            UsageError: an option is missing, unknown or malformed.
        """
        options = {name.lower(): value for name, value in self.options.items()}
        unknown = sorted(set(options) - {"path", "table"})
        if unknown:
            raise UsageError(f"kafka_metadata has no option {unknown[0]!r}; its options are path, table")
        if not options.get("path"):
            raise UsageError("kafka_metadata: the option path must name a metadata source")
        return MetadataReader(options["path"], _table(self.options))


class MetadataReader(DataSourceReader):
    """Decodes the source in its only task."""

    def __init__(self, spec: str, table: str) -> None:
        self.spec = spec
        self.table = table

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition: a source is decoded from its first byte to its last."""
        return [InputPartition(self.spec)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the chosen table, of every cluster that the spec names."""
        for state in load(self.spec):
            yield from _with_cluster(state, self.table).to_batches(max_chunksize=_BATCH_ROWS)


def _table(options: Mapping[str, str]) -> str:
    chosen = next((value for name, value in options.items() if name.lower() == "table"), "replicas")
    if chosen not in TABLES:
        raise UsageError(f"kafka_metadata: there is no table {chosen!r}; the tables are {', '.join(TABLES)}")
    return chosen


def _schema(table: str) -> pa.Schema:
    return pa.schema([_CLUSTER, *TABLES[table]])


def _with_cluster(state: DesiredState, table: str) -> pa.Table:
    rows = {
        "replicas": in_memory(state.replicas),
        "topics": state.topics,
        "brokers": state.brokers,
        "identity": _identity_row(state.identity),
    }[table]
    cluster = pa.repeat(pa.scalar(state.identity.cluster_id or "", pa.string()), rows.num_rows)
    return pa.Table.from_arrays([cluster, *rows.combine_chunks().columns], schema=_schema(table))


def _identity_row(identity: MetadataIdentity) -> pa.Table:
    values = {field.name: getattr(identity, field.name) for field in IDENTITY_SCHEMA}
    values["scope"] = None if identity.scope is None else sorted(identity.scope)
    values["problems"], values["ends_early"] = list(identity.problems), list(identity.ends_early)
    values["uncommitted"] = list(identity.uncommitted)
    return pa.Table.from_pylist([values], schema=IDENTITY_SCHEMA)
