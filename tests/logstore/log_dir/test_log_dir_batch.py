"""Small files hold their old bytes or the new ones, one at a time and many together."""

from __future__ import annotations

import errno
import os

import pytest

from logstore import ChangeFailedError, OfflineLogDirError
from logstore.log_dir import FileChange, LogDir, change_files
from logstore.tunables import FILES_AT_ONCE
from tests.crash.failing_disk import FailingDisk
from tests.logstore.engine import DiskThat

FILE = "partition.metadata"


def changes_for(log_dir, number: int) -> list[FileChange]:
    """Old bytes become new ones; every third file goes."""
    found = []
    for each in range(number):
        inode = os.stat(log_dir.replica(f"orders-{each}", b"old")).st_ino
        found.append(FileChange(f"orders-{each}/{FILE}", None if each % 3 == 2 else b"new", inode))
    return found


def held(log_dir, change: FileChange) -> bytes | None:
    path = log_dir.path / change.path
    assert os.listdir(path.parent) in ([], [FILE])
    return path.read_bytes() if path.exists() else None


@pytest.mark.parametrize("number", [1, 4, 5, FILES_AT_ONCE + 7])
def test_all_files_hold_what_they_should(log_dir, number: int) -> None:
    changes = changes_for(log_dir, number)
    with LogDir.open(str(log_dir)) as opened:
        assert change_files(opened, changes, "cannot be tried") == {}
    assert [held(log_dir, each) for each in changes] == [each.data for each in changes]


def test_many_files_cost_two_barriers_and_no_sync_of_their_own(log_dir) -> None:
    changes, disk = changes_for(log_dir, 50), DiskThat()
    with LogDir.open(str(log_dir), disk=disk) as opened:
        change_files(opened, changes, "cannot be tried")
        assert disk.calls["sync_file_system"] == 2
        assert disk.calls.get("sync", 0) < 5


def test_a_directory_that_is_gone_or_another_one_keeps_no_other_from_being_done(log_dir) -> None:
    changes = changes_for(log_dir, 6)
    (log_dir.path / "orders-1").rename(log_dir.path / "moved-1")
    log_dir.replica("orders-1", b"another")
    (log_dir.path / "orders-3").rename(log_dir.path / "moved-3")
    with LogDir.open(str(log_dir)) as opened:
        failed = change_files(opened, changes, "cannot be tried")
    assert set(failed) == {f"orders-1/{FILE}", f"orders-3/{FILE}"}
    assert (log_dir.path / "orders-1" / FILE).read_bytes() == b"another"
    assert [held(log_dir, each) for each in changes if each.path not in failed] == [b"new", None, b"new", None]


@pytest.mark.parametrize("number", [1, 7])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_whichever_step_fails_each_file_is_whole_and_the_answer_is_true(log_dir, number: int, error: int) -> None:
    changes = changes_for(log_dir, number)
    for at in range(200):
        for change in changes:
            (log_dir.path / change.path).write_bytes(b"old")
        disk = FailingDisk(10**9, error)
        with LogDir.open(str(log_dir), disk=disk) as opened:
            disk.at = disk.count + at
            failed = change_files(opened, changes, "cannot be tried")
        for change in changes:
            found = held(log_dir, change)
            assert found in (b"old", change.data)
            if change.path not in failed:
                assert found == change.data
            elif error != errno.EIO:
                assert found == b"old"
                assert isinstance(failed[change.path], ChangeFailedError)
            else:
                assert isinstance(failed[change.path], OfflineLogDirError)
        if disk.failed is None:
            break
    assert disk.failed is None and at > 3


def test_a_full_disk_fails_every_file_and_changes_none(log_dir) -> None:
    changes = [each for each in changes_for(log_dir, 7) if each.data is not None]
    disk = FailingDisk(10**9, errno.ENOSPC, lasting=True)
    with LogDir.open(str(log_dir), disk=disk) as opened:
        disk.at = disk.count + 3
        failed = change_files(opened, changes, "cannot be tried")
    assert set(failed) == {each.path for each in changes}
    assert [held(log_dir, each) for each in changes] == [b"old"] * len(changes)


@pytest.mark.parametrize("others", [0, 10])
@pytest.mark.parametrize("leftover_first", [True, False])
@pytest.mark.parametrize("data", [None, b"left over"])
def test_a_brokers_temporary_file_beside_another_gets_its_own_bytes(
    log_dir, others: int, leftover_first: bool, data: bytes | None
) -> None:
    log_dir.file("checkpoint", "old")
    log_dir.file("checkpoint.tmp", "half")
    both = [FileChange("checkpoint", b"new"), FileChange("checkpoint.tmp", data)]
    changes = [*changes_for(log_dir, others), *(both[::-1] if leftover_first else both)]
    with LogDir.open(str(log_dir)) as opened:
        assert change_files(opened, changes, "cannot be tried") == {}
    left = log_dir.path / "checkpoint.tmp"
    assert (log_dir.path / "checkpoint").read_bytes() == b"new"
    assert (left.read_bytes() if left.exists() else None) == data
    assert [held(log_dir, each) for each in changes[:others]] == [each.data for each in changes[:others]]
