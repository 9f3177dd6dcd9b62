from __future__ import annotations

from pathlib import Path
from typing import Any

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.scan import scan_live
from logstore.store import Replica, ReplicaIndex, entry_of, replica_of
from tests.logstore.engine import ORDERS, ORDERS_ID, OTHER_ID, fill, formatted

PAYMENTS = TopicPartition("payments", 3)


def replica(partition: TopicPartition, topic_id: TopicId | None, log_dir: str = "/a") -> Replica:
    return Replica(partition, topic_id, log_dir, str(partition), "ok", 7)


def loaded(*paths: Path) -> ReplicaIndex:
    index = ReplicaIndex()
    for found in scan_live([str(path) for path in paths]):
        index.load(found.log_dir, found.replicas)
    return index


def test_an_index_starts_empty() -> None:
    index = ReplicaIndex()
    assert (len(index), list(index), index.get(ORDERS), index.topic_of(ORDERS_ID)) == (0, [], None, None)


def test_only_live_replicas_of_a_scan_are_taken_in(log_dir: Any) -> None:
    unique = "0123456789abcdef0123456789abcdef"
    log_dir.replica("orders-0")
    log_dir.replica("old-1", None)
    for name in (f"x-0.{unique}-delete", f"y-0.{unique}-stray", f"z-0.{unique}-future", "foreign"):
        log_dir.replica(name)
    log_dir.file("note.txt")
    index = loaded(log_dir.path)
    inode = (log_dir.path / "orders-0").stat().st_ino
    assert index.get(ORDERS) == Replica(ORDERS, ORDERS_ID, str(log_dir), "orders-0", "ok", inode)
    old = index.get(TopicPartition("old", 1))
    assert old is not None
    assert (old.topic_id, old.metadata_state) == (None, "missing")
    assert (len(index), index.counts, index.duplicates) == (2, {str(log_dir): 2}, [])


def test_the_state_of_damaged_metadata_is_kept(log_dir: Any) -> None:
    log_dir.replica("orders-0", b"")
    log_dir.replica("orders-1", b"version: x")
    states = {found.partition.partition: found.metadata_state for found in loaded(log_dir.path)}
    assert states == {0: "empty", 1: "malformed"}


def test_a_partition_in_two_log_dirs_is_found_once_and_listed_as_a_duplicate(tmp_path: Path) -> None:
    # FACTS §1.7
    paths = [formatted(tmp_path / name, number) for number, name in enumerate("ab")]
    for path in paths:
        fill(path / "orders-0")
    index = loaded(*paths)
    first = index.get(ORDERS)
    assert first is not None
    assert first.log_dir == str(paths[0])
    assert [found.log_dir for found in index.duplicates] == [str(paths[1])]
    assert (len(index), index.counts) == (1, {str(paths[0]): 1, str(paths[1]): 1})


def test_two_spellings_of_a_partition_in_one_log_dir_are_duplicates_too(log_dir: Any) -> None:
    log_dir.replica("orders-0")
    log_dir.replica("orders-00")
    index = loaded(log_dir.path)
    assert (len(index), len(index.duplicates)) == (1, 1)


def test_a_topic_is_found_by_its_id_as_long_as_a_replica_has_it() -> None:
    # KIP516-8
    index = ReplicaIndex()
    index.put(replica(ORDERS, ORDERS_ID))
    assert index.topic_of(ORDERS_ID) == "orders"
    index.put(replica(TopicPartition("orders", 1), ORDERS_ID))
    index.drop(ORDERS)
    assert index.topic_of(ORDERS_ID) == "orders"
    index.drop(TopicPartition("orders", 1))
    assert index.topic_of(ORDERS_ID) is None


def test_a_topic_that_was_created_again_is_found_by_its_new_id_only() -> None:
    index = ReplicaIndex()
    index.put(replica(ORDERS, ORDERS_ID))
    assert index.topic_of(ORDERS_ID) == "orders"
    index.put(replica(ORDERS, OTHER_ID))
    assert (index.topic_of(ORDERS_ID), index.topic_of(OTHER_ID)) == (None, "orders")


def test_what_is_put_is_there_and_counted_once() -> None:
    index = ReplicaIndex()
    index.put(replica(ORDERS, None))
    index.put(replica(ORDERS, ORDERS_ID))
    index.put(replica(ORDERS, ORDERS_ID, "/b"))
    index.put(replica(PAYMENTS, OTHER_ID, "/b"))
    assert (len(index), index.counts) == (2, {"/a": 0, "/b": 2})
    assert index.get(PAYMENTS) == replica(PAYMENTS, OTHER_ID, "/b")


def test_what_is_dropped_is_gone_and_may_be_dropped_again() -> None:
    index = ReplicaIndex()
    index.put(replica(ORDERS, ORDERS_ID))
    index.drop(ORDERS)
    index.drop(ORDERS)
    assert (len(index), index.get(ORDERS), index.counts) == (0, None, {"/a": 0})


def test_what_is_walked_through_may_change_meanwhile() -> None:
    index = ReplicaIndex()
    for partition in range(10):
        index.put(replica(TopicPartition("t", partition), None))
    walked = [found.partition for found in index if index.drop(found.partition) is None]
    assert (len(walked), len(index)) == (10, 0)


def test_every_entry_stands_for_its_replica() -> None:
    index = ReplicaIndex()
    index.put(replica(ORDERS, ORDERS_ID))
    index.put(replica(PAYMENTS, None, "/b"))
    made = [replica_of(TopicPartition(*key), entry) for key, entry in index.entries().items()]
    assert [entry_of(each) for each in made] == list(index.entries().values())
    assert made == list(index) == [replica(ORDERS, ORDERS_ID), replica(PAYMENTS, None, "/b")]
