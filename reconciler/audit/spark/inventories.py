"""Inventories judged by Spark's own join, with what was listed of trees among them.

An inventory may tell of any broker, and several may tell of one, so rows have to meet: the join is that of
:mod:`reconciler.audit.spark.joined`. Inventories and saved desired states are read where they lie. The join runs once
and leaves the findings as Parquet.

Spark takes about as long to plan a query as to run it on a million rows, so it is asked only what it takes many
machines to answer. The driver's DuckDB does the rest: it reads the rows of log dirs and internal directories, and adds
up what was found; it never holds a table of replicas, unless a metadata source that is no saved table had to be decoded
into one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from logstore.rows import ROW_SCHEMA
from reconciler.audit.findings import FINDINGS
from reconciler.audit.render import case_number, evidence, is_finding, verdict
from reconciler.audit.small_tables import keep_log_dirs, keep_metadata, parquet_files
from reconciler.audit.spark.joined import VIEWS
from reconciler.audit.spark.listing import listed
from reconciler.audit.spark.output import Ask, as_it_stands, leave_topics, register_topics, searched_by
from reconciler.audit.spark.types import ddl
from reconciler.audit.summary import DISKS, Query
from reconciler.desired import REPLICA_SCHEMA, DesiredState, SavedTable, by_cluster, registered_log_dirs, speaking

_SETTINGS = {
    # Topics are joined twice, and a million of them take about this much: cheaper to send than to shuffle replicas.
    "spark.sql.autoBroadcastJoinThreshold": "64MB",
}

_CLUSTER = pa.field("cluster", pa.string())


class SparkDialect:
    """Spark's columns, as the case table needs them."""

    def column(self, name: str) -> Column:
        """A column of the relation."""
        return sf.col(name)

    def literal(self, value: str | int | bool) -> Column:
        """A constant."""
        return sf.lit(value)

    def choose(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Column:
        """CASE WHEN … ELSE …."""
        (condition, value), *rest = branches
        expression = sf.when(condition, value)
        for condition, value in rest:
            expression = expression.when(condition, value)
        return expression.otherwise(otherwise)

    def concat(self, parts: Sequence[Any]) -> Column:
        """The parts as one text."""
        return sf.concat(*parts)


def judged_by_a_join(
    own: SparkSession, small: duckdb.DuckDBPyConnection, ask: Ask, inventories: Sequence[str], scratch: str
) -> tuple[dict[str, DesiredState], Query]:
    """List what lies in trees, join it with the inventories, and leave the findings.

    Args:
        own: a Spark session of this audit's own.
        small: the driver's DuckDB; the small tables are made in it.
        ask: what is asked.
        inventories: paths of Parquet files in ROW_SCHEMA.
        scratch: a folder that the driver and all executors see.

    Returns:
        The desired states by cluster; and what searches the rows of all replicas.

    Raises:
        RefusedError: the metadata does not fit the log dirs.
    """
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    paths = [*inventories, *(listed(own, ask.trees, ask.sizes, scratch) if ask.trees else [])]
    _register_rows(own, small, paths, ask.now_ms)
    by_id = _register_small(own, small, ask.states)
    leave_topics(small, by_id, ask.topics)
    register_topics(own, ask)
    _register_replicas(own, by_id, scratch)
    _judge(own, ask.findings, ask.all_rows)
    return by_id, searched_by(own, ask)


def _register_rows(own: SparkSession, small: duckdb.DuckDBPyConnection, paths: Sequence[str], now_ms: int) -> None:
    """Make the view of what was observed in both engines, from Parquet files in ROW_SCHEMA."""
    if paths:
        rows, source = own.read.schema(ddl(ROW_SCHEMA)).parquet(*map(as_it_stands, paths)), parquet_files(*paths)
    else:
        rows, source = own.createDataFrame(ROW_SCHEMA.empty_table()), "nothing"
        small.register("nothing", ROW_SCHEMA.empty_table())
    rows.withColumn("now_ms", sf.lit(now_ms).cast("bigint")).createOrReplaceTempView("rows")
    own.sql(VIEWS["observed"]).createOrReplaceTempView("observed")
    small.execute(f"CREATE VIEW rows AS SELECT *, CAST({now_ms} AS BIGINT) AS now_ms FROM {source}")
    small.execute(f"CREATE VIEW observed AS {VIEWS['observed']}")


def _register_small(
    own: SparkSession, small: duckdb.DuckDBPyConnection, states: Sequence[DesiredState]
) -> dict[str, DesiredState]:
    """Make the small tables, and give Spark those that the join wants; gives the desired states by cluster."""
    brokers = keep_log_dirs(small)
    by_id = by_cluster(states, {broker.cluster for broker in brokers})
    small.register("counted", own.sql(DISKS).toArrow())
    small.execute("CREATE TABLE disks AS FROM counted")
    keep_metadata(small, by_id, speaking(by_id, brokers), registered_log_dirs(by_id))
    for name in ("speaks", "homes"):
        rows = small.sql(f"SELECT * REPLACE (CAST(cluster AS VARCHAR) AS cluster) FROM {name}")
        # As Arrow they are a local relation, whose size Spark knows; as tuples it would not.
        own.createDataFrame(rows.to_arrow_table()).createOrReplaceTempView(name)
    return by_id


def _register_replicas(own: SparkSession, states: Mapping[str, DesiredState], scratch: str) -> None:
    """Make the view of what is wanted. What is in memory becomes a file, which executors read without the driver."""
    parts = [own.createDataFrame(pa.schema([_CLUSTER, *REPLICA_SCHEMA]).empty_table())]
    for number, (cluster, state) in enumerate(states.items()):
        if isinstance(state.replicas, SavedTable):
            path = os.path.abspath(state.replicas.path)
        else:
            path = os.path.join(scratch, f"replicas-{number}.parquet")
            pq.write_table(state.replicas, path)
        saved = own.read.schema(ddl(REPLICA_SCHEMA)).parquet(as_it_stands(path))
        parts.append(saved.select(sf.lit(cluster).alias("cluster"), *REPLICA_SCHEMA.names))
    replicas = parts.pop()
    for part in parts[1:]:
        replicas = replicas.unionByName(part)
    replicas.createOrReplaceTempView("replicas")


def _judge(own: SparkSession, path: str, all_rows: bool) -> None:
    """Join, judge, and leave the findings in a folder of Parquet files."""
    for name, text in VIEWS.items():
        own.sql(text).createOrReplaceTempView(name)
    dialect = SparkDialect()
    listed = sf.expr("kind <> 'log_dir' OR state <> 'ok'") if all_rows else is_finding(dialect)
    # The ranks of copies want this partitioning anyway. Here it keeps the code of the filter apart from the rest of the
    # table's: together they are one method, and one so long that the JVM would interpret it for every row.
    judged = own.table("joined").where(listed).repartition("cluster", "node", "topic", "partition")
    told = {"verdict": verdict(dialect), "evidence": evidence(dialect)}
    found = judged.withColumn("case_no", case_number(dialect)).withColumns(told)
    found.select("*", "disk.*").createOrReplaceTempView("found")
    own.sql(FINDINGS).write.mode("overwrite").parquet(path)
