"""``logstore audit --history`` and ``logstore diff`` from end to end."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from deltalake import DeltaTable

from reconciler.history import DIFF_VERSION, list_runs
from tests.object_store import BUCKET, ObjectStore
from tests.reconciler.cli.conftest import Cluster

Run = Callable[..., Result]


def audit(run: Run, cluster: Cluster, *options: object) -> Result:
    result = run("audit", *cluster.log_dirs, "--metadata", cluster.metadata, *options)
    assert result.exit_code == 1, result.stderr
    return result


def test_each_audit_is_a_run_and_a_report_shows_the_trend(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    history, report = tmp_path / "history", tmp_path / "report"
    first = audit(run, cluster, "--history", history, "--report", report)
    assert "Trend" not in (report / "report.html").read_text("utf-8")
    shutil.rmtree(cluster.log_dir(1) / "orders-0")
    audit(run, cluster, "--history", history, "--report", report, "--history-days", 1)
    old, new = list_runs(str(history))
    assert f"this is run {old.run_id} of the history {history}" in first.stderr
    assert set(DeltaTable(history / "totals").to_pyarrow_table()["run_id"].to_pylist()) == {old.run_id, new.run_id}
    page = (report / "report.html").read_text("utf-8")
    assert "Trend" in page
    assert old.run_id in page
    assert new.run_id not in page

    result = run("diff", "previous", "latest", "--history", history)
    assert result.exit_code == 1
    head, came, *_ = result.stdout.splitlines()
    assert (head, came) == (f"from {old.run_id} to {new.run_id}", "new: 1 MISSING")
    assert "orders-0" in result.stdout.splitlines()[-1]
    document = json.loads(run("diff", old.run_id, new.run_id, "--history", history, "--format", "json").stdout)
    assert document["schema_version"] == DIFF_VERSION
    assert document["totals"] == {"new": {"MISSING": 1}, "grown": {}, "gone": {}}
    assert [(each["change"], each["verdict"]) for each in document["findings"]] == [("new", "MISSING")]
    assert run("diff", "latest", "previous", "--history", history).exit_code == 0
    assert run("diff", report, "latest", "--history", history).exit_code == 0


@pytest.mark.parametrize("scheme", ["s3", "file"])
def test_a_history_and_reports_at_a_uri_serve_every_command_that_reads_them(
    run: Run, cluster: Cluster, tmp_path: Path, s3: ObjectStore, scheme: str
) -> None:
    place = f"s3://{BUCKET}" if scheme == "s3" else f"file://{tmp_path}/kept%20there"
    history, reports = f"{place}/history", [f"{place}/reports/{name}" for name in ("old", "new")]
    (tmp_path / "kept there").mkdir()
    inventories = [tmp_path / f"{node}.parquet" for node in (1, 2)]

    def audited(report: str, *options: object) -> Result:
        for log_dir, path in zip(cluster.log_dirs, inventories, strict=True):
            run("scan", log_dir, "--format", "parquet", "-o", path)
        asked = ("--metadata", cluster.metadata, "--history", history, "--report", report)
        return run("audit", *inventories, *asked, *options)

    first = audited(reports[0])
    shutil.rmtree(cluster.log_dir(1) / "orders-0")
    second = audited(reports[1], "--incremental", "--history-days", 1)
    assert (first.exit_code, second.exit_code) == (1, 1), second.stderr
    assert "judged again" in second.stderr
    asked = ("diff", "--format", "json")
    in_history = run(*asked, "previous", "latest", "--history", history)
    of_reports = run(*asked, *reports)
    assert json.loads(in_history.stdout)["totals"] == {"new": {"MISSING": 1}, "grown": {}, "gone": {}}
    for key in ("totals", "findings", "topics"):
        assert json.loads(of_reports.stdout)[key] == json.loads(in_history.stdout)[key]
    found = json.loads(run("where", "orders", *inventories, "--history", history, "--format", "json").stdout)
    since = {each["since_ms"] < each["scanned_ms"] for each in found["copies"] if each["broker"] == 2}
    assert since == {True, False}  # the finding was there at the first scan, and what was in order is in no history
    assert not list(tmp_path.rglob("*:*"))
    assert not Path(f"{scheme}:").exists()


def test_a_history_in_a_store_that_refuses_costs_no_finding(run: Run, cluster: Cluster, s3: ObjectStore) -> None:
    asked = ("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--history", f"s3://{BUCKET}/history")
    shown = audit(run, cluster).stdout
    s3.refusing = lambda method, path: method in ("PUT", "POST")
    ran = run(*asked)
    assert (ran.exit_code, ran.stdout) == (4, shown)
    assert f"--history s3://{BUCKET}/history: the run was not added: s3://{BUCKET}/history/findings/day=" in ran.stderr
    s3.refusing = lambda method, path: True
    ran = run(*asked)
    assert (ran.exit_code, ran.stdout, "access is denied" in ran.stderr) == (4, "", True)


def test_what_came_of_the_fleet_as_a_whole_is_told(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    history, report = tmp_path / "history", tmp_path / "report"
    audit(run, cluster, "--history", history)
    shutil.copytree(cluster.log_dir(1), cluster.folder / "disks" / "copy")
    copied = [*cluster.log_dirs, cluster.folder / "disks" / "copy"]
    run("audit", *copied, "--metadata", cluster.metadata, "--history", history, "--report", report)
    assert re.search(r'<td class="figure">\d+ \(\d+ new\)</td>', (report / "report.html").read_text("utf-8"))
    shown = run("diff", "previous", "latest", "--history", history)
    assert shown.exit_code == 1
    assert re.search(r"of the fleet as a whole: \d+ new", shown.stdout)
    assert "DUPLICATE_DIRECTORY_ID" in shown.stdout


def test_audits_of_two_clusters_are_compared_with_a_word_that_names_both(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    history = tmp_path / "history"
    audit(run, cluster, "--history", history)
    audit(run, cluster, "--history", history)
    same = run("diff", "previous", "latest", "--history", history)
    assert (same.exit_code, same.stderr) == (0, "")
    for log_dir in cluster.log_dirs:
        identity = Path(log_dir) / "meta.properties"
        identity.write_text(re.sub(r"cluster.id=.*", "cluster.id=another", identity.read_text()))
    run("audit", *cluster.log_dirs, "--metadata", "none", "--history", history)
    first, second = list_runs(str(history))[1:]
    other = run("diff", "previous", "latest", "--history", history, "--format", "json")
    assert other.stderr == (
        f"logstore: {first.run_id} is of cluster cluster-of-the-tests, and {second.run_id} of cluster another: what "
        "the one has is gone, and what the other has is new\n"
    )
    assert json.loads(other.stdout)["totals"]["gone"]


def test_a_clock_that_was_years_ahead_is_told_and_costs_no_earlier_run(
    run: Run, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, now_ns = tmp_path / "history", time.time_ns
    kept = ("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--history", history, "--history-days", 90)
    run(*kept)
    with monkeypatch.context() as patched:
        patched.setattr(time, "time_ns", lambda: now_ns() + 3650 * 86_400 * 10**9)
        ahead = run(*kept)
        patched.setattr(time, "time_ns", lambda: now_ns() + 3651 * 86_400 * 10**9)
        next_day = run(*kept)
    assert (ahead.exit_code, "the runs of 1 day until" in ahead.stderr) == (4, True)
    assert (next_day.exit_code, "note: --history-days 90: the runs of 1 day until" in next_day.stderr) == (1, True)
    after = run(*kept)
    assert after.exit_code == 1
    told = re.compile(r"runs 20\d\d[^ ]+, 20[^ ]+ are of a time to come, because a clock was wrong")
    assert told.search(after.stderr)
    first, last, *to_come = list_runs(str(history))
    again = run(*kept, "--incremental")
    assert told.search(again.stderr)
    assert f"the findings of the others are those of run {last.run_id}" in again.stderr
    for asked in (["diff", "previous", first.run_id], ["where", "orders", *cluster.log_dirs]):
        assert told.search(run(*asked, "--history", history).stderr)
    difference = run("diff", "previous", "latest", "--history", history).stdout
    assert not any(each.run_id in difference for each in to_come)
    assert difference.startswith(f"from {last.run_id} to ")


def test_a_history_that_cannot_be_written_costs_no_finding(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    history = tmp_path / "history"
    history.mkdir()
    (history / "fleet").touch()
    result = run("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--history", history)
    assert result.exit_code == 4
    assert "STALE_ID" in result.stdout
    assert re.search(f"--history {history}: the run was not added: .*; make room or name another", result.stderr)
    assert list_runs(str(history)) == []


def test_an_incremental_audit_judges_what_changed_and_shows_all(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    for node in (1, 2):
        run("scan", cluster.log_dir(node), "--format", "parquet", "-o", tmp_path / f"{node}.parquet")
    asked = ("audit", tmp_path / "1.parquet", tmp_path / "2.parquet", "--metadata", cluster.metadata)
    kept = (*asked, "--history", tmp_path / "history", "--incremental")
    first, second = run(*kept), run(*kept)
    assert "every broker was judged" in first.stderr
    (last, _) = list_runs(str(tmp_path / "history"))
    assert f"0 of 2 brokers judged again; the findings of the others are those of run {last.run_id}" in second.stderr
    assert second.stdout == first.stdout == run(*asked).stdout
    run("scan", cluster.log_dir(2), "--format", "parquet", "-o", tmp_path / "2.parquet")
    assert "1 of 2 brokers judged again" in run(*kept).stderr
    (tmp_path / "new" / "orders-0").mkdir(parents=True)
    assert run("scan", tmp_path / "new", "--format", "parquet", "-o", tmp_path / "3.parquet").exit_code == 0
    beside = ("audit", tmp_path / "3.parquet", *kept[1:])
    assert "0 of 2 brokers judged again" in run(*beside).stderr, "a log dir without identity is no broker"
    Path(list_runs(str(tmp_path / "history"))[-1].path("findings")).write_bytes(b"PAR1")
    damaged = run(*kept)
    assert (damaged.exit_code, damaged.stdout) == (2, "")
    assert "audit once without --incremental" in damaged.stderr


def test_a_table_shows_as_many_as_it_is_asked_for_and_topics_too(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    audit(run, cluster, "--format", "json", "-o", tmp_path / "one.json")
    for node in (1, 2):
        (cluster.log_dir(node) / "junk").mkdir()
    audit(run, cluster, "--format", "parquet", "-o", tmp_path / "two.parquet")
    shown = run("diff", tmp_path / "one.json", tmp_path / "two.parquet", "--limit", "1").stdout
    assert "… and 1 finding more: --limit N" in shown
    assert "topics whose ID changed: not known" in shown


def test_where_says_since_when_a_copy_is_a_finding(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    audit(run, cluster, "--history", tmp_path / "history")
    asked = ("where", "orders-1", *cluster.log_dirs, "--history", tmp_path / "history", "--format", "json")
    copies = {copy["broker"]: copy for copy in json.loads(run(*asked).stdout)["copies"]}
    assert copies[2]["since_ms"] < copies[2]["scanned_ms"]
    assert copies[1]["since_ms"] == copies[1]["scanned_ms"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--history-days", "7"), "--history-days goes with --history"),
        (("--incremental",), "--incremental goes with --history"),
        (("--incremental", "--spark"), "--incremental goes with --history"),
        (("--history", "{disk}/history"), "lies in the log dir"),
        (("--history", "{disk}/.."), "which no history does"),
        (("--history", "{disk}/../no/where"), "cannot be written to"),
        (("--history", __file__), "Not a directory"),
    ],
)
def test_a_history_that_cannot_be_is_refused_before_any_work(
    run: Run, cluster: Cluster, options: tuple[str, ...], message: str
) -> None:
    given = [word.format(disk=cluster.log_dirs[0]) for word in options]
    result = run("audit", *cluster.log_dirs, "--metadata", cluster.metadata, *given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_what_cannot_be_compared_is_refused(run: Run, tmp_path: Path) -> None:
    assert run("diff", "latest", "previous").exit_code == 2
    assert run("diff", "latest", "previous", "--history", tmp_path / "nowhere").exit_code == 2
