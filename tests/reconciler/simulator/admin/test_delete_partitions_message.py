"""DeletePartitions as a message to a simulated cluster: its answer, its timeout, and each refusal (KIP694-2)."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import DeletePartitionsRequest, DeletePartitionsResponse, DeletePartitionsTopic
from reconciler.simulator.admin import CreateTopic
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.controller.fewer_partitions import FewerPartitions
from reconciler.simulator.kernel import ANONYMOUS, OfClient, Response
from reconciler.simulator.zookeeper import AuthorizerSettings
from tests.reconciler.simulator.conftest import NewCluster

Answered = list[tuple[str, int, int, int]]


@pytest.fixture
def cluster(new_cluster: NewCluster) -> Cluster:
    """Topics orders and clicks, of three partitions each."""
    made = new_cluster()
    made.create_topic("orders", 3, 2)
    made.create_topic("clicks", 3, 1)
    return made


def ask(cluster: Cluster, *topics: DeletePartitionsTopic, timeout_ms: int = 5_000, broker: str = "") -> Response | None:
    answers: list[Response | None] = []
    active = cluster.active
    assert active is not None
    request = OfClient("User:ann", DeletePartitionsRequest(topics, timeout_ms))
    cluster.world.network.call("client-3", broker or active.name, request, answers.append)
    cluster.run_until("an answer", lambda: bool(answers))
    return answers[0]


def answered(response: Response | None) -> Answered:
    """Topic, partition, status and error of each partition in an answer without an error of its own."""
    assert isinstance(response, DeletePartitionsResponse)
    assert (response.error, response.message, response.throttle_time_ms) == (0, None, 0)
    return [
        (topic.topic, each.partition, each.status, each.error) for topic in response.topics for each in topic.partitions
    ]


def test_each_topic_has_its_own_delay_and_each_partition_its_status(cluster: Cluster) -> None:
    response = ask(cluster, DeletePartitionsTopic("orders", 1, 60_000), DeletePartitionsTopic("clicks", 2))
    assert answered(response) == [("orders", 1, 1, 0), ("orders", 2, 1, 0), ("clicks", 2, -1, 0)]
    cluster.run(for_ms=30_000)
    assert cluster.oracle.leaving() == ["orders"]
    cluster.run(for_ms=60_000)
    assert cluster.oracle.leaving() == []
    assert {each.topic: each.partition for each in sorted(cluster.oracle.wanted())} == {"orders": 0, "clicks": 1}


def test_a_request_of_a_principal_that_may_not_delete_is_refused(new_cluster: NewCluster) -> None:  # KIP37-6
    cluster = new_cluster(authorizer=AuthorizerSettings(("User:root",)))
    cluster.command(lambda admin: admin.create_topics([CreateTopic("orders", 2, 1)], "User:root")["orders"])
    for principal in ("User:bob", ANONYMOUS):
        response = cluster.delete_partitions("orders", 1, principal=principal)
        assert answered(response) == [("orders", -1, 0, KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    assert answered(cluster.delete_partitions("orders", 1, principal="User:root")) == [("orders", 1, -1, 0)]


def test_the_answer_comes_when_clients_may_no_longer_write(cluster: Cluster) -> None:
    assert answered(ask(cluster, DeletePartitionsTopic("orders", 2, 60_000))) == [("orders", 2, 1, 0)]
    active = cluster.active
    assert active is not None
    assert [int(mode) for mode in active.controller.context.modes.values()] == [1]


def test_what_is_not_done_at_the_timeout_says_so_and_is_done_all_the_same(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_ms = cluster.world.now_ms
    with monkeypatch.context() as patched:
        patched.setattr(FewerPartitions, "changed", lambda *_: None)
        response = ask(cluster, DeletePartitionsTopic("orders", 2), timeout_ms=1_000)
    assert answered(response) == [("orders", 2, 0, KafkaError.REQUEST_TIMED_OUT)]
    assert 1_000 <= cluster.world.now_ms - begun_ms < 1_500
    cluster.run(for_ms=10_000)
    assert sorted(each.partition for each in cluster.oracle.wanted() if each.topic == "orders") == [0, 1]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (DeletePartitionsTopic("orders", 3), KafkaError.INVALID_PARTITIONS),
        (DeletePartitionsTopic("orders", 4), KafkaError.INVALID_PARTITIONS),
        (DeletePartitionsTopic("orders", 0), KafkaError.INVALID_PARTITIONS),
        (DeletePartitionsTopic("nothing", 1), KafkaError.UNKNOWN_TOPIC_OR_PARTITION),
        (DeletePartitionsTopic("orders", 1, -5), KafkaError.INVALID_REQUEST),
    ],
)
def test_a_topic_is_refused_by_name_and_the_others_are_not(
    cluster: Cluster, topic: DeletePartitionsTopic, error: KafkaError
) -> None:
    response = ask(cluster, topic, DeletePartitionsTopic("clicks", 2))
    assert answered(response) == [(topic.topic, -1, 0, error), ("clicks", 2, -1, 0)]
    assert isinstance(response, DeletePartitionsResponse)
    assert response.topics[0].partitions[0].message


def test_a_topic_that_is_under_change_is_refused(cluster: Cluster) -> None:
    ask(cluster, DeletePartitionsTopic("orders", 2, 60_000))
    found = answered(ask(cluster, DeletePartitionsTopic("orders", 1)))
    assert found == [("orders", -1, 0, KafkaError.REASSIGNMENT_IN_PROGRESS)]


def test_a_broker_that_is_not_the_controller_says_so(cluster: Cluster) -> None:
    other = next(each.name for each in cluster.members.values() if each is not cluster.active)
    response = ask(cluster, DeletePartitionsTopic("orders", 2), broker=other)
    assert isinstance(response, DeletePartitionsResponse) and response.error == KafkaError.NOT_CONTROLLER
