"""A backup is there before anything changes, is only added to, and is believed in its own log dir alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from layout.ours import KeptFile, repair_backup, sum_of
from logstore import ChangeRefusedError
from logstore.log_dir import LogDir as OpenLogDir
from logstore.repair import backup as repair_backups
from logstore.repair.backup import read_backup, write_backup
from tests.logstore.engine import DiskThat

FINGERPRINT = "ab" * 32
NAME = repair_backup.backup_file_name(FINGERPRINT)
FIRST = KeptFile("cleaner-offset-checkpoint", b"old", sum_of(b"new"))
SECOND = KeptFile("orders-0/partition.metadata", None, sum_of(b"new"), 7)


def test_a_backup_is_written_and_read(log_dir) -> None:
    with OpenLogDir.open(str(log_dir)) as opened:
        assert write_backup(opened, FINGERPRINT, 5, [FIRST]) == f"{log_dir}/{NAME}"
        found = read_backup(opened, NAME)
    assert (found.files, found.made_ms, found.directory_id) == ((FIRST,), 5, log_dir.directory_id)


def test_a_backup_is_durable_before_anything_else_is_done(log_dir) -> None:
    disk = DiskThat()
    with OpenLogDir.open(str(log_dir), disk=disk) as opened:
        write_backup(opened, FINGERPRINT, 5, [FIRST])
        assert disk.synced[-2:] == [f"{log_dir}/{NAME}", str(log_dir)]


def test_a_second_run_adds_to_it_and_keeps_the_older_bytes(log_dir) -> None:
    with OpenLogDir.open(str(log_dir)) as opened:
        write_backup(opened, FINGERPRINT, 5, [FIRST])
        write_backup(opened, FINGERPRINT, 6, [KeptFile(FIRST.path, b"newer", FIRST.after), SECOND])
        assert read_backup(opened, NAME).files == (FIRST, SECOND)


def test_one_that_a_crash_cut_short_is_written_over(log_dir) -> None:
    (log_dir.path / NAME).write_bytes(b'{"schema_version": 1, "fi')
    with OpenLogDir.open(str(log_dir)) as opened:
        with pytest.raises(ChangeRefusedError, match="nothing was changed"):
            read_backup(opened, NAME)
        write_backup(opened, FINGERPRINT, 5, [FIRST])
        assert read_backup(opened, NAME).files == (FIRST,)


def test_something_else_under_its_name_is_not_touched(log_dir, tmp_path: Path) -> None:
    (log_dir.path / NAME).symlink_to(tmp_path / "elsewhere")
    with OpenLogDir.open(str(log_dir)) as opened, pytest.raises(ChangeRefusedError, match="symbolic link"):
        write_backup(opened, FINGERPRINT, 5, [FIRST])
    assert not (tmp_path / "elsewhere").exists()


def test_more_than_a_backup_can_keep_is_refused(log_dir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_backups, "MOST_OLD_BYTES", 2)
    with OpenLogDir.open(str(log_dir)) as opened, pytest.raises(ChangeRefusedError, match="--only"):
        write_backup(opened, FINGERPRINT, 5, [FIRST])
    assert not (log_dir.path / NAME).exists()


def test_a_backup_of_another_log_dir_is_refused(log_dir, new_log_dir, tmp_path: Path) -> None:
    other = new_log_dir(tmp_path / "other").identity(directory_id=log_dir.other_id)
    with OpenLogDir.open(str(log_dir)) as opened:
        write_backup(opened, FINGERPRINT, 5, [FIRST])
    shutil.copy(log_dir.path / NAME, other.path / NAME)
    with OpenLogDir.open(str(other)) as opened, pytest.raises(ChangeRefusedError, match="was made for"):
        read_backup(opened, NAME)


def test_a_backup_that_is_not_there_is_refused_with_the_reason(log_dir) -> None:
    with OpenLogDir.open(str(log_dir)) as opened, pytest.raises(ChangeRefusedError, match="not there"):
        read_backup(opened, NAME)
