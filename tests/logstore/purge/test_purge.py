"""Purges of whole log dirs: what is due goes, the rest stays, and a failure is reported and tried again."""

from __future__ import annotations

import errno
import logging
import os
import threading
from pathlib import Path

import pytest

from layout.directory_name import stray_name
from layout.meta_properties import FILE_NAME as IDENTITY_FILE
from layout.meta_properties import encode
from layout.ours import LedgerEvent, encode_mark, parse_ledger
from layout.scheme import LEDGER_FILE
from layout.topic import TopicPartition
from logstore import ChangeRefusedError, OfflineLogDirError
from logstore.clock import ManualClock
from logstore.fs import Disk
from logstore.log_dir import FallbackRecords, Ledgers, LogDir, ReadOnlyLogDir
from logstore.purge import PURGE_WORKERS, LogDirPurge, PurgeRules, Throttle, planned_purge, purge, purge_steps
from logstore.purge import run as purge_module
from logstore.purge import workers as purge_workers
from logstore.purge.report import KeepReason
from logstore.staging import Placement, Staged, list_staged, planned_restore, restore, stage
from tests.logstore.engine import (
    NOW_MS,
    DiskThat,
    candidate,
    fill,
    formatted,
    full_disk,
    identity,
    ledger_events,
    open_descriptors,
    picture,
)
from tests.patience import PATIENCE_S

LATER_MS = NOW_MS + 10_000


def partition(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def staged(
    path: Path, count: int, *, disk: Disk | None = None, placement: Placement | None = None, **options
) -> LogDir:
    """A log dir that is ours, with replicas staged in it that are due after 1 s, 2 s, 3 s ..."""
    if not path.exists():
        formatted(path, int(options.pop("number", 1)))
    for number in range(count):
        fill(path / f"orders-{number}")
    log_dir = LogDir.open(str(path))
    candidates = [
        candidate(f"orders-{number}", partition(number), delay_ms=1000 * (number + 1)) for number in range(count)
    ]
    stage(log_dir, candidates, NOW_MS, placement=placement, **options)
    if disk is not None:
        log_dir.ledgers.close()
        log_dir.disk, log_dir.ledgers = disk, Ledgers(disk)
    return log_dir


def damage_line_of(root: Path, name: str) -> None:
    """Let the disk forget a bit of a line of the ledger that was durable once."""
    data = (root / LEDGER_FILE).read_bytes()
    used = data[: parse_ledger(data).end]
    place = used.index(name.encode())
    spoilt = used[:place] + bytes([used[place] ^ 1]) + used[place + 1 :]
    (root / LEDGER_FILE).write_bytes(spoilt + encode_mark(len(used)))


def only(log_dir: LogDir, rules: PurgeRules, **options) -> LogDirPurge:
    (report,) = purge([log_dir], rules, **options).log_dirs
    return report


@pytest.mark.parametrize("workers", [1, 3])
def test_what_is_due_goes_and_the_rest_waits_for_its_time(tmp_path: Path, workers: int) -> None:
    with staged(tmp_path / "disk", 60) as log_dir:
        report = only(log_dir, PurgeRules(NOW_MS + 50_000), workers=workers)
        assert (len(report.purged), report.not_due, report.next_due_ms) == (50, 10, NOW_MS + 51_000)
        assert {str(purged.partition) for purged in report.purged} == {f"orders-{number}" for number in range(50)}
        assert report.is_whole
        assert report.expected_bytes == sum(purged.bytes for purged in report.purged) > 0
        assert report.freed_bytes is not None
        assert [each.partition.partition for each in list_staged(log_dir) if each.partition] == [
            *sorted(range(50, 60)),
        ]


@pytest.mark.parametrize("workers", [1, 3])
def test_what_somebody_has_a_reason_to_keep_stays_and_is_reported_with_it(tmp_path: Path, workers: int) -> None:
    def veto(each: Staged) -> str | None:
        return "it is wanted again" if each.partition == partition(1) else None

    with staged(tmp_path / "disk", 60) as log_dir:
        report = only(log_dir, PurgeRules(NOW_MS + 50_000, veto=veto), workers=workers)
        assert (len(report.purged), report.not_due, report.is_whole) == (49, 10, True)
        (kept,) = report.kept
        assert (kept.why, kept.reason) == (KeepReason.WANTED, "it is wanted again")
        assert partition(1) in {each.partition for each in list_staged(log_dir)}


def test_a_clock_that_went_backwards_purges_nothing(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 3) as log_dir:
        before = picture(tmp_path / "disk")
        report = only(log_dir, PurgeRules(NOW_MS - 86_400_000))
        assert (report.purged, report.not_due) == ([], 3)
        assert picture(tmp_path / "disk") == before


def test_where_nothing_is_due_the_log_dir_is_not_even_marked(tmp_path: Path) -> None:
    path = formatted(tmp_path / "disk")
    staged(path, 2).close()
    disk = DiskThat()
    with LogDir.open(str(path), disk=disk) as log_dir:
        disk.calls.clear()
        only(log_dir, PurgeRules(NOW_MS))
        assert disk.calls == {}


def test_the_plan_is_what_the_purge_does(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    staged(path, 5).close()
    (path / "deleting" / "not-ours").mkdir()
    damage_line_of(path / "deleting", next((path / "deleting").glob("*_1")).name)
    before = picture(path)
    with ReadOnlyLogDir.open(str(path)) as view:
        planned = planned_purge(view, PurgeRules(NOW_MS + 3000))
    assert picture(path) == before
    with LogDir.open(str(path)) as log_dir:
        done = only(log_dir, PurgeRules(NOW_MS + 3000))
    assert (planned.purged, planned.kept, planned.not_due) == (done.purged, done.kept, done.not_due)
    assert len(planned.purged) == 2
    assert [kept.why for kept in planned.kept] == [KeepReason.DAMAGED_RECORD]
    assert (path / "deleting" / "not-ours").is_dir()


def test_beside_a_brokers_log_dir_and_in_place_it_takes_ours_and_leaves_what_a_broker_left(tmp_path: Path) -> None:
    path = tmp_path / "kafka"
    path.mkdir()
    (path / IDENTITY_FILE).write_bytes(encode(identity(scheme=None), "today"))
    left = fill(path / stray_name("orders", 9, "0" * 32))
    staged(path, 2).close()
    with staged(path, 2, placement=Placement.IN_PLACE) as log_dir:
        report = only(log_dir, PurgeRules(LATER_MS))
    assert len(report.purged) == 4
    assert [(kept.location, kept.why) for kept in report.kept] == [(left.name, KeepReason.NO_RECORD)]
    assert (left / "00000000000000000000.log").exists()
    assert [each.name for each in (tmp_path / "kafka.deleting").iterdir()] == [LEDGER_FILE]


def test_a_record_outside_the_full_disk_counts_until_its_directory_is_gone(tmp_path: Path) -> None:
    fallback = FallbackRecords(str(tmp_path / "spare"))
    (tmp_path / "spare").mkdir()
    path = formatted(tmp_path / "disk")
    fill(path / "orders-0")
    with LogDir.open(str(path), disk=full_disk()) as log_dir:
        (found,) = stage(log_dir, [candidate(delay_ms=1000)], NOW_MS, fallback=fallback).staged
        assert [kept.why for kept in only(log_dir, PurgeRules(LATER_MS)).kept] == [KeepReason.NO_RECORD]
        report = only(log_dir, PurgeRules(LATER_MS), fallback=fallback)
        assert [purged.location for purged in report.purged] == [found.location]
        assert fallback.read(log_dir.path) is None


class RootSyncFails(Disk):
    """Refuses to sync the staging root, as long as it is told to."""

    number: int | None = errno.ENOSPC

    def sync(self, descriptor: int) -> None:
        if self.number is not None and os.readlink(f"/proc/self/fd/{descriptor}").endswith("/deleting"):
            raise OSError(self.number, os.strerror(self.number))
        super().sync(descriptor)


def test_what_the_disk_does_not_confirm_is_not_reported_as_purged(tmp_path: Path) -> None:
    disk = RootSyncFails()
    disk.number = None
    with staged(tmp_path / "disk", 8, disk=disk) as log_dir:
        log_dir.ledgers.of(log_dir.root.child("deleting"))  # which syncs the staging root as well
        disk.number = errno.ENOSPC
        report = only(log_dir, PurgeRules(LATER_MS))
        assert report.purged == []
        assert report.partly_bytes > 0
        assert "8 directories were removed, and the disk does not confirm it" in report.failures[0]
        assert not report.is_whole
        assert set(ledger_events(tmp_path / "disk" / "deleting").values()) == {LedgerEvent.PURGING}


def test_what_was_removed_before_the_staging_root_failed_is_not_reported_as_purged(tmp_path: Path) -> None:
    disk = RootSyncFails()
    disk.number = None
    with staged(tmp_path / "disk", 8, disk=disk) as log_dir:
        log_dir.ledgers.of(log_dir.root.child("deleting"))
        disk.number = errno.EIO
        report = only(log_dir, PurgeRules(LATER_MS))
        assert report.purged == []
        assert "offline" in str(report.error)
        assert set(ledger_events(tmp_path / "disk" / "deleting").values()) == {LedgerEvent.PURGING}
        log_dir.abandon()


class NoRoomForLines(Disk):
    """Has no room for more than some bytes of lines at a time, and counts what was announced before each removal."""

    number = errno.ENOSPC

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.announced: list[int] = []

    def write(self, descriptor: int, data: bytes) -> None:
        lines = data.count(b'["purging"')
        if lines and len(data) > self.most_bytes:
            raise OSError(self.number, os.strerror(self.number))
        self.announced += [lines] if lines else []
        super().write(descriptor, data)


def test_a_full_disk_announces_a_few_at_a_time(tmp_path: Path) -> None:
    disk = NoRoomForLines(1600)
    with staged(tmp_path / "disk", 70, disk=disk) as log_dir:
        report = only(log_dir, PurgeRules(NOW_MS + 100_000))
    assert (len(report.purged), report.is_whole) == (70, True)
    assert disk.announced == [32, 32, 6]
    assert set(ledger_events(tmp_path / "disk" / "deleting").values()) == {LedgerEvent.PURGED}


def test_where_not_even_that_has_room_it_purges_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = NoRoomForLines(0)
    with staged(tmp_path / "disk", 5, disk=disk) as log_dir:
        assert len(only(log_dir, PurgeRules(LATER_MS)).purged) == 5
    assert disk.announced == []
    assert "no room to note that a purge is under way" in caplog.text


class RoomOnceSomethingGoes(NoRoomForLines):
    """Has no room for lines before a file is removed, removes one file of a replica alone, and keeps unsynced lines."""

    def __init__(self) -> None:
        super().__init__(0)
        self.unsynced: list[bytes] = []
        self.is_begun = False

    def write(self, descriptor: int, data: bytes) -> None:
        super().write(descriptor, data)
        self.unsynced += [line for line in data.splitlines() if b'["purg' in line]

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(LEDGER_FILE):
            self.unsynced.clear()

    def unlink(self, parent: int, name: str) -> None:
        if os.readlink(f"/proc/self/fd/{parent}").endswith("_3"):
            if self.is_begun:
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            self.is_begun = True
        super().unlink(parent, name)
        self.most_bytes = 1 << 20


def test_what_a_full_disk_had_no_room_to_announce_is_noted_durably_once_there_is_room(tmp_path: Path) -> None:
    disk = RoomOnceSomethingGoes()
    with staged(tmp_path / "disk", 5, disk=disk) as log_dir:
        report = only(log_dir, PurgeRules(LATER_MS), workers=1)
        assert (len(report.purged), len(report.failures)) == (4, 1)
        assert disk.unsynced == []
        events = ledger_events(tmp_path / "disk" / "deleting")
    assert {int(name[-1]): event.value for name, event in events.items()} == {
        number: "purging" if number == 3 else "purged" for number in range(5)
    }


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_where_a_purge_cannot_be_noted_for_another_reason_nothing_is_removed(tmp_path: Path, number: int) -> None:
    disk = NoRoomForLines(0)
    disk.number = number
    with staged(tmp_path / "disk", 5, disk=disk) as log_dir:
        report = only(log_dir, PurgeRules(LATER_MS))
        assert (report.purged, report.partly_bytes) == ([], 0)
        assert os.strerror(number) in str(report.error)
        assert len(list((tmp_path / "disk" / "deleting").glob("*/*.log"))) == 5
        log_dir.abandon()


def test_what_a_purge_that_was_killed_had_announced_is_never_restored_and_the_next_purge_takes_it(
    tmp_path: Path,
) -> None:
    class Killed(BaseException):
        pass

    class Dying(Disk):
        def unlink(self, parent: int, name: str) -> None:
            raise Killed

    path = tmp_path / "disk"
    with pytest.raises(Killed), staged(path, 3, disk=Dying()) as log_dir:
        only(log_dir, PurgeRules(LATER_MS - 7000), workers=1)
    assert list(ledger_events(path / "deleting").values()) == [LedgerEvent.PURGING] * 3
    with LogDir.open(str(path)) as log_dir:
        for each in list_staged(log_dir):
            with pytest.raises(ChangeRefusedError, match="can only be purged"):
                planned_restore(log_dir, each)
        assert len(only(log_dir, PurgeRules(LATER_MS)).purged) == 3


def test_batches_follow_each_other_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge_workers, "PURGE_BATCH_SIZE", 3)
    reported = []
    with staged(tmp_path / "disk", 8) as log_dir:
        rules = PurgeRules(LATER_MS, progress=lambda *step: reported.append(step))
        report = only(log_dir, rules, workers=PURGE_WORKERS)
    assert len(report.purged) == 8
    assert sum(directories for directories, _ in reported) == 8


def test_cancelled_it_leaves_the_rest_as_it_was_and_each_of_that_can_be_restored(tmp_path: Path) -> None:
    cancel = threading.Event()

    def stop(directories: int, number_of_bytes: int) -> None:
        if directories:
            cancel.set()

    path = tmp_path / "disk"
    with staged(path, 8) as log_dir:
        report = only(log_dir, PurgeRules(LATER_MS, cancel=cancel, progress=stop), workers=1)
        assert report.cancelled
        assert not report.is_whole
        assert len(report.purged) == 1
        ledger = parse_ledger((path / "deleting" / LEDGER_FILE).read_bytes())
        assert ledger.end == ledger.durable + len(encode_mark(ledger.durable))
    with LogDir.open(str(path)) as log_dir:
        left = list_staged(log_dir)
        assert len(left) == 7
        back = restore(log_dir, left[0])
        assert len(os.listdir(path / back.path)) == 3
        assert all(planned_restore(log_dir, each) for each in left[1:])
        assert len(only(log_dir, PurgeRules(LATER_MS)).purged) == 6


def test_cancelled_in_the_middle_of_a_directory_that_one_alone_can_only_be_purged(tmp_path: Path) -> None:
    cancel = threading.Event()
    path = tmp_path / "disk"
    with staged(path, 8) as log_dir:
        rules = PurgeRules(LATER_MS, cancel=cancel, progress=lambda *_: cancel.set())
        assert only(log_dir, rules, workers=1).purged == []
        (partly,) = [each for each in list_staged(log_dir) if each.may_be_partly_purged]
        assert len(os.listdir(path / partly.location)) == 2
        assert ledger_events(path / "deleting")[partly.name] is LedgerEvent.PURGING


def test_cancelled_while_the_throttle_waits_it_comes_to_an_orderly_end(tmp_path: Path) -> None:
    cancel = threading.Event()

    class Clock(ManualClock):
        def wait(self, event: threading.Event, seconds: float) -> bool:
            event.set()
            return True

    with staged(tmp_path / "disk", 3) as log_dir:
        report = only(log_dir, PurgeRules(LATER_MS, Throttle(Clock(), unlinks_per_s=1), cancel), workers=1)
        assert report.cancelled
        assert report.purged == []
        assert [each.may_be_partly_purged for each in list_staged(log_dir) if each.record] == [False] * 3


def test_one_that_cannot_be_removed_does_not_keep_the_others(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 3) as log_dir:
        stuck = tmp_path / "disk" / "deleting" / list_staged(log_dir)[1].name
        log_dir.disk = DiskThat(errno.EPERM, {"unlink"}, below=stuck)
        report = only(log_dir, PurgeRules(LATER_MS))
        assert len(report.purged) == 2
        assert report.failures == [f"deleting/{stuck.name} is not purged whole: Operation not permitted"]
        assert ledger_events(stuck.parent)[stuck.name] is LedgerEvent.STAGED
        assert len(list(stuck.iterdir())) == 3


def test_a_disk_that_fails_goes_offline_and_the_others_go_on(tmp_path: Path) -> None:
    disk = DiskThat(errno.EIO, {"unlink"})
    with staged(tmp_path / "one", 6, disk=disk) as bad, staged(tmp_path / "two", 6, number=2) as good:
        report = purge([bad, good], PurgeRules(LATER_MS))
        assert [len(each.purged) for each in report.log_dirs] == [0, 6]
        assert "offline" in str(report.log_dirs[0].error)
        assert bad.offline is not None
        assert not report.is_whole
        assert (report.directories, report.next_due_ms) == (6, None)
        assert "offline" in str(only(bad, PurgeRules(LATER_MS)).error)
        with pytest.raises(OfflineLogDirError):
            list(purge_steps(bad, PurgeRules(LATER_MS)))
        bad.abandon()


def test_disks_are_purged_at_the_same_time_when_they_are_different_ones(tmp_path: Path) -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE_S)

    class Meeting(Disk):
        met = False

        def rmdir(self, parent: int, name: str) -> None:
            if not self.met:
                self.met = True
                meeting.wait()
            super().rmdir(parent, name)

    with (
        staged(tmp_path / "one", 1, disk=Meeting()) as one,
        staged(tmp_path / "two", 1, disk=Meeting(), number=2) as two,
    ):
        runs = {log_dir.path: log_dir.root.device + number for number, log_dir in enumerate((one, two))}
        original = purge_module._LogDirPurger.__init__

        def elsewhere(run, log_dir, *args, **options) -> None:
            original(run, log_dir, *args, **options)
            run.device = runs[log_dir.path]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(purge_module._LogDirPurger, "__init__", elsewhere)
            assert purge([one, two], PurgeRules(LATER_MS), look_at_processes=False).directories == 2


def test_files_that_a_process_holds_are_reported_with_their_bytes(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 1) as log_dir:
        (found,) = list_staged(log_dir)
        path = tmp_path / "disk" / "deleting" / found.name / "00000000000000000000.log"
        with path.open("rb"):
            number_of_bytes = path.stat().st_blocks * 512
            report = only(log_dir, PurgeRules(LATER_MS))
        (held,) = report.held
        assert (held.process.pid, held.name) == (os.getpid(), f"{found.location}/{path.name}")
        assert report.held_open_bytes == held.bytes == number_of_bytes


def test_files_that_were_closed_meanwhile_are_not_reported(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 1) as log_dir:
        path = next((tmp_path / "disk" / "deleting").glob("*/*.log"))
        file = path.open("rb")
        assert only(log_dir, PurgeRules(LATER_MS, progress=lambda *_: file.close())).held == []


def test_step_by_step_one_directory_goes_each_time_durably(tmp_path: Path) -> None:
    with staged(tmp_path / "disk", 3) as log_dir:
        steps = purge_steps(log_dir, PurgeRules(LATER_MS))
        left = []
        for purged in steps:
            assert purged.record is not None
            left.append(len(list_staged(log_dir)))
        assert left == [2, 1, 0]


def test_nothing_at_all_is_a_report_too(tmp_path: Path) -> None:
    assert purge([], PurgeRules(0)).log_dirs == ()
    path = formatted(tmp_path / "disk")
    (path / "deleting").rmdir()
    with LogDir.open(str(path)) as log_dir:
        assert only(log_dir, PurgeRules(0)).is_whole


def test_no_descriptor_is_left_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    before = open_descriptors()
    for number, fails in enumerate([(), ("unlink",), ("rmdir",), ("sync",)]):
        with staged(tmp_path / str(number), 6, disk=DiskThat(errno.EACCES, fails)) as log_dir:
            only(log_dir, PurgeRules(LATER_MS))
            log_dir.disk = Disk()
    assert open_descriptors() == before
