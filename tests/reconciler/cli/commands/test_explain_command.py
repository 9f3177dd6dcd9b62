"""``logstore explain`` from end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from reconciler.cli.commands.explain import SCHEMA_VERSION
from reconciler.sources import parquet
from reconciler.verdicts import Doubt
from reconciler.verdicts.advice import DOUBT_CLAUSE
from tests.reconciler.cli.commands.test_purge_command import FAR_AWAY_MS, stage_replica
from tests.reconciler.cli.conftest import ORDERS, make_log_dir

Run = Callable[..., Result]


def test_a_stale_replica_is_explained_with_verdict_evidence_and_what_is_next(cluster, run: Run) -> None:
    result = run("explain", cluster.log_dir(2) / "orders-1", "--metadata", cluster.metadata)
    assert result.exit_code == 1
    for shown in (
        "is a live replica: partition 1 of topic orders",
        "rule: the name is topic, '-', partition",
        "3.9 KRaft, 4.3 KRaft  loaded, and renamed to a stray  topic orders was re-created under another ID",
        "STALE_ID: the disk holds topic ID",
        f"next: logstore plan {cluster.log_dir(2)} --metadata {cluster.metadata} -o plan.json",
    ):
        assert shown in result.stdout


def test_json_says_the_same(cluster, run: Run) -> None:
    result = run("explain", cluster.log_dir(2) / "orders-1", "--metadata", cluster.metadata, "--format", "json")
    document = json.loads(result.stdout)
    assert document["schema_version"] == SCHEMA_VERSION
    assert [judged["verdict"] for judged in document["verdicts"]] == ["STALE_ID"]
    assert {"label": "partition.metadata", "text": "in order"} in document["facts"]
    assert document["at_start"][0]["kafka"] == "3.9 KRaft"


def test_what_is_right_asks_nobody_to_act(cluster, run: Run) -> None:
    result = run("explain", cluster.log_dir(1) / "orders-0", "--metadata", cluster.metadata)
    assert (result.exit_code, "OK\n" in result.stdout) == (0, True)


def test_a_staged_replica_that_is_wanted_here_leads_to_its_way_back(cluster, run: Run) -> None:
    path = cluster.log_dirs[0]
    stage_replica(path, 1, FAR_AWAY_MS)
    explained = {
        source: run("explain", f"{path}.deleting/{ORDERS}_1", "--metadata", source).stdout
        for source in (str(cluster.metadata), "none")
    }
    assert f"next: logstore doctor {path} --metadata {cluster.metadata}" in explained[str(cluster.metadata)]
    assert f"next: logstore staged {path}" in explained["none"]


def test_without_metadata_a_replica_is_not_compared(cluster, run: Run) -> None:
    result = run("explain", cluster.log_dir(1) / "orders-0")
    assert result.exit_code == 0
    assert "NOT_COMPARED" in result.stdout
    assert "no metadata" in result.stderr


@pytest.mark.parametrize("name", [".", "meta.properties", "orders-0/partition.metadata"])
def test_log_dirs_and_files_are_explained_too(cluster, run: Run, name: str) -> None:
    result = run("explain", cluster.log_dir(1) / name, "--metadata", cluster.metadata)
    assert result.exit_code == 0, result.output
    assert "rule: " in result.stdout


def test_every_entry_of_a_checkpoint_without_a_directory_has_its_verdict(cluster, run: Run) -> None:
    path = cluster.log_dir(1) / "recovery-point-offset-checkpoint"
    path.write_text("0\n2\ngone 0 5\ngone 1 5\n")
    result = run("explain", path, "--metadata", cluster.metadata)
    assert (result.exit_code, result.stdout.count("CHECKPOINT_ENTRY: ")) == (1, 2)


def test_a_path_outside_any_log_dir_is_explained_by_its_name(tmp_path: Path, run: Run) -> None:
    (tmp_path / "orders-0").mkdir()
    result = run("explain", tmp_path / "orders-0")
    assert (result.exit_code, "by its name alone" in result.stdout) == (0, True)


def test_an_empty_directory_with_the_name_of_a_replica_may_be_a_mount_point(tmp_path: Path, run: Run) -> None:
    disk = tmp_path / "disk-2"
    disk.mkdir()
    said = " ".join(run("explain", disk).stdout.split())
    assert "or it is a log dir without meta.properties, whose disk is not mounted" in said
    assert f"logstore doctor {disk} says what to do then" in said
    (disk / "00000000000000000000.log").touch()
    assert "or it is" not in run("explain", disk).stdout, "something lies in it"


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path, run: Run) -> None:
    result = run("explain", tmp_path / "absent")
    assert (result.exit_code, result.stderr) == (2, f"logstore: {tmp_path}/absent: No such file or directory\n")


def test_a_replica_that_is_live_twice_is_no_ok_where_its_other_log_dir_is_named(cluster, run: Run) -> None:
    """Both copies have the wanted topic ID, so each alone looks right."""
    first = make_log_dir(cluster.folder / "twice" / "1", 1, {"orders-0": ORDERS})
    second = make_log_dir(cluster.folder / "twice" / "2", 1, {"orders-0": ORDERS})
    result = run("explain", first / "orders-0", "--log-dir", second, "--metadata", cluster.metadata)
    assert result.exit_code == 1
    assert "DUPLICATE: live in 2 directories of this broker" in result.stdout
    assert f"next: logstore repair {first} {second} --metadata {cluster.metadata} -o repair.json" in result.stdout
    same = run("explain", first / "orders-0", "--log-dir", first, "--metadata", cluster.metadata)
    assert (same.exit_code, "DUPLICATE" in same.stdout) == (0, False)
    assert "as far as this log dir alone tells; that the same replica lies in another log dir" in same.stdout
    assert "There is nothing to do" not in same.stdout


def test_a_verdict_on_what_is_newer_than_the_metadata_is_in_doubt_here_too(cluster, run: Run) -> None:
    stale = cluster.log_dir(2) / "orders-1"
    calm = run("explain", stale, "--metadata", cluster.metadata)
    assert DOUBT_CLAUSE[Doubt.CHANGED_SINCE_METADATA] not in " ".join(calm.stdout.split())
    (stale / "00000000000000000000.log").touch()
    doubted = run("explain", stale, "--metadata", cluster.metadata)
    assert DOUBT_CLAUSE[Doubt.CHANGED_SINCE_METADATA] in " ".join(doubted.stdout.split())


def test_where_no_time_is_known_explain_says_that_a_doubt_is_not_known(cluster, tmp_path: Path, run: Run) -> None:
    stale = cluster.log_dir(2) / "orders-1"
    state = parquet.load(cluster.metadata)
    timeless = replace(state, identity=replace(state.identity, timestamp_ms=None))
    (tmp_path / "timeless").mkdir()
    parquet.save_state(timeless, str(tmp_path / "timeless"))
    result = run("explain", stale, "--metadata", tmp_path / "timeless")
    said = " ".join(result.stdout.split())
    assert "whether it is newer than the metadata is not known, because " in said
    assert "does not say as of when it speaks" in said


def test_the_staging_directory_beside_a_log_dir_is_explained_as_what_it_is(cluster, run: Run) -> None:
    path = cluster.log_dirs[0]
    stage_replica(path, 1, FAR_AWAY_MS)
    result = run("explain", f"{path}.deleting")
    assert result.exit_code == 0
    assert "is the staging directory of a log dir" in result.stdout and "no broker looks into it" in result.stdout
    assert "1 staged replica" in result.stdout and f"logstore staged {path}" in result.stdout
    assert "move it out" not in result.stdout and "AT START" not in result.stdout
