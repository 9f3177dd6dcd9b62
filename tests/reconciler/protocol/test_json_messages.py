"""Requests and answers as JSON: every version both ways, the proposal's names, and every reason for other documents."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.ids import TopicId
from reconciler.errors import SHOWN_REASONS, InvalidRequestError
from reconciler.protocol import (
    KIP516,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LiveLeader,
    PartitionError,
    PartitionState,
    RequestType,
    StopReplicaResponse,
    TopicErrors,
    TopicState,
    Version,
    parse_leader_and_isr,
    parse_request,
    parse_stop_replica,
)
from reconciler.protocol.json_messages import encode_json, parse_response
from tests.reconciler.protocol.control_requests import FULL, A, B, leader_and_isr, stop_replica, topic
from tests.reconciler.protocol.json_requests import ID, PROPOSED, SHIPPED, changed

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
    assert parse_leader_and_isr(encode_json(request, version), "here") == request
    assert parse_request(encode_json(request, version), "here") == request


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
    assert parse_request(encode_json(request, version), "here") == request


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
def test_a_document_with_one_fault_is_no_stop_replica(document: object, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        parse_stop_replica(json.dumps(document).encode(), "there")


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"", "the file is empty"), *((each, "it is no JSON") for each in (b"{", b"\xff", b'{"controllerId": 1'))],
)
def test_what_is_no_json_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"is not a StopReplica request: {said}"):
        parse_stop_replica(data, "there")
    with pytest.raises(InvalidRequestError, match=f"is not a LeaderAndIsr response: {said}"):
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


def parse(document: object) -> LeaderAndIsrRequest:
    return parse_leader_and_isr(json.dumps(document).encode(), "r.json")


def reasons(document: object) -> tuple[str, ...]:
    with pytest.raises(InvalidRequestError) as caught:
        parse(document)
    return caught.value.reasons


def test_the_shipped_shape_is_read_whole() -> None:
    state = PartitionState(0, 3, 1, 5, (1, 2), 9, (1, 2, 3), (3,), (), True, 1)
    topics = (TopicState("foo", ID, (state,)),)
    leaders = (LiveLeader(1, "host1", 9092),)
    assert parse(SHIPPED) == LeaderAndIsrRequest(1000, 3, topics, 2**40, RequestType.FULL, True, leaders)


def test_the_shape_of_the_proposal_is_read_whole() -> None:
    state = PartitionState(0, 3, 1, 5, (1, 2), 9, (1, 2, 3), is_new=True)
    topics = (TopicState("foo", ID, (state,)),)
    leaders = (LiveLeader(1, "host1", 9092),)
    assert parse(PROPOSED) == LeaderAndIsrRequest(1000, 3, topics, 2**40, RequestType.FULL, False, leaders)


@pytest.mark.shared
def test_every_golden_request_is_read_as_kafka_wrote_it(shared: Path) -> None:
    vectors = json.loads((shared / "kafka/golden/control_requests_and_replica_assignment.json").read_bytes())
    golden = [vector["input"] for vector in vectors if vector["kind"] == "LeaderAndIsrRequest"]
    assert [vector["version"] for vector in golden] == [0, 1, 2, 5, 6, 7]
    for vector in golden:
        version, request = vector["version"], parse_leader_and_isr(vector["json"].encode(), "golden")
        (topic,) = request.topics
        (state,) = topic.partitions
        assert (request.controller_id, request.controller_epoch) == (1000, 3)
        assert request.broker_epoch == (77 if version >= 2 else -1)
        assert request.type is (RequestType.FULL if version >= 5 else RequestType.UNSPECIFIED)
        assert request.is_kraft_controller is (version >= 7)
        assert (topic.topic, topic.topic_id is not None) == ("foo", version >= 5)
        assert (state.isr, state.replicas, state.partition_epoch) == ((1, 2), (1, 2, 3), 9)
        assert state.adding == ((3,) if version >= 5 else ())
        assert state.is_new is (version >= 1)
        assert state.leader_recovery_state == (1 if version >= 6 else 0)


def test_the_wrapper_of_a_request_log_is_taken_off() -> None:
    assert parse({"requestHeader": {"requestApiKey": 4}, "request": SHIPPED}) == parse(SHIPPED)


def test_another_request_in_a_request_log_is_refused() -> None:
    found = reasons({"requestHeader": {"requestApiKey": 5}, "request": SHIPPED})
    assert found == ("requestHeader.requestApiKey: expected 4 for LeaderAndIsr, found 5",)


@pytest.mark.parametrize(
    ("value", "kind"), [(0, 0), (1, 1), (2, 2), (9, 0), ("INCREMENTAL", 1), ("UNSPECIFIED", 0), ("UNKNOWN", 0)]
)
def test_the_type_is_a_number_or_a_name(value: object, kind: int) -> None:
    assert parse({**SHIPPED, "type": value}).type == kind


@pytest.mark.parametrize("value", ["Full", True, 2.0, None, []])
def test_a_type_that_is_neither_is_refused(value: object) -> None:
    (reason,) = reasons({**SHIPPED, "type": value})
    assert reason.startswith("type: expected")


@pytest.mark.parametrize("text", ["AAAAAAAAAAAAAAAAAAAAAA", None])
def test_a_zero_or_absent_topic_id_is_none(text: str | None) -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"][0]["topicId"] = text
    assert parse(document).topics[0].topic_id is None


@pytest.mark.parametrize("text", ["short", "", 7, []])
def test_a_malformed_topic_id_is_refused(text: object) -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"][0]["topicId"] = text
    (reason,) = reasons(document)
    assert reason.startswith("topicStates[0].topicId: expected a topic ID")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"leader": "x"}, 'leader: expected an integer, found "x"'),
        ({"leader": True}, "leader: expected an integer, found true"),
        ({"leader": 1.0}, "leader: expected an integer, found 1.0"),
        ({"leader": 2**31}, "leader: expected an integer from -2147483648 to 2147483647, found 2147483648"),
        ({"leaderEpoch": None}, "leaderEpoch: expected an integer, found null"),
        ({"partitionIndex": -1}, "partitionIndex: expected an integer from 0 to 2147483647, found -1"),
        ({"replicas": [1, 1]}, "replicas: expected distinct broker ids, found [1,1]"),
        ({"replicas": [1, -2]}, "replicas[1]: expected a broker id, found -2"),
        ({"isr": {}}, "isr: expected an array, found an object"),
        ({"isNew": 1}, "isNew: expected true or false, found 1"),
        ({"replicas": ...}, "replicas: missing"),
        ({"partitionEpoch": ...}, "partitionEpoch: missing"),
    ],
)
def test_a_wrong_field_of_a_partition_is_a_reason_with_its_place(values: dict[str, Any], reason: str) -> None:
    assert reasons(changed(**values)) == (f"topicStates[0].partitionStates[0].{reason}",)


def test_all_reasons_come_at_once() -> None:
    document = changed(leader="x", isr=7)
    document["controllerId"] = False
    document["liveLeaders"] = [{}]
    assert reasons(document) == (
        "controllerId: expected an integer, found false",
        'topicStates[0].partitionStates[0].leader: expected an integer, found "x"',
        "topicStates[0].partitionStates[0].isr: expected an array, found 7",
        "liveLeaders[0].brokerId: missing",
        "liveLeaders[0].hostName: missing",
        "liveLeaders[0].port: missing",
    )


def test_a_message_lists_the_first_reasons_and_counts_the_rest_which_are_kept() -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"] = [7] * 50
    with pytest.raises(InvalidRequestError, match=f"; and {50 - SHOWN_REASONS} more$") as caught:
        parse(document)
    assert len(caught.value.reasons) == 50


def test_a_name_that_no_topic_can_have_is_refused() -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"][0]["topicName"] = "../orders"
    (reason,) = reasons(document)
    assert reason.startswith("topicStates[0].topicName: '../orders' is no topic name")


# KIP37-1
def test_a_topic_of_a_namespace_is_read_under_its_full_name() -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"][0]["topicName"] = "org:apache:orders"
    assert parse(document).topics[0].topic == "org:apache:orders"


def test_a_partition_that_is_there_twice_is_refused() -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"][0]["partitionStates"] *= 2
    assert reasons(document) == ("topicStates[0].partitionStates[1]: foo-0 is there twice",)


def test_a_topic_that_is_there_twice_is_one_topic_unless_its_ids_differ() -> None:
    document = copy.deepcopy(SHIPPED)
    again = copy.deepcopy(document["topicStates"][0])
    again["partitionStates"][0]["partitionIndex"] = 1
    document["topicStates"].append(again)
    (topic,) = parse(document).topics
    assert [state.partition for state in topic.partitions] == [0, 1]
    again["topicId"] = str(TopicId.from_halves(4, 4))
    (reason,) = reasons(document)
    assert reason.startswith(f"topicStates[1].topicId: expected the ID that foo has before, {ID}")


def test_two_topics_with_one_id_are_refused() -> None:
    document = copy.deepcopy(SHIPPED)
    document["topicStates"].append({**document["topicStates"][0], "topicName": "bar"})
    (reason,) = reasons(document)
    assert reason == f"topic ID {ID}: expected of one topic, found of foo and bar"


@pytest.mark.parametrize("document", [[], 7, "x", None])
def test_a_document_that_is_no_object_is_refused(document: object) -> None:
    (reason,) = reasons(document)
    assert reason.startswith("the document: expected an object")


def test_a_document_without_topics_is_refused() -> None:
    assert reasons({"controllerId": 1, "controllerEpoch": 1}) == ("topicStates: missing",)


@pytest.mark.parametrize(("data", "said"), [(b"", "the file is empty"), (b"{", "no JSON"), (b"\xff", "no JSON")])
def test_bytes_that_are_no_json_are_no_leader_and_isr_request(data: bytes, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        parse_leader_and_isr(data, "r.json")


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="no JSON"):
        parse_leader_and_isr(b'{"topicStates":' + b"[" * 100_000, "r.json")


SCALARS = st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False) | st.text(max_size=23)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
)


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


@given(st.sampled_from([SHIPPED, PROPOSED]), st.data(), ANYTHING)
def test_any_value_in_any_place_gives_a_request_or_its_reasons(
    base: dict[str, Any], data: st.DataObject, value: object
) -> None:
    document: Any = copy.deepcopy(base)
    place = data.draw(st.sampled_from(places(base)))
    if not place:
        document = value
    else:
        owner = document
        for step in place[:-1]:
            owner = owner[step]
        owner[place[-1]] = value
    try:
        assert isinstance(parse(document), LeaderAndIsrRequest)
    except InvalidRequestError as error:
        assert error.reasons


@given(st.binary(max_size=80))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequestError):
        parse_leader_and_isr(data, "r.json")
