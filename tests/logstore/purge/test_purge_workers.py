"""The workers of a purge: threads, or processes that share the lock; they do the same, and none of them is needed.

A cancel that forked processes see: set before or after the fork, and when nobody is left who could set it.
"""

from __future__ import annotations

import errno
import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from layout.ours import LedgerEvent
from logstore import LogDirInUseError
from logstore.clock import ManualClock
from logstore.fs import Disk
from logstore.log_dir import LogDir
from logstore.purge import PurgeRules, Throttle
from logstore.purge.workers import SharedCancel
from logstore.staging import list_staged
from tests.logstore.children import child, ended_well
from tests.logstore.engine import NOW_MS, DiskThat, ledger_events
from tests.logstore.purge.test_purge import LATER_MS, damage_line_of, only, staged
from tests.logstore.purge.test_purge_batches import Noted, small_batches
from tests.patience import PATIENCE_S

__all__ = ["small_batches"]


class ByProcess(Disk):
    """Notes which process removed a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.mkdir()

    def unlink(self, parent: int, name: str) -> None:
        if not name.startswith(".logstore"):
            (self.path / str(os.getpid())).touch()
        super().unlink(parent, name)

    @property
    def processes(self) -> set[int]:
        """Those that removed anything."""
        return {int(path.name) for path in self.path.iterdir()}


def test_all_workers_get_their_share_of_few_large_replicas(tmp_path: Path) -> None:
    class Meeting(Disk):
        """Two threads have to be in it at the same time."""

        both = threading.Barrier(2)
        threads: set[int]

        def unlink(self, parent: int, name: str) -> None:
            if not name.startswith(".logstore") and threading.get_ident() not in self.threads:
                self.threads.add(threading.get_ident())
                self.both.wait(PATIENCE_S)
            super().unlink(parent, name)

    disk = Meeting()
    disk.threads = set()
    with staged(tmp_path / "disk", 10, disk=disk) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS), workers=2).purged) == 10


def test_a_disk_for_one_thread_is_used_by_one_alone(tmp_path: Path) -> None:
    class ForOne(Noted):
        is_shared = False

        def note(self, what: str, descriptor: int) -> None:
            assert threading.current_thread() is threading.main_thread()
            super().note(what, descriptor)

    disk = ForOne(tmp_path / "notes")
    with staged(tmp_path / "disk", 15, disk=disk) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS * 2), workers=3, may_fork=True).purged) == 15
    assert sum(step.startswith("remove") for step in disk.steps) == 15 * 4


@pytest.mark.parametrize("workers", [1, 3])
def test_several_workers_of_a_large_purge_are_processes_of_their_own(
    tmp_path: Path, workers: int, nobody_is_left: Callable[[], bool]
) -> None:
    disk = ByProcess(tmp_path / "processes")
    # The command purges in a thread, and not every call that a process makes as it begins is one for any thread.
    with staged(tmp_path / "disk", 60, disk=disk) as log_dir, ThreadPoolExecutor(1) as thread:
        done = thread.submit(only, log_dir, PurgeRules(LATER_MS * 8), workers=workers, may_fork=True)
        assert len(done.result(PATIENCE_S).purged) == 60
    assert 1 <= len(disk.processes) <= workers
    assert (os.getpid() in disk.processes) == (workers == 1)
    assert nobody_is_left()


def _make_out_of_the_ordinary(log_dir: LogDir) -> None:
    """Give some of the staged directories what no broker writes, and let the line of one be damaged."""
    root = Path(log_dir.path, "deleting")
    first, second, third, fourth = sorted(root.glob("*_[1-9]"))[:4]
    (first / "inner").mkdir()
    (first / "inner" / "file").write_bytes(bytes(5000))
    (second / "link").symlink_to(third)
    log_dir.ledgers.close()
    damage_line_of(root, third.name)
    os.link(fourth / "00000000000000000000.log", Path(log_dir.path, "another-name"))


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_purge_by_processes_does_and_tells_the_same(
    tmp_path: Path, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    reports, left = [], []
    for may_fork in (False, True):
        with staged(tmp_path / f"disk-{may_fork}", 30) as log_dir:
            _make_out_of_the_ordinary(log_dir)
            report = only(log_dir, PurgeRules(NOW_MS + 25_000), workers=workers, may_fork=may_fork)
            left.append({staged.name for staged in list_staged(log_dir)})
        kept = [replace(each, reason=each.reason.replace(report.log_dir, "")) for each in report.kept]
        reports.append(replace(report, log_dir="", freed_bytes=None, kept=kept))
    assert "before its time" not in caplog.text
    assert reports[0] == reports[1]
    assert left[0] == left[1]
    assert len(reports[0].purged) == 24
    assert (reports[0].not_due, reports[0].next_due_ms) == (5, NOW_MS + 26_000)


@pytest.mark.parametrize("may_fork", [False, True])
def test_progress_tells_of_every_directory_and_byte(tmp_path: Path, may_fork: bool) -> None:
    reported: list[tuple[int, int]] = []
    with staged(tmp_path / "disk", 30) as log_dir:
        rules = PurgeRules(LATER_MS * 4, progress=lambda directories, size: reported.append((directories, size)))
        report = only(log_dir, rules, workers=2, may_fork=may_fork)
    assert (sum(directories for directories, _ in reported), sum(size for _, size in reported)) == (
        30,
        report.expected_bytes,
    )


def test_what_a_worker_that_is_killed_has_left_is_purged_by_the_first_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, nobody_is_left: Callable[[], bool]
) -> None:
    first = os.getpid()

    class Dying(ByProcess):
        """Every process but the first is killed when it has removed a directory."""

        def rmdir(self, parent: int, name: str) -> None:
            super().rmdir(parent, name)
            if os.getpid() != first:
                os.kill(os.getpid(), signal.SIGKILL)

    disk = Dying(tmp_path / "processes")
    with staged(tmp_path / "disk", 30, disk=disk) as log_dir:
        report = only(log_dir, PurgeRules(LATER_MS * 4), workers=2, may_fork=True)
        assert report.is_whole
        assert not list_staged(log_dir)
        assert len(report.purged) == 30
    assert {first} < disk.processes
    assert sum("ended before its time" in each.getMessage() for each in caplog.records) == 1
    assert nobody_is_left()


def test_what_a_worker_that_is_killed_in_a_cancelled_purge_may_have_touched_can_only_be_purged(
    tmp_path: Path, nobody_is_left: Callable[[], bool]
) -> None:
    first = os.getpid()
    rules = PurgeRules(LATER_MS * 4)
    begun, cancelled = tmp_path / "begun", tmp_path / "cancelled"

    class Dying(Disk):
        """Both workers are killed when they have removed a file, and by then the purge is cancelled."""

        def unlink(self, parent: int, name: str) -> None:
            super().unlink(parent, name)
            if os.getpid() != first:
                begun.touch()
                while not cancelled.exists():
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGKILL)

    def cancel() -> None:
        while not begun.exists():
            time.sleep(0.01)
        rules.cancel.set()
        cancelled.touch()

    with staged(tmp_path / "disk", 30, disk=Dying()) as log_dir:
        cancelling = threading.Thread(target=cancel)
        cancelling.start()
        report = only(log_dir, rules, workers=2, may_fork=True)
        cancelling.join(PATIENCE_S)
        assert report.cancelled
        root = tmp_path / "disk" / "deleting"
        events = ledger_events(root)
        partly = {path.name for path in root.iterdir() if path.is_dir() and len(list(path.iterdir())) < 3}
        assert partly
        assert {events[name] for name in partly} == {LedgerEvent.PURGING}
        assert LedgerEvent.STAGED in events.values(), "what nobody has begun is staged as before"
        assert nobody_is_left()


@pytest.mark.parametrize("workers", [1, 2])
def test_where_no_process_can_be_started_this_one_purges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    with staged(tmp_path / "disk", 30) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS * 4), workers=workers, may_fork=True).purged) == 30


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_a_disk_that_fails_below_processes_is_reported_as_it_is_below_threads(
    tmp_path: Path, number: int, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    disk = DiskThat(number, {"rmdir"})
    disk.after = 12  # for each process
    with staged(tmp_path / "disk", 60, disk=disk) as log_dir:
        report = only(log_dir, PurgeRules(LATER_MS * 8), workers=workers, may_fork=True)
        assert "offline" in str(report.error)
        log_dir.abandon()
    left = {path.name for path in (tmp_path / "disk" / "deleting").iterdir()}
    assert left
    assert not left & {purged.location.partition("/")[2] for purged in report.purged}


@pytest.mark.parametrize(
    ("count", "rules"),
    [
        (9, PurgeRules(LATER_MS * 4)),
        (30, PurgeRules(LATER_MS * 4, throttle=Throttle(ManualClock(NOW_MS), unlinks_per_s=10**9))),
        (30, PurgeRules(LATER_MS * 4, only=lambda staged: staged.record is not None)),
    ],
)
def test_a_purge_that_is_short_or_slow_or_means_few_starts_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, rules: PurgeRules
) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process was forked"))
    with staged(tmp_path / "disk", count) as log_dir:
        assert len(only(log_dir, rules, may_fork=True).purged) == count


class Slow(Disk):
    """Takes its time for each file: half a minute for all, so that a word to stop always comes before the end."""

    def unlink(self, parent: int, name: str) -> None:
        time.sleep(0.5)
        super().unlink(parent, name)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_purge_that_is_cancelled_ends_its_processes_in_order(
    tmp_path: Path, workers: int, caplog: pytest.LogCaptureFixture, nobody_is_left: Callable[[], bool]
) -> None:
    rules = PurgeRules(LATER_MS * 8)
    with staged(tmp_path / "disk", 60, disk=Slow()) as log_dir:
        stopping = threading.Timer(0.3, rules.cancel.set)
        stopping.start()
        report = only(log_dir, rules, workers=workers, may_fork=True)
        assert report.cancelled
        assert nobody_is_left()
        left = list_staged(log_dir)
        assert len(report.purged) + len(left) == 60
        assert left
        assert all(staged.record for staged in left)
        assert sum(staged.may_be_partly_purged for staged in left) <= workers
        assert "before its time" not in caplog.text
        log_dir.disk = Disk()
        assert len(only(log_dir, PurgeRules(LATER_MS * 8)).purged) == len(left)


class HeldUp(Disk):
    """Removes one file in each process, and no other as long as a certain file is there."""

    def __init__(self, hold: Path) -> None:
        self.hold = hold
        self.hold.touch()

    def unlink(self, parent: int, name: str) -> None:
        super().unlink(parent, name)
        while self.hold.exists() and not name.startswith(".logstore"):
            time.sleep(0.01)


def test_while_a_process_of_a_purge_that_was_killed_still_removes_nobody_gets_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    staged(path, 60).close()
    disk = HeldUp(tmp_path / "hold")
    whole = sum(map(len, _picture(path).values()))
    purging = os.fork()
    if purging == 0:
        gc.freeze()  # what this process dropped is not for the child to end
        with suppress(BaseException), LogDir.open(str(path)) as log_dir:
            log_dir.disk = disk
            only(log_dir, PurgeRules(LATER_MS * 8), workers=2, may_fork=True)
        os._exit(1)
    deadline = time.monotonic() + PATIENCE_S
    while sum(map(len, _picture(path).values())) == whole:
        assert time.monotonic() < deadline, "it does not begin"
        time.sleep(0.01)
    os.kill(purging, signal.SIGKILL)
    os.waitpid(purging, 0)
    with pytest.raises(LogDirInUseError):
        LogDir.open(str(path))
    disk.hold.unlink()
    with _opened_until(path, deadline) as log_dir:
        before = _picture(path)
        time.sleep(0.2)
        assert _picture(path) == before
        assert all(staged.may_be_partly_purged for staged in list_staged(log_dir))
        assert len(only(log_dir, PurgeRules(LATER_MS * 8)).purged) == len(before) > 0


def _opened_until(path: Path, deadline: float) -> LogDir:
    while True:
        try:
            return LogDir.open(str(path))
        except LogDirInUseError:
            assert time.monotonic() < deadline, "the lock is held though nobody is left who wants it"
            time.sleep(0.01)


def _picture(path: Path) -> dict[str, set[str]]:
    return {
        each.name: {file.name for file in each.iterdir()} for each in (path / "deleting").iterdir() if each.is_dir()
    }


@pytest.mark.parametrize("before", [True, False])
def test_a_child_sees_that_it_is_cancelled(before: bool) -> None:
    cancel = threading.Event()
    if before:
        cancel.set()
    with SharedCancel(cancel) as shared:
        forked = child(lambda: shared.in_child().wait(PATIENCE_S))
        cancel.set()
        assert ended_well(forked)


def test_a_child_goes_on_while_nobody_cancels() -> None:
    with SharedCancel(threading.Event()) as shared:
        assert ended_well(child(lambda: not shared.in_child().wait(0.3)))


def test_what_a_child_sets_for_itself_is_its_own_affair() -> None:
    cancel = threading.Event()

    def set_it() -> bool:
        mine = shared.in_child()
        mine.set()
        return mine.is_set()

    with SharedCancel(cancel) as shared:
        assert ended_well(child(set_it))
        assert ended_well(child(lambda: not shared.in_child().wait(0.2)))
    assert not cancel.is_set()


def test_a_child_whose_parent_is_killed_is_cancelled() -> None:
    read, write = os.pipe()

    def waits(shared: SharedCancel) -> bool:
        cancel = shared.in_child()
        os.write(write, b"ready")
        return cancel.wait(PATIENCE_S) and os.write(write, b"cancelled") > 0

    def fork_and_wait() -> bool:
        with SharedCancel(threading.Event()) as shared:
            child(lambda: waits(shared))
            signal.pause()
        return False

    parent = child(fork_and_wait)
    os.close(write)
    assert os.read(read, 100) == b"ready"
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert os.read(read, 100) == b"cancelled"
    os.close(read)
