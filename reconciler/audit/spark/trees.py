"""The audit of a fleet's trees: executors judge what they list, and the driver adds up what they left.

One Spark job, without Spark's SQL: each task is one of :mod:`reconciler.audit.spark.trees`. Which brokers there are, and
whom the metadata speaks for, is decided here before the job, by the identities of the log dirs; that the tasks met the
same identities is made sure of afterwards. What they left is summed up by the driver's DuckDB, from small tables. Only
what asks for the directories of all brokers at once searches a row of each, and from :data:`SEARCHED_HERE` rows on
Spark does that.

What an executor does when a fleet's trees are audited: it lists brokers, and judges what it listed on the spot.

Everything that the join puts beside a directory (replicas wanted on its broker, the other log dirs of it, whether
metadata speaks for it) concerns one broker alone, and a task lists whole brokers. So a task can join its own rows
(:mod:`reconciler.audit.duckdb_join`), and no row of a replica has to travel. What it leaves are Parquet files: the
findings; how much lies on each broker; the rows about log dirs; and, of every directory with a topic ID, the few
columns that are asked for when the whole fleet is searched.

Executors import this package, which is installed there or given to spark-submit with ``--py-files``, and what its core
needs, DuckDB and Arrow above all, which must be installed there.
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

from logstore.rows import utf8
from reconciler.audit.dimension_tables import brokers_in, keep_metadata, parquet_files, quoted, rows_of
from reconciler.audit.duckdb_join import DesiredTables, configure, judge, look_over
from reconciler.audit.spark.log_dirs import (
    GROUPS_PER_CORE,
    LogDirs,
    by_broker,
    freeze_what_is_there,
    grouped,
    log_dirs_in,
    scanned,
)
from reconciler.audit.spark.output import AuditRequest, as_it_stands, leave_topics, register_topics, searched_by
from reconciler.desired import BrokerKey, SavedTable, Speaks, by_cluster, registered_log_dirs, speaking
from reconciler.errors import RefusedError

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

    from reconciler.audit.result import RunQuery
    from reconciler.desired import DesiredState


SEARCHED_HERE = 5_000_000
"""Directories up to which the driver searches the fleet itself: Spark would take longer to plan than that takes."""

_SEEN_LOG_DIRS = "SELECT log_dir, cluster, node FROM log_dirs WHERE kind = 'log_dir' AND (cluster <> '' OR node >= 0)"


def judged_where_they_lie(
    own: SparkSession, small: duckdb.DuckDBPyConnection, ask: AuditRequest, scratch: str
) -> tuple[dict[str, DesiredState], RunQuery]:
    """List and judge all that lies in trees, and leave the findings.

    Args:
        own: a Spark session of this audit's own.
        small: the driver's DuckDB; the small tables are made in it.
        ask: what is asked.
        scratch: a folder that the driver and all executors see.

    Returns:
        The desired states by cluster; and what searches the directories of the whole fleet.

    Raises:
        RefusedError: the metadata does not fit the log dirs, or those changed their identity meanwhile.
    """
    brokers = by_broker(log_dirs_in(ask.trees))
    known = [broker for broker in brokers if isinstance(broker, BrokerKey)]
    by_id = by_cluster(ask.states, {broker.cluster for broker in known})
    leave_topics(small, by_id, ask.topics)
    groups = grouped(brokers.values(), own.sparkContext.defaultParallelism * GROUPS_PER_CORE) or [LogDirs(())]
    wanted = {
        cluster: desired_tables_in_files(number, state, scratch)
        for number, (cluster, state) in enumerate(by_id.items())
    }
    task = TreeAuditTask(groups, wanted, speaking(by_id, known), scratch, ask.now_ms, ask.sizes, ask.all_rows)
    left = (
        own.sparkContext.parallelize(range(len(groups)), len(groups))
        .mapPartitions(partial(audit_groups, task))
        .collect()
    )
    for table in ("log_dirs", "disks"):
        small.execute(f"CREATE TABLE {table} AS FROM {parquet_files(*(getattr(each, table) for each in left))}")
    _refuse_changed_brokers(small, brokers)
    keep_metadata(small, by_id, speaking(by_id, brokers_in(small)), registered_log_dirs(by_id))
    _move_findings(left, ask.findings)
    return by_id, _search(own, small, ask, [each.observed for each in left])


def _search(
    own: SparkSession, small: duckdb.DuckDBPyConnection, ask: AuditRequest, observed: Sequence[str]
) -> RunQuery:
    """What searches the directories of the fleet: the driver, unless they are too many."""
    small.execute(f"CREATE VIEW observed AS FROM {parquet_files(*observed)}")
    if rows_of(small, "SELECT count(*) AS directories FROM observed")[0]["directories"] <= SEARCHED_HERE:
        return partial(rows_of, small)
    own.read.parquet(*map(as_it_stands, observed)).createOrReplaceTempView("observed")
    register_topics(own, ask)
    return searched_by(own, ask)


def desired_tables_in_files(number: int, state: DesiredState, scratch: str) -> DesiredTables:
    """A desired state in files, which executors read without the driver; a table that was saved is read where it is."""
    replicas, topics = (os.path.join(scratch, f"wanted-{name}-{number}.parquet") for name in ("replicas", "topics"))
    pq.write_table(state.topics, topics)
    if isinstance(state.replicas, SavedTable):
        return DesiredTables(os.path.abspath(state.replicas.path), topics)
    pq.write_table(state.replicas, replicas)
    return DesiredTables(replicas, topics)


def _refuse_changed_brokers(small: duckdb.DuckDBPyConnection, brokers: Mapping[BrokerKey | str, Sequence[str]]) -> None:
    """Make sure that no task met a log dir of another broker than it was taken for: two would judge for one broker."""
    taken_for = {utf8(log_dir): broker for broker, log_dirs in brokers.items() for log_dir in log_dirs}
    for row in rows_of(small, _SEEN_LOG_DIRS):
        found = BrokerKey(row["cluster"], row["node"])
        if taken_for.get(row["log_dir"]) not in (None, found):
            raise RefusedError(
                f"{row['log_dir']} came to belong to broker {found.node} of cluster {found.cluster} while the log dirs "
                "were listed: audit again"
            )


def _move_findings(left: Sequence[BatchFiles], findings: str) -> None:
    """Put the findings where they are looked for; what repeated tasks left besides stays in the scratch folder."""
    files = LocalFileSystem()
    if os.path.isdir(findings) and not os.path.islink(findings):
        files.delete_dir(findings)
    elif os.path.lexists(findings):
        files.delete_file(findings)
    files.create_dir(findings)
    for number, each in enumerate(left):
        files.move(each.findings, os.path.join(findings, f"part-{number:05}.parquet"))


BATCH_ROWS = 1 << 18
"""Rows from which on they are judged before the next broker is listed: what a task holds in memory."""

_MEMORY = "1GB"
"""What the join of one task may take before it spills: an executor runs one task for each of its cores."""

_SEARCHED = """
    SELECT cluster, node, kind, state, topic, partition, disk_topic_id FROM observed WHERE disk_topic_id <> ''
"""


class BatchFiles(NamedTuple):
    """The Parquet files that one batch left, by what they hold."""

    findings: str
    """In FINDING_SCHEMA."""
    observed: str
    """Every directory with a topic ID; of the columns of ``observed`` those that a search of the fleet reads."""
    log_dirs: str
    """Rows of the table of that name (:mod:`reconciler.audit.dimension_tables`)."""
    disks: str
    """Rows of the table of that name (:data:`reconciler.audit.result.DISKS`)."""


@dataclass(frozen=True, slots=True)
class TreeAuditTask:
    """What every executor is told."""

    groups: Sequence[LogDirs]
    """Whole brokers; what runs as one task lists one of them."""
    wanted: Mapping[str, DesiredTables]
    """The desired state by cluster ID, in files that all executors see."""
    speaks: Sequence[Speaks]
    """The brokers of the fleet that metadata speaks for."""
    folder: str
    """Where files are left; the driver and all executors see it."""
    now_ms: int
    sizes: bool
    all_rows: bool


def audit_groups(task: TreeAuditTask, numbers: Iterable[int]) -> Iterator[BatchFiles]:
    """List and judge the groups that are numbered; gives what each batch left, at least one batch for each group."""
    freeze_what_is_there()
    for number in numbers:
        for tables in _row_batches(task.groups[number], task.sizes):
            # A task that Spark repeats must not meet what its first attempt left.
            stem = os.path.join(task.folder, f"{number}-{uuid.uuid4().hex}")
            left = BatchFiles(*(f"{stem}-{name}.parquet" for name in BatchFiles._fields))
            judge_batch(task, tables, left)
            yield left


def _row_batches(group: LogDirs, sizes: bool) -> Iterator[list[pa.Table]]:
    """The rows of a group's brokers, so many at a time, and never those of one broker apart."""
    held: list[pa.Table] = []
    for position, broker in enumerate(group.brokers, 1):
        held.extend(scanned(broker, sizes))
        if sum(table.num_rows for table in held) >= BATCH_ROWS and position < len(group.brokers):
            yield held
            held = []
    yield held


def judge_batch(task: TreeAuditTask, tables: Sequence[pa.Table], left: BatchFiles) -> None:
    """Judge the rows of whole brokers, in ROW_SCHEMA, and leave the files."""
    with tempfile.TemporaryDirectory(prefix="logstore-audit-") as spill, duckdb.connect() as connection:
        configure(connection, spill, _MEMORY, threads=1)
        here = set(look_over(connection, tables, [], task.now_ms))
        keep_metadata(connection, task.wanted, [each for each in task.speaks if (each.cluster, each.node) in here])
        for name, path in (("log_dirs", left.log_dirs), ("disks", left.disks), (f"({_SEARCHED})", left.observed)):
            connection.execute(f"COPY (FROM {name}) TO {quoted(path)} (FORMAT parquet)")
        judge(connection, task.wanted, left.findings, task.all_rows)
