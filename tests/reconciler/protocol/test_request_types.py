"""Control requests and answers as types (FACTS §4.2, §5.2; KIP516-4)."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    StopTopic,
    TopicState,
    error_response,
)
from tests.reconciler.protocol.control_requests import FULL, A, B, errors, leader_and_isr, stop_replica, topic


def partition(index: int, *replicas: int) -> PartitionState:
    return PartitionState(index, 1, replicas[0] if replicas else -1, 0, replicas, 0, replicas)


def request(*topics: TopicState) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(controller_id=1, controller_epoch=1, topics=topics)


# KIP516-4
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (0, RequestType.UNSPECIFIED),
        (1, RequestType.INCREMENTAL),
        (2, RequestType.FULL),
        (3, RequestType.UNSPECIFIED),
        (-1, RequestType.UNSPECIFIED),
        (127, RequestType.UNSPECIFIED),
    ],
)
def test_a_type_that_is_not_known_reads_as_unspecified(number: int, kind: RequestType) -> None:
    assert RequestType.of(number) is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("UNSPECIFIED", RequestType.UNSPECIFIED),
        ("UNKNOWN", RequestType.UNSPECIFIED),
        ("INCREMENTAL", RequestType.INCREMENTAL),
        ("FULL", RequestType.FULL),
        ("full", None),
        ("", None),
    ],
)
def test_a_type_has_the_names_that_shipped_and_those_of_the_proposal(name: str, kind: RequestType | None) -> None:
    assert RequestType.named(name) is kind


def test_a_request_has_no_type_broker_epoch_or_controller_by_default() -> None:
    plain = request()
    assert (plain.type, plain.broker_epoch, plain.is_kraft_controller) == (RequestType.UNSPECIFIED, -1, False)


def test_receivers_are_the_brokers_that_all_partitions_share() -> None:
    shared = request(
        TopicState("a", None, (partition(0, 1, 2, 3), partition(1, 2, 3))), TopicState("b", None, (partition(0, 3, 2),))
    )
    assert shared.receivers() == {2, 3}


def test_a_request_without_partitions_or_a_shared_broker_has_no_receivers() -> None:
    assert request().receivers() == frozenset()
    assert request(TopicState("a", None, (partition(0, 1), partition(1, 2)))).receivers() == frozenset()
    assert request(TopicState("a", None, (partition(0, 1), partition(1)))).receivers() == frozenset()


# KIP516-7
def test_a_stop_replica_request_deletes_nothing_and_has_no_epoch_by_default() -> None:
    plain = StopReplicaRequest(1, 1, (StopTopic("a", None, (StopPartition(0),)),))
    assert (plain.broker_epoch, plain.is_kraft_controller) == (-1, False)
    assert plain.topics[0].partitions[0] == StopPartition(0, leader_epoch=-1, delete=False)


def test_an_error_for_all_names_every_partition() -> None:
    request = leader_and_isr(FULL, topic("a", A, 0, 3), topic("b", B, 1), topic("c", None))
    response = error_response(request, KafkaError.STALE_BROKER_EPOCH)
    assert isinstance(response, LeaderAndIsrResponse)
    assert errors(response) == {"": 77, "a-0": 77, "a-3": 77, "b-1": 77}
    assert [(each.topic, each.topic_id) for each in response.topics] == [("a", A), ("b", B), ("c", None)]


def test_an_error_for_a_whole_stop_replica_names_every_partition() -> None:
    response = error_response(stop_replica("a", 2, topic_id=A), KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    assert isinstance(response, StopReplicaResponse)
    assert errors(response) == {"": 31, "a-2": 31}
