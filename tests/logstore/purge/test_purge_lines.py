"""What a purge writes into the ledger of what was begun before, of what held nothing, and of what it must leave."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest

from layout.ours import LedgerEvent
from logstore.fs import Disk
from logstore.log_dir import FallbackRecords, FileHolder, LogDir, OpenFiles, UnseenProcess
from logstore.purge import PurgeRules, planned_purge, purge_steps
from logstore.purge import run as purge_module
from logstore.purge.report import KeepReason
from logstore.staging import list_staged, note_event, planned_restore, staging_roots
from tests.logstore.engine import NOW_MS, ORDERS_ID, DiskThat, ledger_events
from tests.logstore.purge.test_purge import LATER_MS, NoRoomForLines, RootSyncFails, only, staged


class Writing(Disk):
    """Keeps the lines that are written."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, descriptor: int, data: bytes) -> None:
        self.lines += data.splitlines()
        super().write(descriptor, data)


def test_what_was_begun_is_announced_once_however_often_it_is_tried(tmp_path: Path) -> None:
    disk = DiskThat(fails={"unlink"})
    with staged(tmp_path / "disk", 3, disk=disk) as log_dir:
        only(log_dir, PurgeRules(LATER_MS - 8000), workers=1)
        log_dir.abandon()
    writing = Writing()
    with LogDir.open(str(tmp_path / "disk"), disk=writing) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS), workers=1).purged) == 3
    assert sum(b'["purging"' in line for line in writing.lines) == 1
    assert sum(b'["purged"' in line for line in writing.lines) == 3


def test_a_replica_without_a_file_is_gone_all_the_same_when_it_is_purged(tmp_path: Path) -> None:
    root = tmp_path / "disk" / "deleting"
    with staged(tmp_path / "disk", 2) as log_dir:
        empty = root / list_staged(log_dir)[0].name
        shutil.rmtree(empty)
        empty.mkdir()
        assert len(only(log_dir, PurgeRules(LATER_MS)).purged) == 2
    assert set(ledger_events(root).values()) == {LedgerEvent.PURGED}


def test_what_a_process_holds_is_not_even_announced_where_it_is_to_be_kept(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 3) as log_dir:
        held = list_staged(log_dir)[1]
        with next((tmp_path / "disk" / held.location).glob("*.log")).open("rb"):
            rules = PurgeRules(LATER_MS, keep_held=True)
            planned = planned_purge(log_dir, rules)
            report = only(log_dir, rules)
        assert (planned.purged, planned.kept) == (report.purged, report.kept)
        assert (len(report.purged), [(kept.location, kept.why) for kept in report.kept]) == (
            2,
            [(held.location, KeepReason.IN_USE)],
        )
        assert len(list((tmp_path / "disk" / held.location).iterdir())) == 3
        assert planned_restore(log_dir, held)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_of_an_empty_directory_whose_replica_was_restored_nothing_new_is_said(
    tmp_path: Path, is_cancelled: bool
) -> None:
    cancel, root = threading.Event(), tmp_path / "disk" / "deleting"
    with staged(tmp_path / "disk", 1) as log_dir:
        empty = root / list_staged(log_dir)[0].name
        with closing(staging_roots(log_dir)) as roots:
            note_event(log_dir, next(roots)[1], FallbackRecords(None), LedgerEvent.RESTORED, [empty.name], durable=True)
        shutil.rmtree(empty)
        empty.mkdir()
        if is_cancelled:
            cancel.set()
        assert only(log_dir, PurgeRules(LATER_MS, cancel=cancel), workers=1).cancelled is is_cancelled
    assert empty.exists() is is_cancelled
    assert ledger_events(root) == {empty.name: LedgerEvent.RESTORED}


def test_what_was_begun_is_never_restored_though_the_next_purge_is_cancelled_before_it_touches_it(
    tmp_path: Path,
) -> None:
    disk, cancel = DiskThat(fails={"unlink"}), threading.Event()
    with staged(tmp_path / "disk", 2, disk=disk) as log_dir:
        only(log_dir, PurgeRules(LATER_MS), workers=1)
        log_dir.abandon()
    cancel.set()
    with LogDir.open(str(tmp_path / "disk")) as log_dir:
        assert only(log_dir, PurgeRules(LATER_MS, cancel=cancel)).cancelled
        assert [each.may_be_partly_purged for each in list_staged(log_dir)] == [True, True]
    assert set(ledger_events(tmp_path / "disk" / "deleting").values()) == {LedgerEvent.PURGING}


def test_where_nothing_was_removed_nothing_has_to_be_confirmed(tmp_path: Path) -> None:
    disk, cancel = RootSyncFails(), threading.Event()
    disk.number = None
    cancel.set()
    with staged(tmp_path / "disk", 2, disk=disk) as log_dir:
        log_dir.ledgers.of(log_dir.root.child("deleting"))  # which syncs the staging root as well
        disk.number = errno.ENOSPC
        report = only(log_dir, PurgeRules(LATER_MS, cancel=cancel))
    assert (report.cancelled, report.failures, report.error) == (True, [], None)


def test_a_full_disk_announces_no_more_once_the_purge_is_cancelled(tmp_path: Path) -> None:
    disk, cancel = NoRoomForLines(1600), threading.Event()
    with staged(tmp_path / "disk", 70, disk=disk) as log_dir:
        rules = PurgeRules(NOW_MS + 100_000, cancel=cancel, progress=lambda *_: cancel.set())
        assert only(log_dir, rules, workers=1).cancelled
    assert disk.announced == [32]


def test_a_disk_without_room_for_a_line_gets_it_from_the_first_that_are_purged(tmp_path: Path) -> None:
    class GetsRoom(NoRoomForLines):
        def rmdir(self, parent: int, name: str) -> None:
            super().rmdir(parent, name)
            self.most_bytes = 1 << 20

    disk = GetsRoom(0)
    with staged(tmp_path / "disk", 40, disk=disk) as log_dir:
        assert len(only(log_dir, PurgeRules(NOW_MS + 100_000)).purged) == 40
    assert disk.announced == [8]


def test_of_a_log_dir_that_is_offline_it_is_said_though_nothing_is_due(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 1) as log_dir:
        log_dir.failed("it cannot be listed", OSError(errno.EIO, "Input/output error"))
        assert "offline" in str(only(log_dir, PurgeRules(NOW_MS)).error)
        log_dir.abandon()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount")
def test_a_mount_point_without_a_line_is_kept_and_the_others_go(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 2) as log_dir:
        mounted = tmp_path / "disk" / "deleting" / f"{ORDERS_ID}_9"
        mounted.mkdir()
        (tmp_path / "other").mkdir()
        if subprocess.run(
            ["mount", "--bind", tmp_path / "other", mounted], capture_output=True, check=False
        ).returncode:
            pytest.skip("mounting is not allowed here")
        try:
            report = only(log_dir, PurgeRules(LATER_MS))
        finally:
            subprocess.run(["umount", mounted], check=True)
    (kept,) = report.kept
    assert (len(report.purged), report.error, kept.why) == (2, None, KeepReason.DAMAGED_RECORD)
    assert "mounted" in kept.reason


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_the_freed_space_is_what_the_disk_has_more_than_before_also_after_a_part_of_a_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    free, cancel = iter([1000, 5000]), threading.Event()
    monkeypatch.setattr(purge_module, "_free_bytes", lambda _: next(free))
    with staged(tmp_path / "disk", 1) as log_dir:
        rules = PurgeRules(LATER_MS, cancel=cancel, progress=lambda *_: cancel.set() if is_cancelled else None)
        report = only(log_dir, rules, workers=1)
    assert (len(report.purged), report.freed_bytes) == (0 if is_cancelled else 1, 4000)


def test_a_simulation_purges_by_name_whatever_the_order_of_inodes(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 3) as log_dir:
        first, *_, last = (tmp_path / "disk" / each.location for each in list_staged(log_dir))
        first.rename(tmp_path / "aside")
        last.rename(first)
        (tmp_path / "aside").rename(last)
        assert [str(each.partition) for each in purge_steps(log_dir, PurgeRules(LATER_MS))] == [
            "orders-0",
            "orders-1",
            "orders-2",
        ]


def test_a_purge_names_the_processes_that_it_could_not_look_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unseen = (UnseenProcess(FileHolder(42, "java"), "Permission denied"),)
    monkeypatch.setattr(purge_module, "find_open_files", lambda *_: OpenFiles(unseen=unseen))
    with staged(tmp_path / "disk", 1) as log_dir:
        assert only(log_dir, PurgeRules(NOW_MS)).unseen_processes == (), "nothing is due, so nobody was asked"
        assert only(log_dir, PurgeRules(LATER_MS)).unseen_processes == unseen


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_where_what_is_purged_cannot_be_noted_lack_of_room_alone_is_no_failure(tmp_path: Path, number: int) -> None:
    class Forgets(Disk):
        def write(self, descriptor: int, data: bytes) -> None:
            if b'["purged"' in data:
                raise OSError(number, os.strerror(number))
            super().write(descriptor, data)

    with staged(tmp_path / "disk", 2, disk=Forgets()) as log_dir:
        report = only(log_dir, PurgeRules(LATER_MS))
    assert (len(report.purged), report.error is None) == (2, number == errno.ENOSPC)
    assert set(ledger_events(tmp_path / "disk" / "deleting").values()) == {LedgerEvent.PURGING}
