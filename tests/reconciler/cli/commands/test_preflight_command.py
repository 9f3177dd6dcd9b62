"""``logstore preflight`` from end to end: what it prints, in which form, its exit codes, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from layout import meta_properties, partition_metadata
from layout.directory_name import future_name, stray_name
from layout.meta_properties import MetaProperties
from reconciler.preflight import FINDING_SCHEMA
from tests.reconciler.cli.conftest import CLUSTER, OLD_ORDERS, long_written, save_metadata

Run = Callable[..., Result]


def as_zookeeper(log_dir: Path, node: int) -> None:
    identity = MetaProperties(0, CLUSTER, node)
    (log_dir / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))


def test_a_broker_that_would_lose_nothing_gives_exit_code_0(cluster, run: Run) -> None:
    result = run("preflight", cluster.log_dir(1), "--metadata", cluster.metadata)
    assert result.exit_code == 0, result.output
    assert "a broker of release 3.9.0 in KRaft mode would start here\n" in result.stderr
    assert "note" in result.stdout and "unclean" not in result.stderr.splitlines()[-1]
    quiet = run("preflight", cluster.log_dir(1), "--metadata", cluster.metadata, "--no-notes")
    assert quiet.stdout == "Nothing was found that a broker would stumble over.\n"


def test_a_replica_in_the_place_of_its_log_dir_is_a_usage_error(cluster, run: Run) -> None:
    result = run("preflight", cluster.log_dir(1) / "orders-0", "--metadata", cluster.metadata)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"orders-0 is a replica of log dir {cluster.log_dir(1)}: give the log dir" in result.stderr


def test_a_stray_gives_exit_code_1_with_the_next_command(cluster, run: Run) -> None:
    result = run("preflight", cluster.log_dir(2), "--metadata", cluster.metadata)
    assert result.exit_code == 1
    assert "renamed_to_stray" in result.stdout and "SOURCE" not in result.stdout
    assert f"Next: logstore plan {cluster.log_dir(2)} --metadata {cluster.metadata} -o plan.json" in result.stderr
    assert result.stderr.splitlines()[-1].endswith("would start here; 1 replica would be renamed to -stray")


@pytest.mark.parametrize(
    ("name", "data", "rule"),
    [
        (future_name("gone", 3, "0" * 32), partition_metadata.encode(OLD_ORDERS), "unwanted"),
        (future_name("orders", 0, "0" * 32), b"", "partition_metadata"),
        (stray_name("gone", 3, "0" * 32), bytes(43), "partition_metadata"),
    ],
    ids=["unwanted future", "damaged future", "damaged stray"],
)
def test_what_is_printed_for_a_replica_beside_the_live_ones_takes_it_out_of_the_log_dir(
    cluster, run: Run, name: str, data: bytes, rule: str
) -> None:
    (cluster.log_dir(1) / name).mkdir()
    (cluster.log_dir(1) / name / partition_metadata.FILE_NAME).write_bytes(data)
    long_written(cluster.log_dir(1))
    asked = ("preflight", cluster.log_dir(1), "--metadata", cluster.metadata, "--format", "json")
    (found,) = [each for each in json.loads(run(*asked).stdout)["findings"] if each["name"] == name]
    assert (found["rule"], found["next"].split()[:2]) == (rule, ["logstore", "doctor"])
    (broker,) = json.loads(run(*shlex.split(found["next"])[1:], "--format", "json").stdout)["brokers"]
    moved = broker["next"][0]["command"]
    assert moved.startswith(f"mv -nT {cluster.log_dir(1)}/{name} ")
    subprocess.run(shlex.split(moved), check=True)
    assert name not in run(*asked).stdout


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("7.0", "what a broker of Kafka 7.0 does is not known here; the newest known release is 4.3"),
        ("3.10", "there is no Kafka 3.10: 3.9 is the last of its line"),
    ],
)
def test_a_release_that_nobody_knows_is_refused(cluster, run: Run, release: str, said: str) -> None:
    result = run("preflight", cluster.log_dir(1), "--kafka", release)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_release_that_nothing_tells_is_said_to_be_assumed(cluster, run: Run) -> None:
    result = run("preflight", cluster.log_dir(1), "--metadata", cluster.metadata)
    assert "--kafka 3.9 is assumed: nothing that was read says of which release the broker is" in result.stderr
    given = run("preflight", cluster.log_dir(1), "--metadata", cluster.metadata, "--kafka", "3.9")
    assert "assumed" not in given.stderr


def test_what_keeps_it_from_starting_gives_exit_code_1_as_well(cluster, run: Run) -> None:
    (cluster.log_dir(1) / "lost+found").mkdir()
    result = run("preflight", cluster.log_dir(1), "--metadata", "none")
    assert result.exit_code == 1
    heading, _, first = result.stdout.splitlines()[:3]
    assert heading == f"WHERE: … is {cluster.log_dir(1).parent}"
    assert first.startswith(f"startup_aborts  …/{cluster.log_dir(1).name}/lost+found ")
    assert "would not start here, for 1 reason" in result.stderr


def test_json_has_the_answer_and_every_finding(cluster, run: Run) -> None:
    args = ("preflight", cluster.log_dir(2), "--metadata", cluster.metadata, "--format", "json", "--kafka", "4.0")
    document = json.loads(run(*args).stdout)
    assert (document["schema_version"], document["kafka"], document["mode"]) == (2, "4.0.0", "kraft")
    assert (document["starts"], document["nothing_lost"]) == (True, False)
    assert document["totals"]["renamed_to_stray"] == 1
    (stray,) = [each for each in document["findings"] if each["effect"] == "renamed_to_stray"]
    assert set(stray) == set(FINDING_SCHEMA.names)
    assert (stray["topic"], stray["partition"], stray["rule"]) == ("orders", 1, "unwanted")
    asked = f"{cluster.log_dir(2)} --metadata {cluster.metadata} --kafka 4.0"
    assert stray["next"] == f"logstore plan {asked} -o plan.json"
    (log_dir,) = document["log_dirs"]
    assert log_dir["would_be_online"] and log_dir["is_metadata_log_dir"] and log_dir["lock_held_by"] is None
    assert document["metadata_sources"][0]["offset"] == 42


def test_ndjson_and_csv_have_the_same_rows(cluster, run: Run, tmp_path: Path) -> None:
    args = ("preflight", cluster.log_dir(2), "--metadata", cluster.metadata)
    lines = [json.loads(line) for line in run(*args, "--format", "ndjson").stdout.splitlines()]
    assert {line["schema_version"] for line in lines} == {2}
    run(*args, "--format", "csv", "-o", tmp_path / "out.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert [row["rule"] for row in rows] == [line["rule"] for line in lines] != []


def test_the_mode_is_that_of_the_identities_unless_it_is_given(cluster, run: Run) -> None:
    as_zookeeper(cluster.log_dir(1), 1)

    def sentence(*args: str) -> str:
        return run("preflight", cluster.log_dir(1), "--metadata", "none", *args).stderr.splitlines()[-1]

    assert "in ZooKeeper mode would start here" in sentence()
    assert "in ZooKeeper mode, migrating to KRaft would start here" in sentence("--mode", "migration")
    assert "in KRaft mode would start here" in sentence("--mode", "kraft")
    # A release that has one mode alone has no choice.
    assert "4.0.0 in KRaft mode" in sentence("--kafka", "4.0")


def test_a_zookeeper_broker_does_not_start_on_disks_of_kraft(cluster, run: Run) -> None:
    result = run("preflight", cluster.log_dir(1), "--mode", "zookeeper", "--metadata", cluster.metadata)
    assert result.exit_code == 1
    assert "version 1 is not expected" in result.stdout


def test_the_metadata_log_dir_can_be_named(cluster, run: Run) -> None:
    (cluster.log_dir(1) / "__cluster_metadata-0").mkdir()
    other = cluster.folder / "other"
    other.mkdir()
    identity = MetaProperties(1, CLUSTER, 1)
    (other / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))
    wrong = run("preflight", other, cluster.log_dir(1), "--metadata", cluster.metadata)
    assert wrong.exit_code == 1 and f"--metadata-log-dir {cluster.log_dir(1)}" in wrong.stderr
    args = ("preflight", other, cluster.log_dir(1), "--metadata", cluster.metadata)
    assert run(*args, "--metadata-log-dir", cluster.log_dir(1)).exit_code == 0


def test_a_table_can_be_cut(cluster, run: Run) -> None:
    for number in range(5):
        (cluster.log_dir(1) / f"foreign{number}").mkdir()
    result = run("preflight", cluster.log_dir(1), "--metadata", "none", "--limit", "2")
    assert len([line for line in result.stdout.splitlines() if line.startswith("startup_aborts")]) == 2
    assert "5 findings more" in result.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--kafka", "trunk"], "no Kafka release"),
        (["--kafka", "4.0", "--mode", "zookeeper"], "no ZooKeeper mode"),
        (["--kafka", "3.3", "--mode", "migration"], "does not migrate"),
        (["--kafka", "2.7", "--mode", "kraft"], "no KRaft mode"),
        (["--metadata", "/no/such/path"], "no such file"),
        (["-o", "{log_dir}/out.json"], "lies in the log dir"),
    ],
)
def test_what_does_not_fit_is_a_usage_error(cluster, run: Run, args: list[str], words: str) -> None:
    given = [arg.format(log_dir=cluster.log_dir(1)) for arg in args]
    result = run("preflight", cluster.log_dir(1), *given)
    assert result.exit_code == 2
    assert words in result.stderr


def test_log_dirs_that_are_not_there_at_all_are_a_usage_error(run: Run, tmp_path: Path) -> None:
    result = run("preflight", tmp_path / "a", tmp_path / "b")
    assert result.exit_code == 2 and "mounted" in result.stderr


def test_metadata_of_another_cluster_are_refused(cluster, run: Run) -> None:
    other = save_metadata(cluster.folder / "other", "another-cluster")
    assert run("preflight", cluster.log_dir(1), "--metadata", other).exit_code == 3


def test_nothing_is_changed_and_no_lock_is_left(cluster, run: Run) -> None:
    def names() -> list[str]:
        return sorted(str(path) for path in cluster.folder.rglob("*"))

    before = names()
    run("preflight", *cluster.log_dirs, "--metadata", cluster.metadata)
    assert names() == before


def test_a_folder_of_log_dirs_is_taken_for_a_log_dir_and_what_lies_below_is_reported(cluster, run: Run) -> None:
    result = run("preflight", cluster.folder / "disks", "--metadata", "none")
    assert result.exit_code == 1
    assert f"log dirs lie below it: {cluster.log_dir(1)}, {cluster.log_dir(2)}" in result.stderr


def test_names_that_are_not_utf8_stand_as_escapes_in_every_format(cluster, run: Run) -> None:
    os.mkdir(os.fsencode(str(cluster.log_dir(1))) + b"/\xe9-x")
    os.mkdir(os.fsencode(str(cluster.log_dir(1))) + b"/\xe9-7")
    for form in ("table", "json", "ndjson", "csv"):
        result = run("preflight", cluster.log_dir(1), "--metadata", cluster.metadata, "--format", form)
        assert (result.exit_code, result.exception.__class__) == (1, SystemExit), form
        assert "\\xe9-7" in result.stdout and "\\xe9-x" in result.stdout


def test_a_release_that_no_longer_has_the_mode_of_the_log_dirs_is_answered_for_the_other_one_and_that_is_said(
    cluster, run: Run
) -> None:
    log_dir = cluster.log_dir(1)
    asked = ("preflight", log_dir, "--metadata", cluster.metadata, "--kafka")
    remark = (
        "meta.properties is of version 0, as a broker with ZooKeeper writes it, and Kafka 4.0.0 has no ZooKeeper mode"
    )
    assert "the answer is for a broker in" not in run(*asked, "4.0").stderr
    identity = MetaProperties(0, CLUSTER, 1)
    (log_dir / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))
    said = run(*asked, "4.0").stderr
    assert remark in said and "the answer is for a broker in KRaft mode. Name the broker's own release" in said
    assert "the answer is for a broker in" not in run(*asked, "3.9").stderr


def test_an_inventory_is_no_log_dir_to_ask_about(cluster, run: Run) -> None:
    file = cluster.folder / "i.parquet"
    assert run("scan", *cluster.log_dirs, "-o", file).exit_code == 0
    refused = run("preflight", file)
    assert refused.exit_code == 2
    assert refused.stderr == f"logstore: {file} is an inventory: a preflight needs the log dirs themselves\n"
