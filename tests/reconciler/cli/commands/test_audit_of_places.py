"""``logstore audit`` of inventories where fleets keep them: an object store, folders, patterns and manifests."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import Result

from logstore.rows import list_uri
from logstore.rows.uris import fetch, join_uri, put
from reconciler.audit import FINDING_SCHEMA, AuditResult
from reconciler.audit import spark as spark_engine
from reconciler.cli.commands import audit as audit_command
from reconciler.cli.frame import AuditJob, run_embedded
from reconciler.errors import RefusedError
from tests.object_store import BUCKET, ObjectStore

Run = Callable[..., Result]
PREFIX = f"s3://{BUCKET}/inventories/"
ON_CLUSTER = ("--spark", "--master", "spark://x:1")


@pytest.fixture
def scanned(cluster, run: Run, s3: ObjectStore) -> Path:
    """Inventories of both brokers in the store, and the same files in a folder of this machine, which is returned."""
    assert run("scan", *cluster.log_dirs, "-o", PREFIX).exit_code == 0
    for each in list_uri(PREFIX) or ():
        path = cluster.folder / "copies" / each.name
        path.parent.mkdir(parents=True)
        fetch(each.uri, str(path))
    return Path(cluster.folder, "copies")


def found(run: Run, cluster, *paths: object) -> tuple[int, str]:
    """The exit code and the findings of an audit."""
    ran = run("audit", *paths, "--metadata", cluster.metadata, "--format", "ndjson", "--all")
    return ran.exit_code, ran.stdout


def test_every_way_to_name_inventories_gives_the_findings_of_the_files(cluster, run: Run, scanned: Path) -> None:
    files = sorted(scanned.rglob("*.parquet"))
    code, findings = expected = found(run, cluster, *files)
    assert (code, len(findings.splitlines())) == (1, 4)
    manifest = cluster.folder / "list"
    manifest.write_text(f"{files[0]}\n{PREFIX}*/*/broker=2/\n")
    for given in (
        [PREFIX],
        [PREFIX.replace("s3:", "s3a:").rstrip("/")],
        [f"{PREFIX}cluster=*/**/*.parquet"],
        [scanned],
        [f"file://{scanned}/"],
        [f"{scanned}/**/*.parquet"],
        [f"@{manifest}"],
        [files[0], f"{PREFIX}cluster=cluster-of-the-tests/", files[0]],
    ):
        assert found(run, cluster, *given) == expected


def test_a_damaged_object_is_a_finding_and_costs_only_itself(cluster, run: Run, scanned: Path, s3: ObjectStore) -> None:
    _, two = sorted(scanned.rglob("*.parquet"))
    uri = join_uri(PREFIX, str(two.relative_to(scanned)))
    two.write_bytes(two.read_bytes()[:-10])
    put(str(two), uri)
    ran = run("audit", PREFIX, "--metadata", cluster.metadata)
    assert ran.exit_code == 4
    assert f"logstore: {uri} is damaged or was not written to its end" in ran.stderr
    assert "INVENTORY_UNREADABLE" in ran.stdout
    s3.refusing = lambda method, path: method != "HEAD" and path.endswith(two.name)
    ran = run("audit", PREFIX, "--metadata", cluster.metadata)
    assert (ran.exit_code, f"{uri}: access is denied" in ran.stderr) == (4, True)


@pytest.mark.parametrize(
    ("place", "code", "sentence"),
    [
        (f"s3://{BUCKET}/nothing/", 3, "holds no inventory"),
        ("s3://absent/inventories/", 4, "there is no such bucket"),
        ("@absent", 3, "@absent stands for a list of inventories, and absent cannot be read"),
    ],
)
def test_a_place_that_gives_nothing_is_one_sentence(
    cluster, run: Run, s3: ObjectStore, place: str, code: int, sentence: str
) -> None:
    ran = run("audit", cluster.log_dirs[0], place, "--metadata", cluster.metadata)
    assert (ran.exit_code, ran.stdout, len(ran.stderr.splitlines())) == (code, "", 1)
    assert sentence in ran.stderr


def test_a_command_that_changes_disks_takes_none(cluster, run: Run, scanned: Path) -> None:
    ran = run("plan", PREFIX, "--metadata", cluster.metadata)
    assert (ran.exit_code, "is an inventory: a plan needs the log dirs themselves" in ran.stderr) == (2, True)


def test_a_folder_with_replicas_beside_inventories_is_a_log_dir_and_says_so(cluster, run: Run, scanned: Path) -> None:
    (scanned / "orders-0").mkdir()
    ran = run("audit", scanned, "--metadata", cluster.metadata)
    assert f"{scanned} is taken for a log dir, because orders-0 in it has the name of a replica" in ran.stderr
    assert "ABSENT" in ran.stdout


def test_an_empty_file_with_the_name_of_an_inventory_is_a_finding(cluster, run: Run, scanned: Path) -> None:
    (scanned / "torn.parquet").write_bytes(b"")
    ran = run("audit", scanned, "--metadata", cluster.metadata)
    assert f"{scanned}/torn.parquet is no inventory" in ran.stderr
    assert "INVENTORY_UNREADABLE" in ran.stdout


def test_a_scan_of_inventories_in_a_store_lists_their_rows(cluster, run: Run, scanned: Path) -> None:
    in_store, here = (run("scan", place, "--format", "ndjson").stdout for place in (PREFIX, scanned))
    assert in_store == here != ""


def test_executors_of_a_cluster_get_copies_that_they_see(
    cluster, run: Run, scanned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given_to_spark(job: AuditJob, **_: object) -> AuditResult:
        inventories = job.inputs.inventories
        copies = [inventories.readable(path) for path in inventories.paths]
        assert len(copies) == 2
        assert all(Path(copy).is_relative_to(cluster.folder / "report") for copy in copies)
        return run_embedded(job, jobs=1, memory_limit=None)

    monkeypatch.setattr(audit_command, "run_spark", given_to_spark)
    report = cluster.folder / "report"
    ran = run("audit", PREFIX, "--metadata", cluster.metadata, "--spark", "--master", "spark://x:1", "--report", report)
    assert (ran.exit_code, "findings.parquet" in {path.name for path in report.iterdir()}) == (1, True)


def test_an_inventory_of_an_older_release_is_judged_beside_others(cluster, run: Run, scanned: Path) -> None:
    one, two = sorted(scanned.rglob("*.parquet"))
    _, whole = found(run, cluster, one, two)
    rows = pq.read_table(one, partitioning=None)
    pq.write_table(rows.drop_columns(["clean_shutdown", "segments", "end_offset"]), one)
    code, findings = found(run, cluster, one, two)
    assert (code, findings) == (1, whole)
    put(str(one), join_uri(PREFIX, str(one.relative_to(scanned))))
    assert found(run, cluster, PREFIX) == (1, whole)


def test_a_report_in_a_store_is_whole_and_the_next_audit_compares_with_it(
    cluster, run: Run, scanned: Path, s3: ObjectStore
) -> None:
    report, asked = f"s3://{BUCKET}/audits/today/", ("audit", scanned, "--metadata", cluster.metadata)
    here = run(*asked, "--report", cluster.folder / "here")
    ran = run(*asked, "--report", report)
    assert (ran.exit_code, ran.stdout) == (here.exit_code, here.stdout)
    assert f"logstore: the report is at {report}\n" in ran.stderr
    files = {each.name: each.uri for each in list_uri(report) or ()}
    assert files.keys() == {path.name for path in (cluster.folder / "here").iterdir()}
    fetch(files["findings.parquet"], str(cluster.folder / "copy.parquet"))
    same = [cluster.folder / "here" / "findings.parquet", cluster.folder / "copy.parquet"]
    old, new = (sorted(map(repr, pq.read_table(path).select(FINDING_SCHEMA.names).to_pylist())) for path in same)
    assert old == new != []
    again = run(*asked, "--report", report)
    assert (again.exit_code, again.stdout, "holds files already, findings.parquet" in again.stderr) == (2, "", True)
    assert run(*asked, "--previous", report).stdout == run(*asked, "--previous", cluster.folder / "here").stdout
    assert (
        f"s3://{BUCKET}/none/topics.parquet: No such file" in run(*asked, "--previous", f"s3://{BUCKET}/none/").stderr
    )


def test_a_report_of_two_audits_at_once_is_that_of_the_first(
    cluster, run: Run, scanned: Path, s3: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, asked = f"s3://{BUCKET}/audits/twice/", ("audit", scanned, "--metadata", cluster.metadata)
    write = audit_command._write_report

    def as_another_does(*given: object) -> None:
        write(*given)
        put(str(next(scanned.rglob("*.parquet"))), f"{report}findings.parquet/of-another.parquet")

    monkeypatch.setattr(audit_command, "_write_report", as_another_does)
    ran = run(*asked, "--report", report)
    assert ran.exit_code == 4
    assert f"the report is nowhere: {report} holds files by now, findings.parquet/of-another.parquet" in ran.stderr
    assert [each.name for each in list_uri(report) or ()] == ["findings.parquet/of-another.parquet"]


def test_a_report_that_a_store_refuses_costs_no_finding_and_has_no_summary(
    cluster, run: Run, scanned: Path, s3: ObjectStore
) -> None:
    asked = ("audit", scanned, "--metadata", cluster.metadata)
    shown = run(*asked).stdout
    s3.refusing = lambda method, path: method in ("PUT", "POST") and "report.html" in path
    ran = run(*asked, "--report", f"s3://{BUCKET}/audits/broken/")
    assert (ran.exit_code, ran.stdout) == (4, shown)
    assert f"the report is incomplete: s3://{BUCKET}/audits/broken/report.html: access is denied" in ran.stderr
    assert not list_uri(f"s3://{BUCKET}/audits/broken/")
    s3.refusing = lambda method, path: False
    assert "the report is at" in run(*asked, "--report", f"s3://{BUCKET}/audits/broken/").stderr


@pytest.mark.parametrize("quiet", [True, False])
def test_what_an_audit_left_that_was_killed_while_it_put_its_report_is_replaced_once_it_is_quiet(
    cluster, run: Run, scanned: Path, s3: ObjectStore, monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    report, asked = f"s3://{BUCKET}/audits/cut/", ("audit", scanned, "--metadata", cluster.metadata)
    for name in ("findings.parquet/part-00000.parquet", "topics.parquet"):  # as Spark writes it, which the other never
        put(str(next(scanned.rglob("*.parquet"))), f"{report}{name}")
    before = list_uri(report)
    if quiet:
        now_ns = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() + 600 * 10**9)
    ran = run(*asked, "--report", report)
    if not quiet:
        assert (ran.exit_code, ran.stdout, list_uri(report)) == (2, "", before)
        assert "of a report that is not finished: an audit puts it there, or was killed" in ran.stderr
        return
    assert f"{report} holds 2 files of a report that was cut short, which this one replaces\n" in ran.stderr
    assert (ran.exit_code, f"the report is at {report}" in ran.stderr) == (1, True)
    whole = list_uri(report)
    assert [each.name for each in whole or ()] == [
        "findings.parquet", "report.html", "summary.json", "topics.parquet",
    ]  # fmt: skip
    assert "holds files already, findings.parquet" in run(*asked, "--report", report).stderr
    assert list_uri(report) == whole


@pytest.mark.parametrize("name", ["summary.json", "notes.txt", "findings.parquet.bak"])
def test_what_is_no_report_that_was_cut_short_is_never_replaced(
    cluster, run: Run, scanned: Path, s3: ObjectStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    report, now_ns = f"s3://{BUCKET}/audits/kept/", time.time_ns
    for each in ("topics.parquet", name):
        put(str(next(scanned.rglob("*.parquet"))), f"{report}{each}")
    before = list_uri(report)
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + 10**15)
    ran = run("audit", scanned, "--metadata", cluster.metadata, "--report", report)
    assert (ran.exit_code, "holds files already" in ran.stderr, list_uri(report)) == (2, True, before)


def test_an_audit_that_goes_on_with_its_report_meanwhile_keeps_its_place(
    cluster, run: Run, scanned: Path, s3: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, some = f"s3://{BUCKET}/audits/slow/", str(next(scanned.rglob("*.parquet")))
    write, now_ns = audit_command._write_report, time.time_ns
    put(some, f"{report}findings.parquet")

    def while_the_other_goes_on(*given: object) -> None:
        write(*given)
        put(some, f"{report}topics.parquet")

    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + 600 * 10**9)
    monkeypatch.setattr(audit_command, "_write_report", while_the_other_goes_on)
    ran = run("audit", scanned, "--metadata", cluster.metadata, "--report", report)
    assert (ran.exit_code, f"the report is nowhere: {report} holds files by now" in ran.stderr) == (4, True)
    assert [each.name for each in list_uri(report) or ()] == ["findings.parquet", "topics.parquet"]


def test_what_a_killed_audit_handed_to_spark_is_named_and_keeps_no_report_from_its_place(
    cluster, run: Run, scanned: Path, s3: ObjectStore
) -> None:
    report, asked = f"s3://{BUCKET}/audits/killed/", ("audit", scanned, "--metadata", cluster.metadata)
    left = f"{report}_exchange-0a/1-rows.parquet"
    put(str(next(scanned.rglob("*.parquet"))), left)
    ran = run(*asked, "--report", report)
    assert (ran.exit_code, f"the report is at {report}" in ran.stderr) == (1, True)
    assert f"{report}_exchange-0a is of an audit that runs, or was killed: remove it once none runs" in ran.stderr
    assert {"summary.json", "_exchange-0a/1-rows.parquet"} <= {each.name for each in list_uri(report) or ()}
    assert "holds files already, findings.parquet" in run(*asked, "--report", report).stderr


def test_findings_are_put_at_a_uri_when_they_are_whole(cluster, run: Run, scanned: Path, s3: ObjectStore) -> None:
    asked = ("audit", scanned, "--metadata", cluster.metadata, "--format", "ndjson")
    shown = run(*asked).stdout
    for uri in (f"s3://{BUCKET}/findings.ndjson", f"file://{cluster.folder}/findings.ndjson"):
        assert (run(*asked, "-o", uri).exit_code, run(*asked, "-o", uri).stdout) == (1, "")
        fetch(uri, str(cluster.folder / "copy"))
        assert (cluster.folder / "copy").read_text() == shown != ""
    s3.refusing = lambda method, path: True
    ran = run(*asked, "-o", f"s3://{BUCKET}/others.ndjson")
    assert (ran.exit_code, f"s3://{BUCKET}/others.ndjson: access is denied" in ran.stderr) == (4, True)


def test_a_cluster_of_spark_hands_files_over_where_its_report_goes(
    cluster, run: Run, scanned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[AuditJob] = []

    def given_to_spark(job: AuditJob, **_: object) -> AuditResult:
        seen.append(job)
        return run_embedded(job, jobs=1, memory_limit=None)

    monkeypatch.setattr(audit_command, "run_spark", given_to_spark)
    asked = ("audit", PREFIX, "--metadata", cluster.metadata)
    here, report = cluster.folder / "here", f"s3://{BUCKET}/audits/of-spark"
    ran, embedded = run(*asked, *ON_CLUSTER, "--report", report), run(*asked, "--report", here)
    assert (ran.exit_code, ran.stdout) == (1, embedded.stdout)
    assert {each.name for each in list_uri(report) or ()} == {path.name for path in here.iterdir()}
    assert seen[0].store == report
    copies = seen[0].inputs.inventories.copies.paths.values()
    assert not any(Path(path).is_relative_to(cluster.folder) for path in copies)
    # A file URI is a folder, which executors see.
    run(*asked, *ON_CLUSTER, "--report", f"file://{cluster.folder}/shared")
    assert (seen[1].store, seen[1].folder) == (None, f"{cluster.folder}/shared")


def test_spark_reads_inventories_where_they_lie_in_the_kind_of_store_that_it_uses_anyway(
    cluster, run: Run, scanned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, Any]] = []

    def given_to_spark(*_: object, **how: object) -> None:
        given.append(how)
        raise RefusedError("enough was seen")

    # Put there before they are asked for, so that no PySpark is loaded.
    monkeypatch.setitem(vars(spark_engine), "open_session", lambda *_, **__: nullcontext())
    monkeypatch.setitem(vars(spark_engine), "audit", given_to_spark)
    (one, two), far = sorted(scanned.rglob("*.parquet")), f"{PREFIX}cluster=*/**/*.parquet"
    for places, report in (([far], "s3"), ([far.replace("s3:", "s3a:")], "s3"), ([one, two], "s3"), ([far], "file")):
        at = f"s3://{BUCKET}/audits/" if report == "s3" else f"file://{cluster.folder}/report"
        assert "enough was seen" in run("audit", *places, *ON_CLUSTER, "--report", at).stderr
    assert sorted(given[0]["stored"].values()) == sorted(each.uri for each in list_uri(PREFIX) or ())
    assert [how["stored"] for how in given[1:]] == [{}, {}, {}]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ([], "a cluster needs --report with a folder that this machine and all executors see, or with the URI of one"),
        (["--report", f"s3://{BUCKET}/audits/"], "write into a folder that they and this machine see: name one with"),
    ],
)
def test_where_executors_cannot_write_is_told_before_spark_starts(
    cluster, run: Run, s3: ObjectStore, report: list[str], said: str
) -> None:
    ran = run("audit", *cluster.log_dirs, *ON_CLUSTER, *report)
    assert (ran.exit_code, len(ran.stderr.splitlines()), said in ran.stderr) == (2, 1, True)
