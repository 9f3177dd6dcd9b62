"""``logstore audit`` from end to end, and everything that can be wrong with what it is given."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import resource
import shlex
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from layout.ids import TopicId
from logstore.rows import ROW_SCHEMA, InventoryForm, read_inventory, write_inventory
from reconciler.audit import AUDIT_SCHEMA_VERSION, SCRATCH_PREFIX, Accepted
from reconciler.cli.commands import audit as audit_command
from reconciler.cli.parameters.audit import ACCEPTED
from reconciler.desired import DesiredBuilder, MetadataIdentity
from reconciler.errors import UsageError
from reconciler.sources import parquet
from tests.reconciler.cli.conftest import shown_space
from tools.writers import kraft_writer

Run = Callable[..., Result]
ORDERS, NEWER_ORDERS = TopicId(bytes(range(16))), TopicId(bytes(range(50, 66)))


@pytest.fixture(autouse=True)
def in_time(cluster) -> None:
    """The replicas were last written to an hour ago, and the metadata is of a minute ago."""
    now = time.time()
    for path in cluster.folder.rglob("*"):
        os.utime(path, (now - 3600, now - 3600))
    save(cluster, Path(cluster.metadata), timestamp_ms=int(now * 1000) - 60_000)


def save(cluster, folder: Path, **identity: object) -> str:
    """Save what the small cluster wants as metadata with another identity."""
    builder = DesiredBuilder()
    for partition in range(2):
        builder.partition("orders", str(ORDERS), partition, [1, 2], isr=[1, 2], leader=1)
    for node in (1, 2):
        builder.broker(node, 1, False, [])
    folder.mkdir(exist_ok=True)
    values = {"cluster_id": "cluster-of-the-tests", "offset": 42, **identity}
    parquet.save_state(builder.build(MetadataIdentity("kraft", "a test", **values)), str(folder))
    return str(folder)


def refused(result: Result, code: int, *shown: str) -> None:
    """One sentence on standard error, nothing on standard output, and the exit code."""
    last = result.stderr.splitlines()[-1]
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert last.startswith(("logstore: ", "Error: "))
    for text in shown:
        assert text in last
    assert "Traceback" not in result.output
    assert "bug" not in result.output


def test_a_stale_replica_is_a_finding_with_its_evidence_and_a_next_command(cluster, run: Run) -> None:
    result = run("audit", *cluster.log_dirs, "--metadata", cluster.metadata)
    assert result.exit_code == 1
    lines = [line.split() for line in result.stdout.splitlines()]
    stale = cluster.log_dir(2) / "orders-1"
    others = [cluster.log_dir(1) / "orders-0", cluster.log_dir(1) / "orders-1", cluster.log_dir(2) / "orders-0"]
    assert ["STALE_ID", "1", *shown_space(stale)] in lines
    assert ["OK", "3", *shown_space(*others)] in lines
    assert "topic orders was re-created" in result.stdout
    assert f"Next: logstore plan {cluster.log_dirs[1]} --metadata {cluster.metadata} -o plan.json" in result.stderr
    assert "2 log dirs of 2 brokers (embedded)" in result.stderr


def test_an_audit_without_findings_is_clean(cluster, run: Run) -> None:
    result = run("audit", cluster.log_dirs[0], "--metadata", cluster.metadata)
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines() if line] == [
        ["VERDICT", "COUNT", "SIZE"],
        ["OK", "2", *shown_space(cluster.log_dir(1) / "orders-0", cluster.log_dir(1) / "orders-1")],
    ]


def test_every_table_shows_the_space_that_is_taken_and_json_the_length_too(cluster, run: Run, tmp_path: Path) -> None:
    stale = cluster.log_dir(2) / "orders-1"
    os.truncate(stale / "00000000000000000000.log", 0)
    for suffix in ("index", "timeindex"):
        (stale / f"00000000000000000000.{suffix}").touch()
        os.truncate(stale / f"00000000000000000000.{suffix}", 10_485_760)
        os.utime(stale / f"00000000000000000000.{suffix}", (0, 0))
    os.utime(stale / "00000000000000000000.log", (0, 0))
    taken = " ".join(shown_space(stale))
    plan = tmp_path / "plan.json"
    source = ("--metadata", cluster.metadata)
    # Metadata of this age and a share of a half would close gates that have nothing to do with sizes.
    gates = ("--max-age", "36500d", "--max-share", "100%")
    planned = run("plan", cluster.log_dirs[1], *source, *gates, "-o", plan)
    shown = {
        "audit": run("audit", *cluster.log_dirs, *source).stdout,
        "scan": run("scan", cluster.log_dirs[1]).stdout,
        "explain": run("explain", stale, *source).stdout,
        "plan": planned.stdout,
        "apply": run("apply", plan).stdout,
    }
    for command, text in shown.items():
        assert taken in text and "21 MB" not in text, (command, text)
    document = json.loads(run("audit", cluster.log_dirs[0], *source, "--format", "json").stdout)
    assert set(document["bytes"]) == set(document["disk_bytes"]) == {"OK"}
    assert {"bytes", "disk_bytes"} <= set(document["brokers"][0])


def test_the_metadatas_own_log_is_no_replica(cluster, run: Run) -> None:
    before = json.loads(run("audit", cluster.log_dirs[0], "--metadata", cluster.metadata, "--format", "json").stdout)
    (cluster.log_dir(1) / "__cluster_metadata-0").mkdir()
    args = ("audit", cluster.log_dirs[0], "--metadata", cluster.metadata, "--all", "--format", "json")
    after = json.loads(run(*args).stdout)
    assert after["totals"] == before["totals"] == {"OK": 2}
    assert after["brokers"][0]["replicas"] == before["brokers"][0]["replicas"] == 2
    assert [each["name"] for each in after["findings"]] == ["orders-0", "orders-1"]


def test_json_has_totals_and_findings(cluster, run: Run) -> None:
    document = json.loads(run("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--format", "json").stdout)
    assert document["schema_version"] == AUDIT_SCHEMA_VERSION
    assert document["totals"] == {"STALE_ID": 1, "OK": 3}
    (finding,) = document["findings"]
    assert (finding["verdict"], finding["broker"], finding["name"]) == ("STALE_ID", 2, "orders-1")
    assert finding["metadata_topic_id"] == str(ORDERS)
    assert document["metadata"]["offset"] == 42


def test_all_lists_what_is_ok_as_well(cluster, run: Run) -> None:
    args = ("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--all")
    document = json.loads(run(*args, "--format", "json").stdout)
    assert [finding["verdict"] for finding in document["findings"]] == ["STALE_ID", "OK", "OK", "OK"]
    assert run(*args).stdout.count("/orders-") == 4


def test_every_format_has_the_same_findings(cluster, run: Run, tmp_path: Path) -> None:
    args = ("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--format")
    ndjson = [json.loads(line) for line in run(*args, "ndjson").stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(run(*args, "csv").stdout)))
    assert run(*args, "parquet", "-o", tmp_path / "found.parquet").exit_code == 1
    table = pq.read_table(tmp_path / "found.parquet").to_pylist()
    assert {line.pop("schema_version") for line in ndjson} == {AUDIT_SCHEMA_VERSION}
    planned = f"logstore plan {cluster.log_dirs[1]} --metadata {cluster.metadata} -o plan.json"
    assert [line.pop("next") for line in ndjson] == [planned]
    assert ndjson == table
    assert [row["name"] for row in rows] == [row["name"] for row in table] == ["orders-1"]


def test_only_the_verdicts_that_were_asked_for_are_shown_and_the_exit_code_speaks_of_all(cluster, run: Run) -> None:
    args = ("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--format", "json", "--verdict", "stray")
    result = run(*args)
    assert (result.exit_code, json.loads(result.stdout)["findings"]) == (1, [])


def test_without_sizes_bytes_are_unknown(cluster, run: Run) -> None:
    args = ("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--no-sizes")
    assert json.loads(run(*args, "--format", "json").stdout)["bytes"] == {}
    assert ["OK", "3", "–"] in [line.split() for line in run(*args).stdout.splitlines()]


def test_of_inventories_whose_scans_counted_no_bytes_none_are_known(cluster, run: Run, tmp_path: Path) -> None:
    asked = ("audit", tmp_path / "all.parquet", "--metadata", cluster.metadata)
    for option, shown, is_known in (("--no-sizes", "–", False), ("--sizes", "kB", True)):
        run("scan", *cluster.log_dirs, option, "--format", "parquet", "-o", tmp_path / "all.parquet")
        found = json.loads(run(*asked, "--format", "json").stdout)
        assert [bool(found[name]) for name in ("bytes", "disk_bytes")] == [is_known] * 2, option
        (ok,) = (line.split() for line in run(*asked).stdout.splitlines() if line.startswith("OK "))
        assert (ok[1], ok[-1]) == ("3", shown)


def test_metadata_beside_the_log_dirs_is_found(cluster, run: Run) -> None:
    records = [kraft_writer.topic_record("orders", ORDERS)]
    records += [kraft_writer.partition_record(ORDERS, index, [1, 2]) for index in range(2)]
    kraft_writer.write_metadata_dir(cluster.log_dir(1), log=[records], cluster_id="cluster-of-the-tests")
    result = run("audit", cluster.folder / "disks", "--format", "json")
    assert json.loads(result.stdout)["metadata"]["source"] == "kraft"
    assert json.loads(result.stdout)["totals"]["STALE_ID"] == 1


def test_without_metadata_only_the_disks_are_judged(cluster, run: Run) -> None:
    (cluster.log_dir(1) / "orders-0" / "partition.metadata").write_bytes(b"")
    result = run("audit", *cluster.log_dirs, "--metadata", "none", "--format", "json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["metadata"]) == (1, None)
    assert document["totals"] == {"DAMAGED": 1, "NOT_COMPARED": 3}
    assert [finding["kind"] for finding in document["fleet"]] == ["TOPIC_UNDER_SEVERAL_IDS"]


def test_inventories_are_judged_like_the_trees_they_were_made_of(cluster, run: Run, tmp_path: Path) -> None:
    for node in (1, 2):
        run("scan", cluster.log_dir(node), "--format", "parquet", "-o", tmp_path / f"{node}.parquet")
    args = ("--metadata", cluster.metadata, "--format", "json")
    trees = json.loads(run("audit", *cluster.log_dirs, *args).stdout)
    both = json.loads(run("audit", tmp_path / "1.parquet", tmp_path / "2.parquet", *args).stdout)
    mixed = json.loads(run("audit", tmp_path / "1.parquet", cluster.log_dirs[1], *args).stdout)
    for document in (trees, both, mixed):
        del document["audited_ms"], document["metadata"], document["metadata_sources"]
    assert trees == both == mixed


def test_a_report_leaves_four_files_and_the_next_audit_finds_what_changed(cluster, run: Run, tmp_path: Path) -> None:
    report = tmp_path / "deep" / "report"
    args = ("audit", *cluster.log_dirs, "--format", "json")
    run(*args, "--metadata", cluster.metadata, "--report", report)
    assert {path.name for path in report.iterdir()} == {
        "findings.parquet", "topics.parquet", "summary.json", "report.html",
    }  # fmt: skip
    assert json.loads((report / "summary.json").read_bytes())["totals"] == {"STALE_ID": 1, "OK": 3}
    assert "STALE_ID" in (report / "report.html").read_text("utf-8")
    builder = DesiredBuilder()
    builder.partition("orders", str(NEWER_ORDERS), 0, [1, 2])
    (tmp_path / "newer").mkdir()
    parquet.save_state(builder.build(MetadataIdentity("kraft", "", "cluster-of-the-tests")), str(tmp_path / "newer"))
    again = json.loads(run(*args, "--metadata", tmp_path / "newer", "--previous", report).stdout)
    changed = [finding for finding in again["fleet"] if finding["kind"] == "TOPIC_ID_CHANGED"]
    assert [finding["subject"] for finding in changed] == ["orders"]


def test_an_absent_log_dir_among_others_is_a_finding(cluster, run: Run) -> None:
    args = ("audit", cluster.log_dirs[0], cluster.folder / "absent", "--metadata", cluster.metadata)
    result = run(*args, "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)["totals"]["ABSENT"]) == (1, 1)


def test_two_log_dirs_with_one_directory_id_are_a_finding_of_the_fleet(cluster, run: Run) -> None:
    identity = (cluster.log_dir(1) / "meta.properties").read_text().replace("node.id=1", "node.id=2")
    (cluster.log_dir(2) / "meta.properties").write_text(identity)
    document = json.loads(run("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--format", "json").stdout)
    assert "DUPLICATE_DIRECTORY_ID" in [finding["kind"] for finding in document["fleet"]]


def test_metadata_of_another_cluster_is_refused(cluster, run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    parquet.save_state(
        DesiredBuilder().build(MetadataIdentity("kraft", "", "another-cluster")), str(tmp_path / "other")
    )
    result = run("audit", *cluster.log_dirs, "--metadata", tmp_path / "other")
    refused(result, 3, "another-cluster", "cluster-of-the-tests")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 40,
        struct.pack(">qiibI", 0, 2**31 - 1, 0, 2, 0) + b"\x00" * 40,  # a batch that claims 2 GB
        b"\xff" * 500,
    ],
)
def test_damaged_kraft_metadata_is_refused(cluster, run: Run, tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(content)
    refused(run("audit", *cluster.log_dirs, "--metadata", f"kraft:{folder}"), 3, "__cluster_metadata-0")


def test_a_truncated_kraft_snapshot_is_refused(cluster, run: Run, tmp_path: Path) -> None:
    kraft_writer.write_metadata_dir(tmp_path, snapshot=[kraft_writer.topic_record("orders", ORDERS)], end_offset=9)
    (snapshot,) = (tmp_path / "__cluster_metadata-0").glob("*.checkpoint")
    snapshot.write_bytes(snapshot.read_bytes()[:-7])
    refused(run("audit", *cluster.log_dirs, "--metadata", f"kraft:{snapshot}"), 3, snapshot.name)


def test_json_that_is_no_request_is_refused_with_all_reasons(cluster, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text('{"controllerId": "x", "controllerEpoch": null}')
    refused(run("audit", *cluster.log_dirs, "--metadata", f"request:{path}"), 3, "controllerId", "controllerEpoch")


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["--metadata", "nowhere"], "nowhere"),
        (["--metadata", "oracle:x"], "oracle"),
        (["--memory", "much"], "--memory much"),
        (["--master", "local[2]"], "--master goes with --spark"),
        (["--spark", "--master", "spark://host:7077"], "a folder that this machine and all executors see"),
        (["--spark", "--jobs", "2"], "lists trees on all cores that Spark has"),
        (["--previous", "nowhere"], "nowhere/topics.parquet"),
        (["--previous", "same", "--report", "same"], "the same folder"),
        (["--verdict", "LOST"], "LOST"),
        (["--format", "xml"], "xml"),
    ],
)
def test_what_does_not_exist_or_fit_together_is_a_usage_error(cluster, run: Run, args: list[str], shown: str) -> None:
    refused(run("audit", cluster.log_dirs[0], *args), 2, shown)


def test_a_report_is_never_written_into_a_log_dir(cluster, run: Run) -> None:
    for folder in (cluster.log_dir(1), cluster.log_dir(1) / "report"):
        result = run("audit", cluster.log_dirs[0], "--metadata", cluster.metadata, "--report", folder)
        refused(result, 2, "lies in the log dir")
    assert not (cluster.log_dir(1) / "report").exists()


def test_a_report_that_cannot_be_made_is_a_usage_error(cluster, run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    args = ("audit", cluster.log_dirs[0], "--metadata", cluster.metadata, "--report")
    refused(run(*args, tmp_path / "file"), 2, "file")
    refused(run(*args, tmp_path / "file" / "below"), 2, "below cannot be made")


@pytest.mark.spark
def test_spark_without_java_is_refused(cluster, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    refused(run("audit", cluster.log_dirs[0], "--metadata", cluster.metadata, "--spark"), 3, "Java")


@pytest.mark.corpus
def test_every_tree_of_a_real_broker_is_audited_without_a_bug(corpus: Path, run: Run) -> None:
    trees = sorted(path for path in corpus.iterdir() if path.is_dir())
    assert trees
    for tree in trees:
        result = run("audit", tree, "--format", "json")
        assert result.exit_code in (0, 1), (tree.name, result.stderr)
        assert json.loads(result.stdout)["schema_version"] == AUDIT_SCHEMA_VERSION


AS_OF_MS = 1_600_000_000_000


def test_a_stopped_brokers_own_metadata_is_the_first_thing_said_and_a_finding(cluster, run: Run) -> None:
    own = save(cluster, cluster.folder / "own", timestamp_ms=AS_OF_MS, keeper=1)
    log_dir = cluster.log_dirs[0]
    result = run("audit", log_dir, "--metadata", own)
    first = result.stderr.splitlines()[0]
    assert "the metadata is broker 1's own copy, and the broker does not run" in first
    assert "it speaks as of 2020-09-13 12:26:40 UTC, " in first and "nothing since is known" in first
    assert first.endswith(f": logstore audit {log_dir} --metadata SOURCE")
    assert result.exit_code == 1
    assert "OWN_METADATA" in result.stdout and "OK" in result.stdout
    accepted = run("audit", log_dir, "--metadata", own, "--accept", "own-metadata", "--format", "json")
    assert accepted.exit_code == 0
    document = json.loads(accepted.stdout)
    assert ([each["kind"] for each in document["fleet"]], document["accepted"]) == (["OWN_METADATA"], ["own-metadata"])


@pytest.mark.parametrize("verb", ["plan", "preflight"])
def test_whatever_goes_by_a_stopped_brokers_own_metadata_says_so_first(cluster, run: Run, verb: str) -> None:
    own = save(cluster, cluster.folder / "own", timestamp_ms=AS_OF_MS, keeper=1)
    first = run(verb, cluster.log_dirs[0], "--metadata", own).stderr.splitlines()[0]
    assert "the metadata is broker 1's own copy" in first
    assert first.endswith(f": logstore {verb} {cluster.log_dirs[0]} --metadata SOURCE")


def test_an_explanation_by_a_stopped_brokers_own_metadata_says_so_first(cluster, run: Run) -> None:
    own = save(cluster, cluster.folder / "own", timestamp_ms=AS_OF_MS, keeper=1)
    path = f"{cluster.log_dirs[0]}/orders-0"
    result = run("explain", path, "--metadata", own)
    assert "OK" in result.stdout
    assert result.stderr.splitlines()[0].endswith(f": logstore explain {path} --metadata SOURCE")


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "{0}/orders-0", "--log-dir", "{1}"),
        ("plan", "{0}", "{1}", "--kafka", "3.8.1", "--topic", "orders", "--delay", "2h", "-o", "{0}.json"),
        ("preflight", "{0}", "{1}", "--metadata-log-dir", "{0}", "--no-notes"),
        ("audit", "{0}", "{1}", "--json", "--accept", "own-metadata"),
    ],
    ids=lambda words: words[0],
)
def test_the_command_with_metadata_that_goes_on_has_every_option_that_was_given(
    cluster, run: Run, words: tuple[str, ...]
) -> None:
    own = save(cluster, cluster.folder / "own", timestamp_ms=AS_OF_MS, keeper=1)
    given = [word.format(*cluster.log_dirs) for word in words]
    first = run(*given, "--metadata", own).stderr.splitlines()[0]
    printed = shlex.split(first.rpartition(": logstore ")[2])
    same = [{"--json": "json", "-o": "--output"}.get(word, word) for word in given]
    assert sorted(printed) == sorted([*same, *(["--format"] if "json" in same else []), "--metadata", "SOURCE"])


def test_metadata_of_a_broker_whose_disks_are_not_judged_is_not_its_own(cluster, run: Run) -> None:
    own = save(cluster, cluster.folder / "own", timestamp_ms=int(time.time() * 1000), keeper=1)
    result = run("audit", cluster.log_dirs[1], "--metadata", own)
    assert "own copy" not in result.stderr
    assert "OWN_METADATA" not in result.stdout


def test_what_was_written_after_the_metadata_is_condemned_in_doubt_and_counted_apart(cluster, run: Run) -> None:
    old = save(cluster, cluster.folder / "old", timestamp_ms=AS_OF_MS)
    result = run("audit", cluster.log_dirs[1], "--metadata", old)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["VERDICT", "COUNT", "IN", "DOUBT", "SIZE"] in lines
    assert ["STALE_ID", "1", "1"] in [line[:3] for line in lines]
    assert "in doubt, because it was written to after the metadata was" in result.stdout
    read = run("audit", cluster.log_dirs[1], "--metadata", old, "--format", "json")
    (finding,) = json.loads(read.stdout)["findings"]
    assert (finding["verdict"], finding["doubt"], read.exit_code) == ("STALE_ID", "CHANGED_SINCE_METADATA", 1)
    assert json.loads(read.stdout)["doubts"] == {"STALE_ID": 1}


def test_what_an_inventory_from_before_the_metadata_lacks_is_missing_in_doubt(
    cluster, run: Run, tmp_path: Path
) -> None:
    shutil.rmtree(cluster.log_dir(1) / "orders-1")
    inventory = tmp_path / "1.parquet"
    run("scan", cluster.log_dirs[0], "--format", "parquet", "-o", inventory)
    later = save(cluster, cluster.folder / "later", timestamp_ms=int(time.time() * 1000) + 30 * 3_600_000)
    read = run("audit", inventory, "--metadata", later, "--format", "json")
    document = json.loads(read.stdout)
    (finding,) = document["findings"]
    assert (finding["verdict"], finding["doubt"], read.exit_code) == ("MISSING", "SCANNED_BEFORE_METADATA", 1)
    assert [each["kind"] for each in document["fleet"]] == ["INVENTORY_AGE", "BROKER_NOT_REPORTED"]
    accepted = ("--accept", "doubt", "--accept", "not-reported")
    assert run("audit", inventory, "--metadata", later, "--inventory-gap", "31h", *accepted).exit_code == 0
    assert run("audit", inventory, "--metadata", later, *accepted).exit_code == 1


def inventory_of(run: Run, path: Path, *log_dirs: str) -> str:
    assert run("scan", *log_dirs, "--format", "parquet", "-o", path).exit_code == 0
    return str(path)


def test_of_several_inventories_of_a_log_dir_the_newest_counts_and_older_ones_are_named(
    cluster, run: Run, tmp_path: Path
) -> None:
    old = inventory_of(run, tmp_path / "old.parquet", *cluster.log_dirs)
    shutil.rmtree(cluster.log_dir(1) / "orders-1")
    new = inventory_of(run, tmp_path / "new.parquet", cluster.log_dirs[0])
    read = run("audit", old, new, "--metadata", cluster.metadata, "--format", "json")
    apart = run("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--format", "json")
    assert json.loads(read.stdout)["findings"] == json.loads(apart.stdout)["findings"]
    assert json.loads(read.stdout)["totals"] == json.loads(apart.stdout)["totals"]
    assert (
        f"note: {old} does not count for log dirs that were scanned again since: {cluster.log_dirs[0]}" in read.stderr
    )
    wholly = run("audit", old, *cluster.log_dirs, "--metadata", cluster.metadata, "--format", "json")
    assert json.loads(wholly.stdout)["totals"] == json.loads(apart.stdout)["totals"]
    assert "note: 1 older inventory does not count, because its log dirs were scanned again since: " in wholly.stderr


@pytest.mark.parametrize(
    ("host", "earlier_ms", "said"),
    [("short", 0, "two names of one host"), ("other", 10**9, "the host was renamed"), ("other", 1, "may be a copy")],
)
def test_a_log_dir_under_two_names_of_its_host_is_no_duplicate_and_is_told_once(
    cluster, run: Run, tmp_path: Path, host: str, earlier_ms: int, said: str
) -> None:
    new = read_inventory(inventory_of(run, tmp_path / "new.parquet", *cluster.log_dirs)).to_pylist()
    for name, named, ago in (("new", "short.example.com", 0), ("old", host, earlier_ms)):
        moved = [{**row, "host": named, "scanned_ms": row["scanned_ms"] - ago} for row in new]
        with (tmp_path / f"{name}.parquet").open("wb") as out:
            write_inventory([pa.Table.from_pylist(moved, ROW_SCHEMA)], out, InventoryForm.PARQUET)
    asked = ("--metadata", cluster.metadata, "--format", "json")
    both = run("audit", tmp_path / "new.parquet", tmp_path / "old.parquet", *asked)
    alone = run("audit", tmp_path / "new.parquet", *asked)
    assert json.loads(both.stdout)["totals"] == json.loads(alone.stdout)["totals"]
    assert both.stderr.count(said) == 1
    kinds = [each["kind"] for each in json.loads(both.stdout)["fleet"]]
    assert ("DUPLICATE_DIRECTORY_ID" in kinds, "DUPLICATE_NODE_ID" in kinds) == (said == "may be a copy", False)


def test_what_a_killed_audit_left_in_the_folder_of_its_report_is_named(cluster, run: Run, tmp_path: Path) -> None:
    left = tmp_path / "report" / f"{SCRATCH_PREFIX}0a1b2c"
    left.mkdir(parents=True)
    asked = ("audit", *cluster.log_dirs, "--metadata", cluster.metadata, "--report", tmp_path / "report")
    assert f"{left} is of an audit that runs, or was killed: remove it once none runs\n" in run(*asked).stderr
    left.rmdir()
    assert "was killed" not in run(*asked).stderr


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_broker_without_an_inventory_is_a_finding_in_whatever_form_the_others_are(
    cluster, run: Run, tmp_path: Path, form: str
) -> None:
    run("scan", cluster.log_dirs[0], "--format", form, "-o", tmp_path / "one")
    read = run("audit", tmp_path / "one", "--metadata", cluster.metadata, "--format", "json")
    assert [(each["kind"], each["subject"]) for each in json.loads(read.stdout)["fleet"]] == [
        ("BROKER_NOT_REPORTED", "broker 2")
    ]
    assert read.exit_code == 1


def test_an_inventory_that_cannot_be_read_is_a_finding_and_the_others_are_audited(
    cluster, run: Run, tmp_path: Path
) -> None:
    good = inventory_of(run, tmp_path / "1.parquet", cluster.log_dirs[0])
    bad = Path(inventory_of(run, tmp_path / "2.parquet", cluster.log_dirs[1]))
    bad.write_bytes(bad.read_bytes()[:-9])
    read = run("audit", good, bad, "--metadata", cluster.metadata, "--format", "json")
    document = json.loads(read.stdout)
    assert [(each["kind"], each["subject"]) for each in document["fleet"]][-2:] == [
        ("BROKER_NOT_REPORTED", "broker 2"),
        ("INVENTORY_UNREADABLE", str(bad)),
    ]
    assert (read.exit_code, document["totals"].get("OK")) == (4, 2)
    assert run("audit", bad, "--metadata", cluster.metadata).exit_code == 3


@pytest.mark.parametrize(
    ("memory", "heap"), [("4GB", "3815m"), ("4GiB", "4096m"), ("1.5 tib", "1572864m"), ("512MB", "488m"), ("1B", "1m")]
)
def test_memory_with_spark_is_the_heap_of_its_driver_in_whole_mebibytes(
    cluster, run: Run, monkeypatch: pytest.MonkeyPatch, memory: str, heap: str
) -> None:
    def give_up(*_: object, **how: object) -> None:
        raise UsageError(f"asked for {how['memory']}")

    monkeypatch.setattr(audit_command, "run_spark", give_up)
    found = run("audit", *cluster.log_dirs, "--spark", "--memory", memory, "--master", "local")
    assert f"asked for {heap}" in found.stderr


def test_what_can_be_accepted_is_what_the_help_offers() -> None:
    assert set(ACCEPTED) == set(Accepted)


@pytest.mark.parametrize("verb", ["audit", "doctor"])
@pytest.mark.parametrize(("gigabytes", "code"), [(0.13, 3), (0.15, 3), (0.6, 3), (2.4, 3), (2.6, 1), (8, 1)])
def test_a_limited_address_space_is_enough_or_named_before_a_library_ends_the_process(
    cluster, start, verb: str, gigabytes: float, code: int
) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * 1e9),) * 2)

    done = start(verb, *cluster.log_dirs, "--metadata", cluster.metadata, preexec_fn=limit)
    assert done.returncode == code, done.stderr
    if code == 3:
        (sentence,) = done.stderr.splitlines()
        assert "the address space is limited to" in sentence and "(ulimit -v)" in sentence


@pytest.mark.parametrize(("verb", "megabytes"), [("scan", 120), ("plan", 130), ("preflight", 130), ("scan", 20)])
def test_a_verb_without_room_for_its_libraries_says_so_before_they_are_loaded(
    cluster, start, verb: str, megabytes: int
) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 1_000_000,) * 2)

    done = start(verb, cluster.log_dirs[0], preexec_fn=limit)
    (sentence,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (3, "")
    assert "ulimit -v" in sentence


@pytest.mark.parametrize("verb", ["audit", "scan", "staged", "preflight"])
def test_a_disk_that_cannot_be_listed_below_a_folder_ends_with_4(
    cluster, run: Run, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    closed = cluster.log_dirs[1]
    listed = os.scandir

    def refuse(path: str) -> object:
        if path == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", refuse)
    given = closed if verb == "preflight" else cluster.folder / "disks"
    metadata = ("--metadata", cluster.metadata) if verb in ("audit", "preflight") else ()
    result = run(verb, given, *metadata)
    assert result.exit_code == 4
    assert f"{closed} cannot be read: Permission denied; nothing is known of what lies there" in result.stderr


def test_without_sizes_an_audit_says_that_it_knows_of_no_doubt(cluster, run: Run) -> None:
    asked = ("audit", *cluster.log_dirs, "--metadata", cluster.metadata)
    note = "it is not known of 1 finding when the files were last written to, and so not whether they are newer than"
    assert note in run(*asked, "--no-sizes").stderr
    assert note in "".join(json.loads(run(*asked, "--no-sizes", "--format", "json").stdout)["notes"])
    assert "last written to" not in run(*asked).stderr


@pytest.mark.parametrize("verb", ["audit", "plan", "preflight"])
def test_the_metadata_of_a_stopped_node_that_is_the_only_voter_is_all_there_is(cluster, run: Run, verb: str) -> None:
    own = save(cluster, cluster.folder / "own", timestamp_ms=AS_OF_MS, keeper=1, keeper_decides=True)
    result = run(verb, cluster.log_dirs[0], "--metadata", own)
    assert result.stderr.splitlines()[0] == (
        "logstore: the metadata is node 1's own: it is the only voter of its cluster, so nothing was decided since it "
        "stopped"
    )
    assert "OWN_METADATA" not in result.output and "--metadata SOURCE" not in result.output


def test_the_cut_metadata_of_a_stopped_only_voter_is_a_finding(cluster, run: Run) -> None:
    cut = {"keeper": 1, "keeper_decides": True, "ends_early": ("the log is cut at offset 7",)}
    own = save(cluster, cluster.folder / "own", timestamp_ms=AS_OF_MS, **cut)
    result = run("audit", cluster.log_dirs[0], "--metadata", own)
    assert (result.exit_code, "OWN_METADATA" in result.stdout) == (1, True), result.output
    first = result.stderr.splitlines()[0]
    assert "nobody else knows what it decided last, and OK may be wrong: name it, once it runs, as kafka:" in first
