"""Every invariant can be broken: the engine, the broker or a client is broken on purpose, and the check reports it."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.purge import PurgeRules
from logstore.store import LogStore
from reconciler.broker import leader_and_isr
from reconciler.broker.judgement import Judged, Judgement
from reconciler.broker.snapshot import DiskSnapshot
from reconciler.protocol import LeaderAndIsrRequest, RequestType
from reconciler.simulator.checks import BrokenInvariantError, Invariants
from reconciler.simulator.machine.partition import HostedPartition
from reconciler.verdicts import Verdict
from tests.reconciler.simulator.conftest import NewCluster

ORDERS = TopicPartition("orders", 0)
B = TopicId.parse("AtgGav8yQjiaJ3rTXE7VCA")


def test_a_cluster_in_which_nothing_is_wrong_keeps_every_invariant(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    invariants = Invariants(cluster)
    cluster.create_topic("orders", 2, 3)
    cluster.produce("orders", 4)
    cluster.stop_broker(2)
    cluster.delete_topic("orders")
    cluster.create_topic("orders", assignment={0: [1, 2, 3]})
    cluster.start_broker(2)
    cluster.run(for_ms=400_000)
    assert invariants.looks > 1_000
    assert any("is purged" in line for line in cluster.world.history.lines)


def test_a_full_request_that_stages_the_only_replica_in_sync_is_reported(
    new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = new_cluster()
    Invariants(cluster)
    topic_id = cluster.create_topic("orders", assignment={0: [1]})
    cluster.produce("orders", 2)

    def all_is_stale(request: LeaderAndIsrRequest, node_id: int, present: DiskSnapshot) -> Judgement:
        found = judge(request, node_id, present)
        if request.type is not RequestType.FULL:
            return found
        stale = [Judged(Verdict.STALE_ID, each.row, "broken on purpose") for each in found.named]
        return Judgement(stale, found.others)

    judge = leader_and_isr.judge
    monkeypatch.setattr(leader_and_isr, "judge", all_is_stale)
    with pytest.raises(BrokenInvariantError) as broken:
        cluster.stop_broker(1)
        cluster.start_broker(1)
        cluster.run(for_ms=10_000)
    assert str(broken.value).startswith("broker-1 staged orders-0, the only replica in sync, which holds acknowledged")
    assert str(topic_id) in str(broken.value)


def test_staging_the_only_replica_in_sync_is_reported_even_where_an_empty_one_takes_its_place_at_once(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster()
    invariants = Invariants(cluster)
    topic_id = cluster.create_topic("orders", assignment={0: [1]})
    cluster.produce("orders")
    store = cluster.members[1].broker.store
    store.stage([ORDERS], "STALE_ID", "broken on purpose")
    store.create(ORDERS, topic_id)
    with pytest.raises(BrokenInvariantError, match="broker-1 staged orders-0, the only replica in sync"):
        invariants.look(everywhere=True)


def test_a_replica_in_sync_may_be_staged_where_nothing_was_acknowledged_or_another_is_in_sync_too(
    new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = new_cluster()
    monkeypatch.setattr(cluster.oracle, "is_steady", lambda *_: False)  # as if they had not been wanted for a moment
    invariants = Invariants(cluster)
    cluster.create_topic("empty", assignment={0: [1]})
    cluster.create_topic("orders", assignment={0: [2, 1]})
    cluster.produce("orders")
    cluster.members[1].broker.store.stage([ORDERS, TopicPartition("empty", 0)], "NOT_ASSIGNED", "")
    invariants.look(everywhere=True)


def test_a_purge_that_takes_what_is_not_due_is_reported(
    new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:  # KIP516-6
    cluster = new_cluster()
    Invariants(cluster)
    cluster.create_topic("orders", 1, 3)
    cluster.run(for_ms=1_000)
    monkeypatch.setattr("logstore.store.store.PurgeRules", partial(PurgeRules, before_due=True))
    monkeypatch.setattr(cluster.oracle, "is_steady", lambda *_: False)
    cluster.members[2].broker.store.stage([ORDERS], "NOT_ASSIGNED", "")
    with pytest.raises(
        BrokenInvariantError, match=r"broker-2 purged deleting/\S+_0, \d+ ms too early: it was due at 2"
    ):
        cluster.run(for_ms=70_000)


# KIP516-8
def test_brokers_without_a_fence_are_reported_with_the_kind_of_the_request(
    new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = new_cluster()
    Invariants(cluster)
    topic_id = cluster.create_topic("orders", assignment={0: [1]})
    cluster.produce("orders")
    monkeypatch.setattr(LogStore, "fence", lambda *_: KafkaError.NONE)
    monkeypatch.setattr(cluster.consumer._metadata, "topic_id", lambda topic: B)
    with pytest.raises(BrokenInvariantError) as broken:
        cluster.consume("orders")
    assert str(broken.value) == (
        f"broker-1 served a ListOffsetsRequest for orders-0 of topic ID {B}, and orders-0 on its disk has {topic_id}"
    )


def test_a_reader_that_is_given_the_records_of_an_earlier_topic_is_reported(
    new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:  # KIP516-8
    cluster = new_cluster()
    Invariants(cluster)
    topic_id = cluster.create_topic("orders", assignment={0: [1]})

    append = HostedPartition.write

    def write(partition: HostedPartition, value: str, now_ms: int) -> int:
        partition.topic_id = B
        return append(partition, value, now_ms)

    monkeypatch.setattr(HostedPartition, "write", write)
    cluster.consumer._by_name = True
    cluster.produce("orders")
    with pytest.raises(BrokenInvariantError) as broken:
        cluster.consume("orders")
    assert str(broken.value) == (
        f"a reader of orders-0 under topic ID {topic_id} was given offset 0, written under {B}: client-1 0"
    )


def test_only_the_machine_of_an_event_is_looked_at_unless_somebody_says_otherwise(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    invariants = Invariants(cluster)
    cluster.create_topic("orders", assignment={0: [1]})
    path = Path(cluster.members[1].disks.log_dirs[0], "orders-0")
    shutil.rmtree(path)
    cluster.members[1].broker.store.reload()
    cluster.world.history.happened("broker-2", "something")
    invariants.look()
    with pytest.raises(BrokenInvariantError, match="broker-1 let go of orders-0"):
        invariants.look(everywhere=True)


def test_what_was_acknowledged_is_known_by_partition_and_topic_id(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    invariants = Invariants(cluster)
    cluster.create_topic("orders", 1, 1)
    assert not invariants.acknowledged(ORDERS)
    cluster.produce("orders")
    assert invariants.acknowledged(ORDERS)
    cluster.command(lambda admin: admin.create_namespace("org"))
    cluster.command(lambda admin: admin.move_topic("orders", "org"))
    assert invariants.acknowledged(TopicPartition("org:orders", 0))
    cluster.delete_topic("org:orders")
    cluster.create_topic("orders", 1, 1)
    assert not invariants.acknowledged(ORDERS)


def test_two_topics_of_one_id_are_noticed(new_cluster: NewCluster) -> None:  # KIP37-3
    cluster = new_cluster()
    invariants = Invariants(cluster)
    cluster.create_topic("orders", 1, 1)
    session = cluster.zookeeper.session("somebody")
    session.create("/brokers/topics/twin", session.get("/brokers/topics/orders").data)
    with pytest.raises(BrokenInvariantError, match=r"^twin and orders have one topic ID, "):
        invariants.look()
