"""The audit on one machine: DuckDB joins, no JVM, and a disk to spill to.

Rows come from trees that were just scanned and from Parquet inventories, the desired state from tables in memory or,
when it was saved, from its file.
DuckDB is given the views of :mod:`reconciler.audit.joined` and the case table as one CASE expression; it leaves the
findings as a Parquet file and hands back totals.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa

from logstore.rows import ROW_SCHEMA
from reconciler.audit.findings import FINDINGS
from reconciler.audit.joined import VIEWS, joined
from reconciler.audit.render import case_number, evidence, is_finding, is_worth_a_look, verdict
from reconciler.audit.result import AuditResult
from reconciler.audit.small_tables import keep_log_dirs, keep_metadata, parquet_files, quoted, rows_of
from reconciler.audit.summary import DISKS, conclude
from reconciler.desired import REPLICA_SCHEMA, TOPIC_SCHEMA, DesiredState
from reconciler.errors import UsageError
from reconciler.saved_table import SavedTable
from reconciler.scope import by_cluster

FINDINGS_FILE = "findings.parquet"
TOPICS_FILE = "topics.parquet"


class DuckDialect:
    """DuckDB's expressions, as the case table needs them."""

    def column(self, name: str) -> Any:
        """A column of the relation."""
        return duckdb.ColumnExpression(name)

    def literal(self, value: str | int | bool) -> Any:
        """A constant."""
        return duckdb.ConstantExpression(value)

    def choose(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        """CASE WHEN … ELSE …."""
        (condition, value), *rest = branches
        expression = duckdb.CaseExpression(condition, value)
        for condition, value in rest:
            expression = expression.when(condition, value)
        return expression.otherwise(otherwise)

    def concat(self, parts: Sequence[Any]) -> Any:
        """The parts as one text."""
        return duckdb.FunctionExpression("concat", *parts)


def audit(
    tables: Sequence[pa.Table],
    inventories: Sequence[str],
    states: Sequence[DesiredState],
    folder: str,
    *,
    now_ms: int,
    all_rows: bool = False,
    previous: str | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> AuditResult:
    """Compare rows with the desired state and leave the findings in a folder.

    Args:
        tables: rows of scans, each in ROW_SCHEMA.
        inventories: paths of Parquet files in ROW_SCHEMA.
        states: what the metadata sources said; none means that only fleet findings can be made.
        folder: an existing folder; ``findings.parquet`` and ``topics.parquet`` are written there.
        now_ms: the time of the audit, ms since 1970; decides what is due.
        all_rows: list the OK rows as well.
        previous: ``topics.parquet`` of an earlier audit, to find topics whose ID changed.
        memory_limit: as DuckDB writes it, for example ``4GB``; what needs more goes to disk.
        threads: at most this many; None leaves it to DuckDB.

    Raises:
        RefusedError: the metadata does not fit the log dirs; see :func:`reconciler.scope.by_cluster`.
        UsageError: the folder holds what an audit by Spark left.
    """
    with tempfile.TemporaryDirectory(prefix="logstore-audit-") as spill, duckdb.connect() as connection:
        _configure(connection, spill, memory_limit, threads)
        _register_rows(connection, tables, inventories, now_ms)
        brokers = keep_log_dirs(connection)
        by_id = by_cluster(states, {broker.cluster for broker in brokers})
        connection.execute(f"CREATE TABLE disks AS {DISKS}")
        keep_metadata(connection, by_id, brokers)
        observed = f"SELECT * REPLACE (CAST(cluster AS clusters) AS cluster) FROM ({VIEWS['observed']})"
        connection.execute(f"CREATE OR REPLACE VIEW observed AS {observed}")
        _register_desired(connection, by_id)
        findings_path = _judge(connection, folder, all_rows)
        _leave_topics(connection, folder, previous)
        return conclude(
            partial(rows_of, connection),
            by_id,
            engine="embedded",
            now_ms=now_ms,
            findings_path=findings_path,
            with_previous=previous is not None,
        )


def _configure(
    connection: duckdb.DuckDBPyConnection, spill: str, memory_limit: str | None, threads: int | None
) -> None:
    connection.execute("SET temp_directory = ?", [spill])
    _do_without(connection)
    # The order of rows means nothing here, and keeping it costs memory.
    connection.execute("SET preserve_insertion_order = false")
    # Several queries read the same files: their footers are parsed once.
    connection.execute("SET parquet_metadata_cache = true")
    if memory_limit is not None:
        connection.execute("SET memory_limit = ?", [memory_limit])
    if threads is not None:
        connection.execute("SET threads = ?", [threads])


def _do_without(connection: duckdb.DuckDBPyConnection, *optimizers: str) -> None:
    """Turn some of DuckDB's optimizers off, and all others on but one.

    That one makes a join of a count over a window, and then searches all replicas twice for topics with several IDs.
    """
    connection.execute(f"SET disabled_optimizers = '{','.join(('window_self_join', *optimizers))}'")


def _register_rows(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[pa.Table], inventories: Sequence[str], now_ms: int
) -> None:
    columns = ", ".join(ROW_SCHEMA.names)
    parts = []
    if tables or not inventories:
        connection.register("scanned", pa.concat_tables(tables or [ROW_SCHEMA.empty_table()]))
        parts.append(f"SELECT {columns} FROM scanned")
    if inventories:
        parts.append(f"SELECT {columns} FROM {parquet_files(*inventories)}")
    rows = " UNION ALL ".join(parts)
    connection.execute(f"CREATE VIEW rows AS SELECT *, CAST({now_ms} AS BIGINT) AS now_ms FROM ({rows})")
    connection.execute(f"CREATE VIEW observed AS {VIEWS['observed']}")


def _register_desired(connection: duckdb.DuckDBPyConnection, states: Mapping[str, DesiredState]) -> None:
    for view, schema in (("replicas", REPLICA_SCHEMA), ("topics", TOPIC_SCHEMA)):
        parts = []
        for number, (cluster, state) in enumerate(states.items()):
            table = getattr(state, view)
            if isinstance(table, SavedTable):
                source = parquet_files(table.path)
            else:
                source = f"{view}_{number}"
                connection.register(source, table)
            parts.append(f"SELECT CAST({quoted(cluster)} AS clusters) AS cluster, * FROM {source}")
        if not parts:
            connection.register(f"no_{view}", schema.empty_table())
            parts.append(f"SELECT CAST('' AS clusters) AS cluster, * FROM no_{view}")
        connection.execute(f"CREATE VIEW {view} AS {' UNION ALL '.join(parts)}")


def _judge(connection: duckdb.DuckDBPyConnection, folder: str, all_rows: bool) -> str:
    dialect = DuckDialect()
    views = {name: VIEWS[name] for name in ("desired", "copies", "pairs", "counted")}
    views["joined"] = joined("true" if all_rows else str(is_worth_a_look(dialect)))
    # In the statement itself they are looked at once; as views, each would be again for every one that rests on it.
    stated = ", ".join(f"{name} AS NOT MATERIALIZED ({sql})" for name, sql in views.items())
    listed = "kind <> 'log_dir' OR state <> 'ok'" if all_rows else is_finding(dialect)
    # DuckDB guesses that few rows are live, and would hold the disks' wide rows in memory to join the narrow desired
    # ones with them. As the views are written, it holds the desired ones, or what is truly small: half the memory.
    _do_without(connection, "build_side_probe_side")
    connection.execute(
        f"CREATE TEMP TABLE found AS WITH {stated} "
        f"SELECT *, {verdict(dialect)} AS verdict, {evidence(dialect)} AS evidence "
        f"FROM (SELECT *, {case_number(dialect)} AS case_no FROM joined WHERE {listed})"
    )
    _do_without(connection)
    path = os.path.join(folder, FINDINGS_FILE)
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder, as an audit by Spark leaves it: give another folder for this report")
    connection.execute(f"COPY ({FINDINGS}) TO {quoted(path)} (FORMAT parquet)")
    return path


def _leave_topics(connection: duckdb.DuckDBPyConnection, folder: str, previous: str | None) -> None:
    if previous is not None:
        # Read before the new topics are written: it may be the same file.
        connection.execute(f"CREATE TABLE previous AS SELECT * FROM {parquet_files(previous)}")
    path = os.path.join(folder, TOPICS_FILE)
    connection.execute(f"COPY (SELECT cluster, topic, topic_id FROM topics) TO {quoted(path)} (FORMAT parquet)")
