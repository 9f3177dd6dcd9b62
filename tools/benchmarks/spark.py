"""The contenders of the audit benchmark that run on Spark: ours, and the hand-written query in a session like ours.

Spark's start, the same for both, is timed apart. Over inventories both read Parquet where it lies; over trees the
hand-written way is the one people find first: Spark's own text reader on every ``partition.metadata``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tools.benchmarks import by_hand as bench_by_hand
from tools.benchmarks import data as bench_data
from tools.benchmarks.answer import FINDINGS_FILE, Answer, answer_of_result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2]"
MEMORY = "3g"
"""Heap of the JVM, in which driver and executors live."""

_TOPIC_ID = r"topic_id: (\S+)"
_PATH = r"/broker-(\d+)/[^/]+/([^/]+)-(\d+)/partition\.metadata$"


def spark(fleet: str, out: str) -> Answer:
    """Our audit of inventories."""

    def job(session: SparkSession) -> Answer:
        from reconciler.audit.spark import audit
        from reconciler.sources import load

        states = load(f"parquet:{bench_data.desired(fleet)}")
        return answer_of_result(
            audit(session, [], bench_data.inventories(fleet), states, out, now_ms=bench_data.NOW_MS)
        )

    return _timed(job)


def spark_by_hand(fleet: str, out: str) -> Answer:
    """The hand-written query over inventories."""

    def job(session: SparkSession) -> Answer:
        session.read.parquet(*bench_data.inventories(fleet)).createOrReplaceTempView("inventory")
        for table in ("replicas", "topics", "brokers"):
            path = f"{bench_data.desired(fleet)}/{table}.parquet"
            session.read.parquet(path).createOrReplaceTempView(table)
        engine = _Spark(session, os.path.join(out, FINDINGS_FILE))
        engine.view("registered", "SELECT node_id, explode(directory_ids) AS directory_id FROM brokers")
        return bench_by_hand.audit_by_hand(engine)

    return _timed(job)


def spark_trees(fleet: str, out: str) -> Answer:
    """Our audit of trees that the executors list."""

    def job(session: SparkSession) -> Answer:
        from reconciler.audit.spark import audit
        from reconciler.sources import load

        states = load(f"parquet:{bench_data.desired(fleet)}")
        found = answer_of_result(audit(session, [bench_data.trees(fleet)], [], states, out, now_ms=bench_data.NOW_MS))
        # The naive ways know no bytes, and their answers must be the same.
        return Answer({verdict: (rows, 0) for verdict, (rows, _) in found.totals.items()}, found.several_ids)

    return _timed(job)


def wholetext(fleet: str, out: str) -> Answer:
    """Spark's text reader on every ``partition.metadata``: it opens whole files and knows only what their paths say."""

    def job(session: SparkSession) -> Answer:
        from pyspark.sql import functions as sql

        files = session.read.text(f"{bench_data.trees(fleet)}/*/*/*/partition.metadata", wholetext=True)
        path = sql.input_file_name()
        seen = files.select(
            sql.regexp_extract(path, _PATH, 1).cast("int").alias("node_id"),
            sql.regexp_extract(path, _PATH, 2).alias("topic"),
            sql.regexp_extract(path, _PATH, 3).cast("int").alias("partition"),
            sql.regexp_extract("value", _TOPIC_ID, 1).alias("topic_id"),
        )
        ids = seen.groupBy("topic").agg(sql.min("topic_id").alias("first"), sql.max("topic_id").alias("last"))
        wanted = session.read.parquet(f"{bench_data.desired(fleet)}/replicas.parquet")
        wanted = wanted.select("node_id", "topic", "partition", sql.col("topic_id").alias("wanted_id"))
        joined = seen.join(wanted, ["node_id", "topic", "partition"], "full")
        verdict = (
            sql.when(sql.col("wanted_id").isNull(), "NOT_ASSIGNED")
            .when(sql.col("topic_id").isNull(), "MISSING")
            .when(sql.col("topic_id") == sql.col("wanted_id"), "OK")
            .otherwise("STALE_ID")
        )
        rows = joined.groupBy(verdict.alias("verdict")).count().collect()
        totals = {row["verdict"]: (row["count"], 0) for row in rows}
        return Answer(totals, ids.where("first <> last").count())

    return _timed(job)


class _Spark:
    """Spark for an audit by hand."""

    def __init__(self, session: SparkSession, findings: str) -> None:
        self._session = session
        self._findings = findings

    def view(self, name: str, sql: str) -> None:
        """Give a query a name."""
        self._session.sql(sql).createOrReplaceTempView(name)

    def keep(self, name: str, sql: str) -> None:
        """Keep the few rows of a query under a name."""
        self._session.createDataFrame(self._session.sql(sql).toArrow()).createOrReplaceTempView(name)

    def write(self, sql: str) -> None:
        """Write the findings to files, and give them the name ``findings``."""
        self._session.sql(sql).write.mode("overwrite").parquet(self._findings)
        self._session.read.parquet(self._findings).createOrReplaceTempView("findings")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return [tuple(row) for row in self._session.sql(sql).collect()]


def _timed(job: Callable[[SparkSession], Answer]) -> Answer:
    """Run a job in a session of its own, and say what each took."""
    from reconciler.audit.spark import open_session

    started = time.perf_counter()
    with open_session(MASTER, memory=MEMORY) as spark:
        ready = time.perf_counter()
        found = job(spark)
        done = time.perf_counter()
        return replace(found, session=ready - started, job=done - ready, jvm_peak=_peak_of_jvm(spark))


def _peak_of_jvm(session: SparkSession) -> int:
    """Resident bytes of the JVM at their highest; 0 where the system does not tell."""
    try:
        gateway: Any = session.sparkContext._gateway
        with open(f"/proc/{gateway.proc.pid}/status", encoding="ascii") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError):
        return 0
