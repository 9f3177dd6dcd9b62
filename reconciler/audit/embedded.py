"""The audit on one machine: DuckDB joins without a JVM, and spills to disk.

Rows come from trees that were just scanned and from Parquet inventories. The desired state comes from tables in memory
or from the file of a saved state. :mod:`reconciler.audit.duckdb_join` writes the findings to a Parquet file; totals are
returned.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import duckdb
import pyarrow as pa

from logstore import check_argument
from logstore.rows import ROW_SCHEMA
from reconciler.audit.arguments import check_audit
from reconciler.audit.dimension_tables import (
    DesiredTables,
    Superseded,
    keep_metadata,
    parquet_files,
    quoted,
    register_desired,
    rows_of,
)
from reconciler.audit.duckdb_join import choose_brokers, configure, judge, make_observed, rules
from reconciler.audit.findings import FINDINGS_FILE, TOPICS_FILE
from reconciler.audit.fleet import INVENTORY_GAP_MS, SEARCHED
from reconciler.audit.incremental import EarlierAudit, note_basis, read_basis
from reconciler.audit.result import AuditResult, conclude
from reconciler.desired import DesiredState, SavedTable, by_cluster, check_columns, registered_log_dirs, speaking
from reconciler.errors import UsageError


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
    gap_ms: int = INVENTORY_GAP_MS,
    inventoried: bool = False,
    superseded: Superseded | None = None,
    contents: Mapping[str, str] | None = None,
    earlier: EarlierAudit | None = None,
) -> AuditResult:
    """Compare rows with the desired state and write the findings to a folder.

    Args:
        tables: rows of scans, each in ROW_SCHEMA.
        inventories: paths of Parquet files in ROW_SCHEMA, which :func:`logstore.rows.read_inventory_set` has accepted.
        states: the desired states of the metadata sources; without any, only fleet findings can be made.
        folder: an existing folder; ``findings.parquet`` and ``topics.parquet`` are written there.
        now_ms: the time of the audit, ms since 1970; decides which staged replicas are due.
        all_rows: whether to list the OK rows as well.
        previous: ``topics.parquet`` of an earlier audit, to find topics whose ID changed.
        memory_limit: in DuckDB's notation, for example ``4GB``; a join that needs more spills to disk.
        threads: the most threads to use; None: DuckDB's default.
        gap_ms: the greatest span between an inventory and the metadata that is no finding.
        inventoried: whether some of the tables are of inventories, so that a broker without one is a finding.
        superseded: what does not count in inventories, as :class:`logstore.rows.InventorySet` has it.
        contents: the fingerprints of inventories (:func:`logstore.rows.inventory_content`), by path; with them the
            result has a basis for the next audit. Where one of an inventory is not known, its brokers have none.
        earlier: an earlier audit, whose findings are kept for brokers that have the same basis; goes with contents.

    Raises:
        RefusedError: the metadata does not fit the log dirs; see :func:`reconciler.desired.by_cluster`.
        UsageError: an argument is not what it should be, or the folder holds the findings of an audit by Spark.
    """
    numbers = {"now_ms": (now_ms, 0), "threads": (1 if threads is None else threads, 1), "gap_ms": (gap_ms, 0)}
    check_audit({"inventories": inventories}, states, {"folder": folder}, numbers, previous)
    _check_tables(tables, memory_limit)
    with tempfile.TemporaryDirectory(prefix="logstore-audit-") as spill, duckdb.connect() as connection:
        configure(connection, spill, memory_limit, threads)
        brokers = make_observed(connection, tables, inventories, now_ms, superseded)
        by_id = by_cluster(states, {broker.cluster for broker in brokers})
        keep_metadata(connection, by_id, speaking(by_id, brokers), registered_log_dirs(by_id))
        findings_path = _findings_file(folder)
        register_desired(connection, _tables_of(by_id))
        kept = 0
        if contents is not None:
            of_files = {path: contents.get(path) for path in inventories}
            note_basis(connection, of_files, superseded or {}, rules(all_rows))
            kept = choose_brokers(connection, earlier, now_ms, superseded or {}) if earlier is not None else 0
        likely = judge(connection, findings_path, all_rows, some=kept > 0)
        connection.execute(f"CREATE TEMP TABLE searched AS WITH likely AS ({likely}) {SEARCHED}")
        _leave_topics(connection, folder, previous)
        result = conclude(
            partial(rows_of, connection),
            by_id,
            engine="embedded",
            now_ms=now_ms,
            findings_path=findings_path,
            with_previous=previous is not None,
            gap_ms=gap_ms,
            inventoried=inventoried or bool(inventories),
        )
        return replace(result, kept=kept, basis=() if contents is None else read_basis(connection))


def _findings_file(folder: str) -> str:
    path = os.path.join(folder, FINDINGS_FILE)
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder, as an audit by Spark leaves it: give another folder for this report")
    return path


def _check_tables(tables: Sequence[pa.Table], memory_limit: str | None) -> None:
    check_argument("tables", tables, Sequence, UsageError)
    for table in tables:
        check_argument("one of tables", table, pa.Table, UsageError)
        check_columns("one of tables", table, ROW_SCHEMA)
    check_argument("memory_limit", memory_limit or "", str, UsageError)


def _tables_of(states: Mapping[str, DesiredState]) -> dict[str, DesiredTables]:
    """Convert desired states for the join; a saved table stays in its file."""
    return {
        cluster: DesiredTables(
            state.replicas.path if isinstance(state.replicas, SavedTable) else state.replicas,
            state.topics,
        )
        for cluster, state in states.items()
    }


def _leave_topics(connection: duckdb.DuckDBPyConnection, folder: str, previous: str | None) -> None:
    if previous is not None:
        # Read before the new topics are written, because it may be the same file.
        connection.execute(f"CREATE TABLE previous AS SELECT * FROM {parquet_files(previous)}")
    path = os.path.join(folder, TOPICS_FILE)
    connection.execute(f"COPY (SELECT cluster, topic, topic_id FROM topics) TO {quoted(path)} (FORMAT parquet)")
