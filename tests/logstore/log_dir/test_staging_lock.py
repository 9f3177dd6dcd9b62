"""The lock of the staging root beside a broker's log dir: who changes what is staged there has it, broker or not."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from layout import meta_properties
from logstore import ChangeFailedError, ChangeRefusedError, LogDirInUseError, NotALogDirError, OfflineLogDirError
from logstore.fs import Directory, Disk
from logstore.log_dir import LogDir, StagingBeside, StagingLock
from logstore.log_dir.lock import Lock
from logstore.parallel import spread
from logstore.staging import Placement, open_staging_root, stage
from tests.logstore.engine import NOW_MS, candidate, fill, formatted, identity, picture

TRY = """
import sys
from logstore.log_dir import StagingLock
StagingLock.take(sys.argv[1])
"""


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A real broker's log dir, with one replica in it and an empty staging root beside it."""
    root = tmp_path / "kafka"
    fill(root / "orders-0")
    (root / "meta.properties").write_bytes(meta_properties.encode(identity(scheme=None), "today"))
    (tmp_path / "kafka.deleting").mkdir()
    return root


@pytest.fixture
def held(broker: Path) -> Iterator[Path]:
    """The same while a broker runs on it, which has the log dir's own lock and knows of no other."""
    with Directory.open(str(broker)) as root:
        lock = Lock.take(root, Disk())
        yield broker
        lock.release()


def another_process_gets_it(log_dir: Path) -> bool:
    answer = subprocess.run([sys.executable, "-c", TRY, str(log_dir)], capture_output=True, check=False)
    assert answer.returncode == 0 or b"LogDirInUseError" in answer.stderr, answer.stderr
    return answer.returncode == 0


def test_beside_a_running_broker_the_staging_root_is_locked_and_nothing_is_made(held: Path) -> None:
    before = picture(held.parent, but=())
    with StagingBeside.open(str(held)) as beside:
        assert not another_process_gets_it(held)
        assert (beside.path, beside.is_ours) == (str(held), False)
        with pytest.raises(LogDirInUseError, match=rf"deleting is in use by process {os.getpid()} .*: wait"):
            StagingBeside.open(str(held))
    assert another_process_gets_it(held)
    assert picture(held.parent, but=()) == before


def test_who_holds_the_log_dir_holds_the_staging_root_too(broker: Path) -> None:
    with LogDir.open(str(broker)), pytest.raises(LogDirInUseError, match=r"kafka\.deleting is in use"):
        StagingBeside.open(str(broker))
    with StagingBeside.open(str(broker)):
        with pytest.raises(LogDirInUseError, match=r"kafka\.deleting is in use"):
            LogDir.open(str(broker))
        with Directory.open(str(broker)) as root:
            Lock.take(root, Disk()).release()  # it was given back, so that a broker may start


def test_a_staging_root_that_is_made_later_is_locked_before_anything_lies_in_it(broker: Path) -> None:
    os.rmdir(f"{broker}.deleting")
    with LogDir.open(str(broker)) as log_dir:
        stage(log_dir, [candidate()], NOW_MS, placement=Placement.SIBLING)
        assert not another_process_gets_it(broker)
    assert another_process_gets_it(broker)


def test_one_that_somebody_else_made_and_locked_meanwhile_is_not_used(broker: Path) -> None:
    os.rmdir(f"{broker}.deleting")
    with LogDir.open(str(broker)) as log_dir:
        os.mkdir(f"{broker}.deleting")
        with StagingBeside.open(str(broker)), pytest.raises(LogDirInUseError):
            stage(log_dir, [candidate()], NOW_MS, placement=Placement.SIBLING)
        assert (broker / "orders-0").is_dir()
        assert stage(log_dir, [candidate()], NOW_MS, placement=Placement.SIBLING).staged


def test_one_that_was_replaced_is_locked_anew(broker: Path) -> None:
    with LogDir.open(str(broker)) as log_dir:
        os.rename(f"{broker}.deleting", f"{broker}.former")
        os.mkdir(f"{broker}.deleting")
        assert another_process_gets_it(broker)
        root = open_staging_root(log_dir, Placement.SIBLING)
        assert root is not None
        root.close()
        assert not another_process_gets_it(broker)


def test_where_there_is_no_staging_root_there_is_nothing_to_lock(broker: Path, tmp_path: Path) -> None:
    os.rmdir(f"{broker}.deleting")
    assert StagingLock.take(str(broker)) is None
    assert StagingLock.take("/") is None
    os.symlink(tmp_path, f"{broker}.deleting")
    assert StagingLock.take(str(broker), required=True) is None
    with StagingBeside.open(str(broker)), LogDir.open(str(broker)):
        pass  # nothing is shared, so nothing is locked


def test_a_log_dir_that_is_ours_has_no_staging_root_beside_it(tmp_path: Path) -> None:
    ours = formatted(tmp_path / "ours")
    (tmp_path / "ours.deleting").mkdir()
    with LogDir.open(str(ours)), StagingBeside.open(str(ours)) as beside:
        assert beside.is_ours
        assert another_process_gets_it(ours)


def test_on_a_file_system_that_locks_no_directory_only_the_log_dirs_own_lock_lets_anybody_work(
    broker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(ChangeRefusedError, match=r"cannot lock a directory .* only while no broker runs"):
        StagingBeside.open(str(broker))
    with LogDir.open(str(broker)) as log_dir:
        assert stage(log_dir, [candidate()], NOW_MS, placement=Placement.SIBLING).staged


def test_a_child_that_was_forked_does_not_keep_the_lock(broker: Path) -> None:
    lock = StagingLock.take(str(broker))
    assert lock is not None and lock.is_current()

    def work(numbers: object) -> Iterator[tuple[int, bool]]:
        yield 0, lock.is_current()

    spread(work, [0, 1], 2, lambda number, value: None)
    lock.release()
    lock.release()
    assert not lock.is_current()
    assert another_process_gets_it(broker)


@pytest.mark.parametrize(("number", "error"), [(errno.EIO, OfflineLogDirError), (errno.EMFILE, ChangeFailedError)])
def test_a_staging_root_that_cannot_be_opened_is_an_error_and_all_locks_are_given_back(
    broker: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    def fail(log_dir: str, *, required: bool = False) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(StagingLock, "take", fail)
        for opener in (LogDir.open, StagingBeside.open):
            with pytest.raises(error):
                opener(str(broker))
    LogDir.open(str(broker)).close()


def test_beside_what_is_no_log_dir_nothing_is_opened(tmp_path: Path) -> None:
    with pytest.raises(NotALogDirError):
        StagingBeside.open(str(tmp_path / "missing"))
