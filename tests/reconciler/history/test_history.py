"""A history: a run is added whole or not at all, old days go, and what changed between two runs is told."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from reconciler.audit import (
    FINDINGS_FILE,
    FLEET_SCHEMA,
    SUMMARY_FILE,
    TOPICS_FILE,
    AuditResult,
    Basis,
    EarlierRun,
    FleetFinding,
    FleetKey,
    write_findings,
    write_summary,
)
from reconciler.audit.result import ScannedLogDir
from reconciler.errors import HistoryError, UsageError
from reconciler.history import (
    DIFF_VERSION,
    Difference,
    Place,
    Removal,
    Result,
    Run,
    append_run,
    check_history,
    compare_results,
    describe_runs_to_come,
    earlier_runs,
    first_seen,
    last_audit,
    list_runs,
    open_result,
    remove_old_days,
)
from reconciler.history.tables import SCHEMAS, TABLES
from tests.crash.failing_disk import FailingDisk
from tests.reconciler.audit.conftest import NOW_MS

Make = Callable[..., AuditResult]
DAY_MS = 86_400_000
STALE = {"verdict": "STALE_ID", "disk_topic_id": "old", "disk_bytes": 5000}
MISSING = {"verdict": "MISSING", "log_dir": None, "name": None}


@pytest.fixture
def topics(tmp_path: Path) -> str:
    return save_topics(tmp_path / "topics.parquet", t="one", u="two")


def save_topics(path: Path, **ids: str) -> str:
    rows = [{"cluster": "c1", "topic": topic, "topic_id": topic_id} for topic, topic_id in ids.items()]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def scanned(result: AuditResult, at_ms: int) -> AuditResult:
    """The same result, whose log dir was scanned at that time."""
    return replace(result, scans=(ScannedLogDir("c1", 1, "/disks/1", at_ms),))


def rows(history: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table, as any engine reads them that knows folders of partitions."""
    read = ds.dataset(history / table, partitioning="hive", format="parquet").to_table()
    return list(read.to_pylist())


def test_runs_of_one_second_are_in_the_order_of_their_times(make_result: Make, topics: str, tmp_path: Path) -> None:
    history = str(tmp_path / "history")
    runs = [append_run(history, make_result(STALE, audited_ms=NOW_MS + ms), topics) for ms in range(0, 900, 90)]
    assert list_runs(history) == runs


def test_each_row_has_its_run_and_the_times_of_the_audit_and_of_the_scan(
    make_result: Make, fleet_finding: FleetFinding, topics: str, tmp_path: Path
) -> None:
    history = tmp_path / "history"
    basis = Basis("c1", 1, "inventories", "metadata", NOW_MS, "rules")
    result = make_result(STALE, MISSING, ok=3, fleet=(fleet_finding,), basis=(basis,))
    run = append_run(str(history), scanned(result, NOW_MS - 7), topics)
    assert list_runs(str(history)) == [run]
    assert (run.run_id[:20], run.day) == ("20231114T221320.000Z", "2023-11-14")
    of_run = {"run_id": run.run_id, "audited_ms": NOW_MS, "scanned_ms": NOW_MS - 7, "day": "2023-11-14"}
    for table in TABLES:
        assert {frozenset((name, row[name]) for name in of_run) for row in rows(history, table)} == {
            frozenset(of_run.items())
        }
        assert pq.read_schema(run.path(table)).equals(SCHEMAS[table])
    assert {(row["verdict"], row["log_dir"]) for row in rows(history, "findings")} == {
        ("STALE_ID", "/disks/1"), ("MISSING", None),
    }  # fmt: skip
    assert {(row["verdict"], row["rows"], row["disk_bytes"]) for row in rows(history, "totals")} == {
        ("STALE_ID", 1, 5000), ("MISSING", 1, 0), ("OK", 3, 2700),
    }  # fmt: skip
    assert {(row["topic"], row["topic_id"]) for row in rows(history, "topics")} == {("t", "one"), ("u", "two")}
    (of_broker,) = rows(history, "brokers")
    assert asdict(basis) == {name: of_broker[name] for name in asdict(basis)}
    (of_fleet,) = rows(history, "fleet")
    assert fleet_finding.as_row() == {name: of_fleet[name] for name in FLEET_SCHEMA.names}


def test_the_findings_of_spark_lie_in_a_folder_and_are_added_alike(
    make_result: Make, topics: str, tmp_path: Path
) -> None:
    result = make_result(STALE, MISSING)
    parts = tmp_path / "spark"
    parts.mkdir()
    whole = pq.read_table(result.findings_path)
    for number in range(2):
        pq.write_table(whole.slice(number, 1), parts / f"part-{number}.parquet")
    (parts / "_SUCCESS").touch()
    for folder, path in (("one", result.findings_path), ("two", str(parts))):
        append_run(str(tmp_path / folder), replace(result, findings_path=path), topics)
    one, two = ({row["verdict"] for row in rows(tmp_path / folder, "findings")} for folder in ("one", "two"))
    assert one == two == {"STALE_ID", "MISSING"}


def test_a_step_that_fails_leaves_nothing_that_is_read(make_result: Make, topics: str, tmp_path: Path) -> None:
    history, result = tmp_path / "history", make_result(STALE)
    first = append_run(str(history), result, topics)
    steps = 0
    while True:
        disk = FailingDisk(steps, errno.EIO)
        try:
            append_run(str(history), result, topics, disk)
        except HistoryError as error:
            assert "the run was not added" in str(error)
            assert list_runs(str(history)) == [first]
            left = {path.name for path in history.rglob("*") if path.is_file()}
            assert left == {f"{first.run_id}.parquet"}
            steps += 1
        else:
            break
    assert steps > 10
    assert len(list_runs(str(history))) == 2


def test_what_was_cut_off_by_a_crash_is_no_run(make_result: Make, topics: str, tmp_path: Path) -> None:
    history = tmp_path / "history"
    run = append_run(str(history), make_result(STALE), topics)
    Path(run.path("totals")).rename(f"{run.path('totals')}.logstore.tmp")
    assert list_runs(str(history)) == []
    assert list_runs(str(tmp_path / "nowhere")) == []


def test_only_whole_days_and_only_what_runs_wrote_are_removed(make_result: Make, topics: str, tmp_path: Path) -> None:
    history = str(tmp_path / "history")
    kept = [
        append_run(history, make_result(STALE, audited_ms=NOW_MS - age * DAY_MS), topics) for age in (3, 2, 1, 1, 0)
    ]
    foreign = Path(kept[1].path("findings")).with_name("notes.txt")
    foreign.touch()
    (tmp_path / "history" / "findings" / "day=soon").mkdir()
    assert remove_old_days(history, 2, NOW_MS).days == ["2023-11-11", "2023-11-12"]
    assert list_runs(history) == sorted(kept[2:])
    assert {path.name for path in (tmp_path / "history" / "findings").iterdir()} == {
        "day=2023-11-12", "day=2023-11-13", "day=2023-11-14", "day=soon",
    }  # fmt: skip
    assert foreign.exists()
    assert remove_old_days(history, 2, NOW_MS).days == []


@pytest.mark.parametrize("ahead", [[3300], [3300, 3301]])
def test_a_clock_that_is_years_ahead_removes_nothing_that_a_right_one_keeps(
    make_result: Make, topics: str, tmp_path: Path, ahead: list[int]
) -> None:
    history = str(tmp_path / "history")
    for day in (0, 1, 2, *ahead):
        append_run(history, make_result(audited_ms=NOW_MS + day * DAY_MS), topics)
    runs = list_runs(history)
    kept = remove_old_days(history, 4, NOW_MS + ahead[-1] * DAY_MS)
    assert (kept.days, list_runs(history), kept.is_news) == ([], runs, len(ahead) == 1)
    assert kept.kept is not None
    assert kept.kept.startswith(
        f"--history-days 4: the runs of 3 days until 2023-11-16 stay in {history} for now: between them and the next "
        "run, of 2032-11-26, lie 3,298 days, as if a clock was wrong."
    )
    # With the clock put right, what is years ahead holds up nothing.
    append_run(history, make_result(audited_ms=NOW_MS + 3 * DAY_MS), topics)
    assert remove_old_days(history, 2, NOW_MS + 3 * DAY_MS) == Removal(["2023-11-14", "2023-11-15"])
    assert len(list_runs(history)) == 2 + len(ahead)


def test_after_a_long_pause_the_oldest_runs_go_as_new_ones_come(make_result: Make, topics: str, tmp_path: Path) -> None:
    history, restart = str(tmp_path / "history"), 400
    left = []
    for day in (*range(6), *range(restart, restart + 7)):
        append_run(history, make_result(audited_ms=NOW_MS + day * DAY_MS), topics)
        removal = remove_old_days(history, 5, NOW_MS + day * DAY_MS)
        left.append(len(list_runs(history)))
        last_go = restart + 5
        assert (removal.kept is not None) == (restart <= day < last_go)
        if removal.kept is not None:
            assert "the last of these runs go on 2024-12-23" in removal.kept  # which is the day ``last_go``
            assert removal.is_news == (day == restart)
    assert left == [1, 2, 3, 4, 5, 5, 6, 6, 6, 6, 6, 5, 5]


def test_a_run_of_a_clock_that_was_years_behind_goes_when_as_many_days_have_runs(
    make_result: Make, topics: str, tmp_path: Path
) -> None:
    history = str(tmp_path / "history")
    went = []
    for day in (-7000, 0, 1, 2, 3):
        append_run(history, make_result(audited_ms=NOW_MS + day * DAY_MS), topics)
        went.append(remove_old_days(history, 3, NOW_MS + day * DAY_MS).days)
    assert went == [[], [], [], [], ["2004-09-14", "2023-11-14"]]


@pytest.mark.parametrize(
    ("audited", "days", "removed"),
    [
        ([0, 7, 14, 21], 3, 3),  # a history of which only the last run is kept
        ([0, 31], 7, 1),  # the same where nothing else tells what is usual
        ([0, 100, 200, 300], 10, 3),
        ([*range(5), 44], 40, 5),  # audits paused for as long as runs are kept
    ],
)
def test_runs_that_are_as_far_apart_as_usual_are_removed(
    make_result: Make, topics: str, tmp_path: Path, audited: list[int], days: int, removed: int
) -> None:
    history = str(tmp_path / "history")
    for day in audited:
        append_run(history, make_result(audited_ms=NOW_MS + day * DAY_MS), topics)
    assert len(remove_old_days(history, days, NOW_MS + audited[-1] * DAY_MS).days) == removed


def test_a_folder_that_holds_anything_else_is_no_history(tmp_path: Path) -> None:
    check_history(str(tmp_path / "not-yet"))
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(UsageError, match="holds 'orders-0', which no history does"):
        check_history(str(tmp_path))


def test_earlier_runs_are_told_the_newest_first(
    make_result: Make, fleet_finding: FleetFinding, topics: str, tmp_path: Path
) -> None:
    history = str(tmp_path / "history")
    old = append_run(history, make_result(STALE, audited_ms=NOW_MS - DAY_MS), topics)
    new = append_run(history, make_result(STALE, STALE | {"name": "other"}, ok=1, fleet=(fleet_finding,)), topics)
    of_fleet = FleetKey(fleet_finding.kind, fleet_finding.cluster_id, fleet_finding.subject)
    assert earlier_runs(history, 5, NOW_MS) == [
        EarlierRun(new.run_id, NOW_MS, {"STALE_ID": 2, "OK": 1}, {"STALE_ID": 10_000, "OK": 900}, {of_fleet}),
        EarlierRun(old.run_id, NOW_MS - DAY_MS, {"STALE_ID": 1}, {"STALE_ID": 5000}, set()),
    ]
    assert [each.run_id for each in earlier_runs(history, 1, NOW_MS)] == [new.run_id]
    Path(old.path("fleet")).unlink()  # as a release left it that kept none
    assert earlier_runs(history, 5, NOW_MS)[1].fleet is None
    Path(new.path("totals")).write_bytes(b"PAR1")
    with pytest.raises(UsageError, match="cannot be read"):
        earlier_runs(history, 1, NOW_MS)


def test_a_finding_was_first_seen_by_the_oldest_scan_that_has_it(
    make_result: Make, topics: str, tmp_path: Path
) -> None:
    history = str(tmp_path / "history")
    other = STALE | {"name": "u-0", "topic": "u"}
    for findings, at_ms in (([other], 1000), ([STALE, other], 2000), ([STALE], 3000)):
        append_run(history, scanned(make_result(*findings, MISSING), at_ms), topics)
    place: Place = ("c1", 1, "/disks/1", "t-0", "old")
    assert first_seen(history, ["t"], NOW_MS)[place] == 2000
    assert first_seen(history, ["u"], NOW_MS) == {("c1", 1, "/disks/1", "u-0", "old"): 1000}
    assert first_seen(str(tmp_path / "nowhere"), ["t"], NOW_MS) == {}


def changes(difference: Difference) -> list[tuple[Any, ...]]:
    names = ("change", "verdict", "name", "partition", "old_disk_bytes", "new_disk_bytes")
    return [tuple(row[name] for name in names) for row in difference.findings.to_pylist()]


def test_what_came_went_and_grew_is_told(make_result: Make, topics: str, tmp_path: Path) -> None:
    history = str(tmp_path / "history")
    gone, grows, stays = ({**STALE, "name": name, "partition": 9} for name in ("gone", "grows", "stays"))
    ok = {"verdict": "OK", "name": "in order"}
    append_run(history, make_result(gone, grows, stays, MISSING | {"partition": 1}, audited_ms=NOW_MS - DAY_MS), topics)
    now = [grows | {"disk_bytes": 6000}, stays | {"disk_bytes": 1}, MISSING | {"partition": 2}, ok]
    append_run(history, make_result(*now), save_topics(tmp_path / "newer", t="another", u="two", v="new"))
    old, new = (open_result(text, history, NOW_MS) for text in ("previous", "latest"))
    difference = compare_results(old, new)
    assert changes(difference) == [
        ("new", "MISSING", None, 2, None, None),
        ("grown", "STALE_ID", "grows", 9, 5000, 6000),
        ("gone", "STALE_ID", "gone", 9, 5000, None),
        ("gone", "MISSING", None, 1, None, None),
    ]
    assert difference.totals == {"new": {"MISSING": 1}, "grown": {"STALE_ID": 1}, "gone": {"STALE_ID": 1, "MISSING": 1}}
    assert difference.topics == [{"cluster_id": "c1", "topic": "t", "old_topic_id": "one", "new_topic_id": "another"}]
    assert not difference.is_clean
    assert compare_results(new, new).is_clean
    assert compare_results(new, replace(new, topics=None)).topics is None


def test_findings_of_the_fleet_come_and_go_whatever_their_counts(
    make_result: Make, fleet_finding: FleetFinding, topics: str, tmp_path: Path
) -> None:
    history, report = str(tmp_path / "history"), tmp_path / "report"
    stays, comes = replace(fleet_finding, subject="stays"), replace(fleet_finding, kind="INVENTORY_AGE")
    runs = (fleet_finding, stays), (replace(stays, detail="2 partitions"), comes)
    for number, fleet in enumerate(runs):
        append_run(history, make_result(fleet=fleet, audited_ms=NOW_MS + number), topics)
    old, new = (open_result(text, history, NOW_MS) for text in ("previous", "latest"))
    difference = compare_results(old, new)
    assert difference.fleet == [{"change": "new", **comes.as_row()}, {"change": "gone", **fleet_finding.as_row()}]
    assert not difference.is_clean
    assert compare_results(new, replace(old, fleet=new.fleet)).is_clean
    assert compare_results(replace(old, fleet=None), new).fleet is None
    report.mkdir()
    last = make_result(fleet=runs[1])
    Path(last.findings_path).rename(report / FINDINGS_FILE)
    with (report / SUMMARY_FILE).open("wb") as out:
        write_summary(last, out)
    assert compare_results(open_result(str(report), None, NOW_MS), new).fleet == []


def test_what_went_asks_for_nothing_and_neither_does_what_is_benign(make_result: Make) -> None:
    one = Result("one", ds.dataset(make_result(STALE).findings_path).to_table())
    two = Result("two", ds.dataset(make_result({"verdict": "STAGED"}).findings_path).to_table())
    assert compare_results(one, two).is_clean
    assert not compare_results(two, one).is_clean


def test_a_result_is_named_by_run_by_day_or_by_path(make_result: Make, topics: str, tmp_path: Path) -> None:
    history = str(tmp_path / "history")
    runs = [append_run(history, make_result(STALE, audited_ms=NOW_MS - age), topics) for age in (DAY_MS, 5000, 0)]
    named = {
        "latest": runs[2],
        "previous": runs[1],
        runs[0].run_id: runs[0],
        "2023-11-14": runs[2],
        "2023-11-13": runs[0],
    }
    assert {text: open_result(text, history, NOW_MS).name for text in named} == {
        text: run.run_id for text, run in named.items()
    }
    report = tmp_path / "report"
    report.mkdir()
    Path(make_result(STALE).findings_path).rename(report / FINDINGS_FILE)
    save_topics(report / TOPICS_FILE, t="one")
    with (tmp_path / "audit.json").open("wb") as out:
        write_findings(make_result(STALE), out)
    for path in (report, report / FINDINGS_FILE, tmp_path / "audit.json"):
        assert (
            changes(compare_results(open_result(str(path), None, NOW_MS), open_result("latest", history, NOW_MS))) == []
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2023-11-15", "has no run 2023-11-15; it holds 1 run, from 20231114T"),
        ("previous", "has no run previous"),
        ("20231114T221320.000Z-00000000", "has no run 20231114T"),
        ("nowhere", "nowhere: there is no such run and no such file"),
    ],
)
def test_a_run_that_is_not_there_is_told(
    make_result: Make, topics: str, tmp_path: Path, text: str, message: str
) -> None:
    run: Run = append_run(str(tmp_path / "history"), make_result(STALE), topics)
    with pytest.raises(UsageError, match=message):
        open_result(text, run.folder, NOW_MS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PAR1", "cannot be read"),
        (b"{", "neither JSON nor Parquet"),
        (b"[]", "is no result of an audit"),
        (orjson.dumps({"schema_version": 1, "findings": [1]}), "is no result of an audit"),
        (orjson.dumps({"schema_version": 1, "findings": [{"bytes": "x"}]}), "is no result of an audit"),
        (orjson.dumps({"schema_version": DIFF_VERSION + 7, "findings": []}), "that this release reads"),
    ],
)
def test_a_file_that_is_no_result_is_refused_in_a_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UsageError, match=message):
        open_result(str(tmp_path / "file"), None, NOW_MS)


def test_a_folder_that_is_no_report_is_told_what_is_missing_in_it(
    make_result: Make, topics: str, tmp_path: Path
) -> None:
    history = append_run(str(tmp_path / "history"), make_result(STALE), topics).folder
    with pytest.raises(UsageError, match=r"/findings\.parquet is not there: .* runs of a history go with --history$"):
        open_result(history, None, NOW_MS)


def test_other_parquet_is_no_result(tmp_path: Path, topics: str) -> None:
    with pytest.raises(UsageError, match="none of the columns of findings"):
        open_result(topics, None, NOW_MS)
    with pytest.raises(UsageError, match="latest and previous go with --history DIR"):
        open_result("latest", None, NOW_MS)


def test_a_run_of_a_time_to_come_hides_no_other_run(make_result: Make, topics: str, tmp_path: Path) -> None:
    history = str(tmp_path / "history")
    basis = (Basis("c1", 1, "inventories", "metadata", NOW_MS, "rules"),)
    made = {
        day: append_run(
            history,
            scanned(make_result(STALE, basis=basis, audited_ms=(at := NOW_MS + day * DAY_MS)), at),
            topics,
        )
        for day in (-1, 3300, 0)
    }
    assert (open_result("latest", history, NOW_MS).name, open_result("previous", history, NOW_MS).name) == (
        made[0].run_id, made[-1].run_id,
    )  # fmt: skip
    assert [each.run_id for each in earlier_runs(history, 5, NOW_MS)] == [made[0].run_id, made[-1].run_id]
    last = last_audit(history, NOW_MS)
    assert last is not None
    assert last[0] == made[0]
    assert open_result(made[3300].day, history, NOW_MS).name == made[3300].run_id
    told = describe_runs_to_come(history, NOW_MS)
    assert told is not None
    assert told.startswith(f"--history {history}: run {made[3300].run_id} is of a time to come, because a clock")
    later_ms = NOW_MS + 3301 * DAY_MS
    assert (describe_runs_to_come(history, later_ms), len(earlier_runs(history, 5, later_ms))) == (None, 3)
    assert open_result("latest", history, later_ms).name == made[3300].run_id


def test_what_only_a_run_of_a_time_to_come_has_was_not_seen_then(
    make_result: Make, topics: str, tmp_path: Path
) -> None:
    history = str(tmp_path / "history")
    for day in (1, 2):
        at_ms = NOW_MS + day * DAY_MS
        append_run(history, scanned(make_result(STALE, audited_ms=at_ms), at_ms), topics)
    assert list(first_seen(history, ["t"], NOW_MS + DAY_MS).values()) == [NOW_MS + DAY_MS]
    assert first_seen(history, ["t"], NOW_MS) == {}


@pytest.mark.parametrize(("behind_ms", "counts"), [(5 * 60_000, True), (5 * 60_000 + 1, False)])
def test_clocks_may_be_a_few_minutes_apart(
    make_result: Make, topics: str, tmp_path: Path, behind_ms: int, counts: bool
) -> None:
    history = str(tmp_path / "history")
    append_run(history, make_result(STALE), topics)
    assert (describe_runs_to_come(history, NOW_MS - behind_ms) is None) == counts
    assert bool(earlier_runs(history, 5, NOW_MS - behind_ms)) == counts


def test_where_all_runs_are_of_a_time_to_come_none_is_the_latest(
    make_result: Make, topics: str, tmp_path: Path
) -> None:
    history = str(tmp_path / "history")
    for day in (0, 1):
        append_run(history, make_result(STALE, audited_ms=NOW_MS + day * DAY_MS), topics)
    with pytest.raises(UsageError, match=r"has no run latest; it holds 2 runs, .*, of which 2 of a time to come by"):
        open_result("latest", history, NOW_MS - DAY_MS)
    assert last_audit(history, NOW_MS - DAY_MS) is None
    told = describe_runs_to_come(history, NOW_MS - DAY_MS)
    assert told is not None
    assert "they count for nothing here" in told
