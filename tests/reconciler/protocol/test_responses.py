"""Answers: the same error for a whole request (FACTS §4.2)."""

from __future__ import annotations

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrResponse, StopReplicaResponse, error_response
from tests.reconciler.protocol.control_requests import FULL, A, B, errors, leader_and_isr, stop_replica, topic


def test_an_error_for_all_names_every_partition() -> None:
    request = leader_and_isr(FULL, topic("a", A, 0, 3), topic("b", B, 1), topic("c", None))
    response = error_response(request, KafkaError.STALE_BROKER_EPOCH)
    assert isinstance(response, LeaderAndIsrResponse)
    assert errors(response) == {"": 77, "a-0": 77, "a-3": 77, "b-1": 77}
    assert [(each.topic, each.topic_id) for each in response.topics] == [("a", A), ("b", B), ("c", None)]


def test_so_does_one_for_a_stop_replica() -> None:
    response = error_response(stop_replica("a", 2, topic_id=A), KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    assert isinstance(response, StopReplicaResponse)
    assert errors(response) == {"": 31, "a-2": 31}
