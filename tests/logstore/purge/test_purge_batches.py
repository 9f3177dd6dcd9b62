"""Batches of a purge: what is done in which order, and what several threads do with one."""

from __future__ import annotations

import errno
import itertools
import logging
import os
import threading
from contextlib import closing
from pathlib import Path

import pytest

from layout.ours import LedgerEvent
from layout.scheme import LEDGER_FILE
from logstore.clock import ManualClock
from logstore.fs import Disk
from logstore.log_dir import FallbackRecords
from logstore.parallel import threads
from logstore.purge import PurgeRules, Throttle
from logstore.purge import workers as purge_workers
from logstore.purge.eligibility import DueDirectory, StagingRoot
from logstore.purge.workers import PurgeWorkers
from logstore.staging import RootLedger, staged_names, staging_roots
from tests.logstore.engine import NOW_MS, DiskThat, ledger_events
from tests.logstore.purge.test_purge import LATER_MS, only, staged
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of five, and processes from two of them on."""
    monkeypatch.setattr(purge_workers, "PURGE_BATCH_SIZE", 5)
    monkeypatch.setattr(purge_workers, "PURGE_SMALLEST_BATCH", 5)
    monkeypatch.setattr(purge_workers, "PURGE_PROCESSES_FROM", 10)


class Noted(Disk):
    """Writes down what is done to the ledger, to the staging root and to what lies in it; forked processes do too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()

    @property
    def steps(self) -> list[str]:
        """What was done, in its order."""
        return self.path.read_text().splitlines()

    def note(self, what: str, descriptor: int) -> None:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
        kind = {LEDGER_FILE: "ledger", "deleting": "root"}.get(name, "directory")
        with self.path.open("a") as notes:
            notes.write(f"{what} {kind}\n")

    def write(self, descriptor: int, data: bytes) -> None:
        self.note("write", descriptor)
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        self.note("sync", descriptor)

    def unlink(self, parent: int, name: str) -> None:
        if not name.startswith(".logstore"):
            self.note("remove from", parent)
        super().unlink(parent, name)

    def rmdir(self, parent: int, name: str) -> None:
        super().rmdir(parent, name)
        self.note("remove from", parent)


@pytest.mark.parametrize("may_fork", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_all_is_announced_before_anything_is_removed_and_said_to_be_gone_when_that_is_durable(
    tmp_path: Path, workers: int, may_fork: bool
) -> None:
    disk = Noted(tmp_path / "notes")
    root = tmp_path / "disk" / "deleting"
    with staged(tmp_path / "disk", 25, disk=disk) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS * 3), workers=workers, may_fork=may_fork).purged) == 25
    steps = disk.steps
    removals = [place for place, step in enumerate(steps) if step.startswith("remove")]
    assert len(removals) == 25 * 4
    before, after = steps[: removals[0]], steps[removals[-1] + 1 :]
    announced = [step for step in before if step.endswith("ledger")]
    assert announced == ["write ledger", "sync ledger", "write ledger"], "the lines, their sync, and the mark of that"
    assert [step for step in steps[removals[0] : removals[-1]] if not step.startswith("remove")] == []
    assert after.index("sync root") < after.index("write ledger")
    assert [*ledger_events(root).values()] == [LedgerEvent.PURGED] * 25


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_gone_before_the_disk_failed_is_reported(
    tmp_path: Path, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    disk = DiskThat(errno.EIO, {"rmdir"})
    disk.after = 22
    with staged(tmp_path / "disk", 30, disk=disk) as log_dir:
        report = only(log_dir, PurgeRules(LATER_MS * 4), workers=workers)
        assert "offline" in str(report.error)
        reported = len(report.purged)
        assert reported == 22
        log_dir.abandon()
    left = {path.name for path in (tmp_path / "disk" / "deleting").iterdir()}
    assert not left & {purged.location.partition("/")[2] for purged in report.purged}


class Meeting(Disk):
    """Makes a number of threads, besides the one that made it, wait for each other at their first removal of a kind."""

    def __init__(self, unlinks: int = 1, rmdirs: int = 1) -> None:
        self.barriers = {"unlink": threading.Barrier(unlinks), "rmdir": threading.Barrier(rmdirs)}
        self.came = {"unlink": {threading.get_ident()}, "rmdir": {threading.get_ident()}}

    def meet(self, what: str) -> None:
        thread = threading.get_ident()
        if thread not in self.came[what]:
            self.came[what].add(thread)
            self.barriers[what].wait(PATIENCE_S)

    def unlink(self, parent: int, name: str) -> None:
        if not name.startswith("."):
            self.meet("unlink")
        super().unlink(parent, name)

    def rmdir(self, parent: int, name: str) -> None:
        self.meet("rmdir")
        super().rmdir(parent, name)


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch, of which a thread takes one directory at a time."""
    monkeypatch.setattr(purge_workers, "PURGE_BATCH_SIZE", 25)
    monkeypatch.setattr(purge_workers, "PURGE_SMALLEST_BATCH", 25)
    monkeypatch.setattr(purge_workers, "PURGED_PER_PIECE", 1)


@pytest.fixture
def waited_for(pieces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, where the system tells of many waits."""
    monkeypatch.setattr(threads, "waits", itertools.count(0, 1000).__next__)


@pytest.mark.usefixtures("waited_for")
def test_where_files_are_waited_for_several_threads_remove_a_batch(tmp_path: Path) -> None:
    disk = Meeting(purge_workers.PURGE_THREADS, purge_workers.PURGE_THREADS)
    with staged(tmp_path / "disk", 25, disk=disk) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS * 3), workers=1).purged) == 25
    # The thread that asks does the first piece.
    assert len(disk.came["unlink"] - {threading.get_ident()}) == purge_workers.PURGE_THREADS
    assert len(disk.came["rmdir"] - {threading.get_ident()}) == purge_workers.PURGE_THREADS


@pytest.mark.usefixtures("waited_for")
def test_what_several_threads_found_out_stands_with_its_directory(tmp_path: Path) -> None:
    class Stuck(Disk):
        """Some of the directories cannot be removed."""

        def rmdir(self, parent: int, name: str) -> None:
            if name.endswith(("_3", "_20")):
                raise OSError(errno.EPERM, os.strerror(errno.EPERM))
            super().rmdir(parent, name)

    with staged(tmp_path / "disk", 25) as log_dir, closing(staging_roots(log_dir)) as roots:
        placement, root = next(roots)
        ledger = RootLedger(log_dir, root, FallbackRecords(None))
        staging = StagingRoot(log_dir, placement, root, PurgeRules(LATER_MS * 3), ledger)
        judged = [staging.judge(*each) for each in staged_names(root, placement)]
        due = [each for each in judged if isinstance(each, DueDirectory)]
        workers = PurgeWorkers(staging, Stuck(), 1)
        workers.purge(due)
    assert [each.name for each in workers.done] == [each.name for each in due]
    stuck = {name for name in (each.name for each in due) if name.endswith(("_3", "_20"))}
    assert {each.name for each in workers.done if each.problem} == stuck
    assert {each.name for each in workers.done if not each.removed} == stuck
    assert len(stuck) == 2


@pytest.mark.usefixtures("waited_for")
@pytest.mark.parametrize("why", ["a throttle", "a disk for one"])
def test_one_thread_does_all_where_it_has_a_throttle_or_a_disk_for_one_alone(tmp_path: Path, why: str) -> None:
    class Alone(Meeting):
        is_shared = why == "a throttle"

    disk = Alone()
    with staged(tmp_path / "disk", 25, disk=disk) as log_dir:
        throttle = Throttle(ManualClock(NOW_MS), unlinks_per_s=1e9) if why == "a throttle" else None
        assert len(only(log_dir, PurgeRules(LATER_MS * 3, throttle), workers=1).purged) == 25
    assert disk.came["rmdir"] == disk.came["unlink"] == {threading.get_ident()}


@pytest.mark.usefixtures("pieces")
def test_one_thread_does_all_where_nothing_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "waits", lambda: 0)
    disk = Meeting()
    with staged(tmp_path / "disk", 25, disk=disk) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS * 3), workers=1).purged) == 25
    assert disk.came["rmdir"] == disk.came["unlink"] == {threading.get_ident()}


@pytest.mark.usefixtures("waited_for")
def test_a_disk_that_fails_one_of_the_threads_fails_the_purge_and_nothing_that_is_left_is_restored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    class FailsOne(Disk):
        """Fails for one directory alone."""

        def unlink(self, parent: int, name: str) -> None:
            if os.readlink(f"/proc/self/fd/{parent}").endswith("_24"):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            super().unlink(parent, name)

    with staged(tmp_path / "disk", 25, disk=FailsOne()) as log_dir:
        report = only(log_dir, PurgeRules(LATER_MS * 3), workers=1)
        assert "offline" in str(report.error)
        log_dir.abandon()
    root = tmp_path / "disk" / "deleting"
    left = {path.name for path in root.iterdir() if path.is_dir()}
    assert any(name.endswith("_24") for name in left)
    assert not left & {purged.location.partition("/")[2] for purged in report.purged}
    assert set(ledger_events(root).values()) == {LedgerEvent.PURGING}
    assert not any(thread.name.startswith(("pace", "purge")) for thread in threading.enumerate())


def test_processes_leave_the_rules_of_a_purge_as_they_were_for_the_next_batch(tmp_path: Path) -> None:
    rules = PurgeRules(LATER_MS * 3, progress=lambda *_: None)
    with staged(tmp_path / "disk", 20) as log_dir, closing(staging_roots(log_dir)) as roots:
        placement, root = next(roots)
        staging = StagingRoot(log_dir, placement, root, rules, RootLedger(log_dir, root, FallbackRecords(None)))
        judged = [staging.judge(*each) for each in staged_names(root, placement)]
        workers = PurgeWorkers(staging, log_dir.disk, 2, may_fork=True)
        workers.purge([each for each in judged if isinstance(each, DueDirectory)])
        assert (len(workers.done), staging.rules is rules) == (20, True)
