"""Batches of a purge: one is emptied while the one before is finished, and records wait for their own barrier."""

from __future__ import annotations

import errno
import itertools
import logging
import os
import threading
from contextlib import closing
from pathlib import Path

import pytest

from layout.directory_name import parse_staged
from layout.ours import STAGED_RECORD
from logstore.clock import ManualClock
from logstore.fs import Disk
from logstore.parallel import threads
from logstore.purge import PurgeRules, Throttle
from logstore.purge import batches as purge_batches
from logstore.purge import workers as purge_workers
from logstore.purge.batches import BatchWorker, PurgeBatch
from logstore.purge.eligibility import StagingRoot
from logstore.purge.remove import Removal
from logstore.staging import FallbackRecords, RecordReader, list_staged, staging_roots
from tests.logstore.engine import NOW_MS, DiskThat
from tests.logstore.purge.test_purge import LATER_MS, only, staged
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of five, which are more than are synced one by one; and processes from two of them on."""
    monkeypatch.setattr(purge_workers, "PURGE_BATCH_SIZE", 5)
    monkeypatch.setattr(purge_workers, "_SMALLEST_BATCH", 5)
    monkeypatch.setattr(purge_workers, "PROCESSES_FROM", 10)


class Noted(Disk):
    """Writes down barriers, and which directory lost its record or something else; forked processes do so too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()

    @property
    def steps(self) -> list[tuple[str, str]]:
        """What was done, and to which directory."""
        return [
            (what, where) for what, _, where in (line.partition(": ") for line in self.path.read_text().split("\n"))
        ]

    def note(self, what: str, descriptor: int) -> None:
        with self.path.open("a") as notes:
            notes.write(f"{what}: {os.path.basename(os.readlink(f'/proc/self/fd/{descriptor}'))}\n")

    def sync_file_system(self, descriptor: int) -> bool:
        barrier = f"barrier {os.getpid()} {self.path.stat().st_size}"
        self.note(barrier, descriptor)
        done = super().sync_file_system(descriptor)
        self.note(f"end of {barrier}", descriptor)
        return done

    def unlink(self, parent: int, name: str) -> None:
        if not name.startswith(".logstore"):
            self.note("record" if name == STAGED_RECORD else "content", parent)
        super().unlink(parent, name)


@pytest.mark.parametrize("waits", ["barrier", "rmdir"])
def test_the_next_batch_is_emptied_while_the_one_before_comes_to_its_end(tmp_path: Path, waits: str) -> None:
    class Patient(Noted):
        """Its first barrier, or removal of a directory, ends when something of the second batch is gone."""

        seen = threading.Event()
        in_time: bool | None = None

        def wait(self, what: str) -> None:
            if what == waits and self.in_time is None:
                self.in_time = self.seen.wait(PATIENCE_S)

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

    disk = Patient(tmp_path / "notes")
    with staged(tmp_path / "disk", 15, disk=disk) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS * 2), workers=1).purged) == 15
    assert disk.in_time


@pytest.mark.parametrize("may_fork", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_no_record_goes_before_a_barrier_that_came_after_the_rest_of_its_directory(
    tmp_path: Path, workers: int, may_fork: bool
) -> None:
    disk = Noted(tmp_path / "notes")
    with staged(tmp_path / "disk", 25, disk=disk) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS * 3), workers=workers, may_fork=may_fork).purged) == 25
    names = {where for what, where in disk.steps if what == "record"}
    assert len(names) == 25
    for name in names:
        rest = max(place for place, step in enumerate(disk.steps) if step == ("content", name))
        between = [what for what, _ in disk.steps[rest : disk.steps.index(("record", name))]]
        assert any(f"end of {what}" in between for what in between), name


def test_a_barrier_that_fails_concerns_its_own_batch_alone(tmp_path: Path) -> None:
    disk = DiskThat(errno.ENOSPC, {"sync_file_system"})
    disk.after = 1
    with staged(tmp_path / "disk", 15, disk=disk) as log_dir:
        disk.fails = {"sync_file_system"}
        report = only(log_dir, PurgeRules(LATER_MS * 2), workers=1)
        assert len(report.purged) == 5
        assert [failure.split(": ")[1].split(",")[0] for failure in report.failures] == [
            "5 directories were emptied"
        ] * 2
        assert len(list_staged(log_dir)) == 10
        disk.fails.clear()
        assert len(only(log_dir, PurgeRules(LATER_MS * 2)).purged) == 10


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
        assert reported == 20 if workers == 1 else reported in (5, 10, 15, 20)
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
        if not name.startswith((".", STAGED_RECORD)):
            self.meet("unlink")
        super().unlink(parent, name)

    def rmdir(self, parent: int, name: str) -> None:
        self.meet("rmdir")
        super().rmdir(parent, name)


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch, of which a thread takes one directory at a time."""
    monkeypatch.setattr(purge_workers, "PURGE_BATCH_SIZE", 25)
    monkeypatch.setattr(purge_workers, "_SMALLEST_BATCH", 25)
    monkeypatch.setattr(purge_batches, "_PIECE", 1)


@pytest.fixture
def waited_for(pieces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, where the system tells of many waits."""
    monkeypatch.setattr(threads, "waits", itertools.count(0, 1000).__next__)


@pytest.mark.usefixtures("waited_for")
def test_where_files_are_waited_for_several_threads_empty_a_batch_and_several_finish_it(tmp_path: Path) -> None:
    disk = Meeting(purge_batches.EMPTYING, purge_batches.FINISHING)
    with staged(tmp_path / "disk", 25, disk=disk) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS * 3), workers=1).purged) == 25
    # The thread that asks does the first piece.
    assert len(disk.came["unlink"] - {threading.get_ident()}) == purge_batches.EMPTYING
    assert len(disk.came["rmdir"] - {threading.get_ident()}) == purge_batches.FINISHING


@pytest.mark.usefixtures("waited_for")
def test_what_several_threads_found_out_stands_in_the_order_of_the_names(tmp_path: Path) -> None:
    class HasLost(Disk):
        """Some of the records are gone when their turn comes."""

        def unlink(self, parent: int, name: str) -> None:
            if name == STAGED_RECORD and os.readlink(f"/proc/self/fd/{parent}").endswith(("_3", "_20")):
                super().unlink(parent, name)
            super().unlink(parent, name)

    with staged(tmp_path / "disk", 25) as log_dir, closing(staging_roots(log_dir)) as roots:
        placement, root = next(roots)
        names = [parse_staged(name) for name in sorted(os.listdir(root.descriptor))]
        reader = RecordReader(log_dir, FallbackRecords(None))
        removal = Removal(StagingRoot(log_dir, placement, root, PurgeRules(LATER_MS * 3), reader), HasLost())
        with BatchWorker(removal, log_dir.disk) as worker:
            worker.purge(PurgeBatch(names))
            worker.end()
    (batch,) = worker.gone
    assert [due.name for due in batch.emptied] == [name.text for name in names]
    lost = [due.name for due, inside in zip(batch.emptied, batch.had_record_inside, strict=True) if not inside]
    assert lost == [name.text for name in names if name.text.endswith(("_3", "_20"))]


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
def test_a_disk_that_fails_one_of_the_threads_fails_the_purge_and_no_record_goes(
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
        assert report.purged == []
        log_dir.abandon()
    left = list((tmp_path / "disk" / "deleting").iterdir())
    assert len(left) == 25
    assert all((directory / STAGED_RECORD).exists() for directory in left)
    assert not any(thread.name.startswith(("pace", "purge")) for thread in threading.enumerate())
