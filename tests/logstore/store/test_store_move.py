"""Moving a replica between the disks of one broker. KIP516-3."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from layout import checkpoint
from layout.ours import MOVE_RECORD
from layout.topic import TopicPartition
from logstore import ChangeFailedError, ChangeRefusedError, LogStoreError, NameTakenError, OfflineLogDirError
from logstore.fs import Directory, Disk
from logstore.store import LogStore
from tests.logstore.engine import (
    NOW_MS,
    ORDERS,
    ORDERS_ID,
    DiskThat,
    contents,
    fill,
    formatted,
    identity,
    open_descriptors,
    opened,
    read_offsets,
    write_offsets,
)

TO_SECOND = identity(2).directory_id
METHODS = ("create", "write", "sync", "mkdir", "rename", "unlink")


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    """Two log dirs of one broker, and ``orders-0`` with its offsets in the first."""
    first, second = formatted(tmp_path / "1", 1), formatted(tmp_path / "2", 2)
    fill(first / "orders-0")
    write_offsets(first, {("orders", 0): 7, ("other", 1): 8})
    write_offsets(first, {("orders", 0): 3}, checkpoint.LOG_START_CHECKPOINT)
    return first, second


def moved(store: LogStore) -> None:
    assert TO_SECOND is not None
    store.move(ORDERS, TO_SECOND)


def live_copies(*disks: Path) -> list[Path]:
    return [disk / "orders-0" for disk in disks if (disk / "orders-0").exists()]


def test_a_replica_goes_to_the_other_disk_with_its_files_its_id_and_its_offsets(disks: tuple[Path, Path]) -> None:
    first, second = disks
    before = contents(first / "orders-0")
    with opened(*disks) as store:
        moved(store)
        assert store.get(ORDERS).log_dir == str(second)
        assert store.get(ORDERS).topic_id == ORDERS_ID
    assert contents(second / "orders-0") == before
    assert live_copies(*disks) == [second / "orders-0"]
    assert read_offsets(second) == {("orders", 0): 7}
    assert read_offsets(second, checkpoint.LOG_START_CHECKPOINT) == {("orders", 0): 3}
    assert read_offsets(first) == {("other", 1): 8}


def test_the_copy_with_its_record_is_durable_before_it_has_the_name_of_a_whole_one(disks: tuple[Path, Path]) -> None:
    second, disk = disks[1], DiskThat()
    with opened(*disks, disk=disk) as store:
        moved(store)
        copied = [Path(each) for each in disk.synced if each.startswith(f"{second}/orders-0.") and "-delete" in each]
    names = {file.name for file in (second / "orders-0").iterdir()}
    assert {each.name for each in copied} >= names | {MOVE_RECORD}
    assert copied[-1].name.endswith("-delete"), "with its entries"


def test_a_copy_is_a_draft_again_before_anything_of_it_is_removed(disks: tuple[Path, Path]) -> None:
    """Under the name of a whole one a crash could leave a part of it, which would be taken for all."""

    class Refusing(DiskThat):
        def unlink(self, parent: int, name: str) -> None:
            places.append(Path(os.readlink(f"/proc/self/fd/{parent}"), name))
            super().unlink(parent, name)

    places, refusing = list[Path](), Refusing(errno.EACCES, {"rename"}, below=disks[0])
    with opened(*disks, disk=refusing) as store, pytest.raises(ChangeFailedError):
        moved(store)
    removed = {each.name: each.parent.name for each in places if "orders-0." in each.parent.name}
    assert MOVE_RECORD in removed
    assert all(parent.endswith("-delete") for parent in removed.values())


def test_the_record_stays_until_the_live_name_is_durable_also_where_the_next_open_sees_to_that(tmp_path: Path) -> None:
    """A crash that takes the name back would leave a copy of which nobody knows what it is."""
    disks = formatted(tmp_path / "1", 1, scheme="by-topic-id"), formatted(tmp_path / "2", 2, scheme="by-topic-id")

    class Noting(DiskThat):
        def rename(self, source: int, name: str, target: int, new_name: str) -> None:
            super().rename(source, name, target, new_name)
            if name.endswith("-future"):
                self.fails = {"sync"}

        def unlink(self, parent: int, name: str) -> None:
            synced_before[name] = list(self.synced)
            super().unlink(parent, name)

    synced_before: dict[str, list[str]] = {}
    with opened(*disks, disk=Noting(errno.ENOSPC, below=disks[1])) as store:
        store.create(ORDERS, ORDERS_ID, directory_id=store.log_dirs[0].identity.directory_id)
        moved(store)
        live = disks[1] / store.get(ORDERS).path
    assert MOVE_RECORD not in synced_before
    assert (live / MOVE_RECORD).exists()
    opened(*disks, disk=Noting()).close()
    assert str(live.parent) in synced_before[MOVE_RECORD]
    assert sorted(path.name for path in live.iterdir()) == ["partition.metadata"]


def test_the_original_waits_for_the_delay_of_deletions_and_can_come_back(disks: tuple[Path, Path]) -> None:
    first = disks[0]
    before = contents(first / "orders-0")
    with opened(*disks) as store:
        moved(store)
        (original,) = store.staged()
        assert original.record is not None
        assert (original.record.verdict, original.due_ms) == ("MOVED", NOW_MS + 60_000)
        with pytest.raises(NameTakenError, match="stage that one first"):
            store.restore(original)
        store.stage([ORDERS], "STALE_ID", "the move was a mistake")
        store.restore(original)
        assert store.get(ORDERS).log_dir == str(first)
    assert contents(first / "orders-0") == before
    assert live_copies(*disks) == [first / "orders-0"]


def test_a_move_to_where_it_lies_does_nothing(disks: tuple[Path, Path]) -> None:
    directory_id = identity(1).directory_id
    assert directory_id is not None
    with opened(*disks) as store:
        assert store.move(ORDERS, directory_id).log_dir == str(disks[0])
        assert store.staged() == []


def test_what_is_there_already_is_never_overwritten(disks: tuple[Path, Path]) -> None:
    with opened(*disks) as store:
        (disks[1] / "orders-0").mkdir()
        with pytest.raises(NameTakenError):
            moved(store)
    assert (disks[0] / "orders-0" / "partition.metadata").exists()


def test_a_name_that_is_too_long_for_a_future_replica_is_refused_with_the_numbers(disks: tuple[Path, Path]) -> None:
    topic = TopicPartition("t" * 214, 0)
    with opened(*disks) as store:
        held = store.create(topic, ORDERS_ID).log_dir
        other = next(log_dir for log_dir in store.log_dirs if log_dir.path != held)
        assert other.identity.directory_id is not None
        with pytest.raises(ChangeRefusedError, match="256 characters"):
            store.move(topic, other.identity.directory_id)
        assert store.get(topic).log_dir == held


def test_a_copy_that_has_no_room_is_refused_before_anything_is_written(disks: tuple[Path, Path], monkeypatch) -> None:
    real = os.fstatvfs

    def full(descriptor: int) -> os.statvfs_result:
        numbers = list(real(descriptor))
        numbers[4] = 0
        return os.statvfs_result(numbers)

    monkeypatch.setattr("logstore.store.move.os.fstatvfs", full)
    before = contents(disks[1])
    with opened(*disks) as store, pytest.raises(ChangeRefusedError, match="make room"):
        moved(store)
    assert contents(disks[1]) == before


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_whatever_fails_leaves_the_replica_live_on_exactly_one_disk(tmp_path: Path, method: str, number: int) -> None:
    for after in range(40):
        disks = formatted(tmp_path / f"{after}-1", 1), formatted(tmp_path / f"{after}-2", 2)
        files = contents(fill(disks[0] / "orders-0"))
        disk = DiskThat(number)
        descriptors = open_descriptors()
        store = opened(*disks, disk=disk)
        disk.fails, disk.after = {method}, after
        try:
            moved(store)
            undone = False
        except ChangeFailedError:
            undone = True
        except OfflineLogDirError:
            undone = False  # the disk refuses even to undo
        failed_at_all = not disk.after
        disk.fails = set()
        with suppress(OfflineLogDirError):  # it is on the disk that failed
            found = store.get(ORDERS)
            assert live_copies(*disks) == [Path(found.log_dir, found.path)], "and the store knows on which"
        if undone:
            assert live_copies(*disks) == [disks[0] / "orders-0"]
            left = [path.name for path in disks[1].glob("orders*")]
            assert all(name.endswith(("-future", "-delete")) for name in left), "what cannot be removed, at most"
        store.close()
        assert open_descriptors() == descriptors
        with opened(*disks) as again:
            assert again.find(ORDERS) is not None
        (live,) = live_copies(*disks)
        assert contents(live) == files
        assert not list(disks[1].glob("*-future")) + list(disks[1].glob("*-delete"))
        if not failed_at_all:
            return
    pytest.fail("the history never came to its end")


class CutShort(Disk):
    """Ends the process, as it were, before a rename to a name that ends in a certain way."""

    def __init__(self, ending: str) -> None:
        self.ending = ending

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        if new_name.endswith(self.ending):
            raise KeyboardInterrupt
        super().rename(source, name, target, new_name)


def crash(disks: tuple[Path, Path], ending: str) -> None:
    store = opened(*disks, disk=CutShort(ending))
    with pytest.raises(KeyboardInterrupt):
        moved(store)
    for log_dir in store.log_dirs:
        log_dir.abandon()


def test_a_crash_after_the_original_was_staged_is_finished_at_the_next_open(disks: tuple[Path, Path]) -> None:
    before = contents(disks[0] / "orders-0")
    crash(disks, "orders-0")
    assert live_copies(*disks) == []
    with opened(*disks) as store:
        assert store.get(ORDERS).log_dir == str(disks[1])
    assert contents(disks[1] / "orders-0") == before
    assert read_offsets(disks[1]) == {("orders", 0): 7}


def test_while_the_other_disk_is_missing_a_copy_waits(disks: tuple[Path, Path]) -> None:
    crash(disks, "orders-0")
    with opened(disks[1]) as store:
        assert store.find(ORDERS) is None
    with opened(*disks) as store:
        assert store.get(ORDERS).log_dir == str(disks[1])


def test_while_the_other_disk_fails_a_copy_waits(disks: tuple[Path, Path]) -> None:
    crash(disks, "orders-0")
    with opened(*disks, disk=DiskThat(errno.EIO, {"sync"}, below=disks[0])) as store:
        assert list(store.offline) == [str(disks[0])]
    assert live_copies(*disks) == []
    with opened(*disks) as store:
        assert store.get(ORDERS).log_dir == str(disks[1])


@pytest.mark.parametrize("ending", ["_0", "orders-0"], ids=["dropped", "finished"])
def test_a_disk_that_fails_while_a_move_is_ended_is_offline_and_the_others_are_open(
    disks: tuple[Path, Path], ending: str
) -> None:
    crash(disks, ending)
    with opened(*disks, disk=DiskThat(errno.EIO, {"rename"}, below=disks[1])) as store:
        assert list(store.offline) == [str(disks[1])]
        assert (store.find(ORDERS) is None) is (ending == "orders-0")
    with opened(*disks) as store:
        assert store.get(ORDERS).log_dir == str(disks[ending == "orders-0"])
        assert not store.duplicates
    assert [each.name for each in disks[1].iterdir() if each.name.endswith(("-future", "-delete"))] == []


def test_a_copy_waits_where_the_disk_of_its_original_does_not_say_whether_that_is_live(
    disks: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash(disks, "orders-0")
    holds_below = Directory.holds_below

    def fails(self: Directory, path: str) -> bool:
        if self.path == str(disks[0]):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return holds_below(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(Directory, "holds_below", fails)
        with opened(*disks) as store:
            assert list(store.offline) == [str(disks[0])]
    assert live_copies(*disks) == []
    with opened(*disks) as store:
        assert store.get(ORDERS).log_dir == str(disks[1])


def test_a_future_directory_that_a_broker_left_is_not_touched(disks: tuple[Path, Path]) -> None:
    crash(disks, "orders-0")
    theirs = fill(disks[1] / f"clicks-0.{'0' * 32}-future")
    with opened(*disks):
        pass
    assert theirs.is_dir()


def test_a_real_brokers_log_dir_and_one_of_ours_do_not_mix(tmp_path: Path, new_log_dir) -> None:
    ours, theirs = formatted(tmp_path / "1", 1), tmp_path / "2"
    new_log_dir(theirs).identity(1, directory_id=str(TO_SECOND))
    fill(ours / "orders-0")
    with opened(ours, theirs) as store, pytest.raises(LogStoreError, match="real broker"):
        moved(store)
