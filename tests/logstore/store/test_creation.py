from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from layout import partition_metadata
from layout.errors import InvalidIdError, InvalidNameError
from layout.ids import TopicId
from layout.partition_metadata import Form
from layout.scheme import MARKER_FILE, UNCLEAN_FILE
from layout.topic import TopicPartition
from logstore import ChangeFailedError, InvalidNamespaceError, NameTakenError, OfflineLogDirError, UnsafePathError
from logstore.fs import Disk
from logstore.log_dir import LogDir
from logstore.scan import scan
from logstore.store.create_many import create_replica
from logstore.store.creation import write_topic_ids
from tests.logstore.engine import (
    ORDERS,
    ORDERS_ID,
    OTHER_ID,
    SHIPPED,
    DiskThat,
    contents,
    formatted,
    full_disk,
    open_descriptors,
    read_offsets,
    write_offsets,
)


def create(path: Path, partition: TopicPartition, topic_id: TopicId | None, disk: Disk | None = None) -> str:
    with LogDir.open(str(path), disk=disk) as log_dir:
        return create_replica(log_dir, partition, topic_id)


def live_names(path: Path) -> list[str]:
    rows = scan(str(path)).rows.to_pylist()
    return sorted(row["name"] for row in rows if row["kind"] not in ("log_dir",))


def test_in_a_real_brokers_log_dir_the_metadata_has_the_shipped_form(log_dir: Any) -> None:
    # KIP516-2
    assert create(log_dir.path, ORDERS, ORDERS_ID) == "orders-0"
    assert (log_dir.path / "orders-0" / "partition.metadata").read_bytes() == SHIPPED
    assert os.listdir(log_dir.path / "orders-0") == ["partition.metadata"]


def test_in_ours_the_metadata_has_all_four_fields(our_log_dir: Path) -> None:
    # KIP516-2
    create(our_log_dir, ORDERS, ORDERS_ID)
    found = partition_metadata.parse((our_log_dir / "orders-0" / "partition.metadata").read_bytes())
    assert (found.version, found.topic_id, found.topic, found.partition) == (0, ORDERS_ID, "orders", 0)
    assert found.form is Form.JSON


def test_a_replica_from_before_topic_ids_has_no_metadata(our_log_dir: Path) -> None:
    create(our_log_dir, ORDERS, None)
    assert os.listdir(our_log_dir / "orders-0") == []


@pytest.mark.parametrize(
    ("scheme", "partition", "where"),
    [
        ("flat", TopicPartition("o" * 249, 12345), f"{'o' * 249}-12345"),
        ("flat", TopicPartition("a-1", 0), "a-1-0"),
        ("flat", TopicPartition("orders", 2147483647), "orders-2147483647"),
        ("namespaced", ORDERS, "orders-0"),
        ("namespaced", TopicPartition("org:apache:orders", 3), "org/apache/orders-3"),
        ("by-topic-id", ORDERS, f"{ORDERS_ID.hex[:2]}/{ORDERS_ID.hex}_0"),
        ("by-topic-id", TopicPartition("org:apache:orders", 3), f"{ORDERS_ID.hex[:2]}/{ORDERS_ID.hex}_3"),
    ],
)
def test_a_replica_goes_where_the_scheme_has_it_and_a_scan_finds_it(
    tmp_path: Path, scheme: str, partition: TopicPartition, where: str
) -> None:
    # KIP37-2, KIP516-12
    path = formatted(tmp_path / "x", scheme=scheme)
    for tier in ("org", "org/apache") if scheme == "namespaced" else ():
        (path / tier).mkdir()
        (path / tier / MARKER_FILE).touch()
    assert create(path, partition, ORDERS_ID) == where
    (row,) = [row for row in scan(str(path)).rows.to_pylist() if row["kind"] == "live"]
    assert (row["name"], row["topic"], row["partition"]) == (where, partition.topic, partition.partition)
    assert (row["topic_id"], row["metadata_state"]) == (str(ORDERS_ID), "ok")


@pytest.mark.parametrize(
    ("scheme", "partition", "topic_id"),
    [
        ("flat", TopicPartition("", 0), ORDERS_ID),
        ("flat", TopicPartition("..", 0), ORDERS_ID),
        ("flat", TopicPartition("__cluster_metadata", 0), ORDERS_ID),
        ("by-topic-id", TopicPartition("__cluster_metadata", 0), ORDERS_ID),
        ("flat", TopicPartition("a/b", 0), ORDERS_ID),
        ("flat", TopicPartition("two words", 0), ORDERS_ID),
        ("flat", TopicPartition("\udcff", 0), ORDERS_ID),
        ("flat", TopicPartition("o" * 250, 0), ORDERS_ID),
        ("flat", TopicPartition("o" * 249, 123456), ORDERS_ID),
        ("flat", TopicPartition("orders", -1), ORDERS_ID),
        ("flat", TopicPartition("orders", 1 << 31), ORDERS_ID),
        ("flat", TopicPartition("org:orders", 0), ORDERS_ID),
        ("namespaced", TopicPartition("deleting:orders", 0), ORDERS_ID),
        ("namespaced", TopicPartition("..:orders", 0), ORDERS_ID),
        ("namespaced", TopicPartition(":".join(["t" * 200] * 19) + ":orders", 0), ORDERS_ID),
        ("by-topic-id", ORDERS, None),
        ("by-topic-id", ORDERS, TopicId.ZERO),
    ],
)
def test_a_name_that_the_scheme_cannot_hold_is_refused_before_anything_happens(
    tmp_path: Path, scheme: str, partition: TopicPartition, topic_id: TopicId | None
) -> None:
    path = formatted(tmp_path / "x", scheme=scheme)
    before = contents(path)
    with pytest.raises(InvalidNameError):
        create(path, partition, topic_id)
    assert contents(path) == before


def test_the_zero_id_is_no_id_and_is_never_written(our_log_dir: Path) -> None:
    before = contents(our_log_dir)
    with pytest.raises(InvalidIdError):
        create(our_log_dir, ORDERS, TopicId.ZERO)
    assert contents(our_log_dir) == before


def test_a_namespace_that_was_not_created_is_asked_for(tmp_path: Path) -> None:
    # KIP37-3
    path = formatted(tmp_path / "x", scheme="namespaced")
    with pytest.raises(InvalidNamespaceError, match=r"namespace org was not created in .*: create it first"):
        create(path, TopicPartition("org:orders", 0), ORDERS_ID)
    assert not (path / "org").exists()


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("nowhere", path)])
def test_whatever_has_the_name_stays_as_it_is(our_log_dir: Path, make: Any) -> None:
    make(our_log_dir / "orders-0")
    before = contents(our_log_dir)
    with pytest.raises(NameTakenError, match="nothing is ever overwritten"):
        create(our_log_dir, ORDERS, ORDERS_ID)
    assert contents(our_log_dir) == before


def test_a_tier_or_a_prefix_that_is_a_link_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for scheme, link in (("namespaced", "org"), ("by-topic-id", ORDERS_ID.hex[:2])):
        path = formatted(tmp_path / scheme, scheme=scheme)
        (path / link).symlink_to(tmp_path / "elsewhere")
        topic = "org:orders" if scheme == "namespaced" else "orders"
        with pytest.raises(UnsafePathError, match="symbolic link"):
            create(path, TopicPartition(topic, 0), ORDERS_ID)
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EMFILE])
@pytest.mark.parametrize("method", ["mkdir", "create", "write", "rename", "sync"])
def test_where_the_system_refuses_no_half_replica_is_left(our_log_dir: Path, method: str, number: int) -> None:
    disk = DiskThat(number)
    with LogDir.open(str(our_log_dir), disk=disk) as log_dir:
        with log_dir.changing("the mark"):
            before = contents(our_log_dir)
        disk.fails = {method}
        with pytest.raises(ChangeFailedError, match=r"orders-0 cannot be created: .*; nothing was changed"):
            create_replica(log_dir, ORDERS, ORDERS_ID)
        disk.fails = set()
        assert contents(our_log_dir) == before
        create_replica(log_dir, ORDERS, ORDERS_ID)


def test_a_disk_that_fails_takes_the_log_dir_offline(our_log_dir: Path) -> None:
    with pytest.raises(OfflineLogDirError):
        create(our_log_dir, ORDERS, ORDERS_ID, DiskThat(errno.EIO, {"rename"}))
    assert not (our_log_dir / "orders-0").exists()
    assert (our_log_dir / UNCLEAN_FILE).exists()


def test_a_full_disk_makes_nothing(our_log_dir: Path) -> None:
    with pytest.raises(ChangeFailedError, match="No space left"):
        create(our_log_dir, ORDERS, ORDERS_ID, full_disk())
    assert live_names(our_log_dir) == []


def test_offsets_of_an_earlier_replica_of_that_name_are_not_taken_for_the_new_ones(our_log_dir: Path) -> None:
    write_offsets(our_log_dir, {("orders", 0): 42, ("payments", 0): 7})
    create(our_log_dir, ORDERS, ORDERS_ID)
    assert read_offsets(our_log_dir) == {("payments", 0): 7}


class ObservingDisk(Disk):
    """Notes what a scan would see of the log dir at each step."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: list[tuple[str, ...]] = []

    def sync(self, descriptor: int) -> None:
        self.seen.append(tuple(name for name in os.listdir(self.path) if not name.startswith(".")))
        super().sync(descriptor)


def test_until_it_is_whole_it_has_a_name_that_a_broker_deletes_at_its_next_start(log_dir: Any) -> None:
    disk = ObservingDisk(log_dir.path)
    create(log_dir.path, ORDERS, ORDERS_ID, disk)
    names = {name for seen in disk.seen for name in seen} - {"meta.properties"}
    assert "orders-0" in names
    assert all(name == "orders-0" or name.endswith("-delete") for name in names)


# Topic IDs that come later


@pytest.mark.parametrize("path_kind", ["ours", "broker"])
def test_a_replica_without_an_id_gets_one_in_the_form_of_its_log_dir(
    path_kind: str, log_dir: Any, our_log_dir: Path
) -> None:
    # KIP516-11
    path = our_log_dir if path_kind == "ours" else log_dir.path
    (path / "orders-0").mkdir()
    with LogDir.open(str(path)) as opened:
        write_topic_ids(opened, {"orders-0": (ORDERS, OTHER_ID)})
    data = (path / "orders-0" / "partition.metadata").read_bytes()
    assert partition_metadata.parse(data).topic_id == OTHER_ID
    assert (data == f"version: 0\ntopic_id: {OTHER_ID}".encode()) == (path_kind == "broker")


MANY = {f"orders-{number}": (TopicPartition("orders", number), OTHER_ID) for number in range(9)}


def test_many_replicas_get_their_ids_behind_two_barriers(our_log_dir: Path) -> None:
    # KIP516-11
    for name in MANY:
        (our_log_dir / name).mkdir()
    disk = DiskThat()
    with LogDir.open(str(our_log_dir), disk=disk) as opened:
        with opened.changing("the mark"):
            disk.calls.clear()
        write_topic_ids(opened, MANY)
        assert disk.calls["sync_file_system"] == 2
        assert "sync" not in disk.calls
    for name, (partition, topic_id) in MANY.items():
        assert os.listdir(our_log_dir / name) == ["partition.metadata"]
        found = partition_metadata.parse((our_log_dir / name / "partition.metadata").read_bytes())
        assert (found.topic, found.partition, found.topic_id) == ("orders", partition.partition, topic_id)


@pytest.mark.parametrize("method", ["create", "write", "sync_file_system"])
def test_when_there_is_no_room_for_one_of_many_none_gets_its_id(our_log_dir: Path, method: str) -> None:
    for name in MANY:
        (our_log_dir / name).mkdir()
    disk = DiskThat(errno.ENOSPC)
    with LogDir.open(str(our_log_dir), disk=disk) as opened:
        with opened.changing("the mark"):
            disk.fails = {method}
            disk.after = 0 if method == "sync_file_system" else 5
        with pytest.raises(ChangeFailedError, match="orders-0 and 8 more cannot be given"):
            write_topic_ids(opened, MANY)
    assert not any(os.listdir(our_log_dir / name) for name in MANY)


@pytest.mark.parametrize("method", ["create", "write", "sync", "rename"])
def test_an_id_that_cannot_be_written_leaves_the_replica_without_one(our_log_dir: Path, method: str) -> None:
    (our_log_dir / "orders-0").mkdir()
    disk = DiskThat(errno.ENOSPC)
    with LogDir.open(str(our_log_dir), disk=disk) as opened:
        with opened.changing("the mark"):
            disk.fails = {method}
        with pytest.raises(ChangeFailedError, match="cannot be given a topic ID"):
            write_topic_ids(opened, {"orders-0": (ORDERS, OTHER_ID)})
    assert os.listdir(our_log_dir / "orders-0") == []


def test_a_replica_that_is_a_link_by_now_gets_no_id(our_log_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (our_log_dir / "orders-0").symlink_to(tmp_path / "elsewhere")
    with LogDir.open(str(our_log_dir)) as opened, pytest.raises(UnsafePathError):
        write_topic_ids(opened, {"orders-0": (ORDERS, OTHER_ID)})
    assert os.listdir(tmp_path / "elsewhere") == []


def test_no_descriptor_is_left_behind(our_log_dir: Path) -> None:
    before = open_descriptors()
    create(our_log_dir, ORDERS, ORDERS_ID)
    with pytest.raises(NameTakenError):
        create(our_log_dir, ORDERS, ORDERS_ID)
    with pytest.raises(ChangeFailedError):
        create(our_log_dir, TopicPartition("x", 0), ORDERS_ID, full_disk())
    assert open_descriptors() == before
