"""Many replicas behind one barrier: where they go, what each that cannot be made is told, and disks that fail."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.checkpoint import RECOVERY_POINT_CHECKPOINT
from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import ChangeFailedError, InvalidNamespaceError, NameTakenError, OfflineLogDirError
from logstore.log_dir import LogDir
from logstore.namespaces import create_namespace
from logstore.staging import BATCH
from logstore.store import Replica, spread_over_log_dirs
from logstore.store.create_many import create_replicas
from tests.logstore.engine import (
    ORDERS,
    ORDERS_ID,
    OTHER_ID,
    DiskThat,
    contents,
    fill,
    formatted,
    opened,
    read_offsets,
    write_offsets,
)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [formatted(tmp_path / name, number) for number, name in enumerate("abc")]


def orders(count: int, topic_id: TopicId | None = ORDERS_ID) -> dict[TopicPartition, TopicId | None]:
    return {TopicPartition("orders", number): topic_id for number in range(count)}


def on_disk(paths: list[Path]) -> list[str]:
    return sorted(found.name for path in paths for found in path.glob("*-*") if found.is_dir())


def test_they_are_found_at_once_and_after_opening_again(paths: list[Path]) -> None:
    wanted = {**orders(7), TopicPartition("bare", 0): None}
    with opened(*paths) as store:
        made = store.create_many(wanted)
        assert {partition: made[partition].topic_id for partition in made} == wanted  # type: ignore[union-attr]
        assert {each.partition: each for each in store.replicas()} == made
    with opened(*paths) as store:
        assert {each.partition: each.topic_id for each in store.replicas()} == wanted
        assert all(each.metadata_state in ("ok", "missing") for each in store.replicas())
    assert on_disk(paths) == sorted(map(str, wanted))


def test_each_is_as_one_that_was_made_alone(paths: list[Path]) -> None:
    with opened(paths[0]) as store:
        store.create(ORDERS, ORDERS_ID)
    alone = contents(paths[0] / "orders-0")
    with opened(paths[1]) as store:
        store.create_many({ORDERS: ORDERS_ID})
    assert contents(paths[1] / "orders-0") == alone


def test_the_emptiest_log_dir_gets_the_next() -> None:
    batches = spread_over_log_dirs({"a": 3, "b": 1, "c": 5}, orders(6), 2)
    sizes = {path: sum(len(batch) for at, batch in batches if at == path) for path in "abc"}
    assert sizes == {"a": 2, "b": 4, "c": 0}
    assert max(len(batch) for _, batch in batches) == 2
    assert sorted(each for _, batch in batches for each in batch) == sorted(orders(6))


def test_a_topic_spreads_evenly_over_the_disks(paths: list[Path]) -> None:
    with opened(*paths) as store:
        store.create_many(orders(BATCH // 50))
    counts = [len(list(path.glob("orders-*"))) for path in paths]
    assert max(counts) - min(counts) <= 1


def test_those_that_cannot_be_made_are_told_and_the_others_are_made(paths: list[Path]) -> None:
    fill(paths[1] / "taken-0")
    (paths[0] / "beside-0").write_text("a file")
    (paths[1] / "beside-0").write_text("a file")
    (paths[2] / "beside-0").write_text("a file")
    wanted = {
        TopicPartition("taken", 0): OTHER_ID,
        TopicPartition("beside", 0): OTHER_ID,
        TopicPartition("a/b", 0): OTHER_ID,
        ORDERS: ORDERS_ID,
    }
    with opened(*paths) as store:
        made = store.create_many(wanted)
        assert [type(each) for each in made.values()] == [
            NameTakenError,
            NameTakenError,
            InvalidNameError,
            Replica,
        ] or {str(partition): type(each) for partition, each in made.items()} == {
            "taken-0": NameTakenError,
            "beside-0": NameTakenError,
            "a/b-0": InvalidNameError,
            "orders-0": Replica,
        }
        assert store.get(ORDERS).topic_id == ORDERS_ID
    assert not [each for path in paths for each in path.glob("*-delete")]


def test_a_namespace_that_was_not_created_is_refused_for_itself(tmp_path: Path) -> None:
    path = formatted(tmp_path / "tiers", scheme="namespaced")
    with opened(path) as store:
        create_namespace(store, "org")
        made = store.create_many({TopicPartition("org:a", 0): ORDERS_ID, TopicPartition("net:b", 0): OTHER_ID})
        assert isinstance(made[TopicPartition("org:a", 0)], Replica)
        assert isinstance(made[TopicPartition("net:b", 0)], InvalidNamespaceError)
    assert (path / "org" / "a-0" / partition_metadata.FILE_NAME).is_file()


def test_two_names_under_one_id_are_not_laid_over_each_other(tmp_path: Path) -> None:
    path = formatted(tmp_path / "ids", scheme="by-topic-id")
    with opened(path) as store:
        made = store.create_many({ORDERS: ORDERS_ID, TopicPartition("sales", 0): ORDERS_ID})
        assert isinstance(made[ORDERS], Replica)
        assert isinstance(made[TopicPartition("sales", 0)], NameTakenError)


def test_what_checkpoints_say_of_earlier_replicas_of_these_names_goes(paths: list[Path]) -> None:
    write_offsets(paths[0], {("orders", 0): 5, ("other", 0): 6})
    with opened(paths[0]) as store:
        store.create_many(orders(2))
    assert read_offsets(paths[0], RECOVERY_POINT_CHECKPOINT) == {("other", 0): 6}


def test_what_a_failing_disk_should_have_got_goes_to_the_next(paths: list[Path]) -> None:
    failing = DiskThat(errno.EIO, {"mkdir"}, below=paths[1])
    with opened(*paths, disk=failing) as store:
        made = store.create_many(orders(9))
        assert all(isinstance(each, Replica) for each in made.values())
        assert list(store.offline) == [str(paths[1])]
    assert len(on_disk([paths[0], paths[2]])) == 9


def test_when_every_disk_fails_each_is_told_so(paths: list[Path]) -> None:
    failing = DiskThat(errno.EIO)
    with opened(*paths, disk=failing) as store:
        failing.fails.add("mkdir")
        made = store.create_many(orders(4))
        assert {type(each) for each in made.values()} == {OfflineLogDirError}
        again = store.create_many(orders(4))
        assert {type(each) for each in again.values()} == {OfflineLogDirError}


@pytest.mark.parametrize(
    ("step", "after"),
    [("mkdir", 0), ("mkdir", 2), ("create", 0), ("create", 2), ("sync_file_system", 0), ("rename", 0)],
)
def test_what_the_system_refuses_is_undone(paths: list[Path], step: str, after: int) -> None:
    full = DiskThat(errno.ENOSPC)
    with opened(paths[0], disk=full) as store:
        store.create(TopicPartition("first", 0), OTHER_ID)
        before = contents(paths[0])
        full.fails.add(step)
        full.after = after
        made = store.create_many(orders(5))
        assert {type(each) for each in made.values()} == {ChangeFailedError}
        assert contents(paths[0]) == before
        full.fails.clear()
        assert all(isinstance(each, Replica) for each in store.create_many(orders(5)).values())


def test_what_may_be_live_on_a_disk_that_failed_is_not_made_on_another(paths: list[Path]) -> None:
    failing = DiskThat(errno.EIO, below=paths[0])
    with opened(*paths[:2], disk=failing) as store:
        failing.fails.add("rename")
        failing.after = 1
        made = store.create_many(orders(6))
        (lost,) = [partition for partition, each in made.items() if not isinstance(each, Replica)]
        assert isinstance(made[lost], OfflineLogDirError)
        assert list(store.offline) == [str(paths[0])]
    failing.fails.clear()
    with opened(*paths[:2], disk=failing) as store:
        assert not store.doubled
        assert {each.partition for each in store.replicas()} == set(orders(6))


def test_nothing_asked_for_is_nothing_done(paths: list[Path]) -> None:
    with opened(*paths) as store:
        before = contents(paths[0])
        assert store.create_many({}) == {}
        assert contents(paths[0]) == before


def test_one_log_dir_alone_gives_paths_and_reasons(paths: list[Path]) -> None:
    with LogDir.open(str(paths[0])) as log_dir:
        made = create_replicas(log_dir, {ORDERS: ORDERS_ID})
        assert made == {ORDERS: "orders-0"}
        (refused,) = create_replicas(log_dir, {ORDERS: ORDERS_ID}).values()
        assert isinstance(refused, NameTakenError)
