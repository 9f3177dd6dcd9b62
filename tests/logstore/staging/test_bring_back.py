from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from layout.checkpoint import HIGH_WATERMARK_CHECKPOINT
from layout.ours import LedgerEvent, encode_mark
from layout.scheme import LEDGER_FILE, MARKER_FILE, UNCLEAN_FILE
from layout.topic import TopicPartition
from logstore import (
    ChangeFailedError,
    ChangeRefusedError,
    DamagedRecordError,
    InvalidNamespaceError,
    LogStoreError,
    NameTakenError,
    OfflineLogDirError,
)
from logstore.fs import Disk
from logstore.log_dir import FallbackRecords, LogDir
from logstore.staging import (
    BROKERS_STRAY,
    Placement,
    Restored,
    list_staged,
    planned_restore,
    restore,
    stage,
)
from logstore.store import recover
from tests.logstore.engine import (
    NOW_MS,
    ORDERS,
    ORDERS_ID,
    DiskThat,
    candidate,
    contents,
    fill,
    formatted,
    full_disk,
    ledger_entries,
    ledger_events,
    open_descriptors,
    picture,
    read_offsets,
    write_ledger,
    write_offsets,
)

UNIQUE = "0123456789abcdef0123456789abcdef"


@pytest.fixture(params=["ours", "broker", "in place"])
def staged_in(request: pytest.FixtureRequest, log_dir: Any, our_log_dir: Path) -> Path:
    """A log dir with one staged replica."""
    path: Path = our_log_dir if request.param == "ours" else log_dir.path
    fill(path / "orders-0")
    write_offsets(path, {("orders", 0): 42, ("payments", 0): 7})
    write_offsets(path, {("orders", 0): 40}, HIGH_WATERMARK_CHECKPOINT)
    (path.parent / "before").mkdir()
    before = path.parent / "before" / "orders-0"
    shutil.copytree(path / "orders-0", before)
    with LogDir.open(str(path)) as opened:
        placement = Placement.IN_PLACE if request.param == "in place" else None
        stage(opened, [candidate()], NOW_MS, placement=placement)
    return path


def root_of(log_dir: Path) -> Path:
    """The folder with the ledger of what is staged from a log dir."""
    roots = (log_dir / "deleting", Path(f"{log_dir}.deleting"), log_dir)
    return next(root for root in roots if (root / LEDGER_FILE).exists())


def events(log_dir: Path) -> list[LedgerEvent]:
    return list(ledger_events(root_of(log_dir)).values())


def test_what_comes_back_is_byte_for_byte_what_it_was(staged_in: Path) -> None:
    # KIP516-6
    with LogDir.open(str(staged_in)) as log_dir:
        (staged,) = list_staged(log_dir)
        back = restore(log_dir, staged)
        assert back == Restored(ORDERS, str(staged_in), "orders-0")
        assert list_staged(log_dir) == []
        assert events(staged_in) == [LedgerEvent.RESTORED]
    assert contents(staged_in / "orders-0") == contents(staged_in.parent / "before" / "orders-0")
    assert read_offsets(staged_in) == {("orders", 0): 42, ("payments", 0): 7}
    assert read_offsets(staged_in, HIGH_WATERMARK_CHECKPOINT) == {("orders", 0): 40}
    assert not (staged_in / UNCLEAN_FILE).exists()


def test_the_ledger_says_so_only_when_it_is_live_for_good_with_its_offsets(staged_in: Path) -> None:
    class Noted(Disk):
        def __init__(self) -> None:
            self.steps: list[str] = []

        def write(self, descriptor: int, data: bytes) -> None:
            self.steps += ["line"] * data.count(b'["restored"')
            super().write(descriptor, data)

        def sync(self, descriptor: int) -> None:
            super().sync(descriptor)
            self.steps.append(os.readlink(f"/proc/self/fd/{descriptor}"))

        def rename(self, source: int, name: str, target: int, new_name: str) -> None:
            self.steps.append(new_name)
            super().rename(source, name, target, new_name)

    disk = Noted()
    fill(staged_in / "orders-1")
    with LogDir.open(str(staged_in), disk=disk) as log_dir:
        staged = list_staged(log_dir)[0]
        # Opens the ledger, which syncs its folder too; a restore must not rely on that.
        stage(log_dir, [candidate("orders-1", TopicPartition("orders", 1))], NOW_MS, placement=staged.placement)
        disk.steps.clear()
        restore(log_dir, staged)
        restored = len(disk.steps)
    before = disk.steps[: disk.steps.index("line")]
    places = list(dict.fromkeys([str(staged_in), str(root_of(staged_in))]))
    assert before[before.index("orders-0") + 1 :][: len(places)] == places
    assert {"recovery-point-offset-checkpoint", HIGH_WATERMARK_CHECKPOINT} <= set(before)
    ledger = str(root_of(staged_in) / LEDGER_FILE)
    assert ledger not in disk.steps[len(before) : restored], "a sync of its own is not worth it"
    assert disk.steps[restored:].count(ledger) == 1, "one as the log dir is closed is"


@pytest.mark.parametrize(
    ("later", "may_come_back"),
    [
        ((LedgerEvent.PURGING,), False),
        ((LedgerEvent.PURGED,), False),
        ((LedgerEvent.PURGING, LedgerEvent.PURGED), False),
        ((LedgerEvent.PURGING, LedgerEvent.KEPT), True),
    ],
)
def test_what_a_purge_may_have_begun_never_comes_back_and_what_it_kept_does(
    staged_in: Path, later: tuple[LedgerEvent, ...], may_come_back: bool
) -> None:
    with LogDir.open(str(staged_in)) as log_dir:
        ((name, record),) = [(each.name, each.record) for each in list_staged(log_dir)]
    assert record is not None
    write_ledger(root_of(staged_in), {name: record}, *((event, name) for event in later))
    with LogDir.open(str(staged_in)) as log_dir:
        (staged,) = list_staged(log_dir)
        assert staged.may_be_partly_purged is not may_come_back
        if may_come_back:
            assert restore(log_dir, staged).partition == ORDERS
            return
        for partition in (None, ORDERS):
            with pytest.raises(ChangeRefusedError, match="it can only be purged"):
                restore(log_dir, staged, partition=partition)
    assert not (staged_in / "orders-0").exists()


def test_behind_a_damaged_line_it_comes_back_only_by_the_name_that_is_given(staged_in: Path) -> None:
    with LogDir.open(str(staged_in)) as log_dir:
        ((name, record),) = [(each.name, each.record) for each in list_staged(log_dir)]
    assert record is not None
    write_ledger(root_of(staged_in), {name: record}, (LedgerEvent.PURGING, name), (LedgerEvent.PURGED, "another"))
    file = root_of(staged_in) / LEDGER_FILE
    data = file.read_bytes().replace(b'["purging"', b'["pu3ging"')
    file.write_bytes(data + encode_mark(len(data)))
    with LogDir.open(str(staged_in)) as log_dir:
        (staged,) = list_staged(log_dir)
        assert staged.in_doubt
        with pytest.raises(ChangeRefusedError, match="cannot be read, which may have said that a purge had begun"):
            restore(log_dir, staged)
        assert restore(log_dir, staged, partition=ORDERS).path == "orders-0"


def test_it_may_go_and_come_as_often_as_one_likes(staged_in: Path) -> None:
    with LogDir.open(str(staged_in)) as log_dir:
        for _ in range(3):
            (staged,) = list_staged(log_dir)
            restore(log_dir, staged)
            stage(log_dir, [candidate()], NOW_MS)
        assert len(list_staged(log_dir)) == 1


def test_a_plan_says_what_a_restore_does_and_changes_nothing(staged_in: Path) -> None:
    with LogDir.open(str(staged_in)) as log_dir:
        (staged,) = list_staged(log_dir)
        before = picture(staged_in)
        planned = planned_restore(log_dir, staged)
        assert picture(staged_in) == before
        assert restore(log_dir, staged) == planned


@pytest.mark.parametrize("what", ["directory", "empty directory", "file", "link"])
def test_nothing_that_is_there_is_ever_overwritten(staged_in: Path, what: str) -> None:
    home = staged_in / "orders-0"
    if what == "directory":
        fill(home)
    elif what == "empty directory":
        home.mkdir()
    elif what == "file":
        home.write_text("x")
    else:
        home.symlink_to("nowhere")
    before = picture(staged_in.parent)
    with LogDir.open(str(staged_in)) as log_dir:
        (staged,) = list_staged(log_dir)
        with pytest.raises(NameTakenError, match="is there already"):
            restore(log_dir, staged)
    after = picture(staged_in.parent)
    del before[staged_in.name], after[staged_in.name]
    assert after == before


def test_the_offset_of_a_newer_replica_is_not_replaced(staged_in: Path) -> None:
    write_offsets(staged_in, {("orders", 0): 99})
    with LogDir.open(str(staged_in)) as log_dir:
        restore(log_dir, list_staged(log_dir)[0])
    assert read_offsets(staged_in) == {("orders", 0): 99}


def test_another_directory_under_the_same_name_is_not_restored(staged_in: Path) -> None:
    with LogDir.open(str(staged_in)) as log_dir:
        (staged,) = list_staged(log_dir)
        root = staged_in / "deleting" if log_dir.is_ours else Path(f"{staged_in}.deleting")
        root = staged_in if staged.placement is Placement.IN_PLACE else root
        (root / staged.name).rename(root / "elsewhere")
        with pytest.raises(ChangeRefusedError, match="list again"):
            restore(log_dir, staged)
        fill(root / staged.name)
        with pytest.raises(ChangeRefusedError, match="list again"):
            restore(log_dir, staged)
    assert not (staged_in / "orders-0").exists()


def test_a_staging_root_that_is_gone_is_reported(staged_in: Path) -> None:
    with LogDir.open(str(staged_in)) as log_dir:
        (staged,) = list_staged(log_dir)
        root = staged_in / "deleting" if log_dir.is_ours else Path(f"{staged_in}.deleting")
        if not root.exists():
            return
        root.rename(staged_in.parent / "elsewhere")
        with pytest.raises(ChangeRefusedError, match="is gone"):
            restore(log_dir, staged)


def test_another_partition_than_the_record_says_is_refused(staged_in: Path) -> None:
    with LogDir.open(str(staged_in)) as log_dir:
        (staged,) = list_staged(log_dir)
        with pytest.raises(ChangeRefusedError, match="is orders-0, and not payments-0"):
            restore(log_dir, staged, partition=TopicPartition("payments", 0))
        restore(log_dir, staged, partition=ORDERS)


@pytest.mark.parametrize("method", ["rename", "sync"])
def test_what_the_system_refuses_leaves_it_staged(staged_in: Path, method: str) -> None:
    disk = DiskThat(errno.EACCES)
    with LogDir.open(str(staged_in), disk=disk) as log_dir:
        with log_dir.changing("the mark"):
            pass
        (staged,) = list_staged(log_dir)
        disk.fails = {method}
        with pytest.raises(ChangeFailedError, match="nothing was changed"):
            restore(log_dir, staged)
        disk.fails = set()
        assert list_staged(log_dir) == [staged]
        restore(log_dir, staged)


@pytest.mark.parametrize("method", ["rename", "sync"])
def test_a_disk_that_fails_goes_offline_and_the_replica_is_there_once(staged_in: Path, method: str) -> None:
    disk = DiskThat(errno.EIO)
    with LogDir.open(str(staged_in), disk=disk) as log_dir:
        with log_dir.changing("the mark"):
            pass
        (staged,) = list_staged(log_dir)
        disk.fails = {method}
        with pytest.raises(OfflineLogDirError):
            restore(log_dir, staged)
    with LogDir.open(str(staged_in)) as log_dir:
        assert (len(list_staged(log_dir)), (staged_in / "orders-0").exists()) in ((1, False), (0, True))
        assert log_dir.was_unclean


class NothingRestored(Disk):
    """Refuses to write that something is restored."""

    number = errno.EACCES

    def write(self, descriptor: int, data: bytes) -> None:
        if b'["restored"' in data:
            raise OSError(self.number, os.strerror(self.number))
        super().write(descriptor, data)


def test_a_ledger_that_cannot_say_so_leaves_a_live_replica_and_work_for_the_next_open(
    staged_in: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with LogDir.open(str(staged_in), disk=NothingRestored()) as log_dir:
        (staged,) = list_staged(log_dir)
        assert restore(log_dir, staged).partition == ORDERS
        assert list_staged(log_dir) == []
    assert f"{staged.location} is live again, and {LEDGER_FILE} cannot say so" in caplog.text
    assert events(staged_in) == [LedgerEvent.STAGED]
    assert (staged_in / UNCLEAN_FILE).exists()
    write_offsets(staged_in, {("orders", 0): 50})
    with LogDir.open(str(staged_in)) as log_dir:
        assert recover(log_dir) == ["orders-0 was about to be staged or restored, and is live"]
    assert events(staged_in) == [LedgerEvent.RESTORED]
    assert read_offsets(staged_in) == {("orders", 0): 50}, "an offset that a broker has written since is newer"


def test_a_disk_that_fails_at_that_line_takes_the_log_dir_offline(staged_in: Path) -> None:
    disk = NothingRestored()
    disk.number = errno.EIO
    with LogDir.open(str(staged_in), disk=disk) as log_dir, pytest.raises(OfflineLogDirError):
        restore(log_dir, list_staged(log_dir)[0])
    assert (staged_in / "orders-0").is_dir()


def test_beside_a_ledger_of_a_later_release_it_comes_back_by_the_name_that_is_given(our_log_dir: Path) -> None:
    fill(our_log_dir / "deleting" / f"{ORDERS_ID}_0")
    text = b'["logstore-ledger",2]'
    (our_log_dir / "deleting" / LEDGER_FILE).write_bytes(b"%08x %b\n" % (crc32(text), text))
    before = (our_log_dir / "deleting" / LEDGER_FILE).read_bytes()
    with LogDir.open(str(our_log_dir)) as log_dir:
        (staged,) = list_staged(log_dir)
        with pytest.raises(DamagedRecordError, match="this release reads schema version 1 only"):
            restore(log_dir, staged)
        assert restore(log_dir, staged, partition=ORDERS).path == "orders-0"
    assert (our_log_dir / "deleting" / LEDGER_FILE).read_bytes() == before


def test_on_a_full_disk_it_comes_back_and_the_checkpoints_follow_later(
    staged_in: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = full_disk()
    with LogDir.open(str(staged_in), disk=disk) as log_dir:
        restore(log_dir, list_staged(log_dir)[0])
        assert "cannot be written" in caplog.text
        assert events(staged_in) == [LedgerEvent.STAGED], "a crash must not lose the offsets"
        disk.fails = set()
        log_dir.checkpoints.write(disk)
    assert read_offsets(staged_in)[("orders", 0)] == 42


# Records outside


def test_a_replica_whose_record_found_no_room_comes_back_and_the_record_is_forgotten(
    our_log_dir: Path, tmp_path: Path
) -> None:
    fill(our_log_dir / "orders-0")
    before = contents(our_log_dir / "orders-0")
    (tmp_path / "spare").mkdir()
    fallback = FallbackRecords(str(tmp_path / "spare"))
    with LogDir.open(str(our_log_dir), disk=full_disk()) as log_dir:
        stage(log_dir, [candidate()], NOW_MS, fallback=fallback)
        (staged,) = list_staged(log_dir, fallback)
        restore(log_dir, staged, fallback=fallback)
        assert fallback.read(log_dir.path) is None
    assert list((tmp_path / "spare").rglob(LEDGER_FILE)) == []
    assert contents(our_log_dir / "orders-0") == before


def test_a_folder_for_spare_records_that_is_no_use_is_no_failure_of_the_restore(
    staged_in: Path, tmp_path: Path
) -> None:
    (tmp_path / "spare").write_text("no directory")
    with LogDir.open(str(staged_in)) as log_dir:
        (staged,) = list_staged(log_dir)
        assert restore(log_dir, staged, fallback=FallbackRecords(str(tmp_path / "spare"))).partition == ORDERS


# Strays that a broker left


def stray(log_dir: Any, name: str) -> Path:
    found: Path = log_dir.replica(f"{name}.{UNIQUE}-stray")
    return found


def test_a_stray_is_adopted_by_its_name(log_dir: Any) -> None:
    stray(log_dir, "orders-0")
    with LogDir.open(str(log_dir)) as opened:
        (found,) = list_staged(opened)
        assert restore(opened, found).partition == ORDERS
        assert list_staged(opened) == []
    assert (log_dir.path / "orders-0" / "partition.metadata").exists()


def test_a_stray_whose_name_may_be_cut_is_adopted_only_by_the_name_that_is_given(log_dir: Any) -> None:
    # FACTS §1.2
    topic = "o" * 249
    cut = topic[: 255 - len(f"-0.{UNIQUE}-stray")]
    stray(log_dir, f"{cut}-0")
    with LogDir.open(str(log_dir)) as opened:
        (found,) = list_staged(opened)
        with pytest.raises(DamagedRecordError, match="name the topic and partition"):
            restore(opened, found)
        assert restore(opened, found, partition=TopicPartition(topic, 0)).path == f"{topic}-0"


def test_a_cut_name_does_not_take_any_name_that_is_given(log_dir: Any) -> None:
    cut = ("o" * 249)[: 255 - len(f"-7.{UNIQUE}-stray")]
    stray(log_dir, f"{cut}-7")
    with LogDir.open(str(log_dir)) as opened:
        (found,) = list_staged(opened)
        for wrong in (TopicPartition("o" * 249, 8), TopicPartition("payments", 7), TopicPartition("o" * 200, 7)):
            with pytest.raises(ChangeRefusedError):
                restore(opened, found, partition=wrong)


def test_a_stray_is_not_adopted_as_something_else(log_dir: Any) -> None:
    stray(log_dir, "orders-0")
    with (
        LogDir.open(str(log_dir)) as opened,
        pytest.raises(ChangeRefusedError, match="is orders-0, and not orders-1"),
    ):
        restore(opened, list_staged(opened)[0], partition=TopicPartition("orders", 1))


@pytest.mark.parametrize("partition", [TopicPartition("../x", 0), TopicPartition("a/b", 0), TopicPartition("", 0)])
def test_a_name_that_leads_elsewhere_is_refused(log_dir: Any, partition: TopicPartition) -> None:
    cut = ("o" * 249)[: 255 - len(f"-0.{UNIQUE}-stray")]
    stray(log_dir, f"{cut}-0")
    before = picture(log_dir.path.parent)
    with LogDir.open(str(log_dir)) as opened, pytest.raises(LogStoreError):
        restore(opened, list_staged(opened)[0], partition=partition)
    assert picture(log_dir.path.parent).keys() == before.keys()


def test_a_staged_directory_whose_line_is_damaged_comes_back_under_a_name_that_fits_it(our_log_dir: Path) -> None:
    fill(our_log_dir / "deleting" / f"{ORDERS_ID}_0")
    (our_log_dir / "deleting" / LEDGER_FILE).write_bytes(b"damaged\n")
    with LogDir.open(str(our_log_dir)) as opened:
        (found,) = list_staged(opened)
        with pytest.raises(DamagedRecordError, match="name the topic and partition"):
            restore(opened, found)
        with pytest.raises(ChangeRefusedError, match="partition 0"):
            restore(opened, found, partition=TopicPartition("orders", 5))
        assert restore(opened, found, partition=ORDERS).path == "orders-0"
    assert (our_log_dir / "orders-0" / "partition.metadata").exists()


@pytest.mark.parametrize("scheme", ["namespaced", "by-topic-id"])
def test_replicas_of_the_other_schemes_go_back_to_where_they_lay(tmp_path: Path, scheme: str) -> None:
    # KIP37-2, KIP516-12
    path = formatted(tmp_path / "ours", scheme=scheme)
    where = "org/apache/orders-0" if scheme == "namespaced" else f"{ORDERS_ID.hex[:2]}/{ORDERS_ID.hex}_0"
    partition = TopicPartition("org:apache:orders", 0) if scheme == "namespaced" else ORDERS
    fill(path / where)
    if scheme == "namespaced":
        for tier in ("org", "org/apache"):
            (path / tier / MARKER_FILE).touch()
    before = contents(path / where)
    with LogDir.open(str(path)) as log_dir:
        stage(log_dir, [candidate(where, partition)], NOW_MS)
        if scheme == "by-topic-id":
            (path / where).parent.rmdir()
        assert restore(log_dir, list_staged(log_dir)[0]).path == where
    assert contents(path / where) == before


def test_a_namespace_that_was_deleted_is_asked_for(tmp_path: Path) -> None:
    path = formatted(tmp_path / "ours", scheme="namespaced")
    fill(path / "org" / "orders-0")
    with LogDir.open(str(path)) as log_dir:
        stage(log_dir, [candidate("org/orders-0", TopicPartition("org:orders", 0))], NOW_MS)
        (path / "org").rmdir()
        with pytest.raises(InvalidNamespaceError, match="its namespace org was deleted; create it first"):
            restore(log_dir, list_staged(log_dir)[0])


def test_a_line_in_the_ledger_is_what_makes_it_staged_in_place(log_dir: Any) -> None:
    fill(log_dir.path / "orders-0")
    with LogDir.open(str(log_dir)) as opened:
        stage(opened, [candidate()], NOW_MS, placement=Placement.IN_PLACE)
        (found,) = list_staged(opened)
        assert found.record == ledger_entries(log_dir.path)[found.name].record
    (log_dir.path / LEDGER_FILE).unlink()
    with LogDir.open(str(log_dir)) as opened:
        (found,) = list_staged(opened)
        assert (found.record, found.problem) == (None, BROKERS_STRAY)


def test_no_descriptor_is_left_behind(staged_in: Path) -> None:
    before = open_descriptors()
    disk = DiskThat(errno.EACCES)
    with LogDir.open(str(staged_in), disk=disk) as log_dir:
        (staged,) = list_staged(log_dir)
        disk.fails = {"rename"}
        with pytest.raises(ChangeFailedError):
            restore(log_dir, staged)
        disk.fails = set()
        restore(log_dir, staged)
        with pytest.raises(LogStoreError):
            restore(log_dir, staged)
    assert open_descriptors() == before
