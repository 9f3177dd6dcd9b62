"""Appends the result of an audit to a history: all of it, or nothing that is read.

The files are written and synced under a temporary suffix first, and renamed when all are whole, the totals last.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from logstore import InventoryStoreError, LogStoreError
from logstore.fs import TEMPORARY, Directory, Disk, make_directory, remove_file
from logstore.rows import is_uri, put, remove_uri
from reconciler.audit import FINDING_SCHEMA, AuditResult
from reconciler.desired import BrokerKey
from reconciler.errors import HistoryError
from reconciler.history.tables import (
    BROKERS,
    FINDINGS,
    FLEET,
    OF_RUN,
    SCHEMAS,
    SUFFIX,
    TABLES,
    TOPICS,
    TOTALS,
    Run,
    new_run_id,
)

_ROWS_OF_A_GROUP = 1 << 14

_FINDINGS = """
    SELECT f.*, CAST(? AS VARCHAR) AS run_id, CAST(? AS BIGINT) AS audited_ms,
           coalesce(l.scanned_ms, b.scanned_ms) AS scanned_ms
    FROM found f
    LEFT JOIN (SELECT cluster, node, log_dir, min(scanned_ms) AS scanned_ms FROM log_dirs GROUP BY ALL) l
           ON l.cluster = coalesce(f.cluster_id, '') AND l.node = coalesce(f.broker, -1) AND l.log_dir = f.log_dir
    LEFT JOIN (SELECT cluster, node, min(scanned_ms) AS scanned_ms FROM log_dirs GROUP BY ALL) b
           ON b.cluster = coalesce(f.cluster_id, '') AND b.node = coalesce(f.broker, -1) AND f.log_dir IS NULL
    ORDER BY f.topic NULLS FIRST, f.partition, f.broker
"""
"""The findings, each with the scan of its log dir; what lies on no disk rests on the oldest scan of its broker."""

_LOG_DIRS = pa.schema(
    [("cluster", pa.string()), ("node", pa.int32()), ("log_dir", pa.string()), ("scanned_ms", pa.int64())]
)


def append_run(folder: str, result: AuditResult, topics_path: str, disk: Disk | None = None) -> Run:
    """Add a run to a history, which is made where there is none.

    Args:
        folder: the history, a folder or a URI.
        result: the audit; its findings are read from its own file.
        topics_path: the ``topics.parquet`` that it left.
        disk: the seam for changes of a folder.

    Raises:
        HistoryError: the folder cannot be written; nothing of the run is read.
    """
    disk = disk or Disk()
    run = Run(new_run_id(result.audited_ms, disk.unique()), folder)
    if is_uri(folder):
        _append_at_uri(run, result, topics_path)
        return run
    name = run.run_id + SUFFIX
    try:
        with ExitStack() as stack:
            days = {table: _open_day(stack, disk, run, table) for table in TABLES}
            try:
                _write(result, topics_path, run, {table: day.path_of(name + TEMPORARY) for table, day in days.items()})
                for day in days.values():
                    _sync(disk, day, name + TEMPORARY)
                for day in days.values():
                    disk.rename(day.descriptor, name + TEMPORARY, day.descriptor, name)
                    disk.sync(day.descriptor)
            except BaseException:
                for table in reversed(TABLES):
                    for left in (name, name + TEMPORARY):
                        with suppress(OSError):
                            remove_file(disk, days[table], left, durable=False)
                raise
    except (OSError, LogStoreError, duckdb.Error, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).splitlines()[0]
        raise _not_added(folder, reason, "make room or name another folder") from error
    return run


def _append_at_uri(run: Run, result: AuditResult, topics_path: str) -> None:
    """Put the files of a run into a store, the totals last; where one is refused, remove the others.

    Raises:
        HistoryError: one cannot be put there; nothing of the run is read.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="logstore-history-") as folder:
            paths = {table: os.path.join(folder, table + SUFFIX) for table in TABLES}
            _write(result, topics_path, run, paths)
            try:
                for table in TABLES:
                    put(paths[table], run.path(table))
            except BaseException:
                for table in reversed(TABLES):
                    with suppress(InventoryStoreError):
                        remove_uri(run.path(table))
                raise
    except (OSError, LogStoreError, duckdb.Error, pa.ArrowException) as error:
        raise _not_added(run.folder, str(error).splitlines()[0], "see to that or name another place") from error


def _not_added(folder: str, reason: str, cure: str) -> HistoryError:
    return HistoryError(f"--history {folder}: the run was not added: {reason:.200}; {cure}, and audit again")


def _open_day(stack: ExitStack, disk: Disk, run: Run, table: str) -> Directory:
    """Open the folder of a run's day in one table, and make what is not there of the way."""
    path = os.path.abspath(run.folder)
    opened = stack.enter_context(Directory.open(os.path.dirname(path)))
    if not os.path.isdir(path):
        opened = stack.enter_context(make_directory(disk, opened, os.path.basename(path)))
    else:
        opened = stack.enter_context(Directory.open(path))
    for name in (table, f"day={run.day}"):
        opened = stack.enter_context(make_directory(disk, opened, name))
    return opened


def _sync(disk: Disk, day: Directory, name: str) -> None:
    descriptor = disk.open_to_change(day.descriptor, name)
    try:
        disk.sync(descriptor)
    finally:
        os.close(descriptor)


def _write(result: AuditResult, topics_path: str, run: Run, paths: Mapping[str, str]) -> None:
    """Write the rows of a run, each table to its path."""
    oldest: dict[str, int] = {}
    of_brokers: dict[BrokerKey, int] = {}
    for cluster, node, _, scanned_ms in result.scans:
        if scanned_ms is not None:
            oldest[cluster] = min(scanned_ms, oldest.get(cluster, scanned_ms))
            broker = BrokerKey(cluster, node)
            of_brokers[broker] = min(scanned_ms, of_brokers.get(broker, scanned_ms))
    of_run = (run.run_id, result.audited_ms)
    totals = [
        {
            "verdict": verdict,
            "rows": rows,
            "bytes": result.bytes.get(verdict),
            "disk_bytes": result.disk_bytes.get(verdict),
            "in_doubt": result.doubts.get(verdict, 0),
            **dict(zip(_NAMES, (*of_run, min(oldest.values(), default=None)), strict=True)),
        }
        for verdict, rows in result.totals.items()
    ]
    topics = pq.ParquetFile(topics_path).read(["cluster", "topic", "topic_id"])
    scanned = pa.array([oldest.get(cluster) for cluster in topics.column("cluster").to_pylist()], pa.int64())
    for name, column in zip(_NAMES, (*(pa.repeat(value, topics.num_rows) for value in of_run), scanned), strict=True):
        topics = topics.append_column(name, column)
    fleet = [
        each.as_row() | dict(zip(_NAMES, (*of_run, oldest.get(each.cluster_id or "")), strict=True))
        for each in result.fleet
    ]
    brokers = [
        asdict(each) | dict(zip(_NAMES, (*of_run, of_brokers.get(BrokerKey(each.cluster, each.node))), strict=True))
        for each in result.basis
    ]
    with tempfile.TemporaryDirectory(prefix="logstore-history-") as spill, duckdb.connect() as connection:
        connection.execute("SET temp_directory = ?", [spill])
        connection.register("log_dirs", pa.Table.from_pylist([scan._asdict() for scan in result.scans], _LOG_DIRS))
        connection.register("found", pa.RecordBatchReader.from_batches(FINDING_SCHEMA, result.batches()))
        batches = connection.sql(_FINDINGS, params=list(of_run)).to_arrow_reader(_ROWS_OF_A_GROUP)
        _write_table(FINDINGS, (pa.Table.from_batches([batch]) for batch in batches), paths[FINDINGS])
    _write_table(TOPICS, [topics.sort_by("topic")], paths[TOPICS])
    _write_table(BROKERS, [pa.Table.from_pylist(brokers, SCHEMAS[BROKERS])], paths[BROKERS])
    _write_table(FLEET, [pa.Table.from_pylist(fleet, SCHEMAS[FLEET])], paths[FLEET])
    _write_table(TOTALS, [pa.Table.from_pylist(totals, SCHEMAS[TOTALS])], paths[TOTALS])


_NAMES = [field.name for field in OF_RUN]


def _write_table(table: str, rows: Iterable[pa.Table], path: str) -> None:
    schema = SCHEMAS[table]
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for piece in rows:
            writer.write_table(piece.select(schema.names).cast(schema), _ROWS_OF_A_GROUP)
