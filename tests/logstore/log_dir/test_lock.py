from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logstore import LogDirInUseError
from logstore.fs import Directory, Disk
from logstore.log_dir import LOCK_FILE, LockHolder, LogDir, find_lock_holder
from logstore.log_dir import lock as lock_module
from logstore.log_dir.lock import Lock
from logstore.parallel import spread
from logstore.scan import scan
from tests.logstore.engine import fill

TRY = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
HOLD_BY_OPEN_FILE = HOLD.replace(
    "fcntl.lockf(file, fcntl.LOCK_EX)",
    "fcntl.fcntl(file, fcntl.F_OFD_SETLK, __import__('struct').pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))",
)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Directory]:
    with Directory.open(str(tmp_path)) as directory:
        yield directory


def another_process_gets_it(log_dir: Path) -> bool:
    """Whether another process may have the lock, as a broker would ask for it: by a POSIX record lock (FACTS §2.7)."""
    answer = subprocess.run([sys.executable, "-c", TRY, f"{log_dir}/.lock"], capture_output=True, check=False)
    assert answer.returncode == 0 or b"BlockingIOError" in answer.stderr, answer.stderr
    return answer.returncode == 0


def test_the_file_is_made_and_stays_with_no_bytes(root: Directory, tmp_path: Path) -> None:
    Lock.take(root, Disk()).release()
    assert (tmp_path / LOCK_FILE).read_bytes() == b""


def test_what_a_broker_left_in_the_file_is_left_there(root: Directory, tmp_path: Path) -> None:
    (tmp_path / ".lock").write_bytes(b"x")
    Lock.take(root, Disk()).release()
    assert (tmp_path / ".lock").read_bytes() == b"x"


def test_another_process_is_shut_out_until_the_lock_is_given_back(root: Directory, tmp_path: Path) -> None:
    lock = Lock.take(root, Disk())
    assert not another_process_gets_it(tmp_path)
    lock.release()
    lock.release()
    assert another_process_gets_it(tmp_path)


def test_a_holder_that_is_gone_when_it_is_looked_for_is_not_said_to_be_hidden(
    root: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = Lock.take(root, Disk())
    monkeypatch.setattr("logstore.log_dir.lock.find_lock_holder", lambda _: None)
    with pytest.raises(LogDirInUseError, match="is in use by a process that has let go of it since"):
        Lock.take(root, Disk())
    lock.release()


def test_this_very_process_cannot_take_it_twice(root: Directory) -> None:
    lock = Lock.take(root, Disk())
    with pytest.raises(LogDirInUseError, match="is in use by"):
        Lock.take(root, Disk())
    lock.release()
    Lock.take(root, Disk()).release()


def test_the_holder_is_named(root: Directory, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, f"{tmp_path}/.lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.read(5) == b"held\n"
        with pytest.raises(LogDirInUseError, match=f"{tmp_path} is in use by process {holder.pid} .*: stop the"):
            Lock.take(root, Disk())
        holder.stdin.close()


def test_opening_and_closing_the_file_elsewhere_does_not_drop_it(root: Directory, tmp_path: Path) -> None:
    lock = Lock.take(root, Disk())
    with (tmp_path / ".lock").open("r+"):
        pass
    os.close(os.dup(os.open(tmp_path / ".lock", os.O_RDWR)))
    assert not another_process_gets_it(tmp_path)
    lock.release()


def test_a_flock_of_another_family_is_in_nobodys_way(root: Directory, tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        Lock.take(root, Disk()).release()


def test_a_forked_child_that_ends_does_not_drop_it(root: Directory, tmp_path: Path) -> None:
    lock = Lock.take(root, Disk())
    pid = os.fork()
    if not pid:
        lock.release()
        os._exit(0)
    os.waitpid(pid, 0)
    assert not another_process_gets_it(tmp_path)
    lock.release()
    assert another_process_gets_it(tmp_path)


def test_a_forked_child_that_lives_on_does_not_keep_it(root: Directory, tmp_path: Path) -> None:
    lock = Lock.take(root, Disk())
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    lock.release()
    got_it = another_process_gets_it(tmp_path)
    os.close(write)
    os.waitpid(pid, 0)
    os.close(read)
    assert got_it


def test_forked_workers_do_not_drop_it(root: Directory, tmp_path: Path) -> None:
    lock = Lock.take(root, Disk())
    spread(lambda units: ((number, b"x") for number, _ in units), range(8), 3, take=lambda _, result: result)
    assert not another_process_gets_it(tmp_path)
    lock.release()


def test_scanning_a_log_dir_that_we_hold_does_not_drop_the_lock(our_log_dir: Path) -> None:
    for number in range(20):
        fill(our_log_dir / f"orders-{number}")
    with LogDir.open(str(our_log_dir)):
        observation = scan(str(our_log_dir), jobs=2)
        assert observation.lock is not None
        assert not another_process_gets_it(our_log_dir)
    assert another_process_gets_it(our_log_dir)


def test_no_program_that_is_started_inherits_the_lock(root: Directory, tmp_path: Path) -> None:
    lock = Lock.take(root, Disk())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        assert another_process_gets_it(tmp_path)
        assert child.stdin is not None
        child.stdin.write(b"\n")


class VanishingDisk(Disk):
    """Removes the file right after it was opened, as a broker does that stops cleanly, since release 3.8."""

    def __init__(self, path: Path, times: int) -> None:
        self.path, self.times = path, times

    def open_to_change(self, parent: int, name: str) -> int:
        descriptor = super().open_to_change(parent, name)
        if self.times:
            self.times -= 1
            self.path.unlink()
        return descriptor


def test_a_lock_on_a_file_that_a_stopping_broker_removed_is_worth_nothing(root: Directory, tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    lock = Lock.take(root, VanishingDisk(tmp_path / ".lock", 1))
    assert not another_process_gets_it(tmp_path)
    lock.release()


class AlwaysVanishing(Disk):
    """Loses the file every time between making it and locking it."""

    def create(self, parent: int, name: str) -> int:
        descriptor = super().create(parent, name)
        os.unlink(name, dir_fd=parent)
        return descriptor


def test_a_file_that_vanishes_every_time_is_no_endless_loop(root: Directory) -> None:
    with pytest.raises(LogDirInUseError, match="try again"):
        Lock.take(root, AlwaysVanishing())


class RacingDisk(Disk):
    """Lets somebody else make the file between looking for it and making it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, parent: int, name: str) -> int:
        self.path.touch()
        return super().create(parent, name)


def test_a_file_that_somebody_else_makes_meanwhile_is_taken_as_it_is(root: Directory, tmp_path: Path) -> None:
    Lock.take(root, RacingDisk(tmp_path / ".lock")).release()


@pytest.mark.parametrize("make", [os.mkdir, lambda path: os.symlink("elsewhere", path), os.mkfifo])
def test_anything_but_a_file_is_an_error_and_never_waits(root: Directory, tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(f"{tmp_path}/.lock")
    with pytest.raises(OSError):
        Lock.take(root, Disk())
    assert not (tmp_path / "elsewhere").exists()


def test_no_descriptor_is_left_behind_whatever_happens(root: Directory, tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    lock = Lock.take(root, Disk())
    with pytest.raises(LogDirInUseError):
        Lock.take(root, Disk())
    lock.release()
    (tmp_path / ".lock").unlink()
    with pytest.raises(LogDirInUseError):
        Lock.take(root, AlwaysVanishing())
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.fixture
def holder(log_dir: Any) -> Any:
    """Another process that holds the lock as a broker does: a POSIX record lock over the whole file (FACTS §2.7)."""
    command = [sys.executable, "-c", HOLD, f"{log_dir}/.lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


def test_no_file_and_a_file_that_nobody_locked_are_held_by_nobody(log_dir: Any) -> None:
    assert find_lock_holder(str(log_dir)) is None
    log_dir.file(".lock")
    assert find_lock_holder(str(log_dir)) is None


def test_the_process_that_holds_the_lock_is_named(log_dir: Any, holder: Any) -> None:
    found = find_lock_holder(str(log_dir))
    assert found is not None
    assert found.pid == holder.pid
    assert found.command
    assert str(found) == f"process {holder.pid} ({found.command})"


def test_the_kernel_names_the_holder_and_the_list_of_all_locks_is_not_read(
    log_dir: Any, holder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(lock_module, "find_holder_in_proc_locks")
    found = find_lock_holder(str(log_dir), search=False)
    assert found is not None
    assert found.pid == holder.pid


def test_the_list_of_all_locks_names_the_holder_where_the_file_may_not_be_opened(
    log_dir: Any, holder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str) -> int | None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(lock_module, "_pid_by_kernel", refused)
    found = find_lock_holder(str(log_dir))
    assert found is not None
    assert found.pid == holder.pid


def test_looking_does_not_take_the_lock(log_dir: Any) -> None:
    path = log_dir.file(".lock")
    find_lock_holder(str(log_dir))
    with path.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_looking_does_not_drop_a_posix_lock_of_this_very_process(log_dir: Any) -> None:
    path = log_dir.file(".lock")
    with path.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mine = find_lock_holder(str(log_dir))
        assert mine is not None
        assert mine.pid == os.getpid()
        code = f"import fcntl; fcntl.lockf(open({str(path)!r}, 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert b"BlockingIOError" in other.stderr, "the lock was dropped by looking"


@pytest.mark.parametrize("can_look", [True, False])
def test_the_holder_of_an_open_file_description_lock_is_found_by_its_open_files(
    log_dir: Any, monkeypatch: pytest.MonkeyPatch, can_look: bool
) -> None:
    if not can_look:
        monkeypatch.setattr(lock_module, "_names", lambda folder: [])
    with log_dir.file(".lock").open("w") as file:
        whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, whole)
        found, at_hand = find_lock_holder(str(log_dir)), find_lock_holder(str(log_dir), search=False)
    assert found is not None
    assert found.pid == (os.getpid() if can_look else None)
    assert at_hand == found, "what this process holds needs no search"
    assert ("cannot be seen" in str(found)) != can_look


def test_that_another_process_holds_an_open_file_description_lock_is_known_without_a_search(log_dir: Any) -> None:
    command = [sys.executable, "-c", HOLD_BY_OPEN_FILE, f"{log_dir}/.lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert find_lock_holder(str(log_dir), search=False) == LockHolder(None, None)
        found = find_lock_holder(str(log_dir))
        other.stdin.close()
    assert found is not None
    assert found.pid == other.pid


def test_a_lock_of_the_other_family_excludes_no_broker_and_is_not_reported(log_dir: Any) -> None:
    with log_dir.file(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert find_lock_holder(str(log_dir)) is None


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("elsewhere", path), os.mkdir])
def test_anything_else_under_the_name_is_no_lock(log_dir: Any, make: Any) -> None:
    make(f"{log_dir}/.lock")
    assert find_lock_holder(str(log_dir)) is None


def test_a_list_of_locks_that_cannot_be_read_is_no_error(log_dir: Any, tmp_path: Path, monkeypatch: Any) -> None:
    log_dir.file(".lock")
    monkeypatch.setattr("builtins.open", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "no")))
    assert find_lock_holder(str(log_dir)) is None


@pytest.mark.parametrize("text", ["", "fd:01", "x:y:z", "1:2:3:4"])
def test_a_text_without_device_and_inode_is_none(text: str) -> None:
    assert lock_module._parse_inode(text) is None
