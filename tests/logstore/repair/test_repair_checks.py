"""A file that is not as the plan says is left alone; a duplicate is staged only while the better copy is there."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from layout.ours import MISSING, RepairKind, sum_of
from layout.topic import TopicPartition
from logstore import DEFAULTS, STALE_DELAY, LogStoreError
from logstore.log_dir import LogDir as OpenLogDir
from logstore.repair import apply_repair
from logstore.repair.checks import DUPLICATE, ChangedSinceError, check_home, revalidate
from logstore.staging import list_staged, restore
from tests.logstore.repair.repair_plans import (
    CHECKPOINT,
    METADATA,
    drop,
    plan_of,
    rebuild,
    remove,
    stage_copy,
    write_id,
)

NOTHING: frozenset[tuple[str, int]] = frozenset()


def refusal(log_dir, action, held=NOTHING) -> str:
    with OpenLogDir.open(str(log_dir)) as opened, pytest.raises(LogStoreError) as raised:
        revalidate(opened, action, held)
    return str(raised.value)


def test_a_directory_that_was_made_anew_under_the_same_name_is_left_alone(log_dir) -> None:
    log_dir.replica("orders-0", None)
    action = write_id(log_dir, "orders-0", log_dir.topic_id)
    (log_dir.path / "orders-0").rename(log_dir.path / "other-0")
    log_dir.replica("orders-0", None)
    assert "inode" in refusal(log_dir, action)


def test_a_partition_dir_that_became_a_link_is_never_followed(log_dir, tmp_path: Path) -> None:
    log_dir.replica("orders-0", None)
    action = write_id(log_dir, "orders-0", log_dir.topic_id)
    (log_dir.path / "orders-0").rename(tmp_path / "outside")
    (log_dir.path / "orders-0").symlink_to(tmp_path / "outside")
    assert "symbolic link" in refusal(log_dir, action)


@pytest.mark.parametrize("make", ["link", "fifo", "directory"])
def test_a_file_that_became_something_else_is_left_alone(log_dir, tmp_path: Path, make: str) -> None:
    log_dir.replica("orders-0", None)
    action = write_id(log_dir, "orders-0", log_dir.topic_id)
    path = log_dir.path / "orders-0" / METADATA
    if make == "link":
        path.symlink_to(tmp_path)
    elif make == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert METADATA in refusal(log_dir, action)


def test_a_plan_that_promises_other_bytes_than_this_release_writes_is_left_alone(log_dir) -> None:
    log_dir.replica("orders-0", None)
    action = replace(write_id(log_dir, "orders-0", log_dir.topic_id), writes=sum_of(b"rm -rf"))
    assert "make a new plan" in refusal(log_dir, action)


@pytest.mark.parametrize(
    ("directory", "topic", "partition"),
    [
        ("orders-0", "payments", 0),
        ("orders-0", "orders", 1),
        (f"orders-0.{'0' * 32}-stray", "orders", 0),
        (f"orders-0.{'0' * 32}-delete", "orders", 0),
        ("deleting/orders-0", "orders", 0),
        ("__cluster_metadata-0", "__cluster_metadata", 0),
    ],
)
def test_an_id_is_written_only_where_the_name_says_the_same_replica(log_dir, directory, topic, partition) -> None:
    log_dir.replica(directory, None)
    with OpenLogDir.open(str(log_dir)) as opened, pytest.raises(ChangedSinceError, match="no live directory"):
        check_home(opened, directory, TopicPartition(topic, partition), None)


def test_homes_of_the_other_schemes_are_known(new_log_dir, tmp_path: Path) -> None:
    namespaced = new_log_dir(tmp_path / "n").identity(extra="logstore.scheme=namespaced\n")
    by_id = new_log_dir(tmp_path / "i").identity(extra="logstore.scheme=by-topic-id\n")
    with OpenLogDir.open(str(namespaced)) as opened:
        check_home(opened, "org/apache/orders-0", TopicPartition("org:apache:orders", 0), None)
        with pytest.raises(ChangedSinceError):
            check_home(opened, "org/orders-0", TopicPartition("org:apache:orders", 0), None)
    with OpenLogDir.open(str(by_id)) as opened, pytest.raises(ChangedSinceError):
        check_home(opened, "orders-0", TopicPartition("orders", 0), None)


@pytest.mark.parametrize("target", [None, "", "version=7\n"])
def test_a_leftover_beside_a_file_that_is_not_whole_stays(log_dir, target: str | None) -> None:
    log_dir.file("cleaner-offset-checkpoint.tmp", "0\n0\n")
    if target is not None:
        log_dir.file("cleaner-offset-checkpoint", target)
    assert "cleaner-offset-checkpoint" in refusal(log_dir, remove(log_dir, "cleaner-offset-checkpoint.tmp"))


def test_a_sound_checkpoint_that_was_damaged_since_is_left_alone(log_dir) -> None:
    log_dir.file("recovery-point-offset-checkpoint", "0\n1\ngone 0 5\n")
    action = drop(log_dir, ("gone", 0))
    log_dir.file("recovery-point-offset-checkpoint", "half")
    assert "changed since" in refusal(log_dir, action)
    damaged = replace(rebuild(log_dir), kind=RepairKind.DROP_CHECKPOINT_ENTRIES)
    assert "version" in refusal(log_dir, damaged)


def test_what_lies_there_as_planned_needs_no_step(log_dir) -> None:
    log_dir.replica("orders-0")
    action = replace(write_id(log_dir, "orders-0", log_dir.topic_id), expects=MISSING)
    with OpenLogDir.open(str(log_dir)) as opened:
        assert revalidate(opened, action, NOTHING) is None


NOW_MS = 1_700_000_000_000


@pytest.fixture
def copies(log_dir, new_log_dir, tmp_path: Path):
    """``orders-0`` live in two log dirs of one broker; the first is the worse copy."""
    better = new_log_dir(tmp_path / "better").identity(directory_id=log_dir.other_id)
    for each in (log_dir, better):
        each.replica("orders-0")
        each.file(CHECKPOINT, "0\n1\norders 0 5\n")
    return log_dir, better


def planned(copies, **changes):
    worse, better = copies
    return plan_of(replace(stage_copy(worse, "orders-0", worse.topic_id, better, better.topic_id), **changes))


def test_the_worse_copy_is_staged_with_its_way_back(copies) -> None:
    worse, better = copies
    (result,) = apply_repair(planned(copies), NOW_MS).results
    assert (result.status, (worse.path / "orders-0").exists()) == ("done", False)
    assert (better.path / "orders-0" / METADATA).is_file()
    assert "logstore restore" in result.detail
    with OpenLogDir.open(str(worse)) as opened:
        (staged,) = list_staged(opened)
        assert staged.record is not None
        assert (staged.record.verdict, staged.due_ms) == (DUPLICATE, NOW_MS + DEFAULTS[STALE_DELAY])
        assert dict(staged.record.checkpoints) == {CHECKPOINT: 5}
        restore(opened, staged)
    assert (worse.path / CHECKPOINT).read_text() == "0\n1\norders 0 5\n"
    assert sorted(path.name for path in (worse.path / "orders-0").iterdir()) == [METADATA]


def test_a_second_run_finds_it_staged(copies) -> None:
    plan = planned(copies)
    apply_repair(plan, NOW_MS)
    assert [each.status for each in apply_repair(plan, NOW_MS).results] == ["already"]


def test_nothing_is_staged_once_the_copy_that_stays_is_gone(copies) -> None:
    plan = planned(copies)
    shutil.rmtree(copies[1].path / "orders-0")
    (result,) = apply_repair(plan, NOW_MS).results
    assert result.status == "skipped" and "is gone" in result.detail
    assert (copies[0].path / "orders-0").is_dir()


def test_nothing_is_staged_once_the_copy_that_stays_is_another_one(copies) -> None:
    plan = planned(copies)
    (copies[1].path / "orders-0" / METADATA).write_text(f"version: 0\ntopic_id: {copies[1].other_id}")
    (result,) = apply_repair(plan, NOW_MS).results
    assert result.status == "skipped" and "by now" in result.detail
    shutil.move(copies[1].path / "orders-0", copies[1].path / "x-0")
    copies[1].replica("orders-0")
    (result,) = apply_repair(plan, NOW_MS).results
    assert result.status == "skipped" and "another directory" in result.detail


def test_a_copy_that_has_changed_is_not_staged(copies) -> None:
    plan = planned(copies)
    (copies[0].path / "orders-0" / METADATA).write_bytes(b"other")
    assert [each.status for each in apply_repair(plan, NOW_MS).results] == ["skipped"]
    assert (copies[0].path / "orders-0").is_dir()


def test_a_copy_that_is_gone_and_was_never_staged_is_refused_with_the_reason(copies) -> None:
    plan = planned(copies)
    shutil.rmtree(copies[0].path / "orders-0")
    (result,) = apply_repair(plan, NOW_MS).results
    assert (result.status, result.detail) == ("skipped", "it is gone")


def test_a_plan_that_keeps_another_partition_is_not_believed(copies) -> None:
    worse, better = copies
    better.replica("payments-0")
    action = stage_copy(worse, "orders-0", worse.topic_id, better, better.topic_id)
    inode = (better.path / "payments-0").stat().st_ino
    assert action.keeps is not None
    plan = plan_of(replace(action, keeps=replace(action.keeps, path="payments-0", inode=inode)))
    (result,) = apply_repair(plan, NOW_MS).results
    assert result.status == "skipped" and "no live directory of orders-0" in result.detail
