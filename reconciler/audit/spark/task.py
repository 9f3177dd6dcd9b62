"""What an executor does when a fleet's trees are audited: it lists brokers, and judges what it listed on the spot.

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
from typing import NamedTuple

import duckdb
import pyarrow as pa

from reconciler.audit.duckdb_join import Wanted, configure, judge, look_over
from reconciler.audit.small_tables import keep_metadata, quoted
from reconciler.audit.spark.log_dirs import LogDirs, freeze_what_is_there, scanned
from reconciler.desired import Speaks

BATCH_ROWS = 1 << 18
"""Rows from which on they are judged before the next broker is listed: what a task holds in memory."""

_MEMORY = "1GB"
"""What the join of one task may take before it spills: an executor runs one task for each of its cores."""

_SEARCHED = """
    SELECT cluster, node, kind, state, topic, partition, disk_topic_id FROM observed WHERE disk_topic_id <> ''
"""


class Left(NamedTuple):
    """The Parquet files that one batch left, by what they hold."""

    findings: str
    """In FINDING_SCHEMA."""
    observed: str
    """Every directory with a topic ID; of the columns of ``observed`` those that a search of the fleet reads."""
    log_dirs: str
    """Rows of the table of that name (:mod:`reconciler.audit.small_tables`)."""
    disks: str
    """Rows of the table of that name (:data:`reconciler.audit.summary.DISKS`)."""


@dataclass(frozen=True, slots=True)
class Task:
    """What every executor is told."""

    groups: Sequence[LogDirs]
    """Whole brokers; what runs as one task lists one of them."""
    wanted: Mapping[str, Wanted]
    """The desired state by cluster ID, in files that all executors see."""
    speaks: Sequence[Speaks]
    """The brokers of the fleet that metadata speaks for."""
    folder: str
    """Where files are left; the driver and all executors see it."""
    now_ms: int
    sizes: bool
    all_rows: bool


def run(task: Task, numbers: Iterable[int]) -> Iterator[Left]:
    """List and judge the groups that are numbered; gives what each batch left, at least one batch for each group."""
    freeze_what_is_there()
    for number in numbers:
        for tables in _batches(task.groups[number], task.sizes):
            # A task that Spark repeats must not meet what its first attempt left.
            stem = os.path.join(task.folder, f"{number}-{uuid.uuid4().hex}")
            left = Left(*(f"{stem}-{name}.parquet" for name in Left._fields))
            leave(task, tables, left)
            yield left


def _batches(group: LogDirs, sizes: bool) -> Iterator[list[pa.Table]]:
    """The rows of a group's brokers, so many at a time, and never those of one broker apart."""
    held: list[pa.Table] = []
    for position, broker in enumerate(group.brokers, 1):
        held.extend(scanned(broker, sizes))
        if sum(table.num_rows for table in held) >= BATCH_ROWS and position < len(group.brokers):
            yield held
            held = []
    yield held


def leave(task: Task, tables: Sequence[pa.Table], left: Left) -> None:
    """Judge the rows of whole brokers, in ROW_SCHEMA, and leave the files."""
    with tempfile.TemporaryDirectory(prefix="logstore-audit-") as spill, duckdb.connect() as connection:
        configure(connection, spill, _MEMORY, threads=1)
        here = set(look_over(connection, tables, [], task.now_ms))
        keep_metadata(connection, task.wanted, [each for each in task.speaks if (each.cluster, each.node) in here])
        for name, path in (("log_dirs", left.log_dirs), ("disks", left.disks), (f"({_SEARCHED})", left.observed)):
            connection.execute(f"COPY (FROM {name}) TO {quoted(path)} (FORMAT parquet)")
        judge(connection, task.wanted, left.findings, task.all_rows)
