"""A topic under another name, or in another namespace: every replica of it or none.

# KIP37-3 KIP516-13 KIP516-2
"""

from __future__ import annotations

from pathlib import Path

import pytest

from layout import partition_metadata
from layout.errors import InvalidNameError
from layout.topic import TopicPartition
from logstore import ChangeRefusedError, InvalidNamespaceError, NameTakenError, OfflineLogDirError, UnknownReplicaError
from logstore.namespaces import create_namespace, move_topic, rename_topic
from logstore.rows import MetadataState
from logstore.scan import scan
from logstore.store import LogStore
from tests.logstore.changes import CHECKPOINT, ORDERS, fill_store, lies, look, offsets, two_disks
from tests.logstore.engine import SHIPPED, opened, read_offsets, write_offsets


def names_in(path: Path) -> tuple[str | None, int | None]:
    """What a replica's partition.metadata says it is."""
    read = partition_metadata.parse((path / "partition.metadata").read_bytes())
    return read.topic, read.partition


def check_rows(paths: list[Path]) -> None:
    """Nothing that a scan would complain of."""
    for path in paths:
        rows = scan(str(path), sizes=False).rows
        assert [problem for problem in rows.column("problem").to_pylist() if problem] == []


def test_in_flat_each_replica_is_renamed_and_its_files_say_the_new_name(tmp_path: Path) -> None:
    paths = two_disks(tmp_path, "flat")
    with opened(*paths) as store:
        fill_store(store, "orders", "clicks")
        rename_topic(store, "orders", "purchases")
        assert store.find(TopicPartition("orders", 0)) is None
        assert store.get(TopicPartition("purchases", 1)).path == "purchases-1"
        assert store.topic_of(ORDERS) == "purchases"
    assert lies(paths)[:2] == ["clicks-0 in clicks-0", "orders-0 in purchases-0"]
    assert names_in(paths[1] / "purchases-1") == ("purchases", 1)
    assert offsets(paths) == {"purchases-0": 40, "clicks-0": 40, "purchases-1": 41, "clicks-1": 41}
    check_rows(paths)


def test_a_move_to_a_namespace_and_back_leaves_every_byte_as_it_was(tmp_path: Path) -> None:
    paths = two_disks(tmp_path)
    with opened(*paths) as store:
        create_namespace(store, "org:apache")
        fill_store(store, "orders", "clicks")
        before = look(paths)
        move_topic(store, "orders", "org:apache")
        assert store.get(TopicPartition("org:apache:orders", 0)).path == "org/apache/orders-0"
        assert names_in(paths[0] / "org" / "apache" / "orders-0") == ("org:apache:orders", 0)
        check_rows(paths)
        move_topic(store, "org:apache:orders", "")
        assert store.get(TopicPartition("orders", 0)).path == "orders-0"
        assert look(paths) == before


def test_by_topic_id_a_rename_moves_no_directory(tmp_path: Path) -> None:
    paths = two_disks(tmp_path, "by-topic-id")
    with opened(*paths) as store:
        fill_store(store, "orders")
        replica = store.get(TopicPartition("orders", 1))
        directory = Path(replica.log_dir, replica.path)
        inode = directory.stat().st_ino
        planned = rename_topic(store, "orders", "org:purchases")
        assert {step.split()[0] for _, step in planned.lines()} == {"rewrite", "rename"}
        assert not [step for _, step in planned.lines() if step.startswith("rename 51")]
        assert directory.stat().st_ino == inode
        assert store.get(TopicPartition("org:purchases", 1)).path == replica.path
    assert names_in(directory) == ("org:purchases", 1)
    assert offsets(paths) == {"org:purchases-0": 40, "org:purchases-1": 41}
    with opened(*paths) as store:
        assert store.get(TopicPartition("org:purchases", 1)).path == replica.path
        assert store.find(TopicPartition("orders", 1)) is None
    check_rows(paths)


@pytest.mark.parametrize("metadata", [SHIPPED, None, b"", b"nonsense", b'{"schema_version": 0, "name": "x"}'])
def test_a_file_that_holds_no_name_is_left_as_it_is(tmp_path: Path, metadata: bytes | None) -> None:
    paths = two_disks(tmp_path)
    with opened(*paths) as store:
        create_namespace(store, "org")
        fill_store(store, "orders")
    file = paths[0] / "orders-0" / "partition.metadata"
    file.unlink()
    if metadata is not None:
        file.write_bytes(metadata)
    with opened(*paths) as store:
        move_topic(store, "orders", "org")
        assert store.get(TopicPartition("org:orders", 0))
    moved = paths[0] / "org" / "orders-0" / "partition.metadata"
    assert (moved.read_bytes() if moved.exists() else None) == metadata


def test_a_file_that_names_another_topic_goes_on_saying_so(tmp_path: Path) -> None:
    paths = two_disks(tmp_path, "flat")
    with opened(*paths) as store:
        fill_store(store, "orders")
    wrong = partition_metadata.encode_json(ORDERS, "clicks", 0)
    (paths[0] / "orders-0" / "partition.metadata").write_bytes(wrong)
    with opened(*paths) as store:
        rename_topic(store, "orders", "purchases")
        assert store.get(TopicPartition("purchases", 0)).metadata_state == MetadataState.CONTRADICTS
    assert (paths[0] / "purchases-0" / "partition.metadata").read_bytes() == wrong


def test_old_offsets_of_the_new_name_are_not_taken_for_its_own(tmp_path: Path) -> None:
    paths = two_disks(tmp_path, "flat")
    with opened(*paths) as store:
        fill_store(store, "orders")
    write_offsets(paths[0], {**read_offsets(paths[0]), ("purchases", 0): 999, ("purchases", 5): 1})
    with opened(*paths) as store:
        rename_topic(store, "orders", "purchases")
    assert read_offsets(paths[0], CHECKPOINT) == {("purchases", 0): 40}


@pytest.mark.parametrize(
    ("scheme", "new_topic", "error"),
    [
        ("flat", "a b", InvalidNameError),
        ("flat", "", InvalidNameError),
        ("flat", "__cluster_metadata", InvalidNameError),
        ("flat", "org:orders", InvalidNameError),
        ("flat", "x" * 249 + "y", InvalidNameError),
        ("flat", "orders", NameTakenError),
        ("flat", "clicks", NameTakenError),
        ("namespaced", "org:orders", InvalidNamespaceError),
        ("namespaced", "__x:orders", InvalidNameError),
        ("by-topic-id", "clicks", NameTakenError),
        ("by-topic-id", "a b", InvalidNameError),
    ],
)
def test_what_cannot_be_is_refused_before_anything_happens(
    tmp_path: Path, scheme: str, new_topic: str, error: type[Exception]
) -> None:
    paths = two_disks(tmp_path, scheme)
    with opened(*paths) as store:
        fill_store(store, "orders", "clicks")
        before = look(paths)
        with pytest.raises(error):
            rename_topic(store, "orders", new_topic)
        with pytest.raises(UnknownReplicaError):
            rename_topic(store, "nothing", "something")
        assert look(paths) == before


def in_the_way(store: LogStore, paths: list[Path]) -> None:
    (paths[1] / "purchases-1").mkdir()


def on_its_way(store: LogStore, paths: list[Path]) -> None:
    (paths[1] / f"orders-0.{'0' * 32}-future").mkdir()


def on_its_way_to_a_disk_without_a_replica(store: LogStore, paths: list[Path]) -> None:
    for number in (1, 3):
        store.stage([TopicPartition("orders", number)], "STALE_ID", "it is elsewhere")
    on_its_way(store, paths)


def offline(store: LogStore, paths: list[Path]) -> None:
    store.log_dirs[1].go_offline("its disk is broken")


@pytest.mark.parametrize(
    ("obstacle", "error"),
    [
        (in_the_way, NameTakenError),
        (on_its_way, ChangeRefusedError),
        (on_its_way_to_a_disk_without_a_replica, ChangeRefusedError),
        (offline, OfflineLogDirError),
    ],
)
def test_what_stands_in_the_way_on_one_disk_keeps_all_as_it_is(tmp_path: Path, obstacle, error) -> None:
    paths = two_disks(tmp_path, "flat")
    with opened(*paths) as store:
        fill_store(store, "orders")
        obstacle(store, paths)
        before = look(paths)
        with pytest.raises(error):
            rename_topic(store, "orders", "purchases")
        assert look(paths) == before
