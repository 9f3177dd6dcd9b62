"""Replicas are created whole or not at all, one or many: where they go, who gets which error, and disks that fail."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from layout import partition_metadata
from layout.checkpoint import RECOVERY_POINT_CHECKPOINT
from layout.errors import InvalidIdError, InvalidNameError
from layout.ids import TopicId
from layout.partition_metadata import Form
from layout.scheme import MARKER_FILE, UNCLEAN_FILE
from layout.topic import TopicPartition
from logstore import ChangeFailedError, InvalidNamespaceError, NameTakenError, OfflineLogDirError, UnsafePathError
from logstore.fs import Disk
from logstore.log_dir import LogDir
from logstore.namespaces import create_namespace
from logstore.scan import scan
from logstore.staging import STAGING_BATCH_SIZE
from logstore.store import Replica, metadata_bytes, spread_over_log_dirs
from logstore.store.create import create_replica, create_replicas, write_topic_ids
from tests.logstore.engine import (
    ORDERS,
    ORDERS_ID,
    OTHER_ID,
    SHIPPED,
    DiskThat,
    contents,
    fill,
    formatted,
    full_disk,
    open_descriptors,
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
        store.create_many(orders(STAGING_BATCH_SIZE // 50))
    counts = [len(list(path.glob("orders-*"))) for path in paths]
    assert max(counts) - min(counts) <= 1


def test_replicas_that_cannot_be_made_are_given_their_error_and_the_others_are_made(paths: list[Path]) -> None:
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


def test_when_every_disk_fails_each_gets_that_error(paths: list[Path]) -> None:
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
        assert not store.duplicates
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


def test_a_replica_is_whole_and_durable_before_it_has_its_name_and_that_is_durable_too(our_log_dir: Path) -> None:
    disk = DiskThat()
    with LogDir.open(str(our_log_dir), disk=disk) as log_dir:
        create_replica(log_dir, ORDERS, ORDERS_ID)
        file, draft, top = disk.synced[-3:]
    assert (draft.endswith("-delete"), top) == (True, str(our_log_dir))
    assert file == f"{draft}/partition.metadata"


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


@pytest.mark.parametrize("held", [None, 0, 16], ids=["unknown", "listed", "looked up"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("nowhere", path)])
def test_a_taken_name_is_refused_whether_names_are_listed_or_looked_up(
    our_log_dir: Path, make: Any, held: int | None
) -> None:
    make(our_log_dir / "orders-0")
    before = contents(our_log_dir)
    with LogDir.open(str(our_log_dir)) as log_dir:
        made = create_replicas(log_dir, {ORDERS: ORDERS_ID}, held=held)
    assert isinstance(made[ORDERS], NameTakenError)
    assert contents(our_log_dir) == before


@pytest.mark.parametrize("held", [0, 16], ids=["listed", "looked up"])
def test_a_name_that_somebody_takes_meanwhile_is_not_overwritten(our_log_dir: Path, held: int) -> None:
    class TakesTheName(Disk):
        def mkdir(self, parent: int, name: str) -> None:
            super().mkdir(parent, name)
            os.mkdir("orders-0", dir_fd=parent)

    with (
        LogDir.open(str(our_log_dir), disk=TakesTheName()) as log_dir,
        pytest.raises(ChangeFailedError, match="File exists"),
    ):
        create_replicas(log_dir, {ORDERS: ORDERS_ID}, held=held)
    assert [each.name for each in our_log_dir.glob("orders-*")] == ["orders-0"]
    assert os.listdir(our_log_dir / "orders-0") == []


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


def test_a_real_broker_gets_the_shipped_form_of_partition_metadata(log_dir: Any, tmp_path: Path) -> None:
    log_dir.identity()
    with LogDir.open(str(log_dir)) as real, LogDir.open(str(formatted(tmp_path / "ours"))) as ours:
        shipped, full = (partition_metadata.parse(metadata_bytes(each, ORDERS, ORDERS_ID)) for each in (real, ours))
    assert (shipped.form, shipped.topic_id, shipped.topic) == (Form.SHIPPED, ORDERS_ID, None)
    assert (full.form, full.topic_id, full.topic, full.partition) == (Form.JSON, ORDERS_ID, "orders", 0)
