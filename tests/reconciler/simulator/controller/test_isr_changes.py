from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest
from reconciler.simulator.controller.context import LeaderAndIsr
from reconciler.simulator.controller.states import Replica
from reconciler.simulator.kernel import AlterIsrRequest, AlterIsrResponse, UpdateMetadataRequest
from reconciler.simulator.zookeeper import kafka_nodes, kafka_paths
from tests.reconciler.simulator.controller.cluster import ID, OTHER_ID, Cluster, at

ORDERS = at("orders")


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(4)
    found.create_topic("orders", {0: [1, 2, 3]}, ID)
    found.forget()
    return found


def test_a_leader_gets_the_set_it_asks_for_in_the_same_leader_epoch(cluster: Cluster) -> None:
    answer = cluster.alter_isr(ORDERS, [1, 2], topic_id=ID)
    assert answer == AlterIsrResponse(KafkaError.NONE, 0, (1, 2), 1)
    assert cluster.state(ORDERS) == LeaderAndIsr(1, 0, (1, 2), 1, 1) == cluster.controller.context.leadership[ORDERS]
    assert cluster.brokers[2].of(LeaderAndIsrRequest) == []
    (metadata,) = cluster.brokers[4].of(UpdateMetadataRequest)
    assert metadata.topics[0].partitions[0].isr == (1, 2)
    assert cluster.alter_isr(ORDERS, [1, 2, 3]) == AlterIsrResponse(KafkaError.NONE, 0, (1, 2, 3), 2)


def test_the_set_that_is_in_force_is_granted_without_a_write(cluster: Cluster) -> None:
    cluster.alter_isr(ORDERS, [1, 2])
    before = cluster.zookeeper.dump()
    answer = cluster.alter_isr(ORDERS, [1, 2], partition_epoch=0)
    assert answer == AlterIsrResponse(KafkaError.NONE, 0, (1, 2), 1)
    assert cluster.zookeeper.dump() == before


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"broker_epoch": 1}, KafkaError.STALE_BROKER_EPOCH),
        ({"broker_id": 9}, KafkaError.STALE_BROKER_EPOCH),
        ({"partition": at("unknown")}, KafkaError.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": at("orders", 5)}, KafkaError.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic_id": OTHER_ID}, KafkaError.INCONSISTENT_TOPIC_ID),
        ({"leader_epoch": -1}, KafkaError.FENCED_LEADER_EPOCH),
        ({"leader_epoch": 1}, KafkaError.UNKNOWN_LEADER_EPOCH),
        ({"partition_epoch": 4}, KafkaError.INVALID_UPDATE_VERSION),
        ({"isr": (2, 3)}, KafkaError.INVALID_REQUEST),
        ({"isr": (1, 4)}, KafkaError.INVALID_REQUEST),
        ({"isr": (1, 2, 2)}, KafkaError.INVALID_REQUEST),
    ],
)
def test_each_request_that_does_not_count_has_its_error_and_changes_nothing(cluster, changes, error) -> None:
    before = cluster.zookeeper.dump()
    assert cluster.alter_isr(ORDERS, [1, 2], **changes) == AlterIsrResponse(error)
    assert cluster.zookeeper.dump() == before


def test_a_follower_may_not_ask(cluster: Cluster) -> None:
    answer = cluster.alter_isr(ORDERS, [1, 2], broker_id=2, broker_epoch=cluster.epoch_of(2))
    assert answer.error is KafkaError.INVALID_REQUEST


def test_nobody_joins_whose_broker_is_away_or_about_to_stop_or_whose_log_dir_failed(cluster: Cluster) -> None:
    cluster.alter_isr(ORDERS, [1])
    context = cluster.controller.context
    context.offline.add(Replica(ORDERS, 2))
    assert cluster.alter_isr(ORDERS, [1, 2]).error is KafkaError.INVALID_REQUEST
    context.offline.clear()
    context.shutting_down.add(2)
    assert cluster.alter_isr(ORDERS, [1, 2]).error is KafkaError.INVALID_REQUEST
    cluster.kill(3)
    assert cluster.alter_isr(ORDERS, [1, 3]).error is KafkaError.INVALID_REQUEST


def test_a_request_after_the_topic_was_deleted_is_refused(cluster: Cluster) -> None:
    answers: list[object] = []
    request = AlterIsrRequest(1, cluster.epoch_of(1), ORDERS, ID, 0, 0, (1,))
    cluster.remove_node("/brokers/topics/orders")
    cluster.controller.handle("broker-1", request, answers.append)
    assert answers == [AlterIsrResponse(KafkaError.INVALID_UPDATE_VERSION)]
    cluster.settle()
    cluster.controller.handle("broker-1", request, answers.append)
    assert answers[1:] == [AlterIsrResponse(KafkaError.UNKNOWN_TOPIC_OR_PARTITION)]


def test_a_request_that_lost_a_race_with_another_change_is_refused(cluster: Cluster) -> None:
    data = kafka_nodes.encode_state(1, 0, (1, 3), 1)
    cluster.admin.set(kafka_paths.state_path(ORDERS), data)
    answer = cluster.alter_isr(ORDERS, [1, 2], partition_epoch=0)
    assert answer == AlterIsrResponse(KafkaError.INVALID_UPDATE_VERSION)
    assert cluster.state(ORDERS).isr == (1, 3)


def test_a_broker_that_was_restarted_does_not_stay_in_sync_by_a_request_that_comes_before_the_news(cluster) -> None:
    cluster.sessions[2].expire()
    cluster.register(2)
    before = cluster.state(ORDERS)
    answer = cluster.alter_isr(ORDERS, [1, 2])
    assert answer == AlterIsrResponse(KafkaError.FENCED_LEADER_EPOCH)
    assert before.isr == (1, 2, 3)
    assert cluster.state(ORDERS).isr == (1, 3)
