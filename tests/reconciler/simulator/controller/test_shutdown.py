from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, StopReplicaRequest
from tests.reconciler.simulator.controller.cluster import ID, Cluster, at


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(4, controllers=(4,))
    found.create_topic("orders", {0: [1, 2, 3], 1: [2, 1, 3], 2: [1]}, ID)
    found.forget()
    return found


def stop(cluster: Cluster, broker: int) -> tuple[KafkaError, list[object]]:
    answer = cluster.controller.prepare_shutdown(broker, cluster.epoch_of(broker))
    cluster.settle()
    return answer


def test_others_lead_before_a_broker_stops_and_it_is_in_sync_nowhere(cluster: Cluster) -> None:
    assert stop(cluster, 1) == (KafkaError.NONE, [])
    assert (cluster.state(at("orders")).leader, cluster.state(at("orders")).isr) == (2, (2, 3))
    assert (cluster.state(at("orders", 1)).leader, cluster.state(at("orders", 1)).isr) == (2, (2, 3))
    assert cluster.state(at("orders", 2)).leader == 1
    stops = [each for sent in cluster.brokers[1].of(StopReplicaRequest) for each in sent.topics[0].partitions]
    assert [(each.partition, each.delete) for each in stops] == [(1, False)]
    assert cluster.brokers[1].of(LeaderAndIsrRequest)[0].topics[0].partitions[0].leader == 2


def test_a_partition_that_nobody_else_can_lead_is_told(cluster: Cluster) -> None:
    cluster.alter_isr(at("orders"), [1])
    assert stop(cluster, 1) == (KafkaError.NONE, [at("orders")])
    assert cluster.state(at("orders")).leader == 1


def test_two_brokers_that_stop_do_not_hand_over_to_each_other(cluster: Cluster) -> None:
    cluster.alter_isr(at("orders"), [1, 2])
    stop(cluster, 2)
    assert stop(cluster, 1) == (KafkaError.NONE, [at("orders")])


def test_a_broker_that_comes_back_serves_again(cluster: Cluster) -> None:
    stop(cluster, 1)
    cluster.kill(1)
    cluster.register(1)
    cluster.settle()
    assert cluster.controller.context.shutting_down == set()
    assert cluster.controller.context.online(at("orders")) == (1, 2, 3)


def test_only_the_broker_that_is_registered_may_ask_and_only_the_controller_answers(cluster: Cluster) -> None:
    assert cluster.controller.prepare_shutdown(1, 3)[0] is KafkaError.STALE_BROKER_EPOCH
    assert cluster.start_controller(3).prepare_shutdown(1, cluster.epoch_of(1))[0] is KafkaError.NOT_CONTROLLER
