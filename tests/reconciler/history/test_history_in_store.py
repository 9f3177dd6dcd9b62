"""A history in a store: the same rows as in a folder, a run whole or not at all, and nothing that only a folder has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logstore import InventoryStoreError
from logstore.rows import fetch, list_uri, put
from reconciler.audit import AuditResult
from reconciler.errors import HistoryError, UsageError
from reconciler.history import (
    append_run,
    check_history,
    compare_results,
    earlier_runs,
    first_seen,
    keep_delta_tables,
    last_audit,
    list_runs,
    open_result,
    remove_old_days,
)
from reconciler.history.tables import TABLES
from tests.object_store import BUCKET, ObjectStore
from tests.reconciler.audit.conftest import NOW_MS

Make = Callable[..., AuditResult]
DAY_MS = 86_400_000
STALE = {"verdict": "STALE_ID", "disk_topic_id": "old", "disk_bytes": 5000}
MISSING = {"verdict": "MISSING", "log_dir": None, "name": None}
HISTORY = f"s3://{BUCKET}/kept/history/"


@pytest.fixture
def topics(tmp_path: Path) -> str:
    rows = [{"cluster": "c1", "topic": "t", "topic_id": "one"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "topics.parquet")
    return str(tmp_path / "topics.parquet")


def names(uri: str) -> list[str]:
    return [each.name for each in list_uri(uri) or ()]


def test_a_run_in_a_store_has_the_rows_of_one_in_a_folder(
    make_result: Make, topics: str, tmp_path: Path, s3: ObjectStore
) -> None:
    check_history(HISTORY)
    assert (list_runs(HISTORY), earlier_runs(HISTORY, 5, NOW_MS), last_audit(HISTORY, NOW_MS, str(tmp_path))) == (
        [],
        [],
        None,
    )
    here, there = [], []
    for found, at_ms in (((STALE,), NOW_MS), ((STALE, MISSING), NOW_MS + 1)):
        result = make_result(*found, audited_ms=at_ms)
        here.append(append_run(str(tmp_path / "history"), result, topics))
        there.append(append_run(HISTORY, result, topics))
    check_history(HISTORY)
    keep_delta_tables(HISTORY)
    assert names(HISTORY) == sorted(f"{table}/day={run.day}/{run.run_id}.parquet" for table in TABLES for run in there)
    assert list_runs(HISTORY) == there
    assert [run.run_id for run in list_runs(HISTORY.rstrip("/"))] == [run.run_id for run in there]
    for table in TABLES:
        fetch(there[1].path(table), str(tmp_path / "copy.parquet"))
        kept, copy = (
            pq.read_table(path, partitioning=None) for path in (here[1].path(table), tmp_path / "copy.parquet")
        )
        assert copy.drop_columns("run_id").equals(kept.drop_columns("run_id"))
        assert set(copy.column("run_id").to_pylist()) <= {there[1].run_id}
    totals = [each.totals for each in earlier_runs(HISTORY, 5, NOW_MS)]
    assert totals == [{"STALE_ID": 1, "MISSING": 1}, {"STALE_ID": 1}]
    assert totals == [each.totals for each in earlier_runs(str(tmp_path / "history"), 5, NOW_MS)]
    assert first_seen(HISTORY, ["t"], NOW_MS) == first_seen(str(tmp_path / "history"), ["t"], NOW_MS)


def test_runs_and_reports_in_a_store_are_compared_as_those_of_folders(
    make_result: Make, topics: str, tmp_path: Path, s3: ObjectStore
) -> None:
    append_run(HISTORY, make_result(STALE), topics)
    append_run(HISTORY, make_result(STALE, MISSING, audited_ms=NOW_MS + 1), topics)
    run = list_runs(HISTORY)[-1]
    put(topics, f"s3://{BUCKET}/report/topics.parquet")
    fetch(run.path("findings"), str(tmp_path / "findings.parquet"))
    put(str(tmp_path / "findings.parquet"), f"s3://{BUCKET}/report/findings.parquet/part-0.parquet")
    previous = open_result("previous", HISTORY, NOW_MS)
    for new in (open_result("latest", HISTORY, NOW_MS), open_result(f"s3://{BUCKET}/report", None, NOW_MS)):
        difference = compare_results(previous, new)
        assert (difference.totals["new"], difference.topics) == ({"MISSING": 1}, [])
    of_file = open_result(f"s3://{BUCKET}/report/findings.parquet/part-0.parquet", None, NOW_MS)
    assert compare_results(previous, of_file).totals["new"] == {"MISSING": 1}
    with pytest.raises(InventoryStoreError, match=f"s3://{BUCKET}/nothing: No such file"):
        open_result(f"s3://{BUCKET}/nothing", None, NOW_MS)


def test_the_last_run_is_copied_for_the_engine_that_continues_it(
    make_result: Make, topics: str, tmp_path: Path, s3: ObjectStore
) -> None:
    run = append_run(HISTORY, make_result(STALE), topics)
    found = last_audit(HISTORY, NOW_MS, str(tmp_path))
    assert found is not None
    assert found[0] == run
    assert pq.read_table(found[1].findings).column("verdict").to_pylist() == ["STALE_ID"]
    assert {Path(path).parent for path in (found[1].findings, found[1].topics, found[1].basis)} == {tmp_path}


@pytest.mark.parametrize("table", TABLES)
def test_a_run_of_which_one_file_is_refused_is_not_there_at_all(
    make_result: Make, topics: str, s3: ObjectStore, table: str
) -> None:
    kept = append_run(HISTORY, make_result(STALE), topics)
    s3.refusing = lambda method, path: method in ("PUT", "POST") and f"/{table}/" in path and "delete" not in path
    with pytest.raises(HistoryError, match=rf"--history {HISTORY}: the run was not added: .*access is denied"):
        append_run(HISTORY, make_result(STALE, audited_ms=NOW_MS + 1), topics)
    assert (list_runs(HISTORY), len(names(HISTORY))) == ([kept], len(TABLES))


def test_old_days_of_a_store_go_and_what_no_run_wrote_stays(make_result: Make, topics: str, s3: ObjectStore) -> None:
    kept = [append_run(HISTORY, make_result(STALE, audited_ms=NOW_MS - age * DAY_MS), topics) for age in (3, 2, 1, 0)]
    foreign = kept[0].path("findings").replace(kept[0].run_id, "notes")
    put(topics, foreign)
    assert remove_old_days(HISTORY, 2, NOW_MS).days == ["2023-11-11", "2023-11-12"]
    assert list_runs(HISTORY) == kept[2:]
    assert len(names(HISTORY)) == 2 * len(TABLES) + 1
    assert remove_old_days(HISTORY, 2, NOW_MS).days == []
    s3.refusing = lambda method, path: method in ("DELETE", "POST")
    with pytest.raises(HistoryError, match=f"older days of {HISTORY} were not all removed: .*access is denied"):
        remove_old_days(HISTORY, 1, NOW_MS)
    s3.refusing = lambda method, path: False
    put(topics, f"{HISTORY}totals/_delta_log/0.json")
    with pytest.raises(HistoryError, match="totals is a Delta table, which takes its older days out itself"):
        remove_old_days(HISTORY, 1, NOW_MS)
    assert list_runs(HISTORY) == kept[2:]


def test_a_place_that_holds_anything_else_or_refuses_is_no_history(topics: str, s3: ObjectStore) -> None:
    put(topics, f"{HISTORY}inventories/x.parquet")
    with pytest.raises(UsageError, match="holds 'inventories', which no history does"):
        check_history(HISTORY)
    with pytest.raises(InventoryStoreError, match="there is no such bucket"):
        check_history("s3://absent/history")
    s3.refusing = lambda method, path: True
    for look in (check_history, list_runs):
        with pytest.raises(InventoryStoreError, match="access is denied"):
            look(HISTORY)
