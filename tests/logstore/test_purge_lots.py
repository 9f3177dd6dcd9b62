"""Lots of a purge: one is emptied while the one before comes to its end, and records wait for their own barrier."""

from __future__ import annotations

import errno
import logging
import os
import threading
from pathlib import Path

import pytest

from layout.staged_record import FILE_NAME
from logstore import purge_workers
from logstore.durable import Disk
from logstore.judge_staged import Rules
from logstore.staged import list_staged
from tests.logstore.engine import DiskThat
from tests.logstore.test_purge import LATER_MS, only, staged

SECONDS = 30


@pytest.fixture(autouse=True)
def small_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lots of five, which are more than are synced one by one; and processes from two of them on."""
    monkeypatch.setattr(purge_workers, "LOT", 5)
    monkeypatch.setattr(purge_workers, "_SMALLEST_LOT", 5)
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

    disk = Patient(tmp_path / "notes")
    with staged(tmp_path / "disk", 15, disk=disk) as log_dir:
        assert len(only(log_dir, Rules(LATER_MS * 2), workers=1).purged) == 15
    assert disk.in_time


@pytest.mark.parametrize("may_fork", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_no_record_goes_before_a_barrier_that_came_after_the_rest_of_its_directory(
    tmp_path: Path, workers: int, may_fork: bool
) -> None:
    disk = Noted(tmp_path / "notes")
    with staged(tmp_path / "disk", 25, disk=disk) as log_dir:
        assert len(only(log_dir, Rules(LATER_MS * 3), workers=workers, may_fork=may_fork).purged) == 25
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
