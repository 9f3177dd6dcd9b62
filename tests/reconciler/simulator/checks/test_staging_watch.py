"""Changes in the staging directories, with an engine that is broken on purpose."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin import NOT_GIVEN, CreateTopic, DeletePartitions
from reconciler.simulator.checks import BrokenInvariantError, Invariants
from reconciler.simulator.checks.staging_watch import StagingWatch
from reconciler.simulator.cluster import Cluster
from tests.reconciler.simulator.conftest import NewCluster

staging = import_module("logstore.staging.run")

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def watched(new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch) -> tuple[Cluster, Invariants]:
    """A cluster with a topic whose replicas are on all three brokers, and were not wanted there all the time."""
    return watch(new_cluster(), monkeypatch)


def watch(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> tuple[Cluster, Invariants]:
    """Make that topic in a new cluster."""
    monkeypatch.setattr(cluster.oracle, "is_steady", lambda *_: False)
    invariants = Invariants(cluster)
    cluster.create_topic("orders", 1, 3)
    cluster.produce("orders", 2)
    cluster.run(for_ms=1_000)
    return cluster, invariants


def stage(cluster: Cluster, invariants: Invariants) -> Path:
    """Stage the replica on broker 2, which is one of several in sync, and look; gives where it lies then."""
    (found,) = cluster.members[2].broker.store.stage([ORDERS], "NOT_ASSIGNED", "").staged
    invariants.look(everywhere=True)
    return Path(found.log_dir, found.location)


def create_without_leader(cluster: Cluster) -> TopicId:
    """Stop broker 2, and create a topic with a replica there alone."""
    cluster.stop_broker(2)
    active = cluster.active
    assert active is not None
    active.admin.create_topics([CreateTopic("orders", NOT_GIVEN, NOT_GIVEN, {0: [2]})])
    topic_id = cluster.oracle.topic_id("orders")
    assert topic_id is not None
    return topic_id


@pytest.mark.parametrize(
    ("delay", "verdict"), [("delete.stale.topic.delay.ms", "NOT_ASSIGNED"), ("file.delete.delay.ms", "DELETED")]
)
def test_a_due_time_before_the_delay_of_the_topic_is_reported(
    watched: tuple[Cluster, Invariants], monkeypatch: pytest.MonkeyPatch, delay: str, verdict: str
) -> None:  # KIP516-6
    cluster, invariants = watched
    real: Callable[..., Any] = staging.Candidate

    def hasty(*args: Any, **kwargs: Any) -> Any:
        made = real(*args, **kwargs)
        return replace(made, delay_ms=made.delay_ms - 1)

    monkeypatch.setattr("logstore.store.open.Candidate", hasty, raising=False)
    monkeypatch.setattr("logstore.store.staged.Candidate", hasty, raising=False)
    cluster.members[2].broker.store.stage([ORDERS], verdict, "", setting=delay)
    with pytest.raises(
        BrokenInvariantError, match=r"broker-2 staged orders-0, due at \d{4}-\S+ \S+ UTC, 1 ms too early"
    ):
        invariants.look(everywhere=True)


def test_a_staged_directory_that_is_gone_before_it_is_due_is_reported(watched: tuple[Cluster, Invariants]) -> None:
    cluster, invariants = watched
    path = stage(cluster, invariants)
    shutil.rmtree(path)
    with pytest.raises(
        BrokenInvariantError, match=rf"broker-2 lost deleting/{path.name}, \d+ ms too early: it was due at 2"
    ):
        invariants.look(everywhere=True)


def test_a_replica_that_was_wanted_all_the_time_is_not_staged(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    invariants, topic_id = Invariants(cluster), cluster.create_topic("orders", 1, 3)
    cluster.run(for_ms=1_000)
    with pytest.raises(BrokenInvariantError, match=f"orders-0 of topic ID {topic_id}, which was wanted all the time"):
        stage(cluster, invariants)


def test_what_a_plan_made_before_its_partition_had_a_leader_is_staged_by_the_first_request_and_comes_back(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster()
    invariants, member = Invariants(cluster), cluster.members[2]
    topic_id = create_without_leader(cluster)
    member.broker.maintain(lambda store: store.create(ORDERS, topic_id))
    member.start()
    invariants.look()
    end_ms = cluster.world.now_ms + 5_000
    while cluster.world.now_ms < end_ms and cluster.world.run(1, for_ms=end_ms - cluster.world.now_ms):
        invariants.look()
    done = cluster.world.history.reached
    assert (done["operation stage"], done["operation restore"]) == (1, 1)
    cluster.stop_broker(2)
    cluster.start_broker(2)
    invariants.look(everywhere=True)
    with pytest.raises(BrokenInvariantError, match=f"orders-0 of topic ID {topic_id}, which was wanted all the time"):
        stage(cluster, invariants)


def test_a_record_without_the_checkpoint_entries_of_its_replica_is_reported(
    watched: tuple[Cluster, Invariants], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, invariants = watched
    cluster.run(for_ms=70_000)
    real: Callable[..., Any] = staging.StagedRecord
    monkeypatch.setattr(staging, "StagedRecord", lambda *args: real(*args)._replace(checkpoints={}))
    with pytest.raises(BrokenInvariantError, match="staged orders-0 without its entry in recovery-point-offset-check"):
        stage(cluster, invariants)


def test_each_of_two_replicas_that_a_move_there_and_back_stages_is_compared_with_its_own_entries(
    new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, invariants = watch(new_cluster(directory_ids=True), monkeypatch)
    invariants.look(everywhere=True)
    member = cluster.members[2]
    here = member.disks.log_dirs.index(member.broker.store.get(ORDERS).log_dir)
    back = member.broker.store.log_dirs[here].identity.directory_id
    assert back is not None
    member.alter_log_dir(ORDERS, 1 - here)  # nobody wrote a checkpoint yet
    cluster.stop_broker(2)
    member.broker.maintain(lambda store: store.move(ORDERS, back))
    cluster.start_broker(2)
    invariants.look(everywhere=True)
    found = [each.record.checkpoints for each in member.broker.store.staged() if each.record is not None]
    assert sorted(map(len, found)) == [0, 2]


def test_a_replica_that_is_made_anew_though_its_disk_is_away_is_reported(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    invariants, topic_id = Invariants(cluster), cluster.create_topic("orders", 1, 3)
    cluster.run(for_ms=1_000)
    member = cluster.members[2]
    number = member.disks.log_dirs.index(member.broker.store.get(ORDERS).log_dir)
    cluster.stop_broker(2)
    member.disks.fail(number, Random(1))
    cluster.start_broker(2)
    invariants.look(everywhere=True)
    member.broker.store.create(ORDERS, topic_id)
    with pytest.raises(BrokenInvariantError, match=f"made 0 of topic ID {topic_id} anew, which lies on a disk"):
        invariants.look(everywhere=True)


def test_one_that_is_brought_back_is_not_lost(watched: tuple[Cluster, Invariants]) -> None:
    cluster, invariants = watched
    stage(cluster, invariants)
    store = cluster.members[2].broker.store
    store.restore(store.staged()[0])
    invariants.look(everywhere=True)
    assert store.find(ORDERS) is not None


def test_one_that_is_restored_by_hand_while_its_broker_is_down_and_then_staged_again_is_not_lost(
    watched: tuple[Cluster, Invariants], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, invariants = watched
    cluster.create_topic("clicks", 4, 3)
    for topic in ("orders", "clicks"):
        cluster.delete_topic(topic)
    cluster.run(for_ms=1_000)
    invariants.look(everywhere=True)
    member = cluster.members[2]
    staged = {each.name for each in member.broker.store.staged()}
    cluster.stop_broker(2)
    invariants.look(everywhere=True)
    member.broker.maintain(lambda store: store.restore(store.staged()[0]))
    with monkeypatch.context() as unseen:  # nobody looks while it is live
        unseen.setattr(StagingWatch, "look", lambda *_, **__: iter(()))
        cluster.start_broker(2)
        cluster.run(for_ms=5_000)
    invariants.look(everywhere=True)
    again = {each.name for each in member.broker.store.staged()}
    assert {each.partition(".")[0] for each in again} == staged != again


def test_a_replica_that_is_gone_without_being_staged_is_reported(watched: tuple[Cluster, Invariants]) -> None:
    cluster, invariants = watched
    store = cluster.members[2].broker.store
    found = store.get(ORDERS)
    invariants.look(everywhere=True)
    shutil.rmtree(Path(found.log_dir, found.path))
    store.reload()
    with pytest.raises(BrokenInvariantError) as broken:
        invariants.look(everywhere=True)
    assert str(broken.value) == f"broker-2 let go of orders-0 of topic ID {found.topic_id}, and did not stage it"


def test_what_a_crash_takes_back_is_not_lost(watched: tuple[Cluster, Invariants]) -> None:
    cluster, invariants = watched
    path = stage(cluster, invariants)
    cluster.crash_broker(2)
    invariants.look(everywhere=True)
    live = path.parent.parent / "orders-0"
    if path.exists():
        path.rename(live)
    cluster.start_broker(2)
    invariants.look(everywhere=True)


def test_what_a_crash_brings_back_was_staged_before(
    watched: tuple[Cluster, Invariants], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, invariants = watched
    path, member = stage(cluster, invariants), cluster.members[2]
    member.broker.store.restore(member.broker.store.staged()[0])
    invariants.look(everywhere=True)
    monkeypatch.setattr(cluster.oracle, "is_steady", lambda *_: True)
    monkeypatch.setattr(cluster.oracle, "was_led", lambda *_, **__: True)
    cluster.crash_broker(2)
    if not path.exists():
        (path.parent.parent / "orders-0").rename(path)
    invariants.look(everywhere=True)


def test_a_purge_that_is_due_and_reported_is_right(watched: tuple[Cluster, Invariants]) -> None:  # KIP516-6
    cluster, invariants = watched
    path = stage(cluster, invariants)
    cluster.world.jump("broker-2", 400_000)
    cluster.run(for_ms=130_000)
    assert not path.exists()
    assert any("is purged" in line for line in cluster.world.history.lines)


def test_what_lies_on_a_disk_that_fails_and_comes_back_is_still_known(watched: tuple[Cluster, Invariants]) -> None:
    cluster, invariants = watched
    path = stage(cluster, invariants)
    disks = cluster.members[2].disks
    number = disks.log_dirs.index(str(path.parent.parent))
    disks.fail(number, Random(1))
    cluster.run(for_ms=70_000)
    cluster.stop_broker(2)
    disks.come_back(number)
    cluster.start_broker(2)
    invariants.look(everywhere=True)
    shutil.rmtree(path)
    with pytest.raises(BrokenInvariantError, match="broker-2 lost deleting/"):
        invariants.look(everywhere=True)


def test_partitions_that_are_deleted_are_staged_and_none_of_those_that_stay(
    watched: tuple[Cluster, Invariants],
) -> None:  # KIP694-4
    cluster, _ = watched
    cluster.create_topic("payments", 3, 1)
    cluster.produce("payments", 6)
    active = cluster.active
    assert active is not None
    for each in active.admin.delete_partitions([DeletePartitions("payments", 1, 0)]):
        assert each.outcome.error is KafkaError.NONE
    cluster.run_until("it has one", lambda: "payments" not in cluster.oracle.leaving())
    staged = [each.partition for member in cluster.members.values() for each in member.broker.store.staged()]
    assert sorted(filter(None, staged)) == [TopicPartition("payments", 1), TopicPartition("payments", 2)]
