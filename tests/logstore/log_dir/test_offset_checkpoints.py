from __future__ import annotations

import os
from typing import Any

import pytest

from layout.checkpoint import OFFSET_CHECKPOINTS
from logstore.log_dir import LogDir, read_offset_checkpoints
from logstore.rows import VARYING


def _dicts(rows: Any) -> list[dict[str, Any]]:
    return [dict(zip(VARYING, row, strict=True)) for row in rows]


def test_missing_and_empty_files_are_normal(log_dir: Any) -> None:
    log_dir.file("cleaner-offset-checkpoint")
    log_dir.file("log-start-offset-checkpoint", "0\n0\n")
    found = read_offset_checkpoints(str(log_dir))
    assert (found.entries, found.damaged, dict(found.recovery_points)) == ({}, [], {})


def test_entries_without_a_replica_are_told_file_by_file(log_dir: Any) -> None:
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
