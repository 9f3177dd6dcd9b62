"""The audit of a fleet, on as many machines as Spark has.

The executors that list trees also judge them (:mod:`reconciler.audit.spark.trees`). With inventories among the input,
trees are listed into a scratch folder as inventories, and all of them are judged together
(:mod:`reconciler.audit.spark.inventories`). Either way the findings are written as Parquet, the driver's DuckDB holds
the dimension tables, and totals and fleet findings come from there, by the SQL of the embedded engine.

The driver and all executors must see the output folder under the same path, and the scratch folder lies in it; or both
reach a store, through which files go (:mod:`reconciler.audit.spark.exchange`). Every audit has a Spark session of its
own, whose settings suit its queries.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import duckdb
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from logstore.log_dir import FallbackRecords
from reconciler.audit.arguments import check_audit
from reconciler.audit.dimension_tables import Superseded, parquet_files, rows_of
from reconciler.audit.duckdb_join import configure
from reconciler.audit.findings import SCRATCH_PREFIX
from reconciler.audit.fleet import INVENTORY_GAP_MS
from reconciler.audit.incremental import EarlierAudit
from reconciler.audit.result import AuditResult, conclude
from reconciler.audit.spark.exchange import Exchange, check_store, open_exchange
from reconciler.audit.spark.output import AuditRequest, JudgedFleet, make_searched, register_found
from reconciler.audit.spark.trees import judge_trees
from reconciler.desired import DesiredState
from reconciler.errors import RefusedError

_MEMORY = "2GB"
"""Memory of the driver's own queries before they spill; the driver's JVM has its heap beside it."""


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
    gap_ms: int = INVENTORY_GAP_MS,
    fallback: FallbackRecords | None = None,
    superseded: Superseded | None = None,
    contents: Mapping[str, str] | None = None,
    earlier: EarlierAudit | None = None,
    store: str | None = None,
    stored: Mapping[str, str] | None = None,
) -> AuditResult:
    """Compare rows with the desired state and write the findings to a folder.

    Args:
        spark: a running session, which is not changed.
        trees: log dirs, or folders of them, that the driver and all executors see.
        inventories: paths of Parquet files in ROW_SCHEMA, which :func:`logstore.rows.read_inventory_set` has accepted.
        states: the desired states of the metadata sources; without any, only fleet findings can be made.
        folder: an existing folder; ``findings.parquet`` (a folder of part files) and ``topics.parquet`` are written.
        now_ms: the time of the audit, ms since 1970; decides which staged replicas are due.
        sizes: whether to add up the files in trees.
        all_rows: whether to list the OK rows as well.
        previous: ``topics.parquet`` of an earlier audit, to find topics whose ID changed.
        gap_ms: the greatest span between an inventory and the metadata that is no finding.
        fallback: the fallback records, in a folder that the driver and all executors see; None: there are none.
        superseded: what does not count in inventories, as :class:`logstore.rows.InventorySet` has it.
        contents: the fingerprints of inventories (:func:`logstore.rows.inventory_content`), by path; with them the
            result has a basis for the next audit. Brokers that lie in trees, or in other inventories, have none.
        earlier: an earlier audit by Spark, whose findings are kept for brokers that have the same basis; goes with
            contents.
        store: a URI by which files go to executors that do not see ``folder``; None: they do. There are no trees then.
        stored: inventories that Spark reads in the store, at these URIs by path.

    Raises:
        RefusedError: the metadata does not fit the log dirs (:func:`reconciler.desired.by_cluster`), or Spark failed.
        UsageError, InventoryStoreError: an argument is wrong, the earlier audit cannot be read, or the store refuses.
    """
    check_store(store, trees)
    numbers = {"now_ms": (now_ms, 0), "gap_ms": (gap_ms, 0)}
    check_audit({"trees": trees, "inventories": inventories}, states, {"folder": folder}, numbers, previous)
    ask = AuditRequest(
        trees, states, os.path.abspath(folder), now_ms, sizes, all_rows, fallback, superseded or {}, contents, earlier
    )
    try:
        with (
            tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, dir=ask.folder) as scratch,
            open_exchange(scratch, store, stored) as exchange,
            duckdb.connect() as small,
        ):
            configure(small, scratch, _MEMORY)
            if previous is not None:
                # Read before the new topics are written, because it may be the same file.
                small.execute(f"CREATE TABLE previous AS FROM {parquet_files(previous)}")
            judged = _judge(spark.newSession(), small, ask, inventories, exchange)
            result = conclude(
                partial(rows_of, small), judged.states, engine="spark", now_ms=now_ms, findings_path=ask.findings,
                with_previous=previous is not None, gap_ms=gap_ms, inventoried=bool(inventories),
            )  # fmt: skip
            return replace(result, kept=judged.kept, basis=judged.basis)
    except (PySparkException, Py4JError, duckdb.Error, OSError) as error:
        left = f", and {ask.folder} is incomplete" if store is None else ""
        raise RefusedError(f"Spark did not finish the audit{left}: {reason(str(error))}") from error


def _judge(
    own: SparkSession,
    small: duckdb.DuckDBPyConnection,
    ask: AuditRequest,
    inventories: Sequence[str],
    exchange: Exchange,
) -> JudgedFleet:
    """Write the findings in the way that suits the input; make ``found`` and ``searched`` in the driver's DuckDB."""
    if inventories or not ask.trees:
        from reconciler.audit.spark.inventories import judge_inventories

        judged = judge_inventories(own, small, ask, inventories, exchange)
    else:
        judged = judge_trees(own, small, ask, exchange.folder)
    register_found(small, ask.findings)
    make_searched(small, ask, judged.rows, exchange)
    return judged


_OF_THE_JVM = "An error occurred while calling "
"""What stands in the line before an exception of the JVM."""

_TRACEBACK = "Traceback (most recent call last)"
_FAILED_TASK = re.compile(r"most recent failure: Lost task .*?\(TID \d+\) \([^)]*\): (.*)")

_ADVICE = (
    (
        re.compile(r"No module named '(layout|logstore|reconciler)\b"),
        "give executors this package: spark-submit --py-files takes its wheel, copied to a name that ends in .zip",
    ),
    (
        re.compile(r"No module named"),
        "install what this package needs on every worker, or set PYSPARK_PYTHON to a Python there that has it",
    ),
    (re.compile(r"Cannot run program"), "set PYSPARK_PYTHON to a Python that every worker has"),
    (
        re.compile(r"No FileSystem for scheme|Class org\.apache\.hadoop\.fs\.\S+ not found"),
        "give Spark the connector of the store, for s3a:// the package org.apache.hadoop:hadoop-aws in the release of "
        "Spark's Hadoop (spark-submit --packages), or name a scheme that it has",
    ),
    (
        re.compile(r"OutOfMemoryError|exited with code (52|137)\b|exit code:? (52|137)\b"),
        "an executor ran out of memory: give it more with spark.executor.memory, or more tasks to share the work with "
        "spark.sql.shuffle.partitions",
    ),
)
"""What to do about a failure, by what its text says; the first that fits counts."""


def reason(text: str) -> str:
    """Summarise the text of an error in one line, with what to do where that is known.

    Of a failed task it is the exception that was raised in it, of several the first.
    """
    lines = [line for line in text.splitlines() if line.strip()] or ["no reason was given"]
    shown = f"{lines[0].strip():.500}"
    if _OF_THE_JVM in shown and len(lines) > 1:
        shown = f"{lines[1].strip().removeprefix(': '):.500}"
    failed = _FAILED_TASK.search(text)
    if failed is not None:
        shown = f"a task failed: {failed[1].strip():.450}"
    start = next((number for number, line in enumerate(lines) if _TRACEBACK in line), len(lines))
    for line in lines[start + 1 :]:
        if _indent(line) <= _indent(lines[start]):
            shown = f"a task failed: {line.strip():.450}"
            break
    advice = next((what for sign, what in _ADVICE if sign.search(shown)), None)
    return shown if advice is None else f"{shown}: {advice}"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
