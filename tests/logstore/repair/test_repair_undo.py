"""An undo gives every file its old bytes, or leaves it alone and says why."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from layout.scheme import INTENT_FILE, UNCLEAN_FILE
from logstore import ChangeFailedError, ChangeRefusedError, LogDirInUseError, LogStoreError, NotALogDirError
from logstore.fs import TEMPORARY
from logstore.log_dir import LogDir as OpenLogDir
from logstore.repair import undo_repair
from tests.crash.failing_disk import FailingDisk
from tests.logstore.engine import DiskThat
from tests.logstore.repair.file_repairs import CHECKPOINT, METADATA, drop, rebuild, remove, repair, write_id


@pytest.fixture
def repaired(log_dir):
    """A log dir that was repaired, what it held before, and the backup."""
    log_dir.replica("missing-0", None)
    log_dir.replica("broken-1", b"garbage")
    log_dir.file(CHECKPOINT, "0\n9\nhalf\n")
    log_dir.file("meta.properties.tmp", "half")
    before = files_of(log_dir.path)
    actions = [write_id(log_dir, name, log_dir.topic_id) for name in ("missing-0", "broken-1")]
    outcome = repair(log_dir, *actions, rebuild(log_dir), remove(log_dir, "meta.properties.tmp"))
    assert outcome.backup is not None
    return log_dir, before, Path(outcome.backup)


def files_of(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_everything_is_as_it_was_and_the_backup_goes(repaired) -> None:
    log_dir, before, backup = repaired
    outcome = undo_repair(str(backup))
    assert {each.status for each in outcome.results} == {"done"}
    assert outcome.backup_removed
    assert files_of(log_dir.path) == before


def test_what_has_changed_since_is_left_and_the_backup_stays(repaired) -> None:
    log_dir, before, backup = repaired
    log_dir.file(CHECKPOINT, "0\n1\nbroken 1 7\n")
    outcome = undo_repair(str(backup))
    assert [each.path for each in outcome.results if each.status == "skipped"] == [CHECKPOINT]
    assert not outcome.backup_removed and backup.exists()
    found = files_of(log_dir.path)
    assert found[CHECKPOINT] == b"0\n1\nbroken 1 7\n"
    assert found[f"broken-1/{METADATA}"] == before[f"broken-1/{METADATA}"]


def test_a_partition_dir_that_was_made_anew_keeps_its_file(repaired) -> None:
    log_dir, _, backup = repaired
    (log_dir.path / "missing-0").rename(log_dir.path / "elsewhere-0")
    log_dir.replica("missing-0")
    outcome = undo_repair(str(backup))
    assert [each.detail for each in outcome.results if each.status == "skipped"] == [
        "its directory is another one by now"
    ]
    assert (log_dir.path / "missing-0" / METADATA).is_file()


def test_a_partition_dir_that_is_gone_is_reported(repaired) -> None:
    log_dir, _, backup = repaired
    shutil.rmtree(log_dir.path / "missing-0")
    outcome = undo_repair(str(backup))
    assert [each.detail for each in outcome.results if each.status == "skipped"] == ["its directory is gone"]


def test_an_undo_that_was_cut_short_is_done_again(repaired) -> None:
    log_dir, before, backup = repaired
    for at in range(60):
        try:
            if undo_repair(str(backup), disk=FailingDisk(at, errno.EIO, lasting=True)).backup_removed:
                break
        except LogStoreError:
            continue
    assert {path: data for path, data in files_of(log_dir.path).items() if path != UNCLEAN_FILE} == before


def test_the_backup_stays_until_every_file_has_its_old_bytes_durably(repaired) -> None:
    log_dir, before, backup = repaired
    disk = DiskThat(errno.ENOSPC, ["sync"], below=log_dir.path / "missing-0")
    with pytest.raises(ChangeFailedError):
        undo_repair(str(backup), disk=disk)
    assert backup.exists()
    disk = DiskThat()
    assert undo_repair(str(backup), disk=disk).backup_removed
    assert f"{log_dir}/missing-0" in disk.synced, "its file has the old bytes since the first undo"
    assert {path: data for path, data in files_of(log_dir.path).items() if path != UNCLEAN_FILE} == before


def test_a_file_that_is_not_a_backup_is_refused(repaired, tmp_path: Path) -> None:
    log_dir, _, backup = repaired
    with pytest.raises(ChangeRefusedError, match="not named"):
        undo_repair(str(log_dir.path / "meta.properties"))
    shutil.copy(backup, tmp_path / backup.name)
    with pytest.raises(NotALogDirError):
        undo_repair(str(tmp_path / backup.name))
    backup.write_bytes(backup.read_bytes().replace(b'"made_ms": 1', b'"made_ms": 2'))
    with pytest.raises(ChangeRefusedError, match="check sum"):
        undo_repair(str(backup))


def test_a_running_broker_is_not_disturbed(repaired) -> None:
    log_dir, _, backup = repaired
    after = files_of(log_dir.path)
    with OpenLogDir.open(str(log_dir)), pytest.raises(LogDirInUseError):
        undo_repair(str(backup))
    assert files_of(log_dir.path) == after


def test_the_same_plan_can_be_applied_again_after_an_undo(repaired) -> None:
    log_dir, before, backup = repaired
    undo_repair(str(backup))
    action = write_id(log_dir, "missing-0", log_dir.topic_id)
    again = repair(log_dir, action, now_ms=2).backup
    assert again is not None
    undo_repair(again)
    assert files_of(log_dir.path) == before


@pytest.mark.parametrize("others", [0, 5])
def test_what_a_broker_had_left_of_a_damaged_file_stays_as_it_is(log_dir, others: int) -> None:
    for number in range(others):
        log_dir.replica(f"missing-{number}", None)
    log_dir.file(CHECKPOINT, "0\n9\nhalf\n")
    log_dir.file(f"{CHECKPOINT}.tmp", "0\n")
    before = files_of(log_dir.path)
    actions = [write_id(log_dir, f"missing-{number}", log_dir.topic_id) for number in range(others)]
    outcome = repair(log_dir, *actions, rebuild(log_dir), remove(log_dir, f"{CHECKPOINT}.tmp"))
    assert outcome.statuses == [*["done"] * (others + 1), "skipped"]
    assert (log_dir.path / f"{CHECKPOINT}.tmp").read_bytes() == b"0\n"
    assert outcome.backup is not None
    assert undo_repair(outcome.backup).backup_removed
    assert files_of(log_dir.path) == before


def test_an_undo_recovers_first_what_a_crash_left_and_takes_the_mark_away(repaired) -> None:
    log_dir, before, backup = repaired
    log_dir.file(f"{CHECKPOINT}{TEMPORARY}", "half")
    log_dir.file(UNCLEAN_FILE)
    assert undo_repair(str(backup)).backup_removed
    assert files_of(log_dir.path) == before


def test_an_undo_is_refused_while_a_change_of_many_steps_waits_to_be_finished(repaired) -> None:
    log_dir, _, backup = repaired
    log_dir.file(INTENT_FILE, "half")
    before = files_of(log_dir.path)
    with pytest.raises(ChangeRefusedError):
        undo_repair(str(backup))
    assert files_of(log_dir.path) == before


def test_a_leftover_that_was_removed_comes_back_beside_its_checkpoint(log_dir) -> None:
    log_dir.replica("orders-0")
    log_dir.file(CHECKPOINT, "0\n2\norders 0 7\ngone 0 9\n")
    log_dir.file(f"{CHECKPOINT}.tmp", "0\n1\n")
    before = files_of(log_dir.path)
    outcome = repair(log_dir, drop(log_dir, ("gone", 0)), remove(log_dir, f"{CHECKPOINT}.tmp"))
    assert (outcome.statuses, outcome.backup is None) == (["done", "done"], False)
    assert undo_repair(outcome.backup or "").backup_removed
    assert files_of(log_dir.path) == before
