"""The tables of a history as Delta tables too, where the library ``deltalake`` is installed.

Each table gets a ``_delta_log`` that names the files which runs wrote, so nothing is written twice, and whoever reads
the folders of Parquet files sees no difference. A run is added to a table in a transaction that has the run's ID, once;
what could not be added is added after the next run, and so are the runs that were there before the library was. Others
may optimize a table meanwhile. A log that is removed is made anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from logstore.rows import is_uri
from reconciler.errors import HistoryError
from reconciler.history.tables import SCHEMAS, SUFFIX, TABLES, Run, list_runs

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema

LOG = "_delta_log"
_DAY = pa.field("day", pa.date32())
"""The partition, which is in the names of folders and not in the files."""


def keep_delta_tables(folder: str) -> None:
    """Add each run that is not in the Delta tables of a history yet.

    Without the library there are none, nor of a history in a store, which has its own settings of access.

    Raises:
        HistoryError: a table cannot be read or written.
        UsageError: the history cannot be listed.
    """
    if is_uri(folder) or find_spec("deltalake") is None:
        return
    runs = list_runs(folder)
    for table in TABLES:
        with _sentences(folder, table):
            _add_runs(table, os.path.abspath(os.path.join(folder, table)), runs)


def remove_from_delta_tables(folder: str, first_day: str) -> None:
    """Take the days before ``first_day``, as ``2026-11-25``, out of the Delta tables of a history, before files go.

    Raises:
        HistoryError: a table cannot be written, or there is one and the library is not installed.
    """
    tables = [table for table in TABLES if os.path.isdir(os.path.join(folder, table, LOG))]
    if tables and find_spec("deltalake") is None:
        raise HistoryError(
            f"--history-days: {folder}/{tables[0]} is a Delta table, whose older days only the library deltalake takes "
            "out, and it is not installed here: install kafka-logstore[delta], or remove the folders _delta_log"
        )
    for table in tables:
        with _sentences(folder, table):
            from deltalake import DeltaTable

            DeltaTable(os.path.abspath(os.path.join(folder, table))).delete(f"day < '{first_day}'")


def _add_runs(table: str, path: str, runs: list[Run]) -> None:
    from deltalake import CommitProperties, Schema, Transaction
    from deltalake.transaction import AddAction

    schema = Schema.from_arrow(SCHEMAS[table].append(_DAY))
    delta = _opened(path, schema)
    known = {os.path.basename(uri) for uri in delta.file_uris()}
    for run in runs:
        file = run.path(table)
        if (
            run.run_id + SUFFIX in known
            or delta.transaction_version(run.run_id) is not None
            or not os.path.exists(file)
        ):
            continue
        found = os.stat(file)
        action = AddAction(
            path=f"day={run.day}/{run.run_id}{SUFFIX}",
            size=found.st_size,
            partition_values={"day": run.day},
            modification_time=found.st_mtime_ns // 1_000_000,
            data_change=True,
            stats=orjson.dumps({"numRecords": pq.read_metadata(file).num_rows}).decode(),
        )
        once = CommitProperties(app_transactions=[Transaction(run.run_id, 1)])
        delta.create_write_transaction([action], "append", schema, ["day"], commit_properties=once)


def _opened(path: str, schema: Schema) -> DeltaTable:
    """Open a table, which is made where there is none, and gets the columns of this release."""
    from deltalake import DeltaTable

    if not os.path.isdir(os.path.join(path, LOG)):
        return DeltaTable.create(path, schema, partition_by=["day"])
    delta = DeltaTable(path)
    names = {field.name for field in delta.schema().fields}
    if new := [field for field in schema.fields if field.name not in names]:
        delta.alter.add_columns(new)
    return delta


@contextmanager
def _sentences(folder: str, table: str) -> Iterator[None]:
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or ["no reason was given"])[0]
        raise HistoryError(
            f"--history {folder}: its Delta table {table} was not brought up to date: {reason:.200}; the next audit "
            f"tries again, and where the folder {table}/{LOG} is removed, makes it anew"
        ) from error
