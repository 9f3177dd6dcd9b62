"""A machine's disks under a real store: what a crash, a failure, a full disk and a replacement leave of it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from random import Random

import pytest

from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import ChangeFailedError, NotALogDirError, OfflineLogDirError, UnknownReplicaError
from logstore.clock import ManualClock
from logstore.fs import Directory
from logstore.fs.crash_disk import DiskVersion, MachineDisks
from logstore.log_dir import LogDir
from logstore.store import LogStore, StoreOptions
from tests.crash.by_path import ByPath
from tests.crash.images import read_tree
from tests.reconciler.simulator.machine.disk_folders import Fresh

staging = import_module("logstore.staging.run")

ORDERS_ID = TopicId.parse("UXyU9i5ARn6W00ON2taeWA")


def orders(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def formatted(root: str, count: int) -> MachineDisks:
    disks = MachineDisks(root, count)
    for number in range(count):
        format_disk(disks, number)
    return disks


def format_disk(disks: MachineDisks, number: int) -> None:
    own_id = DirectoryId.from_halves(1, 1000 + disks.serial(number))
    LogDir.format(disks.log_dirs[number], MetaProperties(1, "C", 1, own_id, Scheme.FLAT), disk=disks.disk).close()


def opened(disks: MachineDisks) -> LogStore:
    return LogStore.open(disks.log_dirs, StoreOptions(clock=ManualClock(), disk=disks.disk, jobs=0))


def abandon(store: LogStore) -> None:
    for log_dir in store.log_dirs:
        log_dir.abandon()


def names(store: LogStore) -> list[str]:
    return sorted(str(replica.partition) for replica in store.replicas())


class Stopped(BaseException):
    """The power is gone."""


class Power:
    """Lasts for so many more changes."""

    left = 10_000

    def passes(self) -> None:
        if self.left <= 0:
            raise Stopped
        self.left -= 1


@pytest.fixture
def disks(fresh: Fresh) -> Iterator[MachineDisks]:
    made = formatted(fresh(), 2)
    yield made
    made.close()


def test_new_disks_are_empty_until_somebody_formats_them(fresh: Fresh) -> None:
    disks = MachineDisks(fresh(), 2)
    assert [disks.is_empty(number) for number in (0, 1)] == [True, True]
    format_disk(disks, 1)
    assert [disks.is_empty(number) for number in (0, 1)] == [True, False]
    assert disks.online == [0, 1]
    disks.close()


def test_the_folder_is_made_with_its_parents(fresh: Fresh) -> None:
    disks = MachineDisks(f"{fresh()}/runs/1/broker-1", 1)
    format_disk(disks, 0)
    opened(disks).close()
    disks.close()


def test_what_the_engine_said_it_had_done_outlives_every_crash(fresh: Fresh) -> None:
    for seed in range(25):
        disks = formatted(fresh(), 2)
        store = opened(disks)
        for number in range(4):
            store.create(orders(number), ORDERS_ID)
        store.stage([orders(0)], "STALE_ID", "another ID")
        abandon(store)
        disks.crash(Random(seed))
        with opened(disks) as store:
            assert names(store) == ["orders-1", "orders-2", "orders-3"]
            assert [str(staged.partition) for staged in store.staged()] == ["orders-0"]
        disks.close()


def test_replicas_that_are_staged_batch_by_batch_survive_a_crash(fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "STAGING_BATCH_SIZE", 5)
    disks = formatted(fresh(), 1)
    store = opened(disks)
    store.create_many({orders(number): ORDERS_ID for number in range(12)})
    assert len(store.stage([orders(number) for number in range(12)], "STALE_ID", "a test").staged) == 12
    abandon(store)
    disks.crash(Random(1))
    with opened(disks) as store:
        assert len(store.staged()) == 12
    disks.close()


def test_a_power_cut_at_any_change_of_the_engine_leaves_a_store_that_opens(fresh: Fresh) -> None:
    for steps in range(1000):
        power = Power()
        disks = MachineDisks(fresh(), 2, power.passes)
        for number in (0, 1):
            format_disk(disks, number)
        store, finished = opened(disks), False
        power.left = steps
        with suppress(Stopped):
            store.create_many({orders(number): ORDERS_ID for number in range(3)})
            store.stage([orders(1)], "STALE_ID", "another ID")
            finished = True
        abandon(store)
        disks.crash(Random(steps))
        power.left = 10_000
        with opened(disks) as store:
            there = {*names(store), *(str(staged.partition) for staged in store.staged())}
            assert there <= {"orders-0", "orders-1", "orders-2"}
            assert not finished or len(there) == 3
        disks.close()
        if finished:
            break
    assert 20 <= steps < 999


@pytest.mark.parametrize("cut", range(3, 8))
def test_a_power_cut_at_any_change_of_a_recovery_leaves_a_store_that_opens_and_no_lock(cut: int, fresh: Fresh) -> None:
    for steps in range(100):
        power = Power()
        disks = MachineDisks(fresh(), 2, power.passes)
        for number in (0, 1):
            format_disk(disks, number)
        store = opened(disks)
        store.create_many({orders(number): ORDERS_ID for number in range(3)})
        power.left = cut
        with suppress(Stopped):
            store.stage([orders(1)], "STALE_ID", "another ID")
        abandon(store)
        disks.crash(Random(cut))
        power.left = steps
        recovered = False
        with suppress(Stopped):
            abandon(opened(disks))
            recovered = True
        disks.crash(Random(steps))
        power.left = 10_000
        with opened(disks) as store:
            assert len([*names(store), *store.staged()]) == 3
        disks.close()
        if recovered:
            break
    assert steps < 99


def test_a_disk_that_fails_goes_offline_and_the_others_go_on(disks: MachineDisks) -> None:
    with opened(disks) as store:
        for number in range(2):
            store.create(orders(number), ORDERS_ID)
        on_first = next(each for each in store.replicas() if each.log_dir == disks.log_dirs[0])
        disks.fail(0, Random(1))
        assert (disks.offline, disks.online) == ([0], [1])
        with pytest.raises(OfflineLogDirError):
            store.stage([on_first.partition], "STALE_ID", "it fails")
        assert list(store.offline) == [disks.log_dirs[0]]
        assert store.create(orders(7), ORDERS_ID).log_dir == disks.log_dirs[1]


def test_a_store_opens_with_a_disk_that_failed_offline(disks: MachineDisks) -> None:
    disks.fail(0, Random(1))
    with opened(disks) as store:
        assert list(store.offline) == [disks.log_dirs[0]]
        assert "Input/output error" in store.offline[disks.log_dirs[0]]


def test_a_store_that_looks_again_takes_no_failed_disk_for_empty(disks: MachineDisks) -> None:
    with opened(disks) as store:
        for number in range(2):
            store.create(orders(number), ORDERS_ID)
        disks.fail(0, Random(1))
        store.reload()
        assert list(store.offline) == [disks.log_dirs[0]]
        assert names(store) == ["orders-0", "orders-1"]


def test_what_was_opened_before_a_disk_failed_stays_dead_when_it_is_back(disks: MachineDisks) -> None:
    with opened(disks) as store:
        replica = store.create(orders(0), ORDERS_ID)
        number = disks.log_dirs.index(replica.log_dir)
        disks.fail(number, Random(1))
        disks.come_back(number)
        assert disks.online == [0, 1]
        with pytest.raises(OfflineLogDirError):
            store.stage([orders(0)], "STALE_ID", "through a descriptor of before")
    with opened(disks) as store:
        assert names(store) == ["orders-0"]
        store.stage([orders(0)], "STALE_ID", "through a new one")


def test_a_disk_that_is_back_has_lost_at_most_what_was_not_synced(fresh: Fresh) -> None:
    found = set()
    for seed in range(20):
        disks = formatted(fresh(), 1)
        disk = ByPath(disks.disk, disks.log_dirs[0])
        disk.create("synced", b"x")
        disk.barrier()
        disk.create("not-synced", b"y")
        disks.fail(0, Random(seed))
        disks.come_back(0)
        tree = read_tree(disks.log_dirs[0])
        assert tree["synced"] == b"x"
        found.add("not-synced" in tree)
        disks.close()
    assert found == {True, False}


def test_a_disk_fails_in_the_middle_of_a_change(fresh: Fresh) -> None:
    failed = 0
    for changes in range(12):
        disks = formatted(fresh(), 1)
        with opened(disks) as store:
            store.create(orders(0), ORDERS_ID)
            disks.fail_after(0, changes, Random(changes))
            try:
                store.stage([orders(0)], "STALE_ID", "it fails on the way")
            except OfflineLogDirError:
                failed += 1
                assert disks.offline == [0]
        disks.come_back(0)
        with opened(disks) as store:
            staged = [str(each.partition) for each in store.staged()]
            assert sorted([*names(store), *staged]) == ["orders-0"]
        disks.close()
    assert failed >= 5


def test_on_a_full_disk_nothing_new_fits_and_what_is_there_stays(disks: MachineDisks) -> None:
    with opened(disks) as store:
        store.create(orders(0), ORDERS_ID)
        for number in (0, 1):
            disks.fill(number)
        assert disks.full == [0, 1]
        with pytest.raises(ChangeFailedError, match="No space left"):
            store.create(orders(1), ORDERS_ID)
        assert store.offline == {}
        for number in (0, 1):
            disks.make_room(number)
        store.create(orders(1), ORDERS_ID)
        assert names(store) == ["orders-0", "orders-1"]


def test_a_write_to_a_full_disk_is_cut_short(fresh: Fresh) -> None:
    disks = MachineDisks(fresh(), 1)
    disk = ByPath(disks.disk, f"{disks.root}/disk-1")
    disk.create("f", b"old")
    disks.fill(0)
    with pytest.raises(OSError) as caught:
        disk.overwrite("f", b"ABCDEF")
    assert caught.value.errno == errno.ENOSPC
    assert read_tree(f"{disks.root}/disk-1") == {"f": b"ABC"}
    disks.close()


def test_a_disk_that_is_replaced_is_empty_and_another_one(disks: MachineDisks) -> None:
    with opened(disks) as store:
        replica = store.create(orders(0), ORDERS_ID)
    number, serials = disks.log_dirs.index(replica.log_dir), [disks.serial(0), disks.serial(1)]
    disks.replace(number)
    assert disks.is_empty(number)
    assert disks.serial(number) not in serials
    with pytest.raises(NotALogDirError):
        opened(disks)
    format_disk(disks, number)
    with opened(disks) as store:
        assert names(store) == []
    assert sorted(os.listdir(f"{disks.root}/.unlinked")) == sorted(str(disks.serial(each)) for each in (0, 1))


def test_a_failed_disk_that_is_replaced_never_comes_back(disks: MachineDisks) -> None:
    disks.fail(0, Random(1))
    disks.replace(0)
    assert (disks.offline, disks.is_empty(0)) == ([], True)
    disks.come_back(0)
    assert disks.is_empty(0)
    assert os.listdir(f"{disks.root}/.offline") == []


def test_disks_that_change_places_take_their_replicas_along(disks: MachineDisks) -> None:
    with opened(disks) as store:
        for number in range(4):
            store.create(orders(number), ORDERS_ID)
        before = {replica.partition: replica.log_dir for replica in store.replicas()}
        ids = [log_dir.directory_id for log_dir in store.log_dirs]
    disks.swap(0, 1)
    with opened(disks) as store:
        after = {replica.partition: replica.log_dir for replica in store.replicas()}
        assert [log_dir.directory_id for log_dir in store.log_dirs] == ids[::-1]
        store.stage([orders(0)], "STALE_ID", "it can be changed where it is now")
    first, second = disks.log_dirs
    assert after == {each: second if path == first else first for each, path in before.items()}
    for seed in range(3):
        disks.crash(Random(seed))
    with opened(disks) as store:
        assert names(store) == ["orders-1", "orders-2", "orders-3"]


def test_whoever_reads_by_himself_asks_first(disks: MachineDisks) -> None:
    disks.check(f"{disks.log_dirs[0]}/orders-0")
    disks.fail(0, Random(1))
    with pytest.raises(OSError) as caught:
        disks.check(f"{disks.log_dirs[0]}/orders-0")
    assert caught.value.errno == errno.EIO
    disks.check(disks.log_dirs[1])
    disks.come_back(0)
    disks.check(disks.log_dirs[0])


def test_ruins_are_readable_for_who_has_them_open_until_the_machine_stops(disks: MachineDisks) -> None:
    with opened(disks) as store:
        replica = store.create(orders(0), ORDERS_ID)
        number = disks.log_dirs.index(replica.log_dir)
        disks.fail(number, Random(1))
        root = next(each.root for each in store.log_dirs if each.path == replica.log_dir)
        assert root.holds(replica.path)
        abandon(store)
    disks.crash(Random(2))
    assert os.listdir(f"{disks.root}/.ruins") == []


def test_a_crash_says_how_many_disks_may_have_lost_something(disks: MachineDisks) -> None:
    disks.crash(Random(1))
    assert disks.crash(Random(2)) == 0
    with Directory.open(disks.log_dirs[0]) as log_dir:
        os.close(disks.disk.create(log_dir.descriptor, "unsynced"))
    assert disks.crash(Random(3)) == 1


def test_the_store_knows_nothing_of_a_directory_id_whose_disk_was_replaced(disks: MachineDisks) -> None:
    with opened(disks) as store:
        old = store.log_dirs[0].identity.directory_id
    assert old is not None
    disks.replace(0)
    format_disk(disks, 0)
    with opened(disks) as store, pytest.raises(UnknownReplicaError):
        store.log_dir_of(old)


def test_one_seed_leaves_the_same_bytes_in_every_process_whatever_its_hash_seed() -> None:
    def history_of(hash_seed: str) -> list[str]:
        run = subprocess.run(
            [sys.executable, "-m", "tests.reconciler.simulator.machine.busy_disks", "5", "12"],
            cwd=Path(__file__).resolve().parents[4],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        return run.stdout.splitlines()

    first = history_of("1")
    assert first == history_of("2")
    assert {"power cut", "OfflineLogDirError", "ChangeFailedError"} <= set(first)


def test_a_disk_has_another_version_after_each_change_and_mount_and_no_other_disk_has(fresh: Fresh) -> None:
    disks = formatted(fresh(), 2)
    first, other = disks.version(0), disks.version(1)
    assert first == DiskVersion(disks.serial(0), first.changes, is_offline=False)
    versions = [first]
    with opened(disks) as store:
        store.create(orders(0), ORDERS_ID)
        versions.append(disks.version(0))
        assert disks.version(1) == other, "it is another disk"
    for change in (
        lambda: disks.crash(Random(1)),
        lambda: disks.fail(0, Random(1)),
        lambda: disks.come_back(0),
        lambda: disks.swap(0, 1),
        lambda: disks.replace(0),
    ):
        change()
        versions.append(disks.version(0))
    assert len(set(versions)) == len(versions)
    assert disks.version(0) == versions[-1], "looking changes nothing"
