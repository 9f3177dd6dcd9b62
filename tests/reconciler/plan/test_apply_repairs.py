"""A plan is carried out as it says, or skipped where the disk says otherwise; nothing is changed without a way back."""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from layout import partition_metadata
from layout.ids import TopicId
from layout.ours import repair_backup
from layout.scheme import INTENT_FILE, UNCLEAN_FILE
from logstore import LogDirInUseError
from logstore.fs import TEMPORARY
from logstore.journal import what_is_pending
from logstore.log_dir import LogDir as OpenLogDir
from logstore.log_dir.lock import Lock
from logstore.scan import scan
from logstore.staging import list_staged, restore
from logstore.store import LogStore
from reconciler.errors import RefusedError
from reconciler.plan import ActionKind, PlanChoice, StrangeLogDirError, read_history
from reconciler.plan.file import sealed
from reconciler.verdicts import Verdict
from tests.crash.failing_disk import FailingDisk
from tests.logstore.conftest import LogDir
from tests.logstore.engine import DiskThat
from tests.logstore.repair.file_repairs import CHECKPOINT, METADATA
from tests.reconciler.plan.repair_actions import (
    drop,
    plan_of,
    rebuild,
    remove,
    stage_copy,
    write_id,
)
from tests.reconciler.plan.repair_broker import NOW_MS, applied

SECOND_DIRECTORY = "AtgGav8yQjiaJ3rTXE7VCA"


@pytest.fixture
def log_dir(tmp_path: Path) -> LogDir:
    """An empty log dir with an identity."""
    return LogDir(tmp_path / "data").identity()


@pytest.fixture
def new_log_dir() -> type[LogDir]:
    """Makes further log dirs: ``new_log_dir(path)``."""
    return LogDir


@pytest.fixture
def damaged(log_dir):
    """Every kind of damage that concerns one log dir."""
    log_dir.replica("missing-0", None)
    log_dir.replica("empty-1", b"")
    log_dir.replica("broken-2", b"garbage")
    log_dir.replica("stale-3", log_dir.other_id)
    log_dir.replica("right-4")
    log_dir.file(CHECKPOINT, "0\n9\nright 4 5\nhalf\n")
    log_dir.file("cleaner-offset-checkpoint", "0\n2\nright 4 5\ngone 0 7\n")
    log_dir.file("meta.properties.tmp", "half")
    return log_dir


def actions_of(log_dir):
    return (
        write_id(log_dir, "missing-0", log_dir.topic_id),
        write_id(log_dir, "empty-1", log_dir.topic_id),
        write_id(log_dir, "broken-2", log_dir.topic_id),
        write_id(log_dir, "stale-3", log_dir.topic_id, kind=ActionKind.REPLACE_TOPIC_ID),
        rebuild(log_dir),
        drop(log_dir, ("gone", 0), file="cleaner-offset-checkpoint"),
        remove(log_dir, "meta.properties.tmp"),
    )


def statuses(outcome) -> list[str]:
    return [each.status.value for each in outcome.results]


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file with its bytes, but for the lock, which stays."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_every_kind_of_damage_is_repaired_and_a_scan_finds_nothing_more(damaged) -> None:
    outcome = applied(plan_of(*actions_of(damaged)), NOW_MS)
    assert outcome.is_complete
    assert statuses(outcome) == ["done"] * 7
    shipped = partition_metadata.encode(TopicId.parse(damaged.topic_id))
    for name in ("missing-0", "empty-1", "broken-2", "stale-3"):
        assert (damaged.path / name / METADATA).read_bytes() == shipped
    assert (damaged.path / CHECKPOINT).read_text() == "0\n1\nright 4 5\n"
    assert (damaged.path / "cleaner-offset-checkpoint").read_text() == "0\n1\nright 4 5\n"
    rows = scan(str(damaged)).rows.to_pylist()
    assert [row["name"] for row in rows if row["problem"] is not None] == []
    assert not (damaged.path / UNCLEAN_FILE).exists()


def test_the_backup_holds_every_old_byte_and_no_scan_calls_it_foreign(damaged) -> None:
    before = files_of(damaged.path)
    (backup,) = applied(plan_of(*actions_of(damaged)), NOW_MS).backups
    kept = repair_backup.parse_backup(Path(backup).read_bytes())
    assert {each.path: each.before for each in kept.files} == {
        name: before.get(name) for name in [each.name for each in actions_of(damaged)]
    }
    assert Path(backup).name not in {row["name"] for row in scan(str(damaged)).rows.to_pylist()}


def test_a_second_run_of_the_same_plan_changes_nothing(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    applied(plan, NOW_MS)
    before = files_of(damaged.path)
    assert statuses(applied(plan, NOW_MS + 1)) == ["already"] * 7
    assert files_of(damaged.path) == before


def test_in_a_log_dir_of_ours_the_json_form_is_written(new_log_dir, tmp_path: Path) -> None:
    # KIP516-2
    ours = new_log_dir(tmp_path / "ours").identity(extra="logstore.scheme=flat\n")
    ours.replica("orders-0", None)
    action = write_id(ours, "orders-0", ours.topic_id)
    assert statuses(applied(plan_of(action), NOW_MS)) == ["skipped"]
    encoded = partition_metadata.encode_json(TopicId.parse(ours.topic_id), "orders", 0)
    action = replace(action, writes=repair_backup.sum_of(encoded))
    assert statuses(applied(plan_of(action), NOW_MS)) == ["done"]
    assert json.loads((ours.path / "orders-0" / METADATA).read_bytes())["name"] == "orders"


def test_what_has_changed_since_is_skipped_and_the_rest_goes_on(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    (damaged.path / "empty-1" / METADATA).write_bytes(b"somebody was here")
    (damaged.path / CHECKPOINT).write_text("0\n0\n")
    outcome = applied(plan, NOW_MS)
    assert statuses(outcome) == ["done", "skipped", "done", "done", "skipped", "done", "done"]
    assert "changed since the plan was made" in outcome.results[1].detail
    assert (damaged.path / "empty-1" / METADATA).read_bytes() == b"somebody was here"
    assert not outcome.is_complete


def test_a_plan_of_nothing_that_can_be_done_leaves_no_trace(log_dir) -> None:
    log_dir.replica("orders-0", None)
    plan = plan_of(write_id(log_dir, "orders-0", log_dir.topic_id))
    shutil.rmtree(log_dir.path / "orders-0")
    before = files_of(log_dir.path)
    outcome = applied(plan, NOW_MS)
    assert (statuses(outcome), outcome.results[0].detail) == (["skipped"], "its directory is gone")
    assert (files_of(log_dir.path), outcome.backups) == (before, [])


def test_nothing_is_changed_anywhere_while_a_broker_holds_one_of_the_log_dirs(damaged, new_log_dir, tmp_path) -> None:
    second = new_log_dir(tmp_path / "second").identity(directory_id=SECOND_DIRECTORY)
    second.replica("other-0", None)
    plan = plan_of(*actions_of(damaged), write_id(second, "other-0", second.topic_id))
    before = files_of(tmp_path)
    with OpenLogDir.open(str(second)), pytest.raises(LogDirInUseError):
        applied(plan, NOW_MS)
    assert files_of(tmp_path) == before


def test_another_log_dir_under_the_same_path_is_refused(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    damaged.identity(directory_id=SECOND_DIRECTORY)
    with pytest.raises(RefusedError, match="another log dir lies here"):
        applied(plan, NOW_MS)


def test_a_disk_that_was_swapped_until_the_locks_were_taken_is_refused_too(
    damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, opened = plan_of(*actions_of(damaged)), LogStore.open

    def swapped(*arguments: Any) -> LogStore:
        store = opened(*arguments)
        damaged.identity(directory_id=SECOND_DIRECTORY)
        return store

    monkeypatch.setattr(LogStore, "open", swapped)
    with pytest.raises(StrangeLogDirError, match="is not the log dir that it was made for"):
        applied(plan)
    assert not (damaged.path / "missing-0" / METADATA).exists()


def test_a_change_of_many_steps_that_was_cut_short_comes_first(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    assert what_is_pending(str(damaged)) is None
    damaged.file(INTENT_FILE, "{}")
    pending = what_is_pending(str(damaged)) or ""
    assert "not finished: give all log dirs of the broker to the command" in pending
    with pytest.raises(RefusedError, match="not finished"):
        applied(plan, NOW_MS)
    with OpenLogDir.open(str(damaged)):
        pass  # the lock was given back


def test_a_log_dir_that_was_left_unclean_is_recovered_first_and_its_mark_goes(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    damaged.file(UNCLEAN_FILE)
    left = damaged.file(f".logstore_repair.0123456789abcdef.json{TEMPORARY}", "half")
    outcome = applied(plan, NOW_MS)
    assert outcome.is_complete
    assert not left.exists()
    assert not (damaged.path / UNCLEAN_FILE).exists()


def test_a_full_disk_changes_nothing_because_no_backup_fits(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    before = files_of(damaged.path)
    with OpenLogDir.open(str(damaged)):
        pass  # so that .lock is there
    outcome = applied(plan, NOW_MS, disk=FailingDisk(1, errno.ENOSPC, lasting=True))
    assert set(statuses(outcome)) == {"failed"}
    assert "backup" in outcome.results[0].detail
    after = files_of(damaged.path)
    assert {path: data for path, data in after.items() if path != UNCLEAN_FILE} == before


def test_one_action_that_fails_does_not_keep_the_others_from_being_done(damaged) -> None:
    class OneClosedDirectory(FailingDisk):
        """Refuses to make anything in one partition dir."""

        def create(self, parent: int, name: str) -> int:
            if os.readlink(f"/proc/self/fd/{parent}").endswith("/empty-1"):
                raise PermissionError(errno.EACCES, "not here")
            return super().create(parent, name)

    plan = plan_of(*actions_of(damaged))
    outcome = applied(plan, NOW_MS, disk=OneClosedDirectory(10**9, errno.EACCES))
    assert statuses(outcome) == ["done", "failed", "done", "done", "done", "done", "done"]
    assert "nothing was changed" in outcome.results[1].detail
    assert statuses(applied(plan, NOW_MS)) == ["already", "done", *["already"] * 5]


def test_a_disk_that_fails_is_left_and_the_other_log_dir_goes_on(damaged, new_log_dir, tmp_path: Path) -> None:
    class OneBadDisk(FailingDisk):
        """Fails for good wherever it works on the first log dir's file system objects, known by inode."""

        def rename(self, source: int, name: str, target: int, new_name: str) -> None:
            if os.readlink(f"/proc/self/fd/{source}").startswith(str(damaged)):
                raise OSError(errno.EIO, "a bad disk")
            super().rename(source, name, target, new_name)

    second = new_log_dir(tmp_path / "second").identity(directory_id=SECOND_DIRECTORY)
    second.replica("other-0", None)
    plan = plan_of(*actions_of(damaged), write_id(second, "other-0", second.topic_id))
    outcome = applied(plan, NOW_MS, disk=OneBadDisk(10**9, errno.EIO))
    assert statuses(outcome) == ["failed"] * 7 + ["done"]
    assert (damaged.path / UNCLEAN_FILE).exists()


@pytest.mark.parametrize("node_id", [1, 2], ids=["of the same broker", "of another broker"])
def test_a_disk_that_cannot_be_read_fails_its_own_actions_alone(
    damaged, new_log_dir, tmp_path: Path, node_id: int
) -> None:
    second = new_log_dir(tmp_path / "second").identity(node_id, directory_id=SECOND_DIRECTORY)
    second.replica("other-0", None)
    plan = plan_of(*actions_of(damaged), write_id(second, "other-0", second.topic_id))
    (second.path / "meta.properties").unlink()
    (second.path / "meta.properties").mkdir()
    outcome = applied(plan)
    assert statuses(outcome) == ["done"] * 7 + ["failed"]
    assert "meta.properties" in outcome.results[-1].detail
    (path, journal), *_ = read_history([str(damaged.path)]).journals
    assert path == str(damaged.path)
    # An undo looks in every log dir of the broker, in the one that was away too.
    assert journal.log_dirs == tuple(str(each.path) for each in (damaged, second) if each is damaged or node_id == 1)


def test_an_entry_whose_partition_has_come_back_is_not_dropped(damaged) -> None:
    plan = plan_of(drop(damaged, ("gone", 0), file="cleaner-offset-checkpoint"))
    damaged.replica("gone-0")
    outcome = applied(plan, NOW_MS)
    assert (statuses(outcome), outcome.results[0].detail) == (["skipped"], "gone-0 has a directory by now")


def test_repaired_checkpoints_are_what_a_staging_in_the_same_run_writes_on(
    damaged, new_log_dir, tmp_path: Path
) -> None:
    second = new_log_dir(tmp_path / "second").identity(directory_id=SECOND_DIRECTORY)
    second.replica("right-4")
    stage = stage_copy(damaged, "right-4", damaged.topic_id, second, second.topic_id)
    outcome = applied(plan_of(rebuild(damaged), stage), NOW_MS)
    assert statuses(outcome) == ["done", "done"]
    assert (damaged.path / CHECKPOINT).read_text() == "0\n0\n"


def test_the_lock_is_given_back_whatever_happens(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    applied(plan, NOW_MS, disk=FailingDisk(3, errno.EIO, lasting=True))
    with OpenLogDir.open(str(damaged)) as opened:
        assert isinstance(opened._lock, Lock)


def test_a_run_of_repairs_leaves_a_journal_that_holds_back_no_later_plan(damaged) -> None:
    plan = replace(plan_of(*actions_of(damaged)), metadata=({"cluster_id": "C", "topics": "9", "replicas": "9"},))
    (path,) = applied(plan).journals
    history = read_history([str(damaged)])
    ((_, journal),) = history.journals
    assert Path(path).exists() and journal.finished_ms == NOW_MS
    assert [(line["name"], line["status"]) for line in journal.lines] == [(each.name, "done") for each in plan.actions]
    memory = history.memory()
    assert (memory.metadata, memory.used, memory.written) == ({}, {}, {str(damaged): NOW_MS})


def test_only_a_plan_of_repairs_alone_is_taken_on_another_machine_and_years_later(damaged) -> None:
    repairs = plan_of(*actions_of(damaged))
    stage = replace(repairs.actions[0], kind=ActionKind.STAGE, name="right-4", topic="right", partition=4)
    with pytest.raises(RefusedError, match=r"made on a-host, and this is another-host.* old, and"):
        applied(replace(repairs, actions=(*repairs.actions, stage)))
    assert not (damaged.path / "missing-0" / METADATA).exists()
    assert applied(repairs).is_complete


def test_an_interrupt_among_the_repairs_is_told_in_the_journal_and_the_plan_can_be_applied_again(
    damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    plan = plan_of(*actions_of(damaged))
    monkeypatch.setattr("reconciler.plan.apply.repair_files", interrupted)
    with pytest.raises(KeyboardInterrupt):
        applied(plan)
    ((_, journal),) = read_history([str(damaged)]).journals
    said = ("failed", "the run was interrupted before it was known to be done")
    assert {(line["status"], line["detail"]) for line in journal.lines} == {said}
    monkeypatch.undo()
    assert applied(plan, NOW_MS + 1).is_complete


def test_a_copy_is_not_staged_once_the_same_run_has_staged_the_one_that_stays(
    log_dir, new_log_dir, tmp_path: Path
) -> None:
    """No plan says so; where somebody wrote one that does, one copy stays live."""
    second = new_log_dir(tmp_path / "second").identity(directory_id=SECOND_DIRECTORY)
    for each in (log_dir, second):
        each.replica("orders-0")
    one = stage_copy(log_dir, "orders-0", log_dir.topic_id, second, second.topic_id)
    other = stage_copy(second, "orders-0", second.topic_id, log_dir, log_dir.topic_id)
    outcome = applied(plan_of(one, other))
    assert statuses(outcome) == ["done", "skipped"]
    assert "is gone" in outcome.results[1].detail
    assert [(each.path / "orders-0").exists() for each in (log_dir, second)] == [False, True]


@pytest.fixture
def copies(log_dir, new_log_dir, tmp_path: Path):
    """``orders-0`` live in two log dirs of one broker; the first is the worse copy."""
    better = new_log_dir(tmp_path / "better").identity(directory_id=SECOND_DIRECTORY)
    for each in (log_dir, better):
        each.replica("orders-0")
        each.file(CHECKPOINT, "0\n1\norders 0 5\n")
    return log_dir, better


def plan_for(copies, **changes):
    worse, better = copies
    return plan_of(replace(stage_copy(worse, "orders-0", worse.topic_id, better, better.topic_id), **changes))


def test_the_worse_copy_is_staged_with_its_way_back(copies) -> None:
    worse, better = copies
    (result,) = applied(plan_for(copies), NOW_MS).results
    assert (result.status, (worse.path / "orders-0").exists()) == ("done", False)
    assert (better.path / "orders-0" / METADATA).is_file()
    assert "logstore restore" in result.detail
    with OpenLogDir.open(str(worse)) as opened:
        (staged,) = list_staged(opened)
        assert staged.record is not None
        assert (staged.record.verdict, staged.due_ms) == (Verdict.DUPLICATE, NOW_MS + PlanChoice().delay_ms)
        assert dict(staged.record.checkpoints) == {CHECKPOINT: 5}
        restore(opened, staged)
    assert (worse.path / CHECKPOINT).read_text() == "0\n1\norders 0 5\n"
    assert sorted(path.name for path in (worse.path / "orders-0").iterdir()) == [METADATA]


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        ({"created_ms": NOW_MS + 61_000}, "it is of 2023-11-14 22:14:21 UTC, which is 61 s in the future"),
        (
            {"metadata": ({"location": "/m", "timestamp_ms": str(NOW_MS + 61_000)},)},
            "/m, from which it was made, is of 2023-11-14 22:14:21 UTC, which is 61 s in the future",
        ),
    ],
)
def test_no_copy_is_staged_under_a_clock_that_is_behind_its_plan_or_the_metadata(copies, ahead, said: str) -> None:
    """What is staged under it would be due the moment it is set right."""
    plan = sealed(replace(plan_for(copies), **ahead))
    with pytest.raises(RefusedError) as refused:
        applied(plan)
    assert said in str(refused.value) and "(override: --any-clock)" in str(refused.value)
    assert (copies[0].path / "orders-0").exists()
    assert applied(plan, any_clock=True).is_complete


def test_no_copy_is_staged_under_a_clock_that_is_behind_the_copy(copies) -> None:
    plan = plan_for(copies, created_ms=NOW_MS + 61_000)
    with pytest.raises(RefusedError, match=r"data/orders-0 is of 2023-11-14 22:14:21 UTC.*--any-clock"):
        applied(plan)
    assert (copies[0].path / "orders-0").exists()


def test_no_file_is_repaired_by_a_plan_of_the_future(damaged) -> None:
    plan = sealed(replace(plan_of(*actions_of(damaged)), created_ms=NOW_MS + 61_000))
    with pytest.raises(RefusedError, match=r"it is of 2023-11-14 22:14:21 UTC.*61 s in the future.*--any-clock"):
        applied(plan)
    assert not (damaged.path / "missing-0" / METADATA).exists()
    assert applied(plan, any_clock=True).is_complete


def test_a_second_run_finds_it_staged(copies) -> None:
    plan = plan_for(copies)
    applied(plan, NOW_MS)
    assert [each.status for each in applied(plan, NOW_MS).results] == ["already"]


def test_nothing_is_staged_once_the_copy_that_stays_is_gone(copies) -> None:
    plan = plan_for(copies)
    shutil.rmtree(copies[1].path / "orders-0")
    (result,) = applied(plan, NOW_MS).results
    assert result.status == "skipped" and "is gone" in result.detail
    assert (copies[0].path / "orders-0").is_dir()


def test_nothing_is_staged_once_the_copy_that_stays_is_another_one(copies) -> None:
    plan = plan_for(copies)
    (copies[1].path / "orders-0" / METADATA).write_text(f"version: 0\ntopic_id: {copies[1].other_id}")
    (result,) = applied(plan, NOW_MS).results
    assert result.status == "skipped" and "by now" in result.detail
    shutil.move(copies[1].path / "orders-0", copies[1].path / "x-0")
    copies[1].replica("orders-0")
    (result,) = applied(plan, NOW_MS).results
    assert result.status == "skipped" and "another directory" in result.detail


def test_nothing_is_staged_once_the_disk_of_the_copy_that_stays_has_failed(copies) -> None:
    worse, better = copies
    better.replica("other-0", None)
    duplicate = stage_copy(worse, "orders-0", worse.topic_id, better, better.topic_id)
    plan = plan_of(write_id(better, "other-0", better.topic_id), duplicate)
    outcome = applied(plan, NOW_MS, disk=DiskThat(errno.EIO, {"rename"}, below=better.path))
    assert statuses(outcome) == ["failed", "skipped"]
    assert outcome.results[1].detail == "the log dir of the copy that stays cannot be used"
    assert (worse.path / "orders-0").is_dir()


def test_a_copy_that_has_changed_is_not_staged(copies) -> None:
    plan = plan_for(copies)
    (copies[0].path / "orders-0" / METADATA).write_bytes(b"other")
    assert [each.status for each in applied(plan, NOW_MS).results] == ["skipped"]
    assert (copies[0].path / "orders-0").is_dir()


def test_a_copy_that_is_gone_and_was_never_staged_is_refused_with_the_reason(copies) -> None:
    plan = plan_for(copies)
    shutil.rmtree(copies[0].path / "orders-0")
    (result,) = applied(plan, NOW_MS).results
    assert (result.status, result.detail) == ("skipped", "it is gone")


def test_a_plan_that_keeps_another_partition_is_not_believed(copies) -> None:
    worse, better = copies
    better.replica("payments-0")
    action = stage_copy(worse, "orders-0", worse.topic_id, better, better.topic_id)
    inode = (better.path / "payments-0").stat().st_ino
    assert action.keeps is not None
    plan = plan_of(replace(action, keeps=replace(action.keeps, name="payments-0", inode=inode)))
    (result,) = applied(plan, NOW_MS).results
    assert result.status == "skipped" and "no live directory of orders-0" in result.detail
