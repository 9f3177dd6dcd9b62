from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, RequestType, StopReplicaRequest
from reconciler.simulator.controller.states import Replica
from tests.reconciler.simulator.controller.cluster import ID, Cluster, at

ORDERS = at("orders")


@pytest.fixture
def cluster() -> Cluster:
    """Broker 2 could not delete the replica that a reassignment dropped."""
    found = Cluster(3, deletion_retry_ms=1_000, collection_attempts=4)
    found.create_topic("orders", {0: [1, 2]}, ID)
    found.brokers[2].stop_errors[ORDERS] = KafkaError.KAFKA_STORAGE_ERROR
    found.controller.reassign({ORDERS: (1,)})
    found.settle()
    found.forget()
    return found


def orders(cluster: Cluster) -> list[bool]:
    return [each.delete for sent in cluster.brokers[2].of(StopReplicaRequest) for each in sent.topics[0].partitions]


def test_a_replica_that_could_not_be_deleted_is_tried_again_until_it_is(cluster: Cluster) -> None:
    assert cluster.controller.work.dropped.waiting() == [Replica(ORDERS, 2)]
    cluster.timers.pass_time(1_000)
    assert orders(cluster) == [True]
    cluster.brokers[2].stop_errors.clear()
    cluster.timers.pass_time(2_000)
    assert orders(cluster) == [True, True]
    assert cluster.controller.work.dropped.waiting() == []
    cluster.timers.pass_time(100_000)
    assert len(orders(cluster)) == 2


def test_it_is_given_up_after_some_attempts_and_left_to_the_next_full_request(cluster: Cluster) -> None:
    cluster.timers.pass_time(100_000)
    assert len(orders(cluster)) == 3
    assert cluster.said_about("the next FULL request sees to it")
    assert cluster.controller.work.dropped.waiting() == []


def test_a_replica_that_is_assigned_again_is_not_deleted(cluster: Cluster) -> None:
    cluster.controller.reassign({ORDERS: (1, 2)})
    cluster.timers.pass_time(100_000)
    assert orders(cluster) == []
    assert cluster.said_about("it is assigned again")


# KIP516-5
def test_a_broker_that_went_is_left_to_its_full_request(cluster: Cluster) -> None:
    cluster.kill(2)
    cluster.timers.pass_time(100_000)
    cluster.register(2)
    cluster.settle()
    assert orders(cluster) == []
    assert cluster.brokers[2].of(LeaderAndIsrRequest)[0].type is RequestType.FULL


# KIP516-7
def test_it_is_deleted_by_the_id_of_its_topic_though_another_has_the_name_now(cluster: Cluster) -> None:
    cluster.controller.delete_topics(["orders"])
    cluster.create_topic("orders", {0: [2, 1]})
    cluster.timers.pass_time(1_000)
    stopped = [topic.topic_id for sent in cluster.brokers[2].of(StopReplicaRequest) for topic in sent.topics]
    assert set(stopped) == {ID}


def test_without_topic_ids_nothing_is_tried_again() -> None:
    cluster = Cluster(2, topic_ids=False)
    cluster.create_topic("orders", {0: [1, 2]})
    cluster.brokers[2].stop_errors[ORDERS] = KafkaError.KAFKA_STORAGE_ERROR
    cluster.controller.reassign({ORDERS: (1,)})
    cluster.timers.pass_time(100_000)
    assert orders(cluster) == [True]
