from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from layout import checkpoint
from layout.checkpoint import HIGH_WATERMARK_CHECKPOINT, OFFSET_CHECKPOINTS, RECOVERY_POINT_CHECKPOINT
from layout.topic import TopicPartition
from logstore import ChangeRefusedError
from logstore.fs import Directory, Disk
from logstore.log_dir import (
    CHECKPOINT_LIMIT,
    CheckpointFiles,
    LogDir,
    OffsetCheckpoints,
    Offsets,
    read_offset_checkpoints,
)
from logstore.rows import VARYING
from tests.logstore.engine import ORDERS, DiskThat, read_offsets, write_offsets


def _dicts(rows: Any) -> list[dict[str, Any]]:
    return [dict(zip(VARYING, row, strict=True)) for row in rows]


def test_missing_and_empty_files_are_normal(log_dir: Any) -> None:
    log_dir.file("cleaner-offset-checkpoint")
    log_dir.file("log-start-offset-checkpoint", "0\n0\n")
    found = read_offset_checkpoints(str(log_dir))
    assert (found.entries, found.damaged, dict(found.recovery_points)) == ({}, [], {})


def test_entries_without_a_replica_are_reported_file_by_file(log_dir: Any) -> None:
    for file in OFFSET_CHECKPOINTS:
        log_dir.file(file, "0\n2\nheld 0 5\ngone 1 7\n")
    found = read_offset_checkpoints(str(log_dir))
    assert found.recovery_points == {("held", 0): 5, ("gone", 1): 7}
    orphans = _dicts(found.orphans({("held", 0)}))
    assert [row["name"] for row in orphans] == list(OFFSET_CHECKPOINTS)
    assert {(row["kind"], row["topic"], row["partition"], row["end_offset"]) for row in orphans} == {
        ("checkpoint_entry", "gone", 1, 7)
    }


def test_entries_of_a_log_dir_that_somebody_works_on_accuse_nobody(log_dir: Any) -> None:
    log_dir.file("replication-offset-checkpoint", "0\n1\ngone 1 7\n")
    with LogDir.open(str(log_dir)):
        found = read_offset_checkpoints(str(log_dir))
        assert list(found.orphans({("held", 0)})) == []
        assert found.entries == {"replication-offset-checkpoint": {("gone", 1): 7}}
    assert len(list(read_offset_checkpoints(str(log_dir)).orphans({("held", 0)}))) == 1


@pytest.mark.parametrize(
    ("file", "text", "effect"),
    [
        ("recovery-point-offset-checkpoint", "0\n5\nfoo 0 1\n", "the log dir goes offline"),  # FACTS §2.3
        ("recovery-point-offset-checkpoint", "0\n1\nfoo zero 1\n", "a broker warns and ignores it"),  # FACTS §1.6
        ("replication-offset-checkpoint", "0\n1\nfoo zero 1\n", "to lead or to follow, also in other log dirs"),
    ],
)
def test_a_file_that_does_not_parse_is_a_row_and_counts_as_empty(
    log_dir: Any, file: str, text: str, effect: str
) -> None:
    log_dir.file(file, text)
    found = read_offset_checkpoints(str(log_dir))
    (row,) = _dicts(found.damaged)
    assert found.entries == {}
    assert (row["kind"], row["name"], row["topic"], row["metadata_state"]) == (
        "checkpoint_entry", file, None, "malformed",
    )  # fmt: skip
    assert row["problem"].endswith(effect)


def test_a_fifo_in_place_of_a_checkpoint_blocks_nobody(log_dir: Any) -> None:
    os.mkfifo(log_dir.path / "replication-offset-checkpoint")
    (row,) = _dicts(read_offset_checkpoints(str(log_dir)).damaged)
    assert row["metadata_state"] == "unreadable"
    assert "a FIFO" in row["problem"]


PAYMENTS = TopicPartition("payments", 3)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Directory]:
    write_offsets(tmp_path, {("orders", 0): 42, ("payments", 3): 7})
    write_offsets(tmp_path, {("orders", 0): 40}, HIGH_WATERMARK_CHECKPOINT)
    with Directory.open(str(tmp_path)) as directory:
        yield directory


def test_missing_files_are_empty(tmp_path: Path) -> None:
    with Directory.open(str(tmp_path)) as root:
        files = CheckpointFiles(root)
        assert files.offsets(ORDERS) == {}
        files.write(Disk())
    assert list(tmp_path.iterdir()) == []


def test_the_offsets_of_one_partition_are_given_by_file(root: Directory) -> None:
    files = CheckpointFiles(root)
    assert files.offsets(ORDERS) == {RECOVERY_POINT_CHECKPOINT: 42, HIGH_WATERMARK_CHECKPOINT: 40}
    assert files.offsets(PAYMENTS) == {RECOVERY_POINT_CHECKPOINT: 7}
    assert files.entries(HIGH_WATERMARK_CHECKPOINT) == {("orders", 0): 40}


def test_entries_that_are_taken_out_are_gone_from_every_file_and_the_others_stay(
    root: Directory, tmp_path: Path
) -> None:
    files = CheckpointFiles(root)
    files.take_out([ORDERS, TopicPartition("unknown", 9)])
    files.write(Disk())
    assert read_offsets(tmp_path) == {("payments", 3): 7}
    assert read_offsets(tmp_path, HIGH_WATERMARK_CHECKPOINT) == {}


def test_entries_that_are_given_back_are_what_they_were(root: Directory, tmp_path: Path) -> None:
    files = CheckpointFiles(root)
    offsets = files.offsets(ORDERS)
    files.take_out([ORDERS])
    files.write(Disk())
    files.give_back(ORDERS, offsets)
    files.write(Disk())
    assert read_offsets(tmp_path) == {("payments", 3): 7, ("orders", 0): 42}
    assert read_offsets(tmp_path, HIGH_WATERMARK_CHECKPOINT) == {("orders", 0): 40}


def test_an_entry_that_is_there_is_newer_than_one_that_comes_back(root: Directory) -> None:
    files = CheckpointFiles(root)
    files.give_back(ORDERS, {RECOVERY_POINT_CHECKPOINT: 1})
    assert files.offsets(ORDERS)[RECOVERY_POINT_CHECKPOINT] == 42


def test_offsets_that_a_broker_writes_go_over_what_was_there(root: Directory, tmp_path: Path) -> None:
    files = CheckpointFiles(root)
    files.update(RECOVERY_POINT_CHECKPOINT, {ORDERS: 50, TopicPartition("new", 0): 1})
    files.write(Disk())
    assert read_offsets(tmp_path) == {("orders", 0): 50, ("payments", 3): 7, ("new", 0): 1}


def test_a_topic_that_gets_another_name_keeps_its_offsets(root: Directory, tmp_path: Path) -> None:
    # KIP37-7
    files = CheckpointFiles(root)
    files.rename({"orders": "org:orders"})
    files.write(Disk())
    assert read_offsets(tmp_path) == {("payments", 3): 7, ("org:orders", 0): 42}
    assert read_offsets(tmp_path, HIGH_WATERMARK_CHECKPOINT) == {("org:orders", 0): 40}


def test_two_topics_may_change_names_with_each_other(root: Directory, tmp_path: Path) -> None:
    write_offsets(tmp_path, {("a", 0): 1, ("b", 0): 2})
    files = CheckpointFiles(root)
    files.rename({"a": "b", "b": "a"})
    files.write(Disk())
    assert read_offsets(tmp_path) == {("a", 0): 2, ("b", 0): 1}


def test_only_files_that_changed_are_written(root: Directory, tmp_path: Path) -> None:
    files = CheckpointFiles(root)
    before = {path.name: path.stat().st_ino for path in tmp_path.iterdir()}
    files.update(RECOVERY_POINT_CHECKPOINT, {ORDERS: 50})
    files.write(Disk())
    changed = {path.name for path in tmp_path.iterdir() if before.get(path.name) != path.stat().st_ino}
    assert changed == {RECOVERY_POINT_CHECKPOINT}
    disk = DiskThat()
    files.write(disk)
    assert disk.calls == {}


def test_a_damaged_file_is_left_byte_for_byte_as_it_is(tmp_path: Path) -> None:
    (tmp_path / RECOVERY_POINT_CHECKPOINT).write_bytes(b"0\n7\nhalf a li")
    write_offsets(tmp_path, {("orders", 0): 40}, HIGH_WATERMARK_CHECKPOINT)
    with Directory.open(str(tmp_path)) as root:
        files = CheckpointFiles(root)
        assert files.damaged == {RECOVERY_POINT_CHECKPOINT}
        files.take_out([ORDERS])
        files.give_back(ORDERS, {RECOVERY_POINT_CHECKPOINT: 3})
        files.write(Disk())
    assert (tmp_path / RECOVERY_POINT_CHECKPOINT).read_bytes() == b"0\n7\nhalf a li"
    assert read_offsets(tmp_path, HIGH_WATERMARK_CHECKPOINT) == {}


def test_offsets_for_a_damaged_file_are_refused_and_not_lost_in_silence(tmp_path: Path) -> None:
    (tmp_path / RECOVERY_POINT_CHECKPOINT).write_bytes(b"x")
    with (
        Directory.open(str(tmp_path)) as root,
        pytest.raises(ChangeRefusedError, match="is damaged: repair it first"),
    ):
        CheckpointFiles(root).update(RECOVERY_POINT_CHECKPOINT, {ORDERS: 1})


@pytest.mark.parametrize(
    ("file", "topic", "offset"),
    [
        ("meta.properties", "orders", 1),
        ("../escape", "orders", 1),
        (RECOVERY_POINT_CHECKPOINT, "two words", 1),
        (RECOVERY_POINT_CHECKPOINT, "line\nend", 1),
        (RECOVERY_POINT_CHECKPOINT, "", 1),
        (RECOVERY_POINT_CHECKPOINT, "\udcff", 1),
        (RECOVERY_POINT_CHECKPOINT, "orders", 1 << 63),
        (RECOVERY_POINT_CHECKPOINT, "orders", -(1 << 63) - 1),
    ],
)
def test_what_no_reader_could_take_apart_again_is_refused_and_spoils_nothing(
    root: Directory, tmp_path: Path, file: str, topic: str, offset: int
) -> None:
    files = CheckpointFiles(root)
    with pytest.raises(ChangeRefusedError):
        files.update(file, {PAYMENTS: 8, TopicPartition(topic, 0): offset})
    files.update(RECOVERY_POINT_CHECKPOINT, {ORDERS: 50})
    files.write(Disk())
    assert read_offsets(tmp_path) == {("orders", 0): 50, ("payments", 3): 7}


@pytest.mark.parametrize(("topic", "offset"), [("two words", 1), ("\udcff", 1), ("orders", 1 << 70)])
def test_a_record_that_gives_back_what_cannot_stand_there_gives_nothing(
    root: Directory, topic: str, offset: int
) -> None:
    files = CheckpointFiles(root)
    files.take_out([ORDERS])
    files.give_back(TopicPartition(topic, 0), {RECOVERY_POINT_CHECKPOINT: offset})
    files.write(Disk())
    assert files.entries(RECOVERY_POINT_CHECKPOINT) == {("payments", 3): 7}


@pytest.mark.parametrize("method", ["create", "write", "sync", "rename"])
def test_a_file_that_cannot_be_written_is_still_to_be_written(root: Directory, tmp_path: Path, method: str) -> None:
    files = CheckpointFiles(root)
    files.take_out([ORDERS])
    with pytest.raises(OSError, match="No space"):
        files.write(DiskThat(errno.ENOSPC, {method}))
    assert files.behind
    files.write(Disk())
    assert not files.behind
    assert read_offsets(tmp_path) == {("payments", 3): 7}
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT]


def test_the_order_of_the_entries_is_kept(tmp_path: Path) -> None:
    entries = {(f"t{number}", 0): number for number in (3, 1, 2)}
    write_offsets(tmp_path, entries)
    with Directory.open(str(tmp_path)) as root:
        files = CheckpointFiles(root)
        files.update(RECOVERY_POINT_CHECKPOINT, {TopicPartition("t9", 0): 9})
        files.write(Disk())
    expected = checkpoint.encode_offsets({**entries, ("t9", 0): 9})
    assert (tmp_path / RECOVERY_POINT_CHECKPOINT).read_bytes() == expected


def test_a_checkpoint_beyond_the_limit_is_damaged(log_dir: Any) -> None:
    os.truncate(log_dir.file(RECOVERY_POINT_CHECKPOINT), CHECKPOINT_LIMIT + 1)
    (row,) = _dicts(read_offset_checkpoints(str(log_dir)).damaged)
    assert (row["name"], row["metadata_state"]) == (RECOVERY_POINT_CHECKPOINT, "unreadable")


def test_only_entries_of_a_log_dir_that_is_not_in_use_are_orphans() -> None:
    entries = {RECOVERY_POINT_CHECKPOINT: {("held", 0): 5, ("gone", 1): 7}}
    assert [row["topic"] for row in _dicts(OffsetCheckpoints(entries).orphans({("held", 0)}))] == ["gone"]
    assert list(OffsetCheckpoints(entries, in_use=True).orphans(set())) == []


def test_offsets_that_were_taken_out_can_be_given_back(root: Directory) -> None:
    offsets: Offsets = {RECOVERY_POINT_CHECKPOINT: 7}
    files = CheckpointFiles(root)
    files.take_out([ORDERS])
    assert files.offsets(ORDERS) == {}
    files.give_back(ORDERS, offsets)
    assert files.offsets(ORDERS) == offsets
