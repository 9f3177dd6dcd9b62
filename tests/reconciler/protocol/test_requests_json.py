"""Requests and answers as JSON: every version both ways, the proposal's names, and documents that are none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import InvalidRequestError
from reconciler.protocol import (
    KIP516,
    LeaderAndIsrResponse,
    PartitionError,
    RequestType,
    StopReplicaResponse,
    TopicErrors,
    Version,
    parse_stop_replica,
)
from reconciler.protocol.requests_json import encode_json, parse_response
from reconciler.sources import request_json
from tests.reconciler.protocol.control_requests import FULL, A, B, leader_and_isr, stop_replica, topic

ERRORS = (
    TopicErrors("a", A, (PartitionError(0, 0), PartitionError(3, 103))),
    TopicErrors("b", B, (PartitionError(1, -1),)),
)


@pytest.mark.parametrize("version", [*range(8), KIP516])
def test_a_leader_and_isr_request_reads_as_it_was_written(version: Version) -> None:
    # KIP516-4
    typed = version == KIP516 or version >= 5
    request = leader_and_isr(
        FULL if typed else RequestType.UNSPECIFIED,
        topic("a", A if typed else None, 0, 1),
        topic("b", B if typed else None, 0),
    )
    assert request_json.parse(encode_json(request, version), "here") == request


def test_the_proposal_s_names_are_those_of_its_drawing() -> None:
    # KIP516-4
    said = json.loads(encode_json(leader_and_isr(FULL, topic("a", A, 0)), KIP516))
    assert list(said) == ["controller_id", "controller_epoch", "broker_epoch", "type", "topic_states", "live_leaders"]
    assert list(said["topic_states"][0]["partition_states"][0]) == [
        *("partition", "controller_epoch", "leader", "leader_epoch", "isr", "zk_version", "replicas", "is_new"),
    ]
    assert said["type"] == 2


@pytest.mark.parametrize("version", [*range(5), KIP516])
@pytest.mark.parametrize("delete", [True, False])
def test_a_stop_replica_request_reads_as_it_was_written(version: Version, delete: bool) -> None:
    # KIP516-7
    by_id = version == KIP516
    epoch = 4 if not by_id and version >= 3 else -1
    request = stop_replica("a", 0, 7, delete=delete, epoch=epoch, topic_id=A if by_id else None)
    assert parse_stop_replica(encode_json(request, version), "here") == request


@pytest.mark.parametrize("version", [*range(8), KIP516])
def test_a_leader_and_isr_answer_reads_as_the_wire_would_have_it(version: Version) -> None:
    by_id = version == KIP516 or version >= 5
    read = parse_response(LeaderAndIsrResponse, encode_json(LeaderAndIsrResponse(11, ERRORS), version), "here")
    assert read.error == 11
    assert [(each.topic, each.topic_id) for each in read.topics] == (
        [("", A), ("", B)] if by_id else [("a", None), ("b", None)]
    )
    assert [each.partitions for each in read.topics] == [each.partitions for each in ERRORS]


@pytest.mark.parametrize("version", [*range(5), KIP516])
def test_a_stop_replica_answer_reads_as_the_wire_would_have_it(version: Version) -> None:
    read = parse_response(StopReplicaResponse, encode_json(StopReplicaResponse(0, ERRORS), version), "here")
    assert [(each.topic, each.partitions) for each in read.topics] == [(each.topic, each.partitions) for each in ERRORS]


def test_a_document_that_is_no_stop_replica_is_refused_with_every_reason() -> None:
    bad = {
        "controllerId": "1",
        "topicStates": [
            {"topicName": "a", "partitionStates": [{"partitionIndex": -1, "leaderEpoch": 1.5}, {"deletePartition": 0}]},
            {"partitionStates": 7},
            9,
        ],
    }
    with pytest.raises(InvalidRequestError, match=r"^there is not a StopReplica request: ") as caught:
        parse_stop_replica(json.dumps(bad).encode(), "there")
    assert sorted(caught.value.reasons) == [
        "controllerEpoch: missing",
        'controllerId: expected an integer, found "1"',
        "topicStates[0].partitionStates[0].leaderEpoch: expected an integer, found 1.5",
        "topicStates[0].partitionStates[0].partitionIndex: expected an integer from 0 to 2147483647, found -1",
        "topicStates[0].partitionStates[1].deletePartition: expected true or false, found 0",
        "topicStates[0].partitionStates[1].partitionIndex: missing",
        "topicStates[1].partitionStates: expected an array, found 7",
        "topicStates[1].topicName: missing",
        "topicStates[2]: expected an object, found 9",
    ]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"topicStates": []}, "controllerId: missing"),
        ({"controllerId": 1, "controllerEpoch": 1}, "topicStates: missing"),
        (
            {"controllerId": 1, "controllerEpoch": 1, "topics": [{"name": "a", "partitionIndexes": [0, 0]}]},
            "expected distinct",
        ),
        (
            {
                "controller_id": 1,
                "controller_epoch": 1,
                "partitions": [{"topic": "a", "topic_id": "x", "partition_ids": []}],
            },
            "a topic ID of 22 characters",
        ),
        (
            {
                "controllerId": 1,
                "controllerEpoch": 1,
                "partitions": [
                    {"topic": "a", "topic_id": str(A), "partition_ids": [0]},
                    {"topic": "a", "topic_id": str(B), "partition_ids": [1]},
                ],
            },
            "topic 'a' is there under the IDs",
        ),
        (
            {"controllerId": 1, "controllerEpoch": 1, "topics": [{"name": "a b", "partitionIndexes": [0]}]},
            "'a b' is no topic name",
        ),
        ([], "the document: expected an object"),
    ],
)
def test_each_of_these_is_no_stop_replica(document: object, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        parse_stop_replica(json.dumps(document).encode(), "there")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"controllerId": 1'])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="it is no JSON"):
        parse_stop_replica(data, "there")
    with pytest.raises(InvalidRequestError, match="is not a LeaderAndIsr response: it is no JSON"):
        parse_response(LeaderAndIsrResponse, data, "there")


def test_an_answer_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"errorCode: missing|partitionErrors: missing"):
        parse_response(StopReplicaResponse, b"{}", "there")
    with pytest.raises(InvalidRequestError, match="from -32768 to 32767"):
        parse_response(StopReplicaResponse, b'{"errorCode": 40000, "partitionErrors": []}', "there")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["controllerId", "controllerEpoch", "topics", "topicStates", "name", "partitionErrors", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_document_gives_anything_but_a_message_or_an_error_of_ours(document: object) -> None:
    data = json.dumps(document).encode()
    for read in (parse_stop_replica, lambda raw, place: parse_response(StopReplicaResponse, raw, place)):
        try:
            read(data, "there")
        except InvalidRequestError:
            continue
