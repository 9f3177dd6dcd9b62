"""The types of requests: a value that exists has fields of the right types, whoever made it."""

from __future__ import annotations

from typing import Any

import pytest

from layout.ids import DirectoryId
from reconciler.errors import InvalidRequestError, ReconcilerError
from reconciler.protocol import (
    LeaderAndIsrRequest,
    LiveLeader,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopTopic,
    TopicState,
    check_request,
)
from tests.reconciler.protocol.control_requests import FULL, A, leader_and_isr, state, topic

PARTITION: dict[str, Any] = {
    "partition": 0, "controller_epoch": 1, "leader": 1, "leader_epoch": 0, "isr": (1,), "partition_epoch": 0,
    "replicas": (1,),
}  # fmt: skip


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: TopicState("orders", "xyz", ()), "topic_id: a TopicId or None is expected, found 'xyz'"),
        (lambda: TopicState("orders", DirectoryId(b"x" * 16), ()), "topic_id: a TopicId or None is expected"),
        (lambda: TopicState(b"orders", A, ()), "topic: a text is expected, found b'orders'"),
        (lambda: TopicState("orders", A, [state(0)]), "partitions: a tuple is expected"),
        (lambda: TopicState("orders", A, (0,)), "partitions: each should be a PartitionState, found 0"),
        (lambda: PartitionState(**{**PARTITION, "leader": "1"}), "leader: an integer is expected, found '1'"),
        (lambda: PartitionState(**{**PARTITION, "isr": [1]}), r"isr: a tuple is expected, found [1]"),
        (lambda: PartitionState(**PARTITION, is_new=1), "is_new: True or False is expected, found 1"),
        (lambda: LiveLeader(1, "host", "9092"), "port: an integer is expected, found '9092'"),
        (lambda: LeaderAndIsrRequest(1, 1, (), type="FULL"), "type: a RequestType is expected, found 'FULL'"),
        (lambda: LeaderAndIsrRequest(1, 1, (), type=2), "type: a RequestType is expected, found 2"),
        (lambda: LeaderAndIsrRequest(1, 1, ({},)), "topics: each should be a TopicState, found {}"),
        (lambda: LeaderAndIsrRequest(1, "1", ()), "controller_epoch: an integer is expected, found '1'"),
        (lambda: LeaderAndIsrRequest(1, 1, (), live_leaders=(1,)), "live_leaders: each should be a LiveLeader"),
        (lambda: StopPartition(0, delete="yes"), "delete: True or False is expected, found 'yes'"),
        (lambda: StopTopic("orders", "xyz", ()), "topic_id: a TopicId or None is expected"),
        (lambda: StopReplicaRequest(1, 1, (topic("orders", A, 0),)), "topics: each should be a StopTopic"),
        (lambda: RequestType("FULL"), "RequestType.FULL is expected"),
        (lambda: RequestType(7), "RequestType.FULL is expected"),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_refused_when_the_value_is_made(make: Any, said: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        make()
    assert isinstance(refused.value, ReconcilerError)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_all_fields_are_named_at_once() -> None:
    with pytest.raises(InvalidRequestError) as refused:
        TopicState(None, "xyz", None)
    assert len(refused.value.reasons) == 3


@pytest.mark.parametrize("numbers", [("1",), (1, None), (1.0,), (True, 2)])
def test_brokers_in_a_list_are_checked_with_the_request(numbers: tuple[Any, ...]) -> None:
    request = leader_and_isr(FULL, topic("orders", A, state(0, replicas=numbers)))
    with pytest.raises(InvalidRequestError, match="are no distinct broker ids"):
        check_request(request, "r")


def test_what_others_wrote_is_read_by_number_and_name() -> None:
    assert [RequestType.of(number) for number in (0, 1, 2, 9)] == [0, 1, 2, 0]
    assert [RequestType.named(name) for name in ("FULL", "UNKNOWN", "nothing")] == [FULL, 0, None]
    assert RequestType(2) is FULL
