"""What is known of each broker before its next steps are decided."""

from __future__ import annotations

import os
import time
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import click
import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.log_dir import FallbackRecords, LogDir
from logstore.staging import Candidate, stage
from reconciler.cli.examination import ExaminedBroker, examine
from reconciler.cli.examination.room import lies_apart
from reconciler.cli.frame import (
    DEFAULT_RELEASE,
    broker_in_question,
    broker_options,
    check_question,
    policy_option,
    say_assumed_release,
    sort_inputs,
)
from reconciler.errors import UsageError
from reconciler.next_steps import FALLBACK_FOLDER, Call, MetadataTrust
from reconciler.preflight import look_at_broker
from reconciler.sources import load
from tests.reconciler.cli.conftest import CLUSTER, OLD_ORDERS, ORDERS, make_log_dir

NOW_MS = time.time_ns() // 1_000_000


def examined(cluster, *log_dirs: str, fallback: str | None = None) -> list[ExaminedBroker]:
    call = Call((), (cluster.metadata,), fallback)
    (state,) = load(cluster.metadata)
    states = [replace(state, identity=replace(state.identity, timestamp_ms=NOW_MS))]
    return examine(sort_inputs(log_dirs), states, call, FallbackRecords(None), NOW_MS)


def test_each_broker_has_its_own_log_dirs_and_its_own_steps(cluster) -> None:
    one, two = examined(cluster, *cluster.log_dirs)
    assert (one.node_id, one.is_clean, one.steps) == (1, True, ())
    assert (two.node_id, two.is_clean, two.totals) == (2, False, {"STALE_ID": 1})
    assert two.situation.call.log_dirs == (str(cluster.log_dir(2)),)


def test_a_disk_without_a_name_is_taken_for_one_of_the_only_broker(cluster, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (one,) = examined(cluster, str(cluster.log_dir(1)), str(tmp_path / "empty"))
    assert (one.node_id, one.cluster_id, len(one.situation.call.log_dirs)) == (1, CLUSTER, 2)
    several = examined(cluster, *cluster.log_dirs, str(tmp_path / "empty"))
    assert [each.node_id for each in several] == [1, 2, None]


def test_the_files_of_a_node_of_two_clusters_are_compared_with_one_another(cluster, tmp_path: Path) -> None:
    other = make_log_dir(tmp_path / "other", 1, {"x-0": ORDERS}, "another-cluster")
    for each in examined(cluster, *cluster.log_dirs, str(other))[::2]:
        (place,) = each.situation.call.log_dirs
        compared = [other, cluster.log_dir(1)] if place == str(other) else [cluster.log_dir(1), other]
        texts = [step.text for step in each.steps]
        assert f"grep -H = {compared[0]}/meta.properties {compared[1]}/meta.properties" in texts
        ((_, _, detail),) = (found for found in each.fleet if found[0] == "NODE_IN_SEVERAL_CLUSTERS")
        assert f"another-cluster in {other} and {CLUSTER} in {cluster.log_dir(1)}" in detail


def test_a_finding_of_the_fleet_is_told_to_the_brokers_that_it_is_about(cluster, tmp_path: Path) -> None:
    third = make_log_dir(tmp_path / "third", 3, {"x-0": ORDERS})
    _, two, three = examined(cluster, *cluster.log_dirs, str(third))
    assert "TOPIC_UNDER_SEVERAL_IDS" in two.situation.fleet
    assert "TOPIC_UNDER_SEVERAL_IDS" not in three.situation.fleet


def test_a_broker_that_is_looked_at_alone_has_no_only_known_copy(cluster, tmp_path: Path) -> None:
    third = make_log_dir(tmp_path / "third", 3, {"gone-0": TopicId(bytes(range(50, 66)))})
    *_, beside_others = examined(cluster, *cluster.log_dirs, str(third))
    (alone,) = examined(cluster, str(third))
    assert alone.totals == beside_others.totals == {"UNKNOWN_TOPIC": 1}
    assert "ONLY_KNOWN_COPY" in beside_others.situation.fleet
    assert not alone.situation.fleet


def test_metadata_is_trusted_by_its_time_and_its_end_and_not_by_its_remarks(cluster, tmp_path: Path) -> None:
    def trust_of(**fields: object) -> MetadataTrust:
        (state,) = load(cluster.metadata)
        states = [replace(state, identity=replace(state.identity, **fields))]
        call = Call((), (cluster.metadata,), None)
        (one,) = examine(sort_inputs([str(cluster.log_dir(1))]), states, call, FallbackRecords(None), NOW_MS)
        return one.situation.trust

    good = {"timestamp_ms": NOW_MS, "problems": ("the transaction log is not read",)}
    assert trust_of(**good) is MetadataTrust.GOOD
    assert trust_of(**good, ends_early=("the log ends there",)) is MetadataTrust.INCOMPLETE
    assert trust_of(timestamp_ms=0) is MetadataTrust.OLD
    assert trust_of(timestamp_ms=NOW_MS + 60_000) is MetadataTrust.GOOD
    assert trust_of(timestamp_ms=NOW_MS + 60_001) is MetadataTrust.OLD


def test_a_disk_without_room_is_full(cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    room = namedtuple("room", "f_bavail f_frsize f_files f_favail f_blocks f_flag", defaults=[0])
    monkeypatch.setattr(os, "statvfs", lambda _: room(3, 4096, 0, 0, 1000))
    (one,) = examined(cluster, str(cluster.log_dir(1)))
    assert one.situation.full and not one.is_clean, "a full disk asks somebody to act, with nothing else to be found"
    assert any(step.text == f"du -xh --max-depth=1 -- {cluster.log_dir(1)}" for step in one.steps)
    (two,) = examined(cluster, str(cluster.log_dir(2)))
    assert two.situation.full == (str(cluster.log_dir(2)),)
    assert two.steps[1].text == f"mkdir -p {FALLBACK_FOLDER}" or two.steps[0].text == f"mkdir -p {FALLBACK_FOLDER}"


def test_a_disk_that_is_mounted_read_only_comes_before_everything_that_would_be_written_there(
    cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, log_dir = namedtuple("room", "f_bavail f_frsize f_files f_favail f_blocks f_flag"), str(cluster.log_dir(2))
    found = room(1 << 20, 4096, 0, 0, 1 << 21, os.ST_RDONLY | os.ST_NOSUID)
    monkeypatch.setattr(os, "statvfs", lambda _: found)
    (two,) = examined(cluster, log_dir)
    assert not two.is_clean and "would not start" in two.start.sentence, "it is the only log dir"
    seen, again = two.steps
    assert seen.text == f"findmnt --target {log_dir}" and "mounted read-only here" in seen.why
    assert (again.text or "").startswith(f"logstore doctor {log_dir}")
    with LogDir.open(log_dir):
        (runs,) = examined(cluster, log_dir)
    assert "read_only_disk" not in {each.rule for each in runs.start.findings}, "whoever has its lock writes there"


def test_what_is_deleted_for_its_room_is_named_alone_where_another_disk_has_the_same_location(
    cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = [make_log_dir(cluster.folder / disk / "kafka", 1, {"gone-0": OLD_ORDERS}) for disk in ("a", "b")]
    for disk in map(str, disks):
        with LogDir.open(disk) as opened:
            gone = TopicPartition("gone", 0)
            stage(opened, [Candidate("gone-0", gone, OLD_ORDERS, "UNKNOWN_TOPIC", "", 3_600_000)], NOW_MS)
    room = namedtuple("room", "f_bavail f_frsize f_files f_favail f_blocks f_flag", defaults=[0])
    free = {str(disks[0]): room(3, 4096, 0, 0, 4), str(disks[1]): room(1 << 20, 4096, 0, 0, 1 << 21)}
    monkeypatch.setattr(os, "statvfs", lambda path: free[str(path)])
    monkeypatch.setattr("reconciler.cli.examination.staged_replicas.worth_having", lambda _: 1)
    (one,) = examined(cluster, *map(str, disks))
    assert one.situation.full == (str(disks[0]),)
    assert one.situation.freed == (f"{disks[0]}.deleting/{OLD_ORDERS}_0",)


def test_where_no_file_can_be_made_for_the_lock_an_unwanted_replica_goes_to_another_disk_first(
    cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, log_dir = (
        namedtuple("room", "f_bavail f_frsize f_files f_favail f_blocks f_flag", defaults=[0]),
        cluster.log_dir(2),
    )
    monkeypatch.setattr(os, "statvfs", lambda _: room(1 << 20, 4096, 1000, 0, 1 << 30))
    (two,) = examined(cluster, str(log_dir))
    assert two.situation.full == two.situation.without_lock == (str(log_dir),)
    assert [step.text for step in two.steps][-3:-1] == [
        "mkdir -p /var/lib/logstore",
        f"mv -nT {log_dir}/orders-1 /var/lib/logstore/orders-1",
    ]
    assert (two.steps[-1].text or "").startswith("logstore doctor ")
    (log_dir / ".lock").touch()
    (two,) = examined(cluster, str(log_dir))
    assert two.situation.without_lock == ()
    assert f"mkdir -p {FALLBACK_FOLDER}" in [step.text for step in two.steps]


def test_a_release_or_mode_that_does_not_exist_is_refused_before_anything_is_read(cluster) -> None:
    check_question(DEFAULT_RELEASE, None)
    for kafka, mode in (("x", None), ("4.0", "zookeeper")):
        with pytest.raises(UsageError):
            check_question(kafka, mode)


def test_a_release_is_assumed_only_where_none_was_named(cluster, capsys: pytest.CaptureFixture[str]) -> None:
    states = load(cluster.metadata)
    say_assumed_release("4.0", states)
    assert capsys.readouterr().err == ""
    say_assumed_release(None, states)
    assert "--kafka 3.9 is assumed" in capsys.readouterr().err
    late = [replace(each, identity=replace(each.identity, metadata_version=31)) for each in states]
    say_assumed_release(None, late)
    assert "--kafka 4.3 is assumed, the newest known here" in capsys.readouterr().err


def test_the_broker_in_question_has_the_mode_that_its_log_dirs_tell(cluster) -> None:
    seen = look_at_broker([str(cluster.log_dir(1))])
    assert broker_in_question(DEFAULT_RELEASE, None, seen).is_kraft
    assert not broker_in_question(DEFAULT_RELEASE, "zookeeper", seen).is_kraft


def test_the_options_of_the_broker_in_question_are_the_same_in_every_command() -> None:
    @click.command()
    @broker_options
    @policy_option
    def command(**_: object) -> None:
        """Take the options."""

    assert [option.opts[0] for option in command.params] == ["--kafka", "--mode", "--metadata-log-dir", "--policy"]


def test_a_log_dir_lies_apart_where_another_file_system_begins_at_it_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to("/proc")
    (tmp_path / "kafka").mkdir()
    assert [lies_apart(path) for path in ("/proc", str(tmp_path / "linked"))] == [True, True]
    assert [lies_apart(str(tmp_path / name)) for name in ("kafka", "absent")] == [False, False]
