"""Inventories judged by Spark's own join, together with rows listed from trees.

An inventory may have rows of any broker, and several may have rows of one, so all rows have to meet in one join.
Inventories and saved desired states are read where they lie. The join runs once and writes the findings as Parquet.

Spark takes about as long to plan a query as to run it on a million rows, so it is only asked questions that take many
machines to answer. The driver's DuckDB does the rest: it reads the rows of log dirs and internal directories, and adds
up the findings; it never holds a table of replicas, unless a metadata source other than a saved table had to be decoded
into one.

:data:`SPARK_VIEWS` gives the same rows and columns as :data:`reconciler.audit.join_sql.VIEWS`. Where DuckDB builds hash
tables, Spark shuffles and sorts each large side, and pays for every column again each time. So some views are written
differently, with the same answer:

- the columns that only a finding shows travel as one column ``disk``, which halves the code that Spark generates for
  every join, and keeps it below the size at which the JVM would interpret it;
- a hash leads the keys of the large join, because Spark compares the first eight bytes of the first key in place, and
  topic names often begin alike;
- ``live`` counts the copies of a live partition by a window over the keys of the join that follows, which needs no
  shuffle and no sort of its own; ``copies`` serves only the few directories that are not live;
- directories that are not live, mostly few, meet only the wanted replicas whose topic ID occurs among them;
- ``desired`` takes its cluster from ``speaks``: of a constant, Spark would make a condition instead of a key.

The views decide nothing, as the shared text decides nothing. Tests hold both engines to the same value in every column
of a finding.

Trees become inventories here, because the data source ``kafka_log_dirs`` would bring the same rows into Spark one by
one, only to have them written to disk. A task writes its inventory with Arrow, and only the path goes through Spark.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from logstore.log_dir import FallbackRecords
from logstore.rows import ROW_SCHEMA, InventoryForm, write_inventory
from reconciler.audit.case_sql import case_number, doubt, evidence, is_listed, verdict
from reconciler.audit.dimension_tables import Superseded, inventory_rows, keep_log_dirs, keep_metadata
from reconciler.audit.findings import FINDINGS
from reconciler.audit.join_sql import (
    BY_NAME,
    BY_TOPIC_ID,
    CARRIED,
    DATED,
    DATES,
    DESIRED,
    LOOKED_UP,
    LOOKUPS,
    SAME_NAME,
    SAME_TOPIC_ID,
    VIEWS,
)
from reconciler.audit.result import DISKS, RunQuery
from reconciler.audit.spark.log_dirs import (
    GROUPS_PER_CORE,
    LogDirs,
    by_broker,
    ddl,
    freeze_imports,
    group_brokers,
    log_dirs_in,
    scan_broker,
)
from reconciler.audit.spark.output import AuditRequest, escape_glob, query_by_spark, register_topics, write_topics
from reconciler.desired import REPLICA_SCHEMA, DesiredState, SavedTable, by_cluster, registered_log_dirs, speaking

_SETTINGS = {
    # Topics are joined twice, and a million of them take about this much: cheaper to send than to shuffle replicas.
    "spark.sql.autoBroadcastJoinThreshold": "64MB",
}

_CLUSTER = pa.field("cluster", pa.string())
_GROUP_COLUMN = "id"
_PATH_COLUMN = "path"

_PARTITION_KEYS = "topic, partition, node, cluster"

_DISKS = f"SELECT *, struct({', '.join(CARRIED)}) AS disk FROM observed"

_DESIRED = f"SELECT *, xxhash64(topic, partition, node) AS hash FROM (SELECT s.cluster, s.node, {DESIRED})"

_BESIDE_LIVE = "('future', 'delete', 'stray', 'staged')"
"""Directories whose verdict depends on the live replicas of their partition on the broker."""

_COPIES = f"""
    SELECT {_PARTITION_KEYS}, count(*) AS copies
    FROM observed LEFT SEMI JOIN (SELECT * FROM observed WHERE kind IN {_BESIDE_LIVE}) f USING ({_PARTITION_KEYS})
    WHERE kind = 'live' AND node >= 0
    GROUP BY {_PARTITION_KEYS}
"""

_LIVE = f"""
    SELECT *, CASE WHEN node >= 0 THEN count(*) OVER (PARTITION BY hash, {_PARTITION_KEYS}) ELSE 1 END AS copies
    FROM (SELECT *, xxhash64(topic, partition, node) AS hash FROM disks WHERE kind = 'live')
"""

_PAIRS = f"""
    SELECT o.disk, {BY_NAME}, coalesce(o.copies, 0) AS copies
    FROM live o FULL OUTER JOIN desired d ON o.hash = d.hash AND {SAME_NAME}
    UNION ALL
    SELECT o.disk, {BY_TOPIC_ID}, coalesce(c.copies, 0) AS copies
    FROM (SELECT * FROM disks WHERE kind <> 'live') o
    LEFT JOIN (SELECT * FROM desired
               WHERE wanted_topic_id IN (SELECT disk_topic_id FROM observed WHERE kind <> 'live')) d ON {SAME_TOPIC_ID}
    LEFT JOIN copies c
      ON o.topic = c.topic AND o.partition = c.partition AND o.node = c.node AND o.cluster = c.cluster
     AND o.kind IN {_BESIDE_LIVE}
"""

SPARK_VIEWS: dict[str, str] = {
    "observed": VIEWS["observed"],
    "disks": _DISKS,
    "desired": _DESIRED,
    "copies": _COPIES,
    "live": _LIVE,
    "pairs": _PAIRS,
    "joined": f"SELECT p.*, {LOOKED_UP} FROM pairs p {LOOKUPS}",
}
"""The views to create, in this order. They need the same tables as :data:`reconciler.audit.join_sql.VIEWS`; ``joined``
has the columns of CARRIED within ``disk``."""


class SparkDialect:
    """The expressions of Spark that the case table needs."""

    def column(self, name: str) -> Column:
        """Name a column of the relation."""
        return sf.col(name)

    def literal(self, value: str | int | bool | None) -> Column:
        """Make a constant; None is null."""
        return sf.lit(value)

    def choose(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Column:
        """Make CASE WHEN … ELSE …."""
        (condition, value), *rest = branches
        expression = sf.when(condition, value)
        for condition, value in rest:
            expression = expression.when(condition, value)
        return expression.otherwise(otherwise)

    def concat(self, parts: Sequence[Any]) -> Column:
        """Concatenate the parts as text."""
        return sf.concat(*parts)


def judge_inventories(
    own: SparkSession, small: duckdb.DuckDBPyConnection, ask: AuditRequest, inventories: Sequence[str], scratch: str
) -> tuple[dict[str, DesiredState], RunQuery]:
    """List the trees, join their rows with the inventories, and write the findings.

    Args:
        own: a Spark session of this audit's own.
        small: the driver's DuckDB, in which the dimension tables are made.
        ask: the audit to make.
        inventories: paths of Parquet files in ROW_SCHEMA.
        scratch: a folder that the driver and all executors see.

    Returns:
        The desired states by cluster, and a function that queries the rows of all replicas.

    Raises:
        RefusedError: the metadata does not fit the log dirs.
    """
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    paths = [*inventories, *(list_trees(own, ask, scratch) if ask.trees else [])]
    _register_rows(own, small, paths, ask)
    by_id = _register_small(own, small, ask.states)
    write_topics(small, by_id, ask.topics)
    register_topics(own, ask)
    _register_replicas(own, by_id, scratch)
    _judge(own, ask.findings, ask.all_rows)
    return by_id, query_by_spark(own, ask)


def _register_rows(
    own: SparkSession, small: duckdb.DuckDBPyConnection, paths: Sequence[str], ask: AuditRequest
) -> None:
    """Make the views ``rows`` and ``observed`` in both engines, from Parquet files in ROW_SCHEMA."""
    if paths:
        rows = _counting_rows(own, paths, ask.superseded)
        parts = inventory_rows(paths, ask.superseded, ", ".join(ROW_SCHEMA.names))
    else:
        rows, parts = own.createDataFrame(ROW_SCHEMA.empty_table()), ["SELECT * FROM nothing"]
        small.register("nothing", ROW_SCHEMA.empty_table())
    rows.withColumn("now_ms", sf.lit(ask.now_ms).cast("bigint")).createOrReplaceTempView("rows")
    own.sql(SPARK_VIEWS["observed"]).createOrReplaceTempView("observed")
    source = " UNION ALL ".join(parts)
    small.execute(f"CREATE VIEW rows AS SELECT *, CAST({ask.now_ms} AS BIGINT) AS now_ms FROM ({source})")
    small.execute(f"CREATE VIEW observed AS {SPARK_VIEWS['observed']}")


def _counting_rows(own: SparkSession, paths: Sequence[str], superseded: Superseded) -> DataFrame:
    """Read the rows of inventories that count; the same rows as :func:`inventory_rows` has in DuckDB."""
    reader = own.read.schema(ddl(ROW_SCHEMA))
    whole = [path for path in paths if path not in superseded]
    parts = [reader.parquet(*map(escape_glob, whole))] if whole else []
    for path in paths:
        if path in superseded:
            part = reader.parquet(escape_glob(path))
            for each in superseded[path]:
                part = part.where(
                    ~((sf.coalesce("host", sf.lit("")) == each.host) & (sf.col("log_dir") == each.log_dir))
                )
            parts.append(part)
    return reduce(DataFrame.unionByName, parts)


def _register_small(
    own: SparkSession, small: duckdb.DuckDBPyConnection, states: Sequence[DesiredState]
) -> dict[str, DesiredState]:
    """Make the dimension tables, and register in Spark the ones that the join needs; return the states by cluster."""
    brokers = keep_log_dirs(small)
    by_id = by_cluster(states, {broker.cluster for broker in brokers})
    small.register("counted", own.sql(DISKS).toArrow())
    small.execute("CREATE TABLE disks AS FROM counted")
    keep_metadata(small, by_id, speaking(by_id, brokers), registered_log_dirs(by_id))
    for name in ("speaks", "homes"):
        rows = small.sql(f"SELECT * REPLACE (CAST(cluster AS VARCHAR) AS cluster) FROM {name}")
        # From Arrow, Spark makes a local relation whose size it knows; from tuples it would not know the size.
        own.createDataFrame(rows.to_arrow_table()).createOrReplaceTempView(name)
    return by_id


def _register_replicas(own: SparkSession, states: Mapping[str, DesiredState], scratch: str) -> None:
    """Make the view ``replicas``. A table in memory becomes a file, which executors read without the driver."""
    parts = [own.createDataFrame(pa.schema([_CLUSTER, *REPLICA_SCHEMA]).empty_table())]
    for number, (cluster, state) in enumerate(states.items()):
        if isinstance(state.replicas, SavedTable):
            path = os.path.abspath(state.replicas.path)
        else:
            path = os.path.join(scratch, f"replicas-{number}.parquet")
            pq.write_table(state.replicas, path)
        saved = own.read.schema(ddl(REPLICA_SCHEMA)).parquet(escape_glob(path))
        parts.append(saved.select(sf.lit(cluster).alias("cluster"), *REPLICA_SCHEMA.names))
    replicas = parts.pop()
    for part in parts[1:]:
        replicas = replicas.unionByName(part)
    replicas.createOrReplaceTempView("replicas")


def _judge(own: SparkSession, path: str, all_rows: bool) -> None:
    """Join, judge, and write the findings to a folder of Parquet files."""
    for name, text in SPARK_VIEWS.items():
        own.sql(text).createOrReplaceTempView(name)
    dialect = SparkDialect()
    # The ranks of copies need this partitioning anyway. Here it separates the generated code of the filter from that
    # of the case table: together they are one method, so long that the JVM would interpret it for every row.
    judged = (
        own.table("joined").where(is_listed(dialect, all_rows)).repartition("cluster", "node", "topic", "partition")
    )
    judgement = {"verdict": verdict(dialect), "evidence": evidence(dialect)}
    found = judged.withColumn("case_no", case_number(dialect)).withColumns(judgement)
    found.select("*", "disk.*").createOrReplaceTempView("judged")
    dated = own.sql(f"SELECT {DATED} FROM judged j {DATES}")
    dated.withColumn("doubt", doubt(dialect)).createOrReplaceTempView("found")
    own.sql(FINDINGS).write.mode("overwrite").parquet(path)


def list_trees(spark: SparkSession, ask: AuditRequest, folder: str) -> list[str]:
    """List trees once, immediately, and return the paths of the inventories that the tasks wrote.

    Args:
        spark: a running session.
        ask: names the trees, and says whether to add up the files.
        folder: the folder for the inventories, which the driver and all executors see.
    """
    groups = group_brokers(
        by_broker(log_dirs_in(ask.trees)).values(), spark.sparkContext.defaultParallelism * GROUPS_PER_CORE
    )
    task = partial(write_inventories, groups, folder, ask.sizes, ask.fallback)
    numbers = spark.range(0, len(groups), 1, len(groups))
    return [row[_PATH_COLUMN] for row in numbers.mapInArrow(task, f"{_PATH_COLUMN} string").collect()]


def write_inventories(
    groups: Sequence[LogDirs],
    folder: str,
    sizes: bool,
    fallback: FallbackRecords | None,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """List the groups whose numbers are in the batches, each into a file of its own."""
    freeze_imports()
    for batch in batches:
        paths = []
        for number in batch.column(_GROUP_COLUMN).to_pylist():
            # A task that Spark repeats must not meet the files of its first attempt.
            paths.append(os.path.join(folder, f"{number}-{uuid.uuid4().hex}.parquet"))
            tables = (table for broker in groups[number].brokers for table in scan_broker(broker, sizes, fallback))
            with open(paths[-1], "wb") as out:
                write_inventory(tables, out, InventoryForm.PARQUET)
        yield pa.RecordBatch.from_pydict({_PATH_COLUMN: pa.array(paths, pa.string())})
