"""A history as Delta tables: each run once, whatever others do to a table, and old days leave it before their files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib import util
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, Schema

from reconciler.audit import AuditResult
from reconciler.errors import HistoryError
from reconciler.history import append_run, delta, keep_delta_tables, list_runs, remove_old_days
from reconciler.history.tables import SCHEMAS, TABLES
from tests.reconciler.audit.conftest import NOW_MS

DAY_MS = 86_400_000

AddRun = Callable[[int], str]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "history"


@pytest.fixture
def add_run(make_result: Callable[..., AuditResult], history: Path, tmp_path: Path) -> AddRun:
    """Adds a run so many days later; returns its ID."""
    topics = tmp_path / "topics.parquet"
    pq.write_table(pa.table({"cluster": ["c1"], "topic": ["t"], "topic_id": ["one"]}), topics)

    def add(days: int) -> str:
        result = make_result({"verdict": "STALE_ID", "disk_topic_id": "old"}, audited_ms=NOW_MS + days * DAY_MS)
        return append_run(str(history), result, str(topics)).run_id

    return add


def runs_in(history: Path, table: str) -> list[str]:
    """The run of each row of a Delta table."""
    found = DeltaTable(history / table).to_pyarrow_table()
    assert set(found.column_names) >= {*SCHEMAS[table].names, "day"}
    return sorted(found["run_id"].to_pylist())


def test_every_run_is_in_each_table_once_also_those_before_the_first_log(add_run: AddRun, history: Path) -> None:
    runs = [add_run(0), add_run(1)]
    keep_delta_tables(str(history))
    runs.append(add_run(2))
    for _ in range(2):
        keep_delta_tables(str(history))
    for table in ("findings", "topics", "totals"):
        assert runs_in(history, table) == runs
    assert all(DeltaTable(history / table).metadata().partition_columns == ["day"] for table in TABLES)
    assert [run.run_id for run in list_runs(str(history))] == runs, "those who read the folders see what they saw"


def test_a_table_that_somebody_optimized_gets_no_run_twice(add_run: AddRun, history: Path) -> None:
    runs = [add_run(0), add_run(0)]
    keep_delta_tables(str(history))
    assert DeltaTable(history / "findings").optimize.compact()["numFilesRemoved"] == 2
    runs.append(add_run(0))
    keep_delta_tables(str(history))
    assert runs_in(history, "findings") == sorted(runs)


def test_old_days_leave_the_tables_before_their_files_go(
    add_run: AddRun, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [add_run(0), add_run(1)]
    keep_delta_tables(str(history))
    monkeypatch.setattr(delta, "find_spec", lambda _: None)
    with pytest.raises(
        HistoryError, match=r"is a Delta table, .* is not installed here: install kafka-logstore\[delta"
    ):
        remove_old_days(str(history), 1, NOW_MS + DAY_MS)
    assert [run.run_id for run in list_runs(str(history))] == runs
    monkeypatch.setattr(delta, "find_spec", util.find_spec)
    assert remove_old_days(str(history), 1, NOW_MS + DAY_MS).days == ["2023-11-14"]
    assert runs_in(history, "findings") == runs_in(history, "totals") == runs[1:]


def test_a_table_of_an_older_release_gets_the_new_columns(add_run: AddRun, history: Path) -> None:
    run = add_run(0)
    old = [Field("verdict", "string"), Field("day", "date")]
    DeltaTable.create(history / "totals", Schema(old), partition_by=["day"])
    keep_delta_tables(str(history))
    assert runs_in(history, "totals") == [run]


def test_a_log_that_cannot_be_read_is_told_and_one_that_is_removed_is_made_anew(add_run: AddRun, history: Path) -> None:
    run = add_run(0)
    keep_delta_tables(str(history))
    log = history / "findings" / "_delta_log"
    (log / "00000000000000000000.json").write_text("{")
    with pytest.raises(HistoryError, match=r"its Delta table findings was not brought up to date: .*; the next audit"):
        keep_delta_tables(str(history))
    shutil.rmtree(log)
    keep_delta_tables(str(history))
    assert runs_in(history, "findings") == [run]


def test_without_the_library_no_table_has_a_log(
    add_run: AddRun, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_run(0)
    monkeypatch.setattr(delta, "find_spec", lambda _: None)
    keep_delta_tables(str(history))
    assert list(history.rglob("_delta_log")) == []
    assert remove_old_days(str(history), 1, NOW_MS + DAY_MS).days == ["2023-11-14"]
