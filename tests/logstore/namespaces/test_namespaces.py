"""Namespaces: created, listed, deleted, in every log dir or in none.

# KIP37-1 KIP37-2 KIP37-3 KIP37-5
"""

from __future__ import annotations

from pathlib import Path

import pytest

from layout.errors import InvalidNameError
from layout.topic import TopicPartition
from logstore import (
    STALE_DELAY,
    ChangeRefusedError,
    InvalidNamespaceError,
    KafkaError,
    LogStoreError,
    NamespaceClashError,
    NameTakenError,
    OfflineLogDirError,
    Replica,
    Settings,
)
from logstore.namespaces import (
    PlannedChange,
    carry_out,
    create_namespace,
    delete_namespace,
    list_namespaces,
    move_topic,
    plan_delete,
    plan_move,
    rename_topic,
)
from logstore.scan import scan_all
from tests.logstore.changes import fill_store, lies, look, two_disks
from tests.logstore.engine import HOUR_MS, NOW_MS, ORDERS_ID, formatted, opened


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return two_disks(tmp_path)


def test_all_tiers_are_created_at_once_in_every_log_dir(paths: list[Path]) -> None:
    with opened(*paths) as store:
        create_namespace(store, "org:apache:kafka")
        assert list_namespaces(store) == ["org", "org:apache", "org:apache:kafka"]
        create_namespace(store, "org:acme")
        assert list_namespaces(store, "org") == ["org:acme", "org:apache", "org:apache:kafka"]
        assert list_namespaces(store, "org:apache") == ["org:apache:kafka"]
    for path in paths:
        assert (path / "org" / "apache" / "kafka" / ".logstore_tier").is_file()


def test_one_that_exists_is_refused_and_one_that_is_not_complete_is_completed(paths: list[Path]) -> None:
    with opened(*paths) as store:
        create_namespace(store, "org:apache")
        for name in ("org", "org:apache"):
            with pytest.raises(InvalidNamespaceError, match="exists already"):
                create_namespace(store, name)
        (paths[1] / "org" / "apache" / ".logstore_tier").unlink()
        (paths[1] / "org" / "apache").rmdir()
        assert create_namespace(store, "org:apache").log_dirs == (str(paths[1]),)


@pytest.mark.parametrize("name", ["", "a_b", "a:", ":a", "a::b", "..", "__a", "deleting", "a/b", "x" * 250])
def test_a_name_that_breaks_the_rules_is_refused(paths: list[Path], name: str) -> None:
    before = look(paths)
    with opened(*paths) as store:
        for change in (create_namespace, delete_namespace):
            with pytest.raises((InvalidNameError, InvalidNamespaceError)):
                change(store, name)
    assert look(paths) == before


def test_a_namespace_whose_path_would_be_too_long_is_refused(paths: list[Path]) -> None:
    before = look(paths)
    with opened(*paths) as store, pytest.raises(InvalidNameError, match="the most"):
        create_namespace(store, ":".join(["x" * 249] * 16))
    assert look(paths) == before


def test_a_topic_in_a_namespace_that_was_not_created_is_refused(paths: list[Path]) -> None:
    with opened(*paths) as store:
        fill_store(store, "orders")
        with pytest.raises(InvalidNamespaceError, match="create it first"):
            store.create(TopicPartition("org:orders", 0), ORDERS_ID)
        with pytest.raises(InvalidNamespaceError, match="create it first"):
            move_topic(store, "orders", "org")
        with pytest.raises(InvalidNamespaceError, match=r"there is no namespace org: there is none$"):
            delete_namespace(store, "org")
        with pytest.raises(InvalidNamespaceError, match="there is no namespace org"):
            list_namespaces(store, "org")


def test_a_tier_and_a_partition_of_one_name_exclude_each_other(paths: list[Path]) -> None:
    with opened(*paths) as store:
        create_namespace(store, "a-1")
        with pytest.raises(NameTakenError):
            store.create(TopicPartition("a", 1), ORDERS_ID)
        store.create(TopicPartition("b", 1), ORDERS_ID)
        with pytest.raises(NameTakenError, match="a replica's directory"):
            create_namespace(store, "b-1")
        with pytest.raises(NameTakenError, match="a replica's directory"):
            create_namespace(store, "b-1:c")
        assert list_namespaces(store) == ["a-1"]


@pytest.mark.parametrize("above", ["", "ns:", "ns:deep:"])
def test_at_every_depth_they_exclude_each_other_by_kafkas_number_and_in_words(paths: list[Path], above: str) -> None:
    reason = f"partition 1 of topic {above}a and namespace {above}a-1 would be one directory"
    with opened(*paths) as store:
        if above:
            create_namespace(store, above[:-1])
        fill_store(store, f"{above}a", f"{above}b")
        before = look(paths)
        for name in (f"{above}a-1", f"{above}a-1:below"):
            with pytest.raises(NamespaceClashError, match=reason) as refused:
                create_namespace(store, name)
            assert refused.value.kafka_error is KafkaError.INVALID_TOPIC_EXCEPTION
        assert look(paths) == before
        create_namespace(store, f"{above}c-1")
        create_namespace(store, f"{above}a-01")
        create_namespace(store, f"{above}a-2")
        before = look(paths)
        for at in (TopicPartition(f"{above}c", 1), TopicPartition(f"{above}a", 2)):
            with pytest.raises(NamespaceClashError, match=f"{at} would be one directory") as refused:
                store.create(at, ORDERS_ID)
            assert refused.value.kafka_error is KafkaError.INVALID_TOPIC_EXCEPTION
        with pytest.raises(NamespaceClashError, match=f"namespace {above}c-1 would be one directory"):
            rename_topic(store, f"{above}b", f"{above}c")
        assert look(paths) == before
        assert store.create(TopicPartition(f"{above}c", 2), ORDERS_ID).path.endswith("c-2")


def test_a_topic_is_not_moved_into_a_namespace_that_has_a_tier_of_its_partitions_name(paths: list[Path]) -> None:
    with opened(*paths) as store:
        create_namespace(store, "ns:orders-1")
        fill_store(store, "orders")
        before = look(paths)
        with pytest.raises(NamespaceClashError, match="namespace ns:orders-1 would be one directory, ns/orders-1"):
            move_topic(store, "orders", "ns")
        assert look(paths) == before


def test_a_replica_on_a_disk_that_failed_keeps_its_name_from_a_tier(paths: list[Path]) -> None:
    with opened(*paths) as store:
        fill_store(store, "a")
        store.log_dirs[1].go_offline("its disk is broken")
        with pytest.raises(NamespaceClashError, match=f"{paths[1]}/a-1 is a replica's directory"):
            create_namespace(store, "a-1")
        create_namespace(store, "a-2")


def test_a_tier_that_one_disk_alone_has_keeps_its_name_from_a_replica_on_another(paths: list[Path]) -> None:
    with opened(*paths) as store:
        create_namespace(store, "a-1")
        (paths[0] / "a-1" / ".logstore_tier").unlink()
        (paths[0] / "a-1").rmdir()
        first, second = (log_dir.identity.directory_id for log_dir in store.log_dirs)
        for directory_id in (None, first, second):
            with pytest.raises(NamespaceClashError, match=f"{paths[1]} has that namespace"):
                store.create(TopicPartition("a", 1), ORDERS_ID, directory_id=directory_id)
        made = store.create_many({TopicPartition("a", 1): ORDERS_ID, TopicPartition("a", 2): ORDERS_ID})
        assert isinstance(made[TopicPartition("a", 1)], NamespaceClashError)
        assert isinstance(made[TopicPartition("a", 2)], Replica)


def test_a_replica_is_not_moved_to_a_disk_where_a_tier_has_its_name(paths: list[Path]) -> None:
    with opened(*paths) as store:
        fill_store(store, "a")
        (paths[1] / "a-0").mkdir()
        (paths[1] / "a-0" / ".logstore_tier").touch()
        with pytest.raises(NamespaceClashError, match="partition 0 of topic a and namespace a-0"):
            store.move(TopicPartition("a", 0), store.log_dirs[1].identity.directory_id)
        assert store.get(TopicPartition("a", 0)).log_dir == str(paths[0])


def test_disks_where_it_happened_already_are_read_and_used_for_all_else(paths: list[Path]) -> None:
    with opened(*paths) as store:
        fill_store(store, "a", "orders")
        create_namespace(store, "org")
    for tier in ("a-0", "org"):  # a-0: a namespace beside the replica on the other disk; org: with a segment in it
        (paths[1] / tier).mkdir(exist_ok=True)
        (paths[1] / tier / ".logstore_tier").touch()
    (paths[1] / "org" / "00000000000000000000.log").write_bytes(b"x")
    (paths[0] / "orders-0" / ".logstore_tier").touch()  # a replica that turned into a tier
    (paths[0] / "a-0" / "b-1").mkdir()
    rows = {row["name"]: row["kind"] for seen in scan_all(paths) for row in seen.rows.to_pylist()}
    assert rows["a-0"] == "live"
    assert rows["orders-0/00000000000000000000.log"] == "foreign"
    with opened(*paths) as store:
        assert list_namespaces(store) == ["a-0", "orders-0", "org"]
        assert store.get(TopicPartition("a", 0)).log_dir == str(paths[0])
        with pytest.raises(NamespaceClashError):
            create_namespace(store, "a-0:below")
        for tier in ("orders-0", "org"):
            with pytest.raises(ChangeRefusedError, match=f"holds what is no replica.*{tier}/0*.log"):
                delete_namespace(store, tier, recursive=True)
        delete_namespace(store, "a-0")  # the way out: the namespace goes, and the replica stays
        assert (paths[0] / "a-0" / "00000000000000000000.log").read_bytes() == b"a-0"
        second = store.log_dirs[1].identity.directory_id
        assert store.create(TopicPartition("org:clicks", 0), ORDERS_ID, directory_id=second).path == "org/clicks-0"
        store.stage([TopicPartition("a", 0)], "STALE_ID", "")
    assert (paths[0] / "orders-0" / "00000000000000000000.log").read_bytes() == b"orders-0"


@pytest.mark.parametrize("suffix", ["-delete", "-future", "-stray"])
def test_a_tier_with_a_name_that_kafka_gives_to_replicas_survives_a_crash(paths: list[Path], suffix: str) -> None:
    tier = f"orders-0.0123456789abcdef0123456789abcdef{suffix}"
    store = opened(*paths)
    create_namespace(store, tier)
    fill_store(store, "orders", f"{tier}:clicks")
    before = lies(paths)
    for log_dir in store.log_dirs:
        log_dir.abandon()
    with opened(*paths) as store:
        assert list_namespaces(store) == [tier]
        assert lies(paths) == before
        rename_topic(store, "orders", "purchases")
    assert f"{tier}:clicks-1 in {tier}/clicks-1" in lies(paths)


def test_a_partition_dir_whose_name_reads_like_a_tier_is_no_namespace(paths: list[Path]) -> None:
    with opened(*paths) as store:
        fill_store(store, "b", "orders")
        before = look(paths)
        with pytest.raises(InvalidNamespaceError, match="create it first"):
            store.create(
                TopicPartition("b-1:orders", 3), ORDERS_ID, directory_id=store.log_dirs[1].identity.directory_id
            )
        with pytest.raises(InvalidNamespaceError, match="create it first"):
            move_topic(store, "orders", "b-1")
    assert look(paths) == before


def test_an_empty_namespace_is_deleted_and_one_with_something_in_it_is_not(paths: list[Path]) -> None:
    with opened(*paths) as store:
        create_namespace(store, "org:apache")
        create_namespace(store, "net")
        fill_store(store, "net:orders")
        before = look(paths)
        with pytest.raises(InvalidNamespaceError, match="below it: org:apache; topics in it: none"):
            delete_namespace(store, "org")
        with pytest.raises(InvalidNamespaceError, match="below it: none; topics in it: net:orders"):
            delete_namespace(store, "net")
        assert look(paths) == before
        delete_namespace(store, "org:apache")
        delete_namespace(store, "org")
        assert list_namespaces(store) == ["net"]
    assert not (paths[1] / "org").exists()


def test_a_recursive_delete_stages_every_topic_with_the_delay_of_its_own_tiers(paths: list[Path]) -> None:
    settings = Settings({"org:": {STALE_DELAY: HOUR_MS}, "org:apache:": {STALE_DELAY: 2 * HOUR_MS}})
    with opened(*paths, settings=settings) as store:
        create_namespace(store, "org:apache:kafka")
        fill_store(store, "orders", "org:clicks", "org:apache:kafka:views")
        planned = delete_namespace(store, "org", recursive=True)
        assert "stage org/clicks-0, which is org:clicks-0" in [step for _, step in planned.lines()]
        assert list_namespaces(store) == []
        assert {replica.partition.topic for replica in store.replicas()} == {"orders"}
        due = {staged.record.topic: staged.record.due_ms - NOW_MS for staged in store.staged() if staged.record}
        assert due == {"org:clicks": HOUR_MS, "org:apache:kafka:views": 2 * HOUR_MS}
        assert store.find(TopicPartition("org:clicks", 0)) is None
        one = next(each for each in store.staged() if each.partition == TopicPartition("org:clicks", 1))
        with pytest.raises(InvalidNamespaceError, match="create it first"):
            store.restore(one)
        create_namespace(store, "org")
        assert store.restore(one).path == "org/clicks-1"
    assert "org:clicks-1 in org/clicks-1" in lies(paths)


def test_what_nobody_knows_in_a_tier_keeps_it_from_being_deleted(paths: list[Path]) -> None:
    with opened(*paths) as store:
        create_namespace(store, "org")
        (paths[1] / "org" / "stranger").mkdir()
        (paths[1] / "org" / "file").write_text("x")
        before = look(paths)
        with pytest.raises(ChangeRefusedError, match=r"no replica.*org/file, org/stranger"):
            delete_namespace(store, "org", recursive=True)
    assert look(paths) == before


def test_deleting_needs_every_log_dir_and_creating_does_not(paths: list[Path]) -> None:
    with opened(*paths) as store:
        create_namespace(store, "org")
        store.log_dirs[1].go_offline("its disk is broken")
        with pytest.raises(OfflineLogDirError, match="needs every log dir"):
            delete_namespace(store, "org")
        create_namespace(store, "net")
    with opened(*paths) as store:
        assert list_namespaces(store) == ["net", "org"]
    assert (paths[1] / "net" / ".logstore_tier").is_file()


def test_by_topic_id_a_namespace_is_there_as_long_as_a_topic_is_in_it(tmp_path: Path) -> None:
    paths = two_disks(tmp_path, "by-topic-id")
    with opened(*paths) as store:
        fill_store(store, "orders", "org:apache:clicks")
        assert list_namespaces(store) == ["org", "org:apache"]
        with pytest.raises(ChangeRefusedError, match="needs no creating"):
            create_namespace(store, "net")
        with pytest.raises(InvalidNamespaceError, match="is not empty"):
            delete_namespace(store, "org")
        move_topic(store, "orders", "net")
        assert list_namespaces(store) == ["net", "org", "org:apache"]
        delete_namespace(store, "org", recursive=True)
        assert list_namespaces(store) == ["net"]
        assert len(store.staged()) == 2


def test_a_flat_log_dir_and_a_real_brokers_have_no_namespaces(tmp_path: Path, new_log_dir) -> None:
    flat = formatted(tmp_path / "flat")
    with opened(flat) as store, pytest.raises(ChangeRefusedError, match="convert it to namespaced"):
        create_namespace(store, "org")
    real = new_log_dir(tmp_path / "real").identity()
    real.replica("orders-0")
    before = look([real.path])
    with opened(real.path) as store:
        for change in (
            lambda: create_namespace(store, "org"),
            lambda: delete_namespace(store, "org"),
            lambda: move_topic(store, "orders", "org"),
            lambda: rename_topic(store, "orders", "purchases"),
        ):
            with pytest.raises(LogStoreError, match="a real broker's log dir, which would not start after this"):
                change()
    assert look([real.path]) == before


def test_planning_changes_nothing_until_the_plan_is_carried_out(paths: list[Path]) -> None:
    with opened(*paths) as store:
        create_namespace(store, "org")
        fill_store(store, "orders")
        before = look(paths)
        moves = plan_move(store, "orders", "org")
        assert isinstance(moves, PlannedChange)
        assert look(paths) == before
        assert all(after is not None and after.partition.topic == "org:orders" for _, after in moves.replicas)
        carry_out(store, moves)
        deletion = plan_delete(store, "org", recursive=True)
        assert {after for _, after in deletion.replicas} == {None}
        assert list_namespaces(store) == ["org"]
        carry_out(store, deletion)
        assert (list_namespaces(store), len(store)) == ([], 0)
