"""The request of an audit by Spark, and the output of both its ways: topics and findings.

Trees are judged by :mod:`reconciler.audit.spark.trees`, inventories by :mod:`reconciler.audit.spark.inventories`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from logstore.log_dir import FallbackRecords
from reconciler.audit.dimension_tables import Superseded, parquet_files, parquet_folder, quoted, rows_of
from reconciler.audit.findings import FINDING_SCHEMA, FINDINGS_FILE, TOPICS_FILE
from reconciler.audit.fleet import LIKELY, SEARCHED
from reconciler.audit.incremental import Basis, EarlierAudit
from reconciler.audit.spark.exchange import Exchange
from reconciler.audit.spark.log_dirs import ddl
from reconciler.desired import TOPIC_SCHEMA, DesiredState

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import DataFrame, SparkSession

_FOUND = """
    SELECT verdict, coalesce(cluster_id, '') AS cluster, coalesce(broker, -1) AS node, host, log_dir, directory_id,
           name, coalesce(kind, '') AS kind, log_dir IS NOT NULL AS on_disk, coalesce(topic, '') AS topic,
           coalesce(partition, -1) AS partition, coalesce(disk_topic_id, '') AS disk_topic_id, bytes, disk_bytes,
           modified_ms, due_ms, only_in_sync, doubt
    FROM findings
"""

_CLUSTER = pa.field("cluster", pa.string())


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """The input of one audit, and the folder for its answer."""

    trees: Sequence[str]
    """Log dirs, or folders of them, that the driver and all executors see."""
    states: Sequence[DesiredState]
    """The desired states of the metadata sources."""
    folder: str
    """The output folder, an absolute path that the driver and all executors see."""
    now_ms: int
    """The time of the audit, ms since 1970."""
    sizes: bool
    """Whether to add up the files in trees."""
    all_rows: bool
    """Whether to list the OK rows as well."""
    fallback: FallbackRecords | None = None
    """The fallback records of what is staged in the trees."""
    superseded: Superseded = field(default_factory=dict)
    """What does not count in inventories."""
    contents: Mapping[str, str] | None = None
    """The fingerprints of inventories by path; None: nobody asks what the verdicts rest on."""
    earlier: EarlierAudit | None = None
    """An earlier audit, whose findings are kept where nothing changed that they rest on."""

    @property
    def findings(self) -> str:
        """The folder of Parquet files in FINDING_SCHEMA."""
        return os.path.join(self.folder, FINDINGS_FILE)

    @property
    def topics(self) -> str:
        """The file of the topics in the metadata, which the next audit compares with its own."""
        return os.path.join(self.folder, TOPICS_FILE)


class JudgedFleet(NamedTuple):
    """What either way leaves beside the findings."""

    states: dict[str, DesiredState]
    """The desired states by cluster."""
    rows: DataFrame | None
    """The rows of all directories in Spark; None: the driver searches its own view ``rows``."""
    kept: int
    """Brokers whose findings are those of the earlier audit."""
    basis: tuple[Basis, ...]
    """What the verdicts of each broker rest on; empty: nobody asked."""


def write_topics(small: duckdb.DuckDBPyConnection, states: Mapping[str, DesiredState], path: str) -> None:
    """Write the topics to their file, from which both engines read them, and make the view ``topics`` of it."""
    pq.write_table(topic_table(states), path)
    small.execute(f"CREATE VIEW topics AS FROM {parquet_files(path)}")


def read_topics(spark: SparkSession, ask: AuditRequest, exchange: Exchange) -> DataFrame:
    """Read the topics in Spark, from the file of :func:`write_topics`."""
    return spark.read.schema(ddl(_topic_schema())).parquet(exchange.give(ask.topics))


def topic_table(states: Mapping[str, DesiredState]) -> pa.Table:
    """Gather the topics of desired states, each with its cluster in front."""
    topics = [_with_cluster(cluster, state.topics).select(_topic_schema().names) for cluster, state in states.items()]
    return pa.concat_tables([_topic_schema().empty_table(), *topics])


def _topic_schema() -> pa.Schema:
    return pa.schema([_CLUSTER, *(field for field in TOPIC_SCHEMA if field.name != "partitions")])


def _with_cluster(cluster: str, table: pa.Table) -> pa.Table:
    return table.add_column(0, _CLUSTER, pa.repeat(pa.scalar(cluster, pa.string()), table.num_rows))


def write_kept(small: duckdb.DuckDBPyConnection, findings: str) -> None:
    """Write the findings that are kept, from ``kept`` in the driver's DuckDB, beside those that were made."""
    path = os.path.join(findings, "part-kept.parquet")
    small.execute(f"COPY (SELECT {', '.join(FINDING_SCHEMA.names)} FROM kept) TO {quoted(path)} (FORMAT parquet)")


def register_found(small: duckdb.DuckDBPyConnection, findings: str) -> None:
    """Make the view ``found`` of the findings in the driver's DuckDB."""
    small.execute(f"CREATE VIEW findings AS FROM {parquet_folder(findings)}")
    small.execute(f"CREATE VIEW found AS {_FOUND}")


FEW_ROWS = 5_000_000
"""Up to this many rows of directories the driver's DuckDB judges or searches itself, sooner than Spark."""


def are_few(small: duckdb.DuckDBPyConnection, *tables: str) -> bool:
    """Whether tables of the driver's DuckDB have so few rows together that it asks them itself, and not Spark."""
    counts = (rows_of(small, f"SELECT count(*) AS rows FROM {table}")[0]["rows"] for table in tables)
    return bool(sum(counts) <= FEW_ROWS)


def make_searched(
    small: duckdb.DuckDBPyConnection, ask: AuditRequest, rows: DataFrame | None, exchange: Exchange
) -> None:
    """Make ``searched`` in the driver's DuckDB, for the findings of the fleet.

    ``rows``: those of all directories in Spark, which then searches them; None: the driver's DuckDB has the view.
    """
    if rows is None:
        small.execute(f"CREATE TABLE searched AS WITH likely AS ({LIKELY}) {SEARCHED}")
        return
    from reconciler.audit.spark.join import select  # which a task that lists trees does without

    own = rows.sparkSession
    findings = own.read.schema(ddl(FINDING_SCHEMA)).parquet(exchange.give(ask.findings))
    frames = {"findings": findings, "rows": rows, "topics": read_topics(own, ask, exchange)}
    path = os.path.join(exchange.folder, "likely.parquet")
    select(LIKELY, frames, {"found": _FOUND}).write.parquet(exchange.target(path))
    exchange.take(path)
    small.execute(f"CREATE TABLE searched AS WITH likely AS (FROM {parquet_folder(path)}) {SEARCHED}")
