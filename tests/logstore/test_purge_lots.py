"""Lots of a purge: one is emptied while the one before comes to its end, and records wait for their own barrier."""

from __future__ import annotations

import errno
import logging
import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from layout.directory_name import DirectoryName
from layout.staged_record import FILE_NAME
from logstore import purge_lots
from logstore.clock import ManualClock
from logstore.durable import Disk
from logstore.judge_staged import Rules, StagingRoot
from logstore.log_dir import LogDir
from logstore.seen_ahead import Look, look_at_all
from logstore.staged import list_staged
from logstore.throttle import Throttle
from tests.logstore.engine import NOW_MS, DiskThat
from tests.logstore.test_purge import LATER_MS, only, staged

SECONDS = 30


@pytest.fixture(autouse=True)
def small_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lots of five, which are more than are synced one by one."""
    monkeypatch.setattr(purge_lots, "LOT", 5)
    monkeypatch.setattr(purge_lots, "_SMALLEST_LOT", 5)
    monkeypatch.setattr(purge_lots, "AHEAD_FROM", 10)


class Noted(Disk):
    """Writes down barriers, and which directory lost its record or something else."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str]] = []
        self.lock = threading.Lock()

    def note(self, what: str, descriptor: int) -> None:
        with self.lock:
            self.steps.append((what, os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))))

    def sync_file_system(self, descriptor: int) -> bool:
        barrier = f"barrier {len(self.steps)}"
        self.note(barrier, descriptor)
        done = super().sync_file_system(descriptor)
        self.note(f"end of {barrier}", descriptor)
        return done

    def unlink(self, parent: int, name: str) -> None:
        if not name.startswith(".logstore"):
            self.note("record" if name == FILE_NAME else "content", parent)
        super().unlink(parent, name)


@pytest.mark.parametrize("waits", ["barrier", "rmdir"])
def test_the_next_lot_is_emptied_while_the_one_before_comes_to_its_end(tmp_path: Path, waits: str) -> None:
    class Patient(Noted):
        """Its first barrier, or removal of a directory, ends when something of the second lot is gone."""

        seen = threading.Event()
        in_time: bool | None = None

        def wait(self, what: str) -> None:
            if what == waits and self.in_time is None:
                self.in_time = self.seen.wait(SECONDS)

        def sync_file_system(self, descriptor: int) -> bool:
            self.wait("barrier")
            return super().sync_file_system(descriptor)

        def rmdir(self, parent: int, name: str) -> None:
            self.wait("rmdir")
            super().rmdir(parent, name)

        def unlink(self, parent: int, name: str) -> None:
            super().unlink(parent, name)
            if len({where for what, where in self.steps if what == "content"}) > 5:
                self.seen.set()

    disk = Patient()
    with staged(tmp_path / "disk", 15, disk=disk) as log_dir:
        assert len(only(log_dir, Rules(LATER_MS * 2), workers=1).purged) == 15
    assert disk.in_time


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_no_record_goes_before_a_barrier_that_came_after_the_rest_of_its_directory(
    tmp_path: Path, workers: int, ahead: bool
) -> None:
    disk = Noted()
    with staged(tmp_path / "disk", 25, disk=disk) as log_dir:
        assert len(only(log_dir, Rules(LATER_MS * 3), workers=workers, ahead=ahead).purged) == 25
    names = {where for what, where in disk.steps if what == "record"}
    assert len(names) == 25
    for name in names:
        rest = max(place for place, step in enumerate(disk.steps) if step == ("content", name))
        between = [what for what, _ in disk.steps[rest : disk.steps.index(("record", name))]]
        assert any(f"end of {what}" in between for what in between), name


def test_a_barrier_that_fails_concerns_its_own_lot_alone(tmp_path: Path) -> None:
    disk = DiskThat(errno.ENOSPC, {"sync_file_system"})
    disk.after = 1
    with staged(tmp_path / "disk", 15, disk=disk) as log_dir:
        disk.fails = {"sync_file_system"}
        report = only(log_dir, Rules(LATER_MS * 2), workers=1)
        assert len(report.purged) == 5
        assert [failure.split(": ")[1].split(",")[0] for failure in report.failures] == [
            "5 directories were emptied"
        ] * 2
        assert len(list_staged(log_dir)) == 10
        disk.fails.clear()
        assert len(only(log_dir, Rules(LATER_MS * 2)).purged) == 10


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_gone_before_the_disk_failed_is_told(
    tmp_path: Path, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    disk = DiskThat(errno.EIO, {"rmdir"})
    disk.after = 22
    with staged(tmp_path / "disk", 30, disk=disk) as log_dir:
        report = only(log_dir, Rules(LATER_MS * 4), workers=workers)
        assert "offline" in str(report.error)
        told = len(report.purged)
        assert told == 20 if workers == 1 else told in (5, 10, 15, 20)
        log_dir.abandon()
    left = {path.name for path in (tmp_path / "disk" / "deleting").iterdir()}
    assert not left & {purged.location.partition("/")[2] for purged in report.purged}


def test_all_workers_get_their_share_of_few_large_replicas(tmp_path: Path) -> None:
    class Meeting(Disk):
        """Two threads have to be in it at the same time."""

        both = threading.Barrier(2)
        threads: set[int]

        def unlink(self, parent: int, name: str) -> None:
            if not name.startswith(".logstore") and threading.get_ident() not in self.threads:
                self.threads.add(threading.get_ident())
                self.both.wait(SECONDS)
            super().unlink(parent, name)

    disk = Meeting()
    disk.threads = set()
    with staged(tmp_path / "disk", 10, disk=disk) as log_dir:
        assert len(only(log_dir, Rules(LATER_MS), workers=2).purged) == 10


def test_a_disk_for_one_thread_is_used_by_one_alone(tmp_path: Path) -> None:
    class ForOne(Noted):
        is_shared = False

        def note(self, what: str, descriptor: int) -> None:
            assert threading.current_thread() is threading.main_thread()
            super().note(what, descriptor)

    disk = ForOne()
    with staged(tmp_path / "disk", 15, disk=disk) as log_dir:
        assert len(only(log_dir, Rules(LATER_MS * 2), workers=3).purged) == 15
    assert sum(what.startswith("barrier") for what, _ in disk.steps) >= 3


def _unusual(log_dir: LogDir) -> None:
    """Make some of the staged directories such that a look ahead leaves them for a closer one."""
    root = Path(log_dir.path, "deleting")
    first, second, third, fourth = sorted(path for path in root.iterdir() if not path.name.endswith("_0"))[:4]
    (first / "inner").mkdir()
    (first / "inner" / "file").write_bytes(bytes(5000))
    (second / "link").symlink_to(third)
    (third / FILE_NAME).unlink()  # others share the file
    (third / FILE_NAME).write_text("{")
    os.link(fourth / "00000000000000000000.log", Path(log_dir.path, "another-name"))


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_purge_with_looks_ahead_does_and_tells_the_same(tmp_path: Path, workers: int) -> None:
    reports, left = [], []
    for ahead in (False, True):
        with staged(tmp_path / f"disk-{ahead}", 30) as log_dir:
            _unusual(log_dir)
            report = only(log_dir, Rules(NOW_MS + 25_000), workers=workers, ahead=ahead)
            left.append({staged.name for staged in list_staged(log_dir)})
        kept = [replace(each, reason=each.reason.replace(report.log_dir, "")) for each in report.kept]
        reports.append(replace(report, log_dir="", freed_bytes=None, kept=kept))
    assert reports[0] == reports[1]
    assert left[0] == left[1]
    assert len(reports[0].purged) == 24
    assert (reports[0].not_due, reports[0].next_due_ms) == (5, NOW_MS + 26_000)


def test_a_purge_goes_on_by_itself_where_those_who_look_ahead_die(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(staging: StagingRoot, names: Sequence[DirectoryName]) -> list[Look]:
        if any(name.partition == 12 for name in names):
            (tmp_path / "died").write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return look_at_all(staging, names)

    monkeypatch.setattr(purge_lots, "look_at_all", dying)
    with staged(tmp_path / "disk", 30) as log_dir:
        assert len(only(log_dir, Rules(LATER_MS * 4), workers=2, ahead=True).purged) == 30
    assert (tmp_path / "died").read_text() != str(os.getpid())


@pytest.mark.parametrize(
    ("count", "rules"),
    [
        (9, Rules(LATER_MS * 4)),
        (30, Rules(LATER_MS * 4, throttle=Throttle(ManualClock(NOW_MS), unlinks_per_s=10**9))),
        (30, Rules(LATER_MS * 4, only=lambda staged: staged.record is not None)),
    ],
)
def test_nobody_looks_ahead_for_a_purge_that_is_short_or_slow_or_means_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, rules: Rules
) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process was forked"))
    with staged(tmp_path / "disk", count) as log_dir:
        assert len(only(log_dir, rules, ahead=True).purged) == count


def test_a_purge_that_is_cancelled_leaves_no_process_behind(tmp_path: Path) -> None:
    rules = Rules(LATER_MS * 4)

    class Cancelling(Noted):
        def sync_file_system(self, descriptor: int) -> bool:
            rules.cancel.set()
            return super().sync_file_system(descriptor)

    with staged(tmp_path / "disk", 30, disk=Cancelling()) as log_dir:
        report = only(log_dir, rules, workers=2, ahead=True)
        assert report.cancelled
        assert len(report.purged) + len(list_staged(log_dir)) == 30
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
