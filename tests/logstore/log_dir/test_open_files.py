"""Which processes hold files: seen on this process and on another one, by descriptor and by mapping."""

from __future__ import annotations

import errno
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from logstore.log_dir import FileHolder, UnseenProcess, find_open_files, open_files

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="there is no /proc")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"x" * 5000)
    return path


def pids_of(path: Path, found: open_files.OpenFiles) -> set[int]:
    return {process.pid for process in found.holders.get(path.stat().st_ino, ())}


def test_a_file_that_is_open_has_its_holder_by_pid_and_name(file: Path) -> None:
    device = file.stat().st_dev
    assert pids_of(file, find_open_files(device)) == set()
    with file.open("rb"):
        found = find_open_files(device)
        assert pids_of(file, found) == {os.getpid()}
        (holder,) = found.holders[file.stat().st_ino]
        assert str(holder) == f"process {os.getpid()} ({Path('/proc/self/comm').read_text().strip()})"


def test_another_process_is_seen_even_when_the_name_is_gone(file: Path) -> None:
    status = file.stat()
    script = "import sys; file = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        file.unlink()
        assert {process.pid for process in find_open_files(status.st_dev).holders[status.st_ino]} == {child.pid}
        child.communicate(b"")


def test_a_mapped_file_counts_after_it_was_closed(file: Path) -> None:
    with file.open("rb") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ)
    status = file.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    if device not in Path("/proc/self/maps").read_text():
        pytest.skip("this file system shows another device in maps")
    assert pids_of(file, find_open_files(status.st_dev)) == {os.getpid()}
    mapped.close()
    assert pids_of(file, find_open_files(status.st_dev)) == set()


def test_another_device_and_directories_do_not_count(file: Path) -> None:
    descriptor = os.open(file.parent, os.O_RDONLY)
    try:
        with file.open("rb"):
            assert pids_of(file, find_open_files(file.stat().st_dev + 1)) == set()
            assert file.parent.stat().st_ino not in find_open_files(file.stat().st_dev).holders
    finally:
        os.close(descriptor)


def test_only_some_processes_are_looked_at_when_asked(file: Path) -> None:
    with file.open("rb"):
        assert pids_of(file, find_open_files(file.stat().st_dev, [os.getppid()])) == set()
        assert pids_of(file, find_open_files(file.stat().st_dev, [os.getpid()])) == {os.getpid()}


def test_a_process_that_may_not_be_looked_into_is_named_with_the_reason(file: Path, monkeypatch) -> None:
    def forbidden(pid: int, device: int) -> list[int]:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(open_files, "_opened", forbidden)
    found = find_open_files(file.stat().st_dev, [os.getpid()])
    (unseen,) = found.unseen
    assert isinstance(unseen, UnseenProcess)
    comm = Path("/proc/self/comm").read_text().strip()
    assert (str(unseen), found.holders) == (f"process {os.getpid()} ({comm}): Operation not permitted", {})


def test_a_system_without_proc_says_that_nothing_is_known(monkeypatch) -> None:
    monkeypatch.setattr(open_files, "_PROC", "/there-is-no-such-folder")
    assert not find_open_files(1).known


def test_a_process_without_a_name_is_shown_by_its_number() -> None:
    assert str(FileHolder(42, "")) == "process 42"
