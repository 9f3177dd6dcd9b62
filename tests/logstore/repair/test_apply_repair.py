"""A plan is carried out as it says, or skipped where the disk says otherwise; nothing is changed without a way back."""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import TopicId
from layout.ours import RepairKind, repair_backup
from layout.scheme import INTENT_FILE, UNCLEAN_FILE
from logstore import ChangeRefusedError, LogDirInUseError, NotALogDirError
from logstore.fs import TEMPORARY
from logstore.log_dir import LogDir as OpenLogDir
from logstore.log_dir.lock import Lock
from logstore.repair import apply_repair
from logstore.scan import scan
from tests.crash.failing_disk import FailingDisk
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

NOW_MS = 1_700_000_000_000
SECOND_DIRECTORY = "AtgGav8yQjiaJ3rTXE7VCA"


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
        write_id(log_dir, "stale-3", log_dir.topic_id, kind=RepairKind.REPLACE_TOPIC_ID),
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
    outcome = apply_repair(plan_of(*actions_of(damaged)), NOW_MS)
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
    (backup,) = apply_repair(plan_of(*actions_of(damaged)), NOW_MS).backups
    kept = repair_backup.parse_backup(Path(backup).read_bytes())
    assert {each.path: each.before for each in kept.files} == {
        path: before.get(path) for path in [each.path for each in actions_of(damaged)]
    }
    assert Path(backup).name not in {row["name"] for row in scan(str(damaged)).rows.to_pylist()}


def test_a_second_run_of_the_same_plan_changes_nothing(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    apply_repair(plan, NOW_MS)
    before = files_of(damaged.path)
    assert statuses(apply_repair(plan, NOW_MS + 1)) == ["already"] * 7
    assert files_of(damaged.path) == before


def test_in_a_log_dir_of_ours_the_json_form_is_written(new_log_dir, tmp_path: Path) -> None:
    # KIP516-2
    ours = new_log_dir(tmp_path / "ours").identity(extra="logstore.scheme=flat\n")
    ours.replica("orders-0", None)
    action = write_id(ours, "orders-0", ours.topic_id)
    assert statuses(apply_repair(plan_of(action), NOW_MS)) == ["skipped"]
    encoded = partition_metadata.encode_json(TopicId.parse(ours.topic_id), "orders", 0)
    action = replace(action, writes=repair_backup.sum_of(encoded))
    assert statuses(apply_repair(plan_of(action), NOW_MS)) == ["done"]
    assert json.loads((ours.path / "orders-0" / METADATA).read_bytes())["name"] == "orders"


def test_what_has_changed_since_is_skipped_and_the_rest_goes_on(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    (damaged.path / "empty-1" / METADATA).write_bytes(b"somebody was here")
    (damaged.path / CHECKPOINT).write_text("0\n0\n")
    outcome = apply_repair(plan, NOW_MS)
    assert statuses(outcome) == ["done", "skipped", "done", "done", "skipped", "done", "done"]
    assert "changed since the plan was made" in outcome.results[1].detail
    assert (damaged.path / "empty-1" / METADATA).read_bytes() == b"somebody was here"
    assert not outcome.is_complete


def test_a_plan_of_nothing_that_can_be_done_leaves_no_trace(log_dir) -> None:
    log_dir.replica("orders-0", None)
    plan = plan_of(write_id(log_dir, "orders-0", log_dir.topic_id))
    shutil.rmtree(log_dir.path / "orders-0")
    before = files_of(log_dir.path)
    outcome = apply_repair(plan, NOW_MS)
    assert (statuses(outcome), outcome.results[0].detail) == (["skipped"], "its directory is gone")
    assert (files_of(log_dir.path), outcome.backups) == (before, [])


def test_nothing_is_changed_anywhere_while_a_broker_holds_one_of_the_log_dirs(damaged, new_log_dir, tmp_path) -> None:
    second = new_log_dir(tmp_path / "second").identity(directory_id=SECOND_DIRECTORY)
    second.replica("other-0", None)
    plan = plan_of(*actions_of(damaged), write_id(second, "other-0", second.topic_id))
    before = files_of(tmp_path)
    with OpenLogDir.open(str(second)), pytest.raises(LogDirInUseError):
        apply_repair(plan, NOW_MS)
    assert files_of(tmp_path) == before


def test_another_log_dir_under_the_same_path_is_refused(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    damaged.identity(directory_id=SECOND_DIRECTORY)
    with pytest.raises(NotALogDirError, match="another log dir lies here"):
        apply_repair(plan, NOW_MS)


def test_a_change_of_many_steps_that_was_cut_short_comes_first(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    damaged.file(INTENT_FILE, "{}")
    with pytest.raises(ChangeRefusedError, match="not finished"):
        apply_repair(plan, NOW_MS)
    with OpenLogDir.open(str(damaged)):
        pass  # the lock was given back


def test_a_log_dir_that_was_left_unclean_is_recovered_first_and_its_mark_goes(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    damaged.file(UNCLEAN_FILE)
    left = damaged.file(f".logstore_repair.0123456789abcdef.json{TEMPORARY}", "half")
    outcome = apply_repair(plan, NOW_MS)
    assert outcome.is_complete
    assert not left.exists()
    assert not (damaged.path / UNCLEAN_FILE).exists()


def test_a_full_disk_changes_nothing_because_no_backup_fits(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    before = files_of(damaged.path)
    with OpenLogDir.open(str(damaged)):
        pass  # so that .lock is there
    outcome = apply_repair(plan, NOW_MS, disk=FailingDisk(1, errno.ENOSPC, lasting=True))
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
    outcome = apply_repair(plan, NOW_MS, disk=OneClosedDirectory(10**9, errno.EACCES))
    assert statuses(outcome) == ["done", "failed", "done", "done", "done", "done", "done"]
    assert "nothing was changed" in outcome.results[1].detail
    assert statuses(apply_repair(plan, NOW_MS)) == ["already", "done", *["already"] * 5]


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
    outcome = apply_repair(plan, NOW_MS, disk=OneBadDisk(10**9, errno.EIO))
    assert statuses(outcome) == ["failed"] * 7 + ["done"]
    assert (damaged.path / UNCLEAN_FILE).exists()


def test_an_entry_whose_partition_has_come_back_is_not_dropped(damaged) -> None:
    plan = plan_of(drop(damaged, ("gone", 0), file="cleaner-offset-checkpoint"))
    damaged.replica("gone-0")
    outcome = apply_repair(plan, NOW_MS)
    assert (statuses(outcome), outcome.results[0].detail) == (["skipped"], "gone-0 has a directory by now")


def test_repaired_checkpoints_are_what_a_staging_in_the_same_run_writes_on(
    damaged, new_log_dir, tmp_path: Path
) -> None:
    second = new_log_dir(tmp_path / "second").identity(directory_id=SECOND_DIRECTORY)
    second.replica("right-4")
    stage = stage_copy(damaged, "right-4", damaged.topic_id, second, second.topic_id)
    outcome = apply_repair(plan_of(rebuild(damaged), stage), NOW_MS)
    assert statuses(outcome) == ["done", "done"]
    assert (damaged.path / CHECKPOINT).read_text() == "0\n0\n"


def test_the_lock_is_given_back_whatever_happens(damaged) -> None:
    plan = plan_of(*actions_of(damaged))
    apply_repair(plan, NOW_MS, disk=FailingDisk(3, errno.EIO, lasting=True))
    with OpenLogDir.open(str(damaged)) as opened:
        assert isinstance(opened._lock, Lock)
