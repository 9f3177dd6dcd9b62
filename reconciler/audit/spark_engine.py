"""The audit of a fleet: Spark joins, on as many machines as it has.

Trees are listed by the executors (:mod:`reconciler.audit.spark_log_dirs`), once, into a scratch folder; inventories and
saved desired states are read where they lie. The join is that of :mod:`reconciler.audit.spark_joined`, the rest the
SQL that the embedded engine runs as well. The join runs once: it leaves the findings as Parquet, and totals and fleet
findings come from there. The driver sees totals, the rows that a report shows, and the rows of log dirs and internal
directories; never a table of replicas, unless a metadata source that is no saved table had to be decoded into one.

The output folder must be one that the driver and all executors see under the same path; the scratch folder lies in it.
Every audit has a Spark session of its own, so that two of them do not meet in their views.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from logstore.rows import ROW_SCHEMA
from reconciler.audit.findings import FINDING_SCHEMA, FINDINGS
from reconciler.audit.render import OK_CASES, case_number, evidence, verdict
from reconciler.audit.result import AuditResult
from reconciler.audit.spark_joined import VIEWS
from reconciler.audit.spark_log_dirs import GROUPS_PER_CORE, KafkaLogDirs
from reconciler.audit.spark_types import ddl
from reconciler.audit.summary import BROKERS, HOMES, conclude
from reconciler.desired import REPLICA_SCHEMA, TOPIC_SCHEMA, DesiredState
from reconciler.errors import RefusedError
from reconciler.saved_table import SavedTable
from reconciler.scope import Broker, by_cluster, registered, speaking

FINDINGS_FILE = "findings.parquet"
TOPICS_FILE = "topics.parquet"

_SETTINGS = {
    # Topics are joined twice, and a million of them take about this much: cheaper to send than to shuffle replicas.
    "spark.sql.autoBroadcastJoinThreshold": "64MB",
}

_GLOB = re.compile(r"[\\*?\[\]{}]")

_FEW = "kind IN ('log_dir', 'internal')"

_FOUND = """
    SELECT verdict, coalesce(cluster_id, '') AS cluster, coalesce(broker, -1) AS node, host, log_dir, directory_id,
           name, coalesce(kind, '') AS kind, log_dir IS NOT NULL AS on_disk, coalesce(topic, '') AS topic,
           coalesce(partition, -1) AS partition, coalesce(disk_topic_id, '') AS disk_topic_id, bytes, only_in_sync
    FROM findings
"""

_CLUSTER = pa.field("cluster", pa.string())
_SPEAKS = pa.schema([_CLUSTER, pa.field("node", pa.int32()), pa.field("complete", pa.bool_())])
_HOMES = pa.schema([_CLUSTER, pa.field("node", pa.int32()), pa.field("directory_id", pa.string())])


class SparkDialect:
    """Spark's columns, as the case table needs them; some columns may be known beforehand.

    A column that is known is a constant, and Spark's optimizer drops the cases that it rules out.
    """

    def __init__(self, **known: str | bool) -> None:
        self._known = known

    def column(self, name: str) -> Column:
        """A column of the relation."""
        return sf.lit(self._known[name]) if name in self._known else sf.col(name)

    def literal(self, value: str | int) -> Column:
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
        spark: a running session; but for the data source, which it knows afterwards, it is left as it was.
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
    path = os.path.join(os.path.abspath(folder), FINDINGS_FILE)
    try:
        with tempfile.TemporaryDirectory(prefix="logstore-audit-", dir=os.path.abspath(folder)) as scratch:
            paths = [*inventories, *([_listed(spark, trees, sizes, scratch)] if trees else [])]
            _register_rows(own, paths, now_ms)

            def query(sql: str) -> list[dict[str, Any]]:
                return [row.asDict() for row in own.sql(sql).collect()]

            brokers = [Broker(row["cluster"], row["node"]) for row in query(BROKERS)]
            by_id = by_cluster(states, {broker.cluster for broker in brokers})
            _register_local(own, "speaks", speaking(by_id, brokers), _SPEAKS)
            _register_local(own, "registered", registered(by_id), _HOMES)
            if previous is not None:
                _register_copy(own, "previous", pq.read_table(previous), scratch)
            _register_desired(own, by_id, folder, scratch)
            _judge(own, path, all_rows)
            return conclude(
                query,
                by_id,
                engine="spark",
                now_ms=now_ms,
                findings_path=path,
                with_previous=previous is not None,
            )
    except (PySparkException, Py4JError) as error:
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RefusedError(f"Spark did not finish the audit, and {folder} is incomplete: {first_line:.500}") from error


def _listed(spark: SparkSession, trees: Sequence[str], sizes: bool, scratch: str) -> str:
    """List trees, here and now and only once, into a folder of Parquet files; gives its path.

    In the session that was given and not in the audit's own: Spark lets a data source be used only where it was
    registered first, and refuses to register it a second time elsewhere.
    """
    spark.dataSource.register(KafkaLogDirs)
    path = os.path.join(scratch, "rows.parquet")
    groups = spark.sparkContext.defaultParallelism * GROUPS_PER_CORE
    options = {"paths": json.dumps(list(trees)), "sizes": str(sizes).lower(), "groups": str(groups)}
    spark.read.format(KafkaLogDirs.name()).options(**options).load().write.parquet(path)
    return path


def _register_rows(own: SparkSession, paths: Sequence[str], now_ms: int) -> None:
    """Make the views of what was observed, from Parquet files and folders in ROW_SCHEMA.

    The few rows about log dirs as a whole are fetched once: six queries ask for nothing else, and need not search all.
    """
    empty = own.createDataFrame(ROW_SCHEMA.empty_table())
    rows = own.read.schema(ddl(ROW_SCHEMA)).parquet(*map(_as_it_stands, paths)) if paths else empty
    few = own.createDataFrame(rows.where(_FEW).toArrow())
    rows.where(f"NOT {_FEW}").unionByName(few).createOrReplaceTempView("rows")
    own.sql(f"SELECT CAST({now_ms} AS BIGINT) AS now_ms").createOrReplaceTempView("clock")
    own.sql(VIEWS["observed"]).createOrReplaceTempView("observed")
    own.createDataFrame(own.sql(HOMES).toArrow()).createOrReplaceTempView("homes")


def _as_it_stands(path: str) -> str:
    """The path of a file for Spark, which would read one that looks like a glob as a glob."""
    return _GLOB.sub(r"\\\g<0>", path)


def _register_local(own: SparkSession, view: str, rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> None:
    """Make a view of a few rows. As Arrow they are a local relation, whose size Spark knows; as tuples it would not."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    own.createDataFrame(pa.Table.from_arrays(arrays, schema=schema)).createOrReplaceTempView(view)


def _register_copy(own: SparkSession, view: str, table: pa.Table, scratch: str) -> None:
    """Make a view of a table in the driver's memory by way of a file, which executors read without the driver."""
    path = os.path.join(scratch, f"{view}.parquet")
    pq.write_table(table, path)
    own.read.parquet(path).createOrReplaceTempView(view)


def _register_desired(own: SparkSession, states: Mapping[str, DesiredState], folder: str, scratch: str) -> None:
    topics = [_with_cluster(cluster, state.topics) for cluster, state in states.items()]
    schema = pa.schema([_CLUSTER, *TOPIC_SCHEMA])
    path = os.path.join(os.path.abspath(folder), TOPICS_FILE)
    pq.write_table(pa.concat_tables([schema.empty_table(), *topics]).drop_columns("partitions"), path)
    own.read.parquet(path).createOrReplaceTempView("topics")
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


def _with_cluster(cluster: str, table: pa.Table) -> pa.Table:
    return table.add_column(0, _CLUSTER, pa.repeat(pa.scalar(cluster, pa.string()), table.num_rows))


def _judge(own: SparkSession, path: str, all_rows: bool) -> None:
    """Join, judge, and leave the findings; then make the view ``found`` of what was left."""
    for name, text in VIEWS.items():
        own.sql(text).createOrReplaceTempView(name)
    dialect = SparkDialect()
    judged = own.table("joined").withColumn("case_no", _case_number())
    listed = "kind <> 'log_dir' OR state <> 'ok'" if all_rows else f"case_no NOT IN ({', '.join(map(str, OK_CASES))})"
    found = judged.where(listed).withColumns({"verdict": verdict(dialect), "evidence": evidence(dialect)})
    found.createOrReplaceTempView("found")
    own.sql(FINDINGS).write.mode("overwrite").parquet(path)
    own.read.schema(ddl(FINDING_SCHEMA)).parquet(path).createOrReplaceTempView("findings")
    own.sql(_FOUND).createOrReplaceTempView("found")


def _case_number() -> Column:
    """The case table, with the cases that can apply to live directories, nearly all of the rows, apart."""
    kind = sf.col("kind")
    live = case_number(SparkDialect(kind="live", on_disk=True))
    missing = case_number(SparkDialect(kind="", on_disk=False))
    expression: Column = sf.when(kind == "live", live).when(kind == "", missing).otherwise(case_number(SparkDialect()))
    return expression
