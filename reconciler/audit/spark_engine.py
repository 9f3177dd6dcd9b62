"""The audit of a fleet: Spark joins, on as many machines as it has.

Trees are listed by the executors (:mod:`reconciler.audit.spark_listing`), once, into a scratch folder; inventories and
saved desired states are read where they lie. The join is that of :mod:`reconciler.audit.spark_joined`, the rest the
SQL that the embedded engine runs as well. The join runs once: it leaves the findings as Parquet, and totals and fleet
findings come from there.

Spark takes about as long to plan a query as to run it on a million rows, so it is asked only what it takes many
machines to answer. The driver has a DuckDB for the rest: it reads the rows of log dirs and internal directories, and
adds up what was found; it never holds a table of replicas, unless a metadata source that is no saved table had to be
decoded into one.

The output folder must be one that the driver and all executors see under the same path; the scratch folder lies in it.
Every audit has a Spark session of its own, so that two of them do not meet in their views.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from logstore.rows import ROW_SCHEMA
from reconciler.audit.findings import FINDING_SCHEMA, FINDINGS
from reconciler.audit.render import case_number, evidence, is_finding, verdict
from reconciler.audit.result import AuditResult
from reconciler.audit.small_tables import keep_log_dirs, keep_metadata, parquet_files, parquet_folder, rows_of
from reconciler.audit.spark_joined import VIEWS
from reconciler.audit.spark_listing import listed
from reconciler.audit.spark_types import ddl
from reconciler.audit.summary import DISKS, conclude
from reconciler.desired import REPLICA_SCHEMA, TOPIC_SCHEMA, DesiredState
from reconciler.errors import RefusedError
from reconciler.saved_table import SavedTable
from reconciler.scope import by_cluster, registered, speaking

FINDINGS_FILE = "findings.parquet"
TOPICS_FILE = "topics.parquet"

_SETTINGS = {
    # Topics are joined twice, and a million of them take about this much: cheaper to send than to shuffle replicas.
    "spark.sql.autoBroadcastJoinThreshold": "64MB",
}

_GLOB = re.compile(r"[\\*?\[\]{}]")

_FOUND = """
    SELECT verdict, coalesce(cluster_id, '') AS cluster, coalesce(broker, -1) AS node, host, log_dir, directory_id,
           name, coalesce(kind, '') AS kind, log_dir IS NOT NULL AS on_disk, coalesce(topic, '') AS topic,
           coalesce(partition, -1) AS partition, coalesce(disk_topic_id, '') AS disk_topic_id, bytes, only_in_sync
    FROM findings
"""

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


def audit(
    spark: SparkSession,
    trees: Sequence[str],
    inventories: Sequence[str],
    states: Sequence[DesiredState],
    folder: str,
    *,
    now_ms: int,
    sizes: bool = True,
    all_rows: bool = False,
    previous: str | None = None,
) -> AuditResult:
    """Compare rows with the desired state and leave the findings in a folder.

    Args:
        spark: a running session; it is left as it was.
        trees: log dirs, or folders of them, that the driver and all executors see.
        inventories: paths of Parquet files in ROW_SCHEMA; :func:`logstore.inventory.check` has accepted them.
        states: what the metadata sources said; none means that only fleet findings can be made.
        folder: an existing folder; ``findings.parquet`` (a folder of part files) and ``topics.parquet`` are written.
        now_ms: the time of the audit, ms since 1970; decides what is due.
        sizes: add up the files in trees.
        all_rows: list the OK rows as well.
        previous: ``topics.parquet`` of an earlier audit, to find topics whose ID changed.

    Raises:
        RefusedError: the metadata does not fit the log dirs (:func:`reconciler.scope.by_cluster`), or Spark failed.
    """
    own = spark.newSession()
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    folder = os.path.abspath(folder)
    try:
        with tempfile.TemporaryDirectory(prefix="logstore-audit-", dir=folder) as scratch, duckdb.connect() as small:
            paths = [*inventories, *(listed(own, trees, sizes, scratch) if trees else [])]
            _register_rows(own, small, paths, now_ms)
            by_id = _register_small(own, small, states)
            _register_topics(own, small, by_id, os.path.join(folder, TOPICS_FILE), previous)
            _register_replicas(own, by_id, scratch)
            findings_path = _judge(own, small, folder, all_rows)
            return conclude(
                partial(rows_of, small),
                by_id,
                engine="spark",
                now_ms=now_ms,
                findings_path=findings_path,
                with_previous=previous is not None,
                search=lambda sql: [row.asDict() for row in own.sql(sql).collect()],
            )
    except (PySparkException, Py4JError, duckdb.Error) as error:
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RefusedError(f"Spark did not finish the audit, and {folder} is incomplete: {first_line:.500}") from error


def _register_rows(own: SparkSession, small: duckdb.DuckDBPyConnection, paths: Sequence[str], now_ms: int) -> None:
    """Make the view of what was observed in both engines, from Parquet files in ROW_SCHEMA."""
    if paths:
        rows, source = own.read.schema(ddl(ROW_SCHEMA)).parquet(*map(_as_it_stands, paths)), parquet_files(*paths)
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
    keep_metadata(small, by_id, speaking(by_id, brokers), registered(by_id))
    for name in ("speaks", "homes"):
        rows = small.sql(f"SELECT * REPLACE (CAST(cluster AS VARCHAR) AS cluster) FROM {name}")
        # As Arrow they are a local relation, whose size Spark knows; as tuples it would not.
        own.createDataFrame(rows.to_arrow_table()).createOrReplaceTempView(name)
    return by_id


def _register_topics(
    own: SparkSession,
    small: duckdb.DuckDBPyConnection,
    states: Mapping[str, DesiredState],
    path: str,
    previous: str | None,
) -> None:
    """Leave the topics in their file, from which both engines read them, and the next audit as well."""
    if previous is not None:
        # Read before the new topics are written: it may be the same file.
        small.execute(f"CREATE TABLE previous AS FROM {parquet_files(previous)}")
    topics = [_with_cluster(cluster, state.topics) for cluster, state in states.items()]
    schema = pa.schema([_CLUSTER, *TOPIC_SCHEMA])
    pq.write_table(pa.concat_tables([schema.empty_table(), *topics]).drop_columns("partitions"), path)
    own.read.parquet(_as_it_stands(path)).createOrReplaceTempView("topics")
    small.execute(f"CREATE VIEW topics AS FROM {parquet_files(path)}")


def _register_replicas(own: SparkSession, states: Mapping[str, DesiredState], scratch: str) -> None:
    """Make the view of what is wanted. What is in memory becomes a file, which executors read without the driver."""
    parts = [own.createDataFrame(pa.schema([_CLUSTER, *REPLICA_SCHEMA]).empty_table())]
    for number, (cluster, state) in enumerate(states.items()):
        if isinstance(state.replicas, SavedTable):
            path = os.path.abspath(state.replicas.path)
        else:
            path = os.path.join(scratch, f"replicas-{number}.parquet")
            pq.write_table(state.replicas, path)
        saved = own.read.schema(ddl(REPLICA_SCHEMA)).parquet(_as_it_stands(path))
        parts.append(saved.select(sf.lit(cluster).alias("cluster"), *REPLICA_SCHEMA.names))
    replicas = parts.pop()
    for part in parts[1:]:
        replicas = replicas.unionByName(part)
    replicas.createOrReplaceTempView("replicas")


def _as_it_stands(path: str) -> str:
    """The path of a file for Spark, which would read one that looks like a glob as a glob."""
    return _GLOB.sub(r"\\\g<0>", path)


def _with_cluster(cluster: str, table: pa.Table) -> pa.Table:
    return table.add_column(0, _CLUSTER, pa.repeat(pa.scalar(cluster, pa.string()), table.num_rows))


def _judge(own: SparkSession, small: duckdb.DuckDBPyConnection, folder: str, all_rows: bool) -> str:
    """Join, judge, and leave the findings, whose path it gives; then make ``found`` of them in both engines."""
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
    path = os.path.join(folder, FINDINGS_FILE)
    own.sql(FINDINGS).write.mode("overwrite").parquet(path)
    own.read.schema(ddl(FINDING_SCHEMA)).parquet(_as_it_stands(path)).createOrReplaceTempView("findings")
    own.sql(_FOUND).createOrReplaceTempView("found")
    small.execute(f"CREATE VIEW findings AS FROM {parquet_folder(path)}")
    small.execute(f"CREATE VIEW found AS {_FOUND}")
    return path
