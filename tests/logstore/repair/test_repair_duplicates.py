"""The worse copy is staged only while the better one is there, and comes back as it was."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from logstore import DEFAULTS, STALE_DELAY
from logstore.log_dir import LogDir as OpenLogDir
from logstore.repair import apply_repair
from logstore.repair.repair_duplicates import VERDICT
from logstore.staging import list_staged, restore
from tests.logstore.repair.repair_plans import CHECKPOINT, METADATA, plan_of, stage_copy

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
        assert (staged.record.verdict, staged.due_ms) == (VERDICT, NOW_MS + DEFAULTS[STALE_DELAY])
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


def test_a_copy_that_is_gone_and_was_never_staged_is_told(copies) -> None:
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
