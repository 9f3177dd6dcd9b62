"""The wanted state of a cluster, by its znodes: deleted topics, fewer partitions, replicas that move."""

from __future__ import annotations

from dataclasses import replace

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin import NOT_GIVEN, CreateTopic, DeletePartitions
from reconciler.simulator.cluster import ExpectedReplica, Oracle, identity_of
from reconciler.simulator.controller import FewerPartitionsRequest, encode_fewer_partitions
from reconciler.simulator.kernel import PartitionMode
from reconciler.simulator.zookeeper import kafka_paths
from tests.reconciler.simulator.conftest import NewCluster

ORDERS = TopicPartition("orders", 0)


def test_it_names_topics_partitions_and_who_is_meant_to_have_them(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    oracle = Oracle(cluster.zookeeper)
    assert (oracle.topics(), oracle.wanted(), oracle.leaving()) == ({}, {}, [])
    topic_id = cluster.create_topic("orders", assignment={0: [2, 3], 1: [1, 3]})
    assert oracle.topics() == oracle.known() == {"orders": topic_id}
    assert oracle.wanted()[ORDERS] == (
        ExpectedReplica(topic_id, 2, 2, (2, 3), moving=False),
        ExpectedReplica(topic_id, 3, 2, (2, 3), moving=False),
    )
    assert list(oracle.on(1)) == [TopicPartition("orders", 1)]
    assert list(oracle.on(2)) == [ORDERS]
    assert list(oracle.on(3)) == [ORDERS, TopicPartition("orders", 1)]
    assert oracle.brokers() == {1, 2, 3}
    assert oracle.is_there("orders") and not oracle.is_there("clicks")
    assert oracle.topic_id("clicks") is None


def test_a_replica_that_is_added_or_removed_is_moving(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    cluster.create_topic("orders", assignment={0: [1, 2]})
    cluster.stop_broker(3)
    active = cluster.active
    assert active is not None
    assert active.admin.reassign([(ORDERS, (1, 3))])[ORDERS].error is not KafkaError.NONE
    cluster.start_broker(3)
    member = cluster.active
    assert member is not None
    assert member.admin.reassign([(ORDERS, (1, 3))])[ORDERS].error is KafkaError.NONE
    assert {each.node_id: each.moving for each in cluster.oracle.wanted()[ORDERS]} == {1: False, 2: True, 3: True}
    cluster.run(for_ms=10_000)
    assert {each.node_id: each.moving for each in cluster.oracle.wanted()[ORDERS]} == {1: False, 3: False}


def test_a_topic_that_is_marked_for_deletion_is_known_and_assigned_and_not_wanted(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    topic_id = cluster.create_topic("orders", 1, 3)
    cluster.zookeeper.session("test").create(kafka_paths.delete_path("orders"), parents=True)
    oracle = cluster.oracle
    assert (oracle.topics(), oracle.known(), oracle.leaving()) == ({}, {"orders": topic_id}, ["orders"])
    assert (oracle.on(1), list(oracle.assigned(1))) == ({}, [ORDERS])


# KIP694-3
def test_partitions_that_may_go_are_not_wanted_from_the_moment_at_which_nobody_may_use_them(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster()
    topic_id = cluster.create_topic("orders", 2, 1)
    for member in cluster.members.values():
        member.controller.stop()
    session, path = cluster.zookeeper.session("test"), kafka_paths.delete_partitions_path("orders")
    second = TopicPartition("orders", 1)
    readable = FewerPartitionsRequest(str(topic_id), 1, cluster.world.now_ms, 60_000, PartitionMode.READ_ONLY)
    session.create(path, encode_fewer_partitions(readable), parents=True)
    assert second in cluster.oracle.wanted()
    session.set(path, encode_fewer_partitions(replace(readable, mode=PartitionMode.NONE)))
    assert list(cluster.oracle.wanted()) == [ORDERS]
    assert second in {**cluster.oracle.assigned(1), **cluster.oracle.assigned(2), **cluster.oracle.assigned(3)}
    session.set(
        path, encode_fewer_partitions(replace(readable, mode=PartitionMode.NONE, topic_id="AtgGav8yQjiaJ3rTXE7VCA"))
    )
    assert second in cluster.oracle.wanted()


def test_partitions_that_are_deleted_are_gone_for_everybody(new_cluster: NewCluster) -> None:  # KIP694-3
    cluster = new_cluster()
    cluster.create_topic("orders", 3, 1)
    active = cluster.active
    assert active is not None
    assert all(
        each.outcome.error is KafkaError.NONE
        for each in active.admin.delete_partitions([DeletePartitions("orders", 1, 5_000)])
    )
    assert cluster.oracle.leaving() == ["orders"]
    cluster.run(for_ms=30_000)
    assert (cluster.oracle.leaving(), list(cluster.oracle.wanted())) == ([], [ORDERS])
    topic_id = cluster.oracle.topic_id("orders")
    assert cluster.oracle.left == {identity_of(TopicPartition("orders", each), topic_id) for each in (1, 2)}


def test_a_replica_is_steady_from_its_topics_creation_until_it_is_not_wanted_or_on_its_way(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster()
    oracle, topic_id = cluster.oracle, cluster.create_topic("orders", assignment={0: [1, 2]})
    assert [oracle.is_steady(topic_id, 0, node_id) for node_id in (1, 2, 3)] == [True, True, False]
    for brokers in ((1, 3), (1, 2)):
        active = cluster.active
        assert active is not None
        assert active.admin.reassign([(ORDERS, brokers)])[ORDERS].error is KafkaError.NONE
        oracle.wanted()
        cluster.run(for_ms=20_000)
    assert [oracle.is_steady(topic_id, 0, node_id) for node_id in (1, 2, 3)] == [True, False, False]
    cluster.delete_topic("orders")
    assert not oracle.is_steady(topic_id, 0, 1)


def test_a_partition_is_led_from_its_first_leader_on(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    cluster.stop_broker(2)
    active, oracle = cluster.active, cluster.oracle
    assert active is not None
    active.admin.create_topics([CreateTopic("orders", NOT_GIVEN, NOT_GIVEN, {0: [2]})])
    topic_id = oracle.topic_id("orders")
    assert topic_id is not None
    before = cluster.zookeeper.nodes.last_transaction
    assert not oracle.was_led(topic_id, 0, before + 1)
    cluster.start_broker(2)
    cluster.run(for_ms=5_000)
    after = cluster.zookeeper.nodes.last_transaction
    assert (oracle.was_led(topic_id, 0, after + 1), oracle.was_led(topic_id, 0, before)) == (True, False)
