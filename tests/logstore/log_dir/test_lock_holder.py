from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logstore.log_dir import LockHolder, find_lock_holder, lock_holder

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


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


def test_the_kernel_knows_the_holder_when_the_list_of_locks_does_not(
    log_dir: Any, holder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_holder, "_listed_holder", lambda status, search: None)
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
def test_whoever_holds_a_lock_of_an_open_file_description_is_found_by_what_it_has_open(
    log_dir: Any, monkeypatch: pytest.MonkeyPatch, can_look: bool
) -> None:
    if not can_look:
        monkeypatch.setattr(lock_holder, "_names", lambda folder: [])
    with log_dir.file(".lock").open("w") as file:
        whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, whole)
        found = find_lock_holder(str(log_dir))
        assert find_lock_holder(str(log_dir), search=False) == LockHolder(None, None)
    assert found is not None
    assert found.pid == (os.getpid() if can_look else None)
    assert ("cannot be seen" in str(found)) != can_look


def test_a_lock_of_the_other_family_excludes_no_broker_and_is_not_told(log_dir: Any) -> None:
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
def test_a_place_that_is_none_is_none(text: str) -> None:
    assert lock_holder._place(text) is None
