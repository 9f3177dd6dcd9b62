"""A file that is not as a repair expects it is left alone, and so is one that no repair changes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from layout.ours import MISSING, sum_of
from layout.topic import TopicPartition
from logstore import LogStoreError
from logstore.log_dir import LogDir as OpenLogDir
from logstore.repair import (
    ChangedSinceError,
    CheckpointWithout,
    check_better_copy,
    check_repair,
    check_worse_copy,
    is_gone,
)
from logstore.repair.checks import check_home
from tests.logstore.repair.file_repairs import METADATA, drop, rebuild, remove, write_id

NOTHING: frozenset[tuple[str, int]] = frozenset()


def refusal(log_dir, action, held: frozenset[tuple[str, int]] | None = NOTHING) -> str:
    with OpenLogDir.open(str(log_dir)) as opened, pytest.raises(LogStoreError) as raised:
        check_repair(opened, action, held)
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
    damaged = replace(rebuild(log_dir), content=CheckpointWithout(frozenset()))
    assert "version" in refusal(log_dir, damaged)


def test_what_lies_there_as_planned_needs_no_step(log_dir) -> None:
    log_dir.replica("orders-0")
    action = replace(write_id(log_dir, "orders-0", log_dir.topic_id), expects=MISSING)
    with OpenLogDir.open(str(log_dir)) as opened:
        assert check_repair(opened, action, NOTHING) is None


@pytest.mark.parametrize(
    "path",
    [
        *("../orders-0/partition.metadata", "/etc/partition.metadata", "orders-0/../../x/partition.metadata"),
        *("partition.metadata", "orders-0/00000000000000000000.log", "meta.properties", "orders-0", ""),
    ],
)
def test_no_repair_leads_to_a_file_that_none_changes(log_dir, path: str) -> None:
    log_dir.replica("orders-0", None)
    action = replace(write_id(log_dir, "orders-0", log_dir.topic_id), path=path)
    assert "no file that a repair changes" in refusal(log_dir, action)


def test_only_a_temporary_file_is_ever_removed(log_dir) -> None:
    log_dir.replica("orders-0")
    action = replace(write_id(log_dir, "orders-0", log_dir.topic_id), content=None, writes=MISSING)
    assert "no temporary file" in refusal(log_dir, action)


def test_where_not_everything_can_be_listed_no_entry_is_stale(log_dir) -> None:
    log_dir.file("recovery-point-offset-checkpoint", "0\n1\ngone 0 5\n")
    assert "surely stale" in refusal(log_dir, drop(log_dir, ("gone", 0)), None)


def test_a_copy_of_a_duplicate_is_told_from_another_directory_and_from_another_topic(log_dir) -> None:
    path, orders = log_dir.replica("orders-0"), TopicPartition("orders", 0)
    inode, held = path.stat().st_ino, sum_of((path / METADATA).read_bytes())
    with OpenLogDir.open(str(log_dir)) as opened:
        assert (is_gone(opened, "orders-0"), is_gone(opened, "orders-1"), is_gone(opened, "no/orders-1")) == (
            *(False, True, True),
        )
        check_worse_copy(opened, "orders-0", orders, None, held)
        check_better_copy(opened, "orders-0", orders, inode, log_dir.topic_id)
        for wrong in (
            lambda: check_worse_copy(opened, "orders-0", orders, None, MISSING),
            lambda: check_worse_copy(opened, "orders-0", TopicPartition("orders", 1), None, held),
            lambda: check_better_copy(opened, "orders-0", orders, inode + 1, log_dir.topic_id),
            lambda: check_better_copy(opened, "orders-0", orders, inode, log_dir.other_id),
            lambda: check_better_copy(opened, "orders-0", TopicPartition("orders", 1), inode, log_dir.topic_id),
            lambda: check_better_copy(opened, "gone-0", orders, inode, log_dir.topic_id),
        ):
            with pytest.raises(ChangedSinceError):
                wrong()
        opened.go_offline("a test")
        with pytest.raises(ChangedSinceError, match="cannot be used"):
            check_better_copy(opened, "orders-0", orders, inode, log_dir.topic_id)
