from __future__ import annotations

import errno
import logging
import os
import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from layout.checkpoint import RECOVERY_POINT_CHECKPOINT
from layout.ids import DirectoryId, TopicId
from layout.ours import LedgerEvent, StagedRecord
from layout.scheme import LEDGER_FILE, UNCLEAN_FILE
from layout.topic import TopicPartition
from logstore import (
    DELETE_DELAY,
    STALE_DELAY,
    ChangeFailedError,
    ChangeRefusedError,
    InconsistentTopicIdError,
    InvalidArgumentError,
    KafkaError,
    LogStoreError,
    NameTakenError,
    OfflineLogDirError,
    Settings,
    UnknownReplicaError,
    UnsafePathError,
)
from logstore.clock import ManualClock
from logstore.log_dir import LogDir
from logstore.purge import PurgeRules, purge
from logstore.staging import Restored, Staged, restore
from logstore.store import LogStore, Replica
from logstore.store import staged as store_staged
from tests.logstore.engine import (
    HOUR_MS,
    NOW_MS,
    ORDERS,
    ORDERS_ID,
    OTHER_ID,
    DiskThat,
    contents,
    contents_as_told,
    delay,
    fill,
    formatted,
    full_disk,
    identity,
    ledger_events,
    open_descriptors,
    opened,
    read_offsets,
    write_ledger,
    write_offsets,
)
from tests.patience import PATIENCE_S

PAYMENTS = TopicPartition("payments", 3)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [formatted(tmp_path / name, number) for number, name in enumerate("abc")]


def directory_id(number: int) -> DirectoryId:
    found = identity(number).directory_id
    assert found is not None
    return found


def on_disk(paths: list[Path]) -> list[str]:
    return sorted(found.name for path in paths for found in path.glob("*-*") if found.is_dir())


# Creating


def test_a_replica_that_is_made_is_found_at_once_and_after_opening_again(paths: list[Path]) -> None:
    # Kafka's own LogManagerTest.testCreateLog
    with opened(*paths) as store:
        made = store.create(ORDERS, ORDERS_ID)
        assert store.get(ORDERS) == made
        assert store.fence(ORDERS, OTHER_ID) == KafkaError.INCONSISTENT_TOPIC_ID
        with pytest.raises(InvalidArgumentError, match="topic_id"):
            store.fence(ORDERS, str(OTHER_ID))  # type: ignore[arg-type]
        assert store.topic_of(ORDERS_ID) == "orders"
    with opened(*paths) as store:
        again = store.get(ORDERS)
        assert (again.path, again.topic_id, again.metadata_state) == (made.path, made.topic_id, made.metadata_state)


def test_replicas_are_spread_evenly(paths: list[Path]) -> None:
    # Kafka's own LogManagerTest.testLeastLoadedAssignment
    with opened(*paths) as store:
        for partition in range(20):
            store.create(TopicPartition("t", partition), ORDERS_ID)
            counts = [len(list(path.glob("t-*"))) for path in paths]
            assert max(counts) - min(counts) <= 1


def test_a_replica_goes_to_the_log_dir_that_is_named(paths: list[Path]) -> None:
    # Kafka's own LogManagerTest.testCreateLogOnTargetedLogDirectory
    with opened(*paths) as store:
        for number in (1, 1, 1, 0):
            partition = TopicPartition("t", len(store))
            assert store.create(partition, ORDERS_ID, directory_id=directory_id(number)).log_dir == str(paths[number])
        with pytest.raises(UnknownReplicaError):
            store.create(ORDERS, ORDERS_ID, directory_id=directory_id(99))
    assert (paths[2] / "orders-0").exists() is False


@pytest.mark.parametrize("reserved", [DirectoryId.UNASSIGNED, DirectoryId.LOST, DirectoryId.MIGRATING])
def test_a_reserved_directory_id_means_the_least_loaded(paths: list[Path], reserved: DirectoryId) -> None:
    # Kafka's own LogManagerTest.testCreateLogWithTargetedLogDirectorySetAsUnassigned, ...SetAsUnknown...
    with opened(*paths) as store:
        store.create(ORDERS, ORDERS_ID)
        assert store.create(PAYMENTS, ORDERS_ID, directory_id=reserved).log_dir == str(paths[1])


def test_where_disks_fail_the_next_one_gets_the_replica(paths: list[Path]) -> None:
    # Kafka's own LogManagerTest.testCreateLogWithLogDirFallback
    class TwoBroken(DiskThat):
        def mkdir(self, parent: int, name: str) -> None:
            if not os.readlink(f"/proc/self/fd/{parent}").startswith(str(paths[2])):
                raise OSError(errno.EIO, "no")
            super().mkdir(parent, name)

    with opened(*paths, disk=TwoBroken()) as store:
        assert store.create(ORDERS, ORDERS_ID).log_dir == str(paths[2])
        assert sorted(store.offline) == [str(path) for path in paths[:2]]
    assert on_disk(paths) == ["orders-0"]


def test_where_the_named_disk_fails_no_other_gets_it(paths: list[Path]) -> None:
    with opened(*paths, disk=DiskThat(errno.EIO, {"mkdir"}, paths[0])) as store, pytest.raises(OfflineLogDirError):
        store.create(ORDERS, ORDERS_ID, directory_id=directory_id(0))
    assert on_disk(paths) == []


def test_where_all_disks_fail_there_is_no_replica(paths: list[Path]) -> None:
    with opened(*paths, disk=DiskThat(errno.EIO, {"mkdir"})) as store:
        with pytest.raises(OfflineLogDirError, match="every log dir of this store is offline"):
            store.create(ORDERS, ORDERS_ID)
        assert len(store.offline) == 3


def test_looking_for_what_is_not_there_makes_nothing(paths: list[Path]) -> None:
    # Kafka's own LogManagerTest.testGetNonExistentLog
    with opened(*paths) as store:
        assert store.find(ORDERS) is None
    assert on_disk(paths) == []


def test_a_replica_that_is_there_is_not_made_again_on_any_disk(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create(ORDERS, ORDERS_ID)
        for number in range(3):
            with pytest.raises(NameTakenError, match="orders-0 is live already"):
                store.create(ORDERS, OTHER_ID, directory_id=directory_id(number))


def test_the_longest_name_is_made_and_staged_and_comes_back(paths: list[Path]) -> None:
    # Kafka's own LogManagerTest.testCreateAndDeleteOverlyLongTopic
    longest = TopicPartition("x" * 249, 0)
    with opened(*paths) as store:
        store.create(longest, ORDERS_ID)
        store.stage([longest], "x", "")
        assert store.restore(store.staged()[0]).partition == longest


# Topic IDs


def test_a_replica_without_an_id_gets_one_once(paths: list[Path]) -> None:
    # KIP516-11
    with opened(*paths) as store:
        store.create(ORDERS, None)
        assert store.fence(ORDERS, ORDERS_ID) == KafkaError.NONE
        given = store.assign_topic_id(ORDERS, ORDERS_ID)
        assert store.get(ORDERS) == given
        assert store.assign_topic_id(ORDERS, ORDERS_ID) == given
        assert (store.fence(ORDERS, OTHER_ID), store.topic_of(ORDERS_ID)) == (
            KafkaError.INCONSISTENT_TOPIC_ID,
            "orders",
        )
    with opened(*paths) as store:
        assert store.get(ORDERS).topic_id == ORDERS_ID


def test_one_of_many_that_can_get_no_id_holds_up_no_other(paths: list[Path], tmp_path: Path) -> None:
    # KIP516-11
    many = [TopicPartition("orders", number) for number in range(7)]
    with opened(*paths) as store:
        store.create_many(dict.fromkeys(many[:6]))
        store.create(many[6], OTHER_ID)
        linked = store.get(many[2])
        place = os.path.join(linked.log_dir, linked.path)
        os.rename(place, tmp_path / "away")
        os.symlink(tmp_path / "away", place)
        found = store.assign_topic_ids({**dict.fromkeys(many, ORDERS_ID), TopicPartition("clicks", 0): OTHER_ID})
        errors = {at: type(made) for at, made in found.items() if not isinstance(made, Replica)}
        assert errors == {
            many[2]: UnsafePathError,
            many[6]: InconsistentTopicIdError,
            TopicPartition("clicks", 0): UnknownReplicaError,
        }
        assert {at: store.get(at).topic_id for at in many if at not in errors} == {
            at: ORDERS_ID for at in many if at not in errors
        }
        assert os.listdir(tmp_path / "away") == []


def test_an_id_that_is_there_is_never_replaced(paths: list[Path]) -> None:
    # Kafka's own PartitionMetadataFileTest.testSetRecordWithDifferentTopicId
    with opened(*paths) as store:
        store.create(ORDERS, ORDERS_ID)
        with pytest.raises(InconsistentTopicIdError, match=f"holds {ORDERS_ID} in .*, and not {OTHER_ID}"):
            store.assign_topic_id(ORDERS, OTHER_ID)
        with pytest.raises(UnknownReplicaError):
            store.assign_topic_id(PAYMENTS, OTHER_ID)


@pytest.mark.parametrize("metadata", [b"", b"version: x", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", b"{"])
def test_damaged_metadata_is_never_guessed_over_not_even_after_a_restore(paths: list[Path], metadata: bytes) -> None:
    fill(paths[0] / "orders-0", metadata)
    with opened(*paths) as store:
        for _ in range(2):
            with pytest.raises(InconsistentTopicIdError, match=r"a partition\.metadata that is"):
                store.assign_topic_id(ORDERS, ORDERS_ID)
            store.stage([ORDERS], "x", "")
            store.restore(store.staged()[0])
    assert (paths[0] / "orders-0" / "partition.metadata").read_bytes() == metadata


# Staging and coming back


def test_stale_replicas_are_staged_and_new_ones_take_their_names(paths: list[Path]) -> None:
    # KIP516-5
    with opened(*paths) as store:
        store.create(ORDERS, ORDERS_ID, directory_id=directory_id(0))
        outcome = store.stage([ORDERS], "STALE_ID", "the cluster has it under another ID")
        assert store.fence(ORDERS, ORDERS_ID) == KafkaError.UNKNOWN_TOPIC_ID
        assert store.topic_of(ORDERS_ID) is None
        store.create(ORDERS, OTHER_ID, directory_id=directory_id(0))
        assert store.staged() == outcome.staged
        with pytest.raises(NameTakenError, match="stage that one first"):
            store.restore(outcome.staged[0])
        store.stage([ORDERS], "STALE_ID", "")
        assert store.restore(outcome.staged[0]).topic_id == ORDERS_ID
        assert store.fence(ORDERS, ORDERS_ID) == KafkaError.NONE


def test_a_replica_that_is_live_on_another_disk_is_not_restored_beside_it(paths: list[Path]) -> None:
    # FACTS §1.7
    with opened(*paths) as store:
        store.create(ORDERS, ORDERS_ID, directory_id=directory_id(0))
        (staged,) = store.stage([ORDERS], "x", "").staged
        store.create(ORDERS, ORDERS_ID, directory_id=directory_id(1))
        with pytest.raises(NameTakenError):
            store.restore(staged)


def test_a_disk_that_goes_away_just_after_a_restore_is_offline(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone_at_once(log_dir: LogDir, staged: Staged, **named: Any) -> Restored:
        found = restore(log_dir, staged, **named)
        (Path(log_dir.path) / found.path).rename(paths[0].parent / "elsewhere")
        return found

    monkeypatch.setattr(store_staged, "restore", gone_at_once)
    with opened(*paths) as store:
        made = store.create(ORDERS, ORDERS_ID)
        (staged,) = store.stage([ORDERS], "STRAY", "a test").staged
        with pytest.raises(OfflineLogDirError, match="was restored, and is gone"):
            store.restore(staged)
        assert made.log_dir in store.offline


def test_what_is_restored_is_byte_for_byte_what_it_was_with_its_offsets(paths: list[Path]) -> None:
    fill(paths[0] / "orders-0")
    write_offsets(paths[0], {("orders", 0): 42})
    before = contents_as_told(paths[0])
    with opened(*paths) as store:
        store.stage([ORDERS], "x", "")
        assert read_offsets(paths[0]) == {}
        restored = store.restore(store.staged()[0])
        assert store.get(ORDERS) == restored
    assert contents_as_told(paths[0]) == before
    assert ledger_events(paths[0] / "deleting") == {f"{ORDERS_ID}_0": LedgerEvent.RESTORED}


def test_the_due_time_outlives_the_store_and_a_clock_that_goes_backwards(paths: list[Path]) -> None:
    # KIP516-6
    clock = ManualClock(NOW_MS)
    with opened(*paths, clock=clock) as store:
        store.create(ORDERS, ORDERS_ID)
        store.stage([ORDERS], "x", "")
    clock.advance(-10 * HOUR_MS)
    with opened(*paths, clock=clock) as store:
        (staged,) = store.staged()
        assert staged.due_ms == NOW_MS + 4 * HOUR_MS
        assert not staged.is_due(clock.now_ms())
        clock.advance(14 * HOUR_MS - 1)
        assert not staged.is_due(clock.now_ms())
        clock.advance(1)
        assert staged.is_due(clock.now_ms())


def test_what_is_staged_by_a_clock_that_went_backwards_counts_from_there(paths: list[Path]) -> None:
    clock = ManualClock(NOW_MS)
    with opened(*paths, clock=clock, settings=delay(1000)) as store:
        for partition in (ORDERS, PAYMENTS):
            store.create(partition, ORDERS_ID)
            store.stage([partition], "x", "")
            clock.advance(-5000)
        assert sorted(staged.due_ms or 0 for staged in store.staged()) == [NOW_MS - 4000, NOW_MS + 1000]


def test_the_delay_is_that_of_the_nearest_scope_and_of_the_setting_that_is_asked_for(paths: list[Path]) -> None:
    # KIP37-5, KIP516-6, KIP516-7
    settings = Settings({"orders": {STALE_DELAY: 1}, "": {STALE_DELAY: 2, DELETE_DELAY: 3}})
    with opened(*paths, settings=settings) as store:
        store.create(ORDERS, ORDERS_ID)
        store.create(PAYMENTS, OTHER_ID)
        store.create(TopicPartition("x", 0), None)
        staged = store.stage([ORDERS, PAYMENTS], "x", "").staged
        staged += store.stage([TopicPartition("x", 0)], "x", "", setting=DELETE_DELAY).staged
    due = {each.partition: each.due_ms for each in staged}
    assert [due[at] for at in (ORDERS, PAYMENTS, TopicPartition("x", 0))] == [NOW_MS + 1, NOW_MS + 2, NOW_MS + 3]


def test_each_one_is_logged_at_warn_with_the_time_of_its_deletion_where_something_deletes_it(
    paths: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    # KIP516-6
    with opened(*paths) as store:
        for partition in range(6):
            store.create(TopicPartition("t", partition), ORDERS_ID)
        store.stage([TopicPartition("t", partition) for partition in range(6)], "x", "")
        store.create(ORDERS, ORDERS_ID)
        store.start_purger()
        store.stage([ORDERS], "x", "")
    *warned, last = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 6
    assert all("may be purged from 2023-11-15 02:13:20 UTC on" in text for text in warned)
    assert last.endswith("will be deleted at 2023-11-15 02:13:20 UTC"), "this store purges by itself"


def test_what_cannot_be_staged_is_refused_and_the_others_go_on(paths: list[Path]) -> None:
    fill(paths[0] / "twice-0")
    fill(paths[1] / "twice-0")
    with opened(*paths) as store:
        for number, partition in enumerate((ORDERS, PAYMENTS)):
            store.create(partition, ORDERS_ID, directory_id=directory_id(number))
        store.log_dirs[1].go_offline("it failed")
        twice, nowhere = TopicPartition("twice", 0), TopicPartition("no", 0)
        outcome = store.stage([nowhere, twice, PAYMENTS, ORDERS, ORDERS], "x", "")
    assert [staged.partition for staged in outcome.staged] == [ORDERS]
    reasons = {refused.candidate.partition: refused.reason for refused in outcome.refused}
    assert reasons == {
        nowhere: "no log dir has a live replica of no-0",
        twice: "twice-0 is live in two log dirs: repair that first",
        PAYMENTS: "it failed",
    }


def test_a_replica_that_was_swapped_behind_our_back_is_left(paths: list[Path]) -> None:
    with opened(*paths) as store:
        made = store.create(ORDERS, ORDERS_ID)
        replica = Path(made.log_dir) / made.path
        (replica / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}")
        outcome = store.stage([ORDERS], "x", "")
        assert outcome.staged == []
        assert f"its topic ID is {OTHER_ID}" in outcome.refused[0].reason


def test_replicas_of_several_disks_are_staged_each_on_its_own(paths: list[Path]) -> None:
    with opened(*paths) as store:
        wanted = [TopicPartition("t", number) for number in range(30)]
        for partition in wanted:
            store.create(partition, ORDERS_ID)
        outcome = store.stage(wanted, "x", "")
        assert len(outcome.staged) == 30
        assert len({staged.log_dir for staged in outcome.staged}) == 3
        assert len(store) == 0
        for staged in store.staged():
            store.restore(staged)
        assert {replica.partition for replica in store.replicas()} == set(wanted)


# Failing disks


def test_a_failing_disk_does_not_stop_the_others(paths: list[Path]) -> None:
    disk = DiskThat(errno.EIO, below=paths[0])
    with opened(*paths, disk=disk) as store:
        for number, partition in enumerate((ORDERS, PAYMENTS)):
            store.create(partition, ORDERS_ID, directory_id=directory_id(number))
        disk.fails = {"write", "sync", "rename"}
        with pytest.raises(OfflineLogDirError):
            store.stage([ORDERS], "x", "")
        assert len(store.stage([PAYMENTS], "x", "").staged) == 1
        store.restore(store.staged()[0])
        store.write_offsets(RECOVERY_POINT_CHECKPOINT, {PAYMENTS: 5})
        assert store.create(TopicPartition("new", 0), ORDERS_ID).log_dir != str(paths[0])
        with pytest.raises(OfflineLogDirError):
            store.write_offsets(RECOVERY_POINT_CHECKPOINT, {ORDERS: 5})
        with pytest.raises(OfflineLogDirError):
            store.create(ORDERS, ORDERS_ID)
    assert (paths[0] / UNCLEAN_FILE).exists()
    assert not (paths[1] / UNCLEAN_FILE).exists()
    with opened(*paths) as store:
        assert store.get(ORDERS).log_dir == str(paths[0])
        assert store.offline == {}


def test_a_crash_is_sorted_out_by_the_next_one_to_open(paths: list[Path]) -> None:
    store = opened(*paths)
    store.create(ORDERS, ORDERS_ID, directory_id=directory_id(0))
    record = StagedRecord("orders", 0, ORDERS_ID, "orders-0", "x", "", NOW_MS, NOW_MS, {RECOVERY_POINT_CHECKPOINT: 42})
    write_ledger(paths[0] / "deleting", {f"{ORDERS_ID}_0": record})
    with (paths[0] / "deleting" / LEDGER_FILE).open("ab") as file:
        file.write(b"torn")
    for log_dir in store.log_dirs:
        log_dir.abandon()
    assert (paths[0] / UNCLEAN_FILE).exists()
    with opened(*paths) as store:
        assert store.get(ORDERS).topic_id == ORDERS_ID
        assert store.staged() == []
    assert read_offsets(paths[0]) == {("orders", 0): 42}
    assert b"torn" not in (paths[0] / "deleting" / LEDGER_FILE).read_bytes()
    assert not (paths[0] / UNCLEAN_FILE).exists()


def test_a_full_disk_is_cleaned_with_the_help_of_another(paths: list[Path], tmp_path: Path) -> None:
    (tmp_path / "spare").mkdir()
    disk = DiskThat(errno.ENOSPC, below=paths[0])
    with opened(*paths, disk=disk, fallback=tmp_path / "spare") as store:
        store.create(ORDERS, ORDERS_ID, directory_id=directory_id(0))
        store.write_offsets(RECOVERY_POINT_CHECKPOINT, {ORDERS: 42})
        disk.fails = {"write", "mkdir"}
        assert len(store.stage([ORDERS], "x", "").staged) == 1
        (staged,) = store.staged()
        assert (staged.partition, staged.problem) == (ORDERS, None)
        with pytest.raises(ChangeFailedError, match="No space left"):
            store.create(PAYMENTS, ORDERS_ID, directory_id=directory_id(0))
    with opened(*paths, fallback=tmp_path / "spare") as store:
        assert read_offsets(paths[0]) == {}, "the checkpoint is put in order once there is room"
        store.restore(store.staged()[0])
    assert read_offsets(paths[0]) == {("orders", 0): 42}


def test_a_full_disk_without_that_help_stages_nothing(paths: list[Path]) -> None:
    fill(paths[0] / "orders-0")
    with opened(*paths, disk=full_disk()) as store:
        with pytest.raises(ChangeFailedError, match="No space left"):
            store.stage([ORDERS], "x", "")
        assert store.get(ORDERS).path == "orders-0"


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """``tiny_disk(kind)``: a real file system of a few MB, ``tmpfs`` or ``ext4``, mounted."""
    point = tmp_path / "tiny"
    point.mkdir()
    mounted: list[bool] = []

    def mount(kind: str) -> Path:
        if kind == "tmpfs":
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(point)], check=True)
        else:
            image = tmp_path / "image"
            with image.open("wb") as file:
                file.truncate(8 << 20)
            subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
            subprocess.run(["mount", "-o", "loop", str(image), str(point)], check=True)
        mounted.append(True)
        return point

    yield mount
    for _ in mounted:
        subprocess.run(["umount", str(point)], check=True)


def fill_up(path: Path) -> None:
    """Write until not one byte more fits."""
    with (path / "ballast").open("wb", buffering=0) as file:
        for size in (1 << 16, 4096, 512, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError as error:
                assert error.errno == errno.ENOSPC
    number = 0
    while True:
        try:
            (path / f"ballast{number}").write_bytes(b"x")
            number += 1
        except OSError:
            return


@pytest.mark.root
@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_disk_that_is_really_full_is_staged_purged_and_free_again(
    tiny_disk: Callable[[str], Path], tmp_path: Path, kind: str
) -> None:
    top = tiny_disk(kind)
    path = formatted(top / "data")
    segment = fill(path / "orders-0") / "00000000000000000000.log"
    segment.write_bytes(os.urandom(200_000))
    write_offsets(path, {("orders", 0): 42})
    fill_up(top)
    before = contents(path / "orders-0")
    with opened(path, settings=delay(0)) as store, pytest.raises(ChangeFailedError, match="No space left"):
        store.stage([ORDERS], "x", "")
    assert contents(path / "orders-0") == before
    (tmp_path / "spare").mkdir()
    with opened(path, settings=delay(0), fallback=tmp_path / "spare") as store:
        assert len(store.stage([ORDERS], "x", "").staged) == 1
        (staged,) = store.staged()
        assert staged.problem is None
        assert store.restore(staged).path == "orders-0"
        assert contents(path / "orders-0") == before
        store.stage([ORDERS], "x", "")
        free = os.statvfs(path).f_bavail
        report = purge(
            store.log_dirs, PurgeRules(store.clock.now_ms()), fallback=store.fallback, look_at_processes=False
        )
        assert (report.directories, report.log_dirs[0].failures, report.log_dirs[0].error) == (1, [], None)
        assert store.staged() == []
        assert os.statvfs(path).f_bavail * os.statvfs(path).f_frsize >= free + 150_000
        store.create(PAYMENTS, ORDERS_ID)
    with opened(path) as store:
        assert [replica.partition for replica in store.replicas()] == [PAYMENTS]
    assert read_offsets(path) == {}


# Checkpoints


def test_offsets_are_written_to_the_log_dir_of_each_replica(paths: list[Path]) -> None:
    # Kafka's own LogManagerTest.testCheckpointRecoveryPoints, testCheckpointForOnlyAffectedLogs
    with opened(*paths) as store:
        for number, partition in enumerate((ORDERS, PAYMENTS)):
            store.create(partition, ORDERS_ID, directory_id=directory_id(number))
        store.write_offsets(RECOVERY_POINT_CHECKPOINT, {ORDERS: 42, PAYMENTS: 7})
    assert read_offsets(paths[0]) == {("orders", 0): 42}
    assert read_offsets(paths[1]) == {("payments", 3): 7}
    assert not (paths[2] / RECOVERY_POINT_CHECKPOINT).exists()


def test_offsets_of_what_is_not_here_are_refused_and_none_is_written(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create(ORDERS, ORDERS_ID, directory_id=directory_id(0))
        with pytest.raises(UnknownReplicaError):
            store.write_offsets(RECOVERY_POINT_CHECKPOINT, {ORDERS: 42, PAYMENTS: 7})
    assert not (paths[0] / RECOVERY_POINT_CHECKPOINT).exists()


@pytest.mark.parametrize(("file", "offset"), [("meta.properties", 1), (RECOVERY_POINT_CHECKPOINT, 1 << 63), ("x", 1)])
def test_what_cannot_stand_in_a_checkpoint_is_refused(paths: list[Path], file: str, offset: int) -> None:
    with opened(*paths) as store:
        store.create(ORDERS, ORDERS_ID)
        with pytest.raises(ChangeRefusedError):
            store.write_offsets(file, {ORDERS: offset})
        store.write_offsets(RECOVERY_POINT_CHECKPOINT, {ORDERS: 1})


@pytest.mark.parametrize("form", ["{}/", "relative", "link"])
def test_a_log_dir_may_be_given_with_a_slash_relative_or_through_a_link(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    # Kafka's own LogManagerTest.testRecoveryDirectoryMappingWithTrailingSlash, ...WithRelativeDirectory
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(paths[0])
    given = {"{}/": f"{paths[0]}/", "relative": "a", "link": str(tmp_path / "link")}[form]
    with LogStore.open([given]) as store:
        store.create(ORDERS, ORDERS_ID)
        store.write_offsets(RECOVERY_POINT_CHECKPOINT, {ORDERS: 42})
        store.stage([ORDERS], "x", "")
        store.restore(store.staged()[0])
    assert read_offsets(paths[0]) == {("orders", 0): 42}


# Odd names, threads, ends


def test_names_of_bytes_that_are_not_utf8_are_listed_and_left_alone(log_dir: Any) -> None:
    os.mkdir(os.fsencode(log_dir.path) + b"/caf\xe9-0")
    log_dir.replica("orders-0")
    with opened(log_dir.path) as store:
        odd = [replica for replica in store.replicas() if replica.partition != ORDERS]
        assert len(odd) == 1
        outcome = store.stage([odd[0].partition, ORDERS], "x", "")
        assert [staged.partition for staged in outcome.staged] == [ORDERS]
        assert len(outcome.refused) == 1
    assert os.path.isdir(os.fsencode(log_dir.path) + b"/caf\xe9-0")


def do_something(store: LogStore, chance: random.Random) -> None:
    """One of the things that a store can do, to a replica that others work on as well."""
    at = TopicPartition(f"t{chance.randrange(4)}", chance.randrange(3))
    action = chance.randrange(4)
    if action == 0:
        store.create(at, TopicId.from_halves(1, int(at.topic[1:]) + 1))
    elif action == 1:
        store.stage([at], "x", "")
    elif action == 2:
        for staged in store.staged()[:2]:
            store.restore(staged)
    else:
        store.fence(at, ORDERS_ID)
        store.topic_of(ORDERS_ID)
        list(store.replicas())


def test_many_threads_may_make_find_stage_and_restore_at_once(paths: list[Path]) -> None:
    problems: list[BaseException] = []
    with opened(*paths) as store:

        def work(seed: int) -> None:
            chance = random.Random(seed)
            try:
                for _ in range(15):
                    with suppress(LogStoreError):
                        do_something(store, chance)
            except BaseException as error:
                problems.append(error)
                raise

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert problems == []
        reported = {(replica.log_dir, replica.path) for replica in store.replicas()}
        there = {(str(path), found.name) for path in paths for found in path.glob("t*-*")}
        assert reported == there
        assert len({path for _, path in there}) == len(there), "no partition is live twice"
        assert all(staged.problem is None for staged in store.staged())
    with opened(*paths) as store:
        assert {(replica.log_dir, replica.path) for replica in store.replicas()} == reported
        assert store.duplicates == []


def test_only_one_of_many_threads_makes_a_replica(paths: list[Path]) -> None:
    with opened(*paths) as store:
        barrier = threading.Barrier(6)
        results: list[object] = []

        def make() -> None:
            barrier.wait()
            try:
                results.append(store.create(ORDERS, ORDERS_ID).log_dir)
            except NameTakenError:
                results.append(None)

        threads = [threading.Thread(target=make) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len([result for result in results if result]) == 1
    assert len(results) == 6
    assert on_disk(paths) == ["orders-0"]


def test_a_store_that_was_closed_changes_nothing_any_more(paths: list[Path]) -> None:
    store = opened(*paths)
    store.create(ORDERS, ORDERS_ID)
    store.close()
    before = [contents(path) for path in paths]
    attempts: tuple[Callable[[], object], ...] = (
        lambda: store.create(PAYMENTS, ORDERS_ID),
        lambda: store.assign_topic_id(ORDERS, OTHER_ID),
        lambda: store.write_offsets(RECOVERY_POINT_CHECKPOINT, {ORDERS: 1}),
        lambda: store.stage([ORDERS], "x", ""),
        store.staged,
    )
    for attempt in attempts:
        with suppress(LogStoreError):
            attempt()
    assert [contents(path) for path in paths] == before


def test_no_descriptor_is_left_behind(paths: list[Path]) -> None:
    before = open_descriptors()
    with opened(*paths) as store:
        for partition in range(10):
            store.create(TopicPartition("t", partition), ORDERS_ID)
        during = []
        for _ in range(3):
            store.stage([TopicPartition("t", partition) for partition in range(10)], "x", "")
            for staged in store.staged():
                store.restore(staged)
            store.write_offsets(RECOVERY_POINT_CHECKPOINT, {TopicPartition("t", 0): 1})
            during.append(open_descriptors())
        assert len({*during}) == 1, "each ledger is opened once, and stays open"
    assert open_descriptors() == before
