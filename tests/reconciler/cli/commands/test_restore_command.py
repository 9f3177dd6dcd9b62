"""``logstore restore`` from end to end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from layout import meta_properties
from layout.directory_name import stray_name
from layout.ids import DirectoryId
from layout.meta_properties import MetaProperties
from layout.topic import TopicPartition
from logstore.log_dir import LogDir
from logstore.staging import restore
from reconciler.cli.commands.restore import parse_partition
from reconciler.errors import UsageError
from tests.reconciler.cli.commands.test_purge_command import FAR_AWAY_MS, stage_replica
from tests.reconciler.cli.conftest import CLUSTER, OLD_ORDERS, ORDERS, make_log_dir

Run = Callable[..., Result]


@pytest.fixture
def log_dir(cluster) -> str:
    """Of broker 1, with both its replicas staged."""
    for partition in (0, 1):
        stage_replica(cluster.log_dirs[0], partition, FAR_AWAY_MS)
    return cluster.log_dirs[0]


def live(log_dir: str) -> set[str]:
    return {name for name in os.listdir(log_dir) if name.startswith("orders-")}


def stray(log_dir: str, name: str = "") -> str:
    name = name or stray_name("orders", 5, "0" * 32)
    Path(log_dir, name).mkdir()
    Path(log_dir, name, "00000000000000000000.log").write_bytes(b"x")
    return name


@pytest.mark.parametrize(
    "chosen",
    [("--all",), ("--topic", "orders"), ("--topic-id", ORDERS), ("--topic", "orders", "--topic-id", ORDERS)],
)
def test_a_dry_run_prints_what_a_real_run_prints_and_changes_nothing(run: Run, log_dir: str, chosen) -> None:
    planned = run("restore", log_dir, *chosen, "--dry-run")
    assert live(log_dir) == set()
    done = run("restore", log_dir, *chosen)
    assert (planned.exit_code, done.exit_code) == (0, 0)
    assert planned.stdout == done.stdout
    assert done.stdout.splitlines()[0] == (
        f"{log_dir}: restore ../broker-1.deleting/{ORDERS}_0 as orders-0: orders-0, topic ID {ORDERS}"
    )
    assert live(log_dir) == {"orders-0", "orders-1"}


def test_a_reader_who_leaves_does_not_end_the_work(log_dir: str) -> None:
    """The pipe has no reader from the beginning, so the first line already finds it closed."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "reconciler.cli", "restore", log_dir, "--all", "--without-twin"]
    try:
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
    assert live(log_dir) == {"orders-0", "orders-1"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_without_room_does_not_end_the_work_and_is_told(log_dir: str) -> None:
    command = [sys.executable, "-m", "reconciler.cli", "restore", log_dir, "--all", "--without-twin"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (4, "logstore: the output is incomplete: No space left on device\n")
    assert live(log_dir) == {"orders-0", "orders-1"}


def test_an_interruption_says_how_far_it_came_and_the_same_command_does_the_rest(
    run: Run, log_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored = list[str]()

    def interrupted(*args: Any, **how: Any) -> None:
        if restored:
            raise KeyboardInterrupt
        restored.append(restore(*args, **how).path)

    with monkeypatch.context() as patched:
        patched.setattr(import_module("reconciler.cli.commands.restore"), "restore", interrupted)
        result = run("restore", log_dir, "--all", "--without-twin")
    said = "logstore: interrupted after 1 of 2 directories: what came back stays, and the same command does the rest\n"
    assert (result.exit_code, result.stderr) == (130, said)
    assert live(log_dir) == {*restored}
    assert run("restore", log_dir, "--all").exit_code == 0
    assert live(log_dir) == {"orders-0", "orders-1"}


def test_choices_go_together(run: Run, log_dir: str) -> None:
    assert run("restore", log_dir, "--topic", "orders", "--partition", 1).exit_code == 0
    assert live(log_dir) == {"orders-1"}
    assert run("restore", log_dir, "--location", f"../broker-1.deleting/{ORDERS}_0").exit_code == 0
    assert live(log_dir) == {"orders-0", "orders-1"}


def test_nothing_comes_back_that_was_not_chosen(run: Run, log_dir: str) -> None:
    for chosen in (("--topic", "other"), ("--topic-id", OLD_ORDERS), ("--location", "deleting/x"), ("--partition", 9)):
        result = run("restore", log_dir, *chosen)
        assert result.exit_code == 1
        assert "nothing was chosen" in result.stderr
    assert run("restore", log_dir).exit_code == 2
    assert live(log_dir) == set()


def test_a_stray_is_adopted_when_it_is_named_and_never_with_all_the_others(run: Run, log_dir: str) -> None:
    name = stray(log_dir)
    assert "no record" not in run("restore", log_dir, "--all").stderr
    assert Path(log_dir, name).is_dir()
    alone = run("restore", log_dir, "--all")
    assert alone.exit_code == 1
    assert (
        "1 directory has no record here, and --all leaves out what has none: name one with --location" in alone.stderr
    )
    result = run("restore", log_dir, "--location", name)
    assert result.stdout == f"{log_dir}: restore {name} as orders-5: orders-5, topic ID unknown\n"
    assert Path(log_dir, "orders-5", "00000000000000000000.log").read_bytes() == b"x"


def test_a_stray_whose_name_was_cut_says_nothing_so_it_must_be_said(run: Run, log_dir: str) -> None:
    topic = "t" * 249
    name = stray(log_dir, stray_name(topic, 5, "0" * 32))
    kept = run("restore", log_dir, "--location", name)
    assert kept.exit_code == 3
    assert kept.stdout.startswith(f"{log_dir}: keep {name}: ")
    assert "name the topic and partition, on the command line as --as TOPIC-PARTITION" in kept.stdout
    back = run("restore", log_dir, "--location", name, "--as", f"{topic}-5")
    assert back.exit_code == 0 and back.stdout.endswith(f" as {topic}-5: {topic}-5, topic ID unknown\n")
    assert Path(log_dir, f"{topic}-5").is_dir()


def test_a_replica_whose_topic_was_renamed_gets_the_name_that_is_given_with_its_topic_id(
    run: Run, log_dir: str
) -> None:
    one = (log_dir, "--location", f"../broker-1.deleting/{ORDERS}_0", "--as", "sales-0")
    refused = run("restore", *one)
    assert (refused.exit_code, live(log_dir)) == (3, set())
    assert "is orders-0, and not sales-0" in refused.stdout
    planned = run("restore", *one, "--topic-id", ORDERS, "--dry-run")
    done = run("restore", *one, "--topic-id", ORDERS)
    assert (done.exit_code, done.stdout) == (0, planned.stdout)
    assert Path(log_dir, "sales-0").is_dir() and live(log_dir) == set()


def test_what_it_was_can_only_be_said_of_one(run: Run, log_dir: str) -> None:
    result = run("restore", log_dir, "--all", "--as", "orders-0")
    assert result.exit_code == 2
    assert "2 were chosen" in result.stderr


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_name_that_is_taken_keeps_one_and_not_the_other(run: Run, log_dir: str, dry: tuple[str]) -> None:
    Path(log_dir, "orders-0").mkdir()
    result = run("restore", log_dir, "--all", *dry)
    assert result.exit_code == 4
    kept, restored = result.stdout.splitlines()
    assert "is there already" in kept
    assert restored.startswith(f"{log_dir}: restore ")
    assert live(log_dir) == ({"orders-0"} if dry else {"orders-0", "orders-1"})


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_no_partition_becomes_live_twice(run: Run, cluster, log_dir: str, dry: tuple[str]) -> None:
    second = str(make_log_dir(cluster.log_dir(1).with_name("second-of-1"), 1, {"orders-0": ORDERS}))
    result = run("restore", log_dir, second, "--partition", 0, *dry)
    assert result.exit_code == 3
    assert f"would be live twice, here and in {second}/orders-0" in result.stdout
    stage_replica(second, 0)
    both = run("restore", log_dir, second, "--partition", 0, *dry)
    assert both.exit_code == 4
    assert [line.split(": ")[1].split()[0] for line in both.stdout.splitlines()] == ["restore", "keep"]


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_the_worse_copy_of_a_duplicate_stays_where_the_better_one_is_in_no_given_log_dir(
    run: Run, cluster, tmp_path: Path, dry: tuple[str]
) -> None:
    """One disk of two: the better copy is live on the other, and the broker would not start with both."""
    # Not in the test's own folder, beside which those of other tests have log dirs of the same name and broker.
    disks = [str(make_log_dir(tmp_path / "pair" / name, 1, {"orders-0": ORDERS})) for name in ("1", "2")]
    identity = MetaProperties(1, CLUSTER, 1, DirectoryId.from_halves(78, 1))
    Path(disks[1], "meta.properties").write_bytes(meta_properties.encode(identity, "today"))
    for disk, offset in zip(disks, (9, 5), strict=True):
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            Path(disk, name).write_text(f"0\n1\norders 0 {offset}\n")
    plan = tmp_path / "repair.json"
    run("repair", *disks, "--metadata", cluster.metadata, "-o", plan)
    assert run("repair", "--apply", plan).exit_code == 0
    (held,) = [disk for disk in disks if not live(disk)]
    (better,) = {*disks} - {held}
    both = run("restore", *disks, "--topic", "orders", *dry)
    assert (both.exit_code, "would be live twice" in both.stdout) == (3, True)
    alone = run("restore", held, "--topic", "orders", *dry)
    assert (alone.exit_code, f"orders-0 is live in {better}/orders-0, which was not given" in alone.stdout) == (3, True)
    (tmp_path / "far").mkdir()
    os.rename(better, tmp_path / "far" / "away")
    alone = run("restore", held, "--topic", "orders", *dry)
    assert (alone.exit_code, "give every log dir of the broker" in alone.stdout) == (3, True)
    assert live(held) == set()
    assert run("restore", held, "--topic", "orders", "--without-twin", *dry).exit_code == 0


def test_the_same_command_with_every_log_dir_names_what_was_chosen_by_its_whole_path(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is in no other log dir as well, and can be pasted in any folder."""
    one, two = (str(make_log_dir(tmp_path / "pair" / name, 1, {"orders-0": ORDERS})) for name in ("1", "2"))
    identity = MetaProperties(1, CLUSTER, 1, DirectoryId.from_halves(78, 1))
    Path(two, "meta.properties").write_bytes(meta_properties.encode(identity, "today"))
    stage_replica(one, 0, FAR_AWAY_MS)
    place = f"{one}.deleting/{ORDERS}_0"
    monkeypatch.chdir(f"{one}.deleting")
    for location in (f"../1.deleting/{ORDERS}_0", f"{ORDERS}_0", place):
        kept = run("restore", one, "--location", location)
        assert f"orders-0 is live in {two}/orders-0, which was not given" in kept.stdout
        (again,) = [line.strip() for line in kept.stderr.splitlines() if line.startswith("    ")]
        assert again == f"logstore restore {one} {two} --location {place}"


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_another_brokers_replica_of_the_same_partition_is_no_second_one(run: Run, cluster, log_dir: str, dry) -> None:
    assert run("restore", *cluster.log_dirs, "--partition", 0, *dry).exit_code == 0
    stage_replica(cluster.log_dirs[1], 0)
    assert run("restore", *cluster.log_dirs, "--partition", 0, *dry).exit_code == 0
    assert live(log_dir) == (set() if dry else {"orders-0"})


def test_a_log_dir_in_use_is_refused_and_a_dry_run_looks_all_the_same(run: Run, log_dir: str) -> None:
    with LogDir.open(log_dir):
        result = run("restore", log_dir, "--all")
        dry = run("restore", log_dir, "--all", "--dry-run")
    assert result.exit_code == 3
    assert "is in use by" in result.stderr
    assert (dry.exit_code, len(dry.stdout.splitlines())) == (0, 2)
    assert "is in use by" in dry.stderr
    assert live(log_dir) == set()
    assert dry.stdout == run("restore", log_dir, "--all").stdout


def test_help_lists_the_exit_code_of_nothing_left_to_restore(run: Run, log_dir: str) -> None:
    assert run("restore", log_dir, "--all").exit_code == 0
    assert run("restore", log_dir, "--all").exit_code == 1
    assert "Exit code 1: nothing of that kind is staged" in run("restore", "--help").stdout


def test_what_it_was_reads_as_a_broker_writes_it() -> None:
    assert parse_partition("my-topic-12") == TopicPartition("my-topic", 12)


@pytest.mark.parametrize("text", ["", "orders", "orders-", "-1", "orders-x", "orders-2147483648", "a/b-1", "orders-²"])
def test_what_names_no_partition_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="--as"):
        parse_partition(text)


def test_what_is_no_topic_id_is_said(run: Run, log_dir: str) -> None:
    result = run("restore", log_dir, "--topic-id", "short")
    assert result.exit_code == 2
    assert "--topic-id" in result.stderr
