"""The audit of a fleet's trees: executors judge the rows that they list, and the driver adds up their answers.

One Spark job, without Spark's SQL unless it runs over Spark Connect. A task lists whole brokers. Everything that the
join puts beside a directory (replicas wanted on its broker, the other log dirs of the broker, whether metadata speaks
for it) concerns one broker alone, so a task can join its own rows (:mod:`reconciler.audit.duckdb_join`), and no row of
a replica has to travel. A task writes Parquet files: the findings; how much lies on each broker; the rows about log
dirs; and, of every directory with a topic ID, the few columns that a search of the whole fleet reads.

The driver decides before the job, by the identities of the log dirs, which brokers there are and for which of them the
metadata speaks; afterwards it checks that the tasks met the same identities. Its DuckDB sums up the answers, from small
tables. Only a search of the directories of all brokers at once reads a row for each, and Spark does it
where they are many (:func:`reconciler.audit.spark.output.are_few`).

Executors import this package, which is installed there or given to spark-submit with ``--py-files``, and the
dependencies of its core, DuckDB and Arrow above all, which must be installed there.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem
from pyspark.sql.utils import is_remote

from logstore.log_dir import FallbackRecords
from logstore.rows import utf8
from reconciler.audit.dimension_tables import (
    DesiredTables,
    brokers_in,
    keep_metadata,
    parquet_files,
    quoted,
    register_desired,
    rows_of,
)
from reconciler.audit.duckdb_join import configure, judge, make_observed
from reconciler.audit.incremental import just_scanned
from reconciler.audit.spark.exchange import clear_folder, escape_glob
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
    write_topics,
)
from reconciler.desired import BrokerKey, JudgedBroker, SavedTable, by_cluster, registered_log_dirs, speaking
from reconciler.errors import RefusedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.desired import DesiredState


_SEEN_LOG_DIRS = "SELECT log_dir, cluster, node FROM log_dirs WHERE kind = 'log_dir' AND (cluster <> '' OR node >= 0)"


def judge_trees(own: SparkSession, small: duckdb.DuckDBPyConnection, ask: AuditRequest, scratch: str) -> JudgedFleet:
    """List and judge all that lies in trees, and write the findings.

    ``own``: a Spark session of this audit's own; ``small``: the driver's DuckDB, in which the dimension tables are
    made; ``scratch``: a folder that the driver and all executors see.

    Raises:
        RefusedError: the metadata does not fit the log dirs, or a log dir changed its identity meanwhile.
    """
    brokers = by_broker(log_dirs_in(ask.trees))
    known = [broker for broker in brokers if isinstance(broker, BrokerKey)]
    by_id = by_cluster(ask.states, {broker.cluster for broker in known})
    write_topics(small, by_id, ask.topics)
    groups = group_brokers(brokers.values(), cores(own) * GROUPS_PER_CORE) or [LogDirs(())]
    wanted = {
        cluster: desired_tables_in_files(number, state, scratch)
        for number, (cluster, state) in enumerate(by_id.items())
    }
    how = (ask.now_ms, ask.sizes, ask.all_rows, ask.fallback)
    task = TreeAuditTask(groups, wanted, speaking(by_id, known), scratch, *how)
    left = _run(own, task)
    for table in ("log_dirs", "disks"):
        small.execute(f"CREATE TABLE {table} AS FROM {parquet_files(*(getattr(each, table) for each in left))}")
    _refuse_changed_brokers(small, brokers)
    keep_metadata(small, by_id, speaking(by_id, brokers_in(small)), registered_log_dirs(by_id))
    _move_findings(left, ask.findings)
    rows = _rows(own, small, [each.rows for each in left])
    return JudgedFleet(by_id, rows, 0, () if ask.contents is None else just_scanned(brokers_in(small)))


def _run(own: SparkSession, task: TreeAuditTask) -> list[BatchFiles]:
    """Let executors do the task, one group each, and return the files that they left."""
    many = len(task.groups)
    if is_remote():  # where there are no RDDs; elsewhere they spare the start of Spark's SQL
        columns = ", ".join(f"{name} string" for name in BatchFiles._fields)
        numbers = own.range(0, many, 1, many)
        return [BatchFiles(*row) for row in numbers.mapInArrow(partial(audit_in_arrow, task), columns).collect()]
    context = own.sparkContext
    return list(context.parallelize(range(many), many).mapPartitions(partial(audit_groups, task)).collect())


def audit_in_arrow(task: TreeAuditTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do as :func:`audit_groups`, for numbers in the first column of batches, and yield the paths of the files."""
    numbers = (number for batch in batches for number in batch.column(0).to_pylist())
    for left in audit_groups(task, numbers):
        yield pa.RecordBatch.from_pylist(
            [left._asdict()], schema=pa.schema([(name, pa.string()) for name in left._fields])
        )


def _rows(own: SparkSession, small: duckdb.DuckDBPyConnection, files: Sequence[str]) -> DataFrame | None:
    """Make the view ``rows`` in the driver's DuckDB; where that is too much for it, return the rows in Spark."""
    small.execute(f"CREATE VIEW rows AS FROM {parquet_files(*files)}")
    return None if are_few(small, "rows") else own.read.parquet(*map(escape_glob, files))


def desired_tables_in_files(number: int, state: DesiredState, scratch: str) -> DesiredTables:
    """Write a desired state to files, which executors read without the driver; a saved table is read where it is."""
    replicas, topics = (os.path.join(scratch, f"wanted-{name}-{number}.parquet") for name in ("replicas", "topics"))
    pq.write_table(state.topics, topics)
    if isinstance(state.replicas, SavedTable):
        return DesiredTables(os.path.abspath(state.replicas.path), topics)
    pq.write_table(state.replicas, replicas)
    return DesiredTables(replicas, topics)


def _refuse_changed_brokers(small: duckdb.DuckDBPyConnection, brokers: Mapping[BrokerKey | str, Sequence[str]]) -> None:
    """Refuse a log dir that a task met under another broker than the driver did: two tasks would judge one broker."""
    taken_for = {utf8(log_dir): broker for broker, log_dirs in brokers.items() for log_dir in log_dirs}
    for row in rows_of(small, _SEEN_LOG_DIRS):
        found = BrokerKey(row["cluster"], row["node"])
        if taken_for.get(row["log_dir"]) not in (None, found):
            raise RefusedError(
                f"{row['log_dir']} came to belong to broker {found.node} of cluster {found.cluster} while the log dirs "
                "were listed: audit again"
            )


def _move_findings(left: Sequence[BatchFiles], findings: str) -> None:
    """Move the findings to the output folder; further files of repeated tasks stay in the scratch folder."""
    clear_folder(findings)
    files = LocalFileSystem()
    for number, each in enumerate(left):
        files.move(each.findings, os.path.join(findings, f"part-{number:05}.parquet"))


BATCH_ROWS = 1 << 18
"""A task that holds this many rows in memory judges them before it lists the next broker."""

_MEMORY = "1GB"
"""Memory of one task's join before it spills; an executor runs one task on each of its cores."""

_SEARCHED = """
    SELECT cluster_id, node_id, kind, metadata_state, topic, partition, topic_id FROM rows WHERE topic_id <> ''
"""


class BatchFiles(NamedTuple):
    """The Parquet files of one batch, by their content."""

    findings: str
    """In FINDING_SCHEMA."""
    rows: str
    """Every directory with a topic ID, with the columns of ``rows`` that a search of the fleet reads."""
    log_dirs: str
    """Rows of the table ``log_dirs`` (:mod:`reconciler.audit.dimension_tables`)."""
    disks: str
    """Rows of the table ``disks`` (:data:`reconciler.audit.dimension_tables.DISKS`)."""


@dataclass(frozen=True, slots=True)
class TreeAuditTask:
    """The parameters that every executor gets."""

    groups: Sequence[LogDirs]
    """Groups of whole brokers; one task lists one group."""
    wanted: Mapping[str, DesiredTables]
    """The desired state by cluster ID, in files that all executors see."""
    speaks: Sequence[JudgedBroker]
    """The brokers of the fleet that metadata speaks for."""
    folder: str
    """The folder for the files, which the driver and all executors see."""
    now_ms: int
    sizes: bool
    all_rows: bool
    fallback: FallbackRecords | None


def audit_groups(task: TreeAuditTask, numbers: Iterable[int]) -> Iterator[BatchFiles]:
    """List and judge the numbered groups; yield the files of each batch, at least one batch for each group."""
    freeze_imports()
    for number in numbers:
        for tables in _row_batches(task, task.groups[number]):
            # A task that Spark repeats must not meet the files of its first attempt.
            stem = os.path.join(task.folder, f"{number}-{uuid.uuid4().hex}")
            left = BatchFiles(*(f"{stem}-{name}.parquet" for name in BatchFiles._fields))
            judge_batch(task, tables, left)
            yield left


def _row_batches(task: TreeAuditTask, group: LogDirs) -> Iterator[list[pa.Table]]:
    """Yield the rows of a group's brokers in batches; all rows of a broker are in one batch."""
    held: list[pa.Table] = []
    for position, broker in enumerate(group.brokers, 1):
        held.extend(scan_broker(broker, task.sizes, task.fallback))
        if sum(table.num_rows for table in held) >= BATCH_ROWS and position < len(group.brokers):
            yield held
            held = []
    yield held


def judge_batch(task: TreeAuditTask, tables: Sequence[pa.Table], left: BatchFiles) -> None:
    """Judge the rows of whole brokers, in ROW_SCHEMA, and write the files."""
    with tempfile.TemporaryDirectory(prefix="logstore-audit-") as spill, duckdb.connect() as connection:
        configure(connection, spill, _MEMORY, threads=1)
        here = set(make_observed(connection, tables, [], task.now_ms))
        keep_metadata(connection, task.wanted, [each for each in task.speaks if (each.cluster, each.node) in here])
        for name, path in (("log_dirs", left.log_dirs), ("disks", left.disks), (f"({_SEARCHED})", left.rows)):
            connection.execute(f"COPY (FROM {name}) TO {quoted(path)} (FORMAT parquet)")
        register_desired(connection, task.wanted)
        judge(connection, left.findings, task.all_rows)
