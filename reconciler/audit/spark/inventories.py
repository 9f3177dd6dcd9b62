"""Inventories judged by Spark's own join, with what was listed of trees among them.

An inventory may tell of any broker, and several may tell of one, so rows have to meet: the join is that of
:mod:`reconciler.audit.spark.inventories`. Inventories and saved desired states are read where they lie. The join runs once
and leaves the findings as Parquet.

Spark takes about as long to plan a query as to run it on a million rows, so it is asked only what it takes many
machines to answer. The driver's DuckDB does the rest: it reads the rows of log dirs and internal directories, and adds
up what was found; it never holds a table of replicas, unless a metadata source that is no saved table had to be decoded
into one.

The joined row for Spark: the same rows and columns as :mod:`reconciler.audit.join_sql`, each large side shuffled once.

Where DuckDB builds hash tables, Spark shuffles and sorts, and pays for every column again each time. So some things are
written differently here, and their answer is the same:

- what only a finding shows travels as one column ``disk``, which halves the code that Spark generates for every join,
  and keeps it below the size at which the JVM would interpret it;
- a hash leads the keys of the large join, because Spark compares the first eight bytes of the first key in place, and
  names of topics often begin alike;
- ``live`` counts the copies of a live partition by a window over the keys of the join that follows, which needs no
  shuffle and no sort of its own; ``copies`` is left for the few future directories;
- what is not live, mostly little, meets only those wanted replicas whose topic ID is among it;
- ``desired`` takes its cluster from ``speaks``: of a constant, Spark would make a condition instead of a key.

Decides nothing, as the shared text decides nothing; both engines are tested to agree on every column of a finding.

Log dirs into Parquet, on Spark's executors: each task lists its brokers and leaves their rows as one inventory.

The data source ``kafka_log_dirs`` would bring the same rows into Spark one by one, only to have them written down
there. What a task leaves here is written by Arrow, and only the path of it goes through Spark.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from logstore.rows import ROW_SCHEMA, InventoryForm, write_inventory
from reconciler.audit.case_sql import case_number, evidence, is_finding, verdict
from reconciler.audit.dimension_tables import keep_log_dirs, keep_metadata, parquet_files
from reconciler.audit.findings import FINDINGS
from reconciler.audit.join_sql import BY_NAME, BY_TOPIC_ID, CARRIED, LOOKED_UP, LOOKUPS, SAME_NAME, SAME_TOPIC_ID, VIEWS
from reconciler.audit.result import DISKS, RunQuery
from reconciler.audit.spark.log_dirs import (
    GROUPS_PER_CORE,
    LogDirs,
    by_broker,
    ddl,
    freeze_what_is_there,
    grouped,
    log_dirs_in,
    scanned,
)
from reconciler.audit.spark.output import AuditRequest, as_it_stands, leave_topics, register_topics, searched_by
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
    own: SparkSession, small: duckdb.DuckDBPyConnection, ask: AuditRequest, inventories: Sequence[str], scratch: str
) -> tuple[dict[str, DesiredState], RunQuery]:
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
    paths = [*inventories, *(list_trees(own, ask.trees, ask.sizes, scratch) if ask.trees else [])]
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
    own.sql(SPARK_VIEWS["observed"]).createOrReplaceTempView("observed")
    small.execute(f"CREATE VIEW rows AS SELECT *, CAST({now_ms} AS BIGINT) AS now_ms FROM {source}")
    small.execute(f"CREATE VIEW observed AS {SPARK_VIEWS['observed']}")


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
    for name, text in SPARK_VIEWS.items():
        own.sql(text).createOrReplaceTempView(name)
    dialect = SparkDialect()
    is_listed = sf.expr("kind <> 'log_dir' OR state <> 'ok'") if all_rows else is_finding(dialect)
    # The ranks of copies want this partitioning anyway. Here it keeps the code of the filter apart from the rest of the
    # table's: together they are one method, and one so long that the JVM would interpret it for every row.
    judged = own.table("joined").where(is_listed).repartition("cluster", "node", "topic", "partition")
    judgement = {"verdict": verdict(dialect), "evidence": evidence(dialect)}
    found = judged.withColumn("case_no", case_number(dialect)).withColumns(judgement)
    found.select("*", "disk.*").createOrReplaceTempView("found")
    own.sql(FINDINGS).write.mode("overwrite").parquet(path)


_KEYS = "topic, partition, node, cluster"

_DISKS = f"SELECT *, struct({', '.join(CARRIED)}) AS disk FROM observed"

_DESIRED = """
    SELECT *, xxhash64(topic, partition, node) AS hash FROM (
        SELECT s.cluster, s.node, r.topic, r.partition, coalesce(r.topic_id, '') AS wanted_topic_id,
               r.adding OR r.removing AS moving, r.in_sync AND r.isr_size = 1 AS only_in_sync,
               r.directory_id AS wanted_directory_id, s.complete
        FROM replicas r JOIN speaks s ON r.cluster = s.cluster AND r.node_id = s.node)
"""

_COPIES = f"""
    SELECT {_KEYS}, count(*) AS copies
    FROM observed LEFT SEMI JOIN (SELECT * FROM observed WHERE kind IN ('future', 'delete')) f USING ({_KEYS})
    WHERE kind = 'live' AND node >= 0
    GROUP BY {_KEYS}
"""

_LIVE = f"""
    SELECT *, CASE WHEN node >= 0 THEN count(*) OVER (PARTITION BY hash, {_KEYS}) ELSE 1 END AS copies
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
     AND o.kind IN ('future', 'delete')
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
"""The views to create, in this order; they want the same tables as :data:`reconciler.audit.join_sql.VIEWS`, and
``joined`` has the columns of CARRIED within ``disk``."""


_GROUP_COLUMN = "id"
_PATH_COLUMN = "path"


def list_trees(spark: SparkSession, trees: Sequence[str], sizes: bool, folder: str) -> list[str]:
    """List trees, here and now and only once; gives the paths of the inventories that were left.

    Args:
        spark: a running session.
        trees: log dirs, or folders of them, that the driver and all executors see.
        sizes: add up the files.
        folder: where inventories are left; the driver and all executors see it.
    """
    groups = grouped(by_broker(log_dirs_in(trees)).values(), spark.sparkContext.defaultParallelism * GROUPS_PER_CORE)
    task = partial(write_inventories, groups, sizes, folder)
    numbers = spark.range(0, len(groups), 1, len(groups))
    return [row[_PATH_COLUMN] for row in numbers.mapInArrow(task, f"{_PATH_COLUMN} string").collect()]


def write_inventories(
    groups: Sequence[LogDirs], sizes: bool, folder: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """List the groups that are numbered in the batches, each into a file of its own."""
    freeze_what_is_there()
    for batch in batches:
        paths = []
        for number in batch.column(_GROUP_COLUMN).to_pylist():
            # A task that Spark repeats must not meet what its first attempt left.
            paths.append(os.path.join(folder, f"{number}-{uuid.uuid4().hex}.parquet"))
            tables = (table for broker in groups[number].brokers for table in scanned(broker, sizes))
            with open(paths[-1], "wb") as out:
                write_inventory(tables, out, InventoryForm.PARQUET)
        yield pa.RecordBatch.from_pydict({_PATH_COLUMN: pa.array(paths, pa.string())})
