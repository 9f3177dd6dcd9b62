"""The audit of a fleet's trees: executors judge what they list, and the driver adds up what they left.

One Spark job, without Spark's SQL: each task is one of :mod:`reconciler.audit.spark.task`. Which brokers there are, and
whom the metadata speaks for, is decided here before the job, by the identities of the log dirs; that the tasks met the
same identities is made sure of afterwards. What they left is summed up by the driver's DuckDB, from small tables. Only
what asks for the directories of all brokers at once searches a row of each, and from :data:`SEARCHED_HERE` rows on
Spark does that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from logstore.rows import utf8
from reconciler.audit.duckdb_join import Wanted
from reconciler.audit.small_tables import brokers_in, keep_metadata, parquet_files, rows_of
from reconciler.audit.spark.log_dirs import GROUPS_PER_CORE, LogDirs, by_broker, grouped, log_dirs_in
from reconciler.audit.spark.output import Ask, as_it_stands, leave_topics, register_topics, searched_by
from reconciler.audit.spark.task import Left, Task, run
from reconciler.desired import BrokerKey, SavedTable, by_cluster, registered_log_dirs, speaking
from reconciler.errors import RefusedError

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

    from reconciler.audit.summary import Query
    from reconciler.desired import DesiredState

SEARCHED_HERE = 5_000_000
"""Directories up to which the driver searches the fleet itself: Spark would take longer to plan than that takes."""

_SEEN = "SELECT log_dir, cluster, node FROM log_dirs WHERE kind = 'log_dir' AND (cluster <> '' OR node >= 0)"


def judged_where_they_lie(
    own: SparkSession, small: duckdb.DuckDBPyConnection, ask: Ask, scratch: str
) -> tuple[dict[str, DesiredState], Query]:
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
    wanted = {cluster: in_files(number, state, scratch) for number, (cluster, state) in enumerate(by_id.items())}
    task = Task(groups, wanted, speaking(by_id, known), scratch, ask.now_ms, ask.sizes, ask.all_rows)
    left = own.sparkContext.parallelize(range(len(groups)), len(groups)).mapPartitions(partial(run, task)).collect()
    for table in ("log_dirs", "disks"):
        small.execute(f"CREATE TABLE {table} AS FROM {parquet_files(*(getattr(each, table) for each in left))}")
    _make_sure(small, brokers)
    keep_metadata(small, by_id, speaking(by_id, brokers_in(small)), registered_log_dirs(by_id))
    _settle(left, ask.findings)
    return by_id, _search(own, small, ask, [each.observed for each in left])


def _search(own: SparkSession, small: duckdb.DuckDBPyConnection, ask: Ask, observed: Sequence[str]) -> Query:
    """What searches the directories of the fleet: the driver, unless they are too many."""
    small.execute(f"CREATE VIEW observed AS FROM {parquet_files(*observed)}")
    if rows_of(small, "SELECT count(*) AS directories FROM observed")[0]["directories"] <= SEARCHED_HERE:
        return partial(rows_of, small)
    own.read.parquet(*map(as_it_stands, observed)).createOrReplaceTempView("observed")
    register_topics(own, ask)
    return searched_by(own, ask)


def in_files(number: int, state: DesiredState, scratch: str) -> Wanted:
    """A desired state in files, which executors read without the driver; a table that was saved is read where it is."""
    replicas, topics = (os.path.join(scratch, f"wanted-{name}-{number}.parquet") for name in ("replicas", "topics"))
    pq.write_table(state.topics, topics)
    if isinstance(state.replicas, SavedTable):
        return Wanted(os.path.abspath(state.replicas.path), topics)
    pq.write_table(state.replicas, replicas)
    return Wanted(replicas, topics)


def _make_sure(small: duckdb.DuckDBPyConnection, brokers: Mapping[BrokerKey | str, Sequence[str]]) -> None:
    """Make sure that no task met a log dir of another broker than it was taken for: two would judge for one broker."""
    taken_for = {utf8(log_dir): broker for broker, log_dirs in brokers.items() for log_dir in log_dirs}
    for row in rows_of(small, _SEEN):
        found = BrokerKey(row["cluster"], row["node"])
        if taken_for.get(row["log_dir"]) not in (None, found):
            raise RefusedError(
                f"{row['log_dir']} came to belong to broker {found.node} of cluster {found.cluster} while the log dirs "
                "were listed: audit again"
            )


def _settle(left: Sequence[Left], findings: str) -> None:
    """Put the findings where they are looked for; what repeated tasks left besides stays in the scratch folder."""
    files = LocalFileSystem()
    if os.path.isdir(findings) and not os.path.islink(findings):
        files.delete_dir(findings)
    elif os.path.lexists(findings):
        files.delete_file(findings)
    files.create_dir(findings)
    for number, each in enumerate(left):
        files.move(each.findings, os.path.join(findings, f"part-{number:05}.parquet"))
