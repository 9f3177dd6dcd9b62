"""Inventories, and the rows listed from trees beside them, joined with the metadata by Spark.

An inventory may have rows of any broker, and several may have rows of one, so all rows have to meet in one join.
Inventories and saved desired states are read where they lie. Unless OK rows are to be listed too, Spark first settles
what is plainly in order, which nearly everything is. The rest is judged by the driver's DuckDB where it is little, and
by Spark's join otherwise; either writes the findings as Parquet.

Spark takes about as long to plan a query as to run it on a million rows, so it is only asked questions that take many
machines to answer. The driver's DuckDB does the rest: it reads the rows of log dirs and internal directories, counts
the directories of each log dir, a second for 30 million, and adds up the findings; it passes over wanted replicas in
their files, but never holds a table of them, unless a metadata source other than a saved table had to be decoded into
one. What the verdicts of each broker rest on is noted there too, and an incremental audit gives the join only the
inventories of the brokers to judge; whatever concerns the whole fleet is asked of all rows and all findings.

Trees become inventories here, because the data source ``kafka_log_dirs`` would bring the same rows into Spark one by
one, only to have them written to disk. A task writes its inventory with Arrow, and only the path goes through Spark.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from logstore.log_dir import FallbackRecords
from logstore.rows import InventoryForm, write_inventory
from reconciler.audit.dimension_tables import DISKS, keep_log_dirs, keep_metadata, parquet_folder, register_wanted
from reconciler.audit.duckdb_join import judge_unsettled, keep_earlier, observe_settled
from reconciler.audit.incremental import files_to_judge, note_basis, read_basis
from reconciler.audit.spark.exchange import Exchange, clear_folder
from reconciler.audit.spark.join import find, rules, unsettled, unsettled_rows, unsettled_wanted
from reconciler.audit.spark.log_dirs import (
    GROUPS_PER_CORE,
    LogDirs,
    by_broker,
    cores,
    freeze_imports,
    group_brokers,
    log_dirs_in,
    scan_broker,
)
from reconciler.audit.spark.output import (
    AuditRequest,
    JudgedFleet,
    are_few,
    read_topics,
    write_kept,
    write_topics,
)
from reconciler.audit.spark.tables import (
    broker_frame,
    inventory_frame,
    make_observed,
    replica_files,
    replica_frame,
    rows_again,
)
from reconciler.desired import REPLICA_SCHEMA, by_cluster, registered_log_dirs, speaking

_SETTINGS = {
    # Topics are joined twice, and a million of them take about this much: cheaper to send than to shuffle replicas.
    "spark.sql.autoBroadcastJoinThreshold": "64MB",
    # Adaptive execution runs every shuffle as a job of its own, and plans anew what is left after each. What it could
    # learn is known here: which sides are small, and that the keys of the large join are spread evenly.
    "spark.sql.adaptive.enabled": "false",
    # Inventories are named one by one, and the driver looks at a thousand sooner than a job does.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
}

_GROUP_COLUMN = "id"
_PATH_COLUMN = "path"


def judge_inventories(
    own: SparkSession,
    small: duckdb.DuckDBPyConnection,
    ask: AuditRequest,
    inventories: Sequence[str],
    exchange: Exchange,
) -> JudgedFleet:
    """List the trees, judge their rows and those of the inventories, and write the findings.

    Args:
        own: a Spark session of this audit's own.
        small: the driver's DuckDB, in which the dimension tables are made.
        ask: the audit to make.
        inventories: paths of Parquet files in ROW_SCHEMA.
        exchange: the way of files to the executors and back; with trees, a folder that the driver and they see.

    Raises:
        RefusedError: the metadata does not fit the log dirs.
        UsageError: what the earlier audit left cannot be read.
    """
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    paths = [*inventories, *(list_trees(own, ask, exchange.folder) if ask.trees else [])]
    rows = inventory_frame(own, paths, ask.superseded, ask.now_ms, exchange.give)
    make_observed(small, paths, ask.superseded, ask.now_ms)
    brokers = keep_log_dirs(small)
    by_id = by_cluster(ask.states, {broker.cluster for broker in brokers})
    small.execute(f"CREATE TABLE disks AS {DISKS}")
    keep_metadata(small, by_id, speaking(by_id, brokers), registered_log_dirs(by_id))
    write_topics(small, by_id, ask.topics)
    files = replica_files(by_id, exchange.folder)
    register_wanted(small, "replicas", REPLICA_SCHEMA, files)
    kept = 0 if ask.contents is None else _keep(small, ask, paths)
    again = [path for path in files_to_judge(small) if path is not None] if kept else paths
    judged = rows
    if kept and again:
        judged = rows_again(own, small, inventory_frame(own, again, ask.superseded, ask.now_ms, exchange.give))
    is_settled = False
    if kept and not again:
        clear_folder(ask.findings)
    else:
        replicas = replica_frame(own, by_id, files, exchange.give)
        frames = {"replicas": replicas, "topics": read_topics(own, ask, exchange), "rows": judged}
        frames["brokers"] = broker_frame(own, small, some=kept > 0)
        is_settled = _judge(small, ask, frames, exchange) and not kept
    if is_settled:
        observe_settled(small)
    if kept:
        write_kept(small, ask.findings)
    basis = () if ask.contents is None else read_basis(small)
    return JudgedFleet(by_id, None if is_settled or are_few(small, "rows") else rows, kept, basis)


def _judge(
    small: duckdb.DuckDBPyConnection, ask: AuditRequest, frames: Mapping[str, DataFrame], exchange: Exchange
) -> bool:
    """Settle what is plainly in order, judge the rest, and write the findings; return whether the driver judged it.

    ``small``: the driver's DuckDB with all tables but those of ``frames``, which :func:`find` takes.
    """
    if ask.all_rows or not ask.states:
        _write_findings(find(frames, ask.all_rows), ask, exchange)
        return False
    tables, files = dict(frames), dict[str, str]()
    for name, leave in (("unsettled", unsettled), ("rows", unsettled_rows), ("wanted", unsettled_wanted)):
        # From the size of files Spark knows which side of a join is small.
        left, files[name] = leave(tables), os.path.join(exchange.folder, f"{name}.parquet")
        left.write.parquet(exchange.target(files[name]))
        tables[name] = left.sparkSession.read.schema(left.schema).parquet(exchange.give(files[name]))
    del tables["unsettled"]
    for name in ("rows", "wanted"):
        exchange.take(files[name])
    if not are_few(small, parquet_folder(files["rows"]), parquet_folder(files["wanted"])):
        _write_findings(find(tables, all_rows=False), ask, exchange)
        return False
    clear_folder(ask.findings)
    judge_unsettled(small, files["rows"], files["wanted"], os.path.join(ask.findings, "part-00000.parquet"))
    return True


def _write_findings(found: DataFrame, ask: AuditRequest, exchange: Exchange) -> None:
    found.write.mode("overwrite").parquet(exchange.target(ask.findings))
    exchange.take(ask.findings)


def _keep(small: duckdb.DuckDBPyConnection, ask: AuditRequest, paths: Sequence[str]) -> int:
    """Note what the verdicts rest on, and keep those of brokers that are as before; return how many brokers are."""
    contents = ask.contents or {}
    note_basis(small, {path: contents.get(path) for path in paths}, ask.superseded, rules(ask.all_rows))
    return 0 if ask.earlier is None else keep_earlier(small, ask.earlier, ask.now_ms)


def list_trees(spark: SparkSession, ask: AuditRequest, folder: str) -> list[str]:
    """List trees once, immediately, and return the paths of the inventories that the tasks wrote.

    Args:
        spark: a running session.
        ask: names the trees, and says whether to add up the files.
        folder: the folder for the inventories, which the driver and all executors see.
    """
    groups = group_brokers(by_broker(log_dirs_in(ask.trees)).values(), cores(spark) * GROUPS_PER_CORE)
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
