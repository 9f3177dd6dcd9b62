"""UpdateMetadata, bytes and JSON: every version against another library, and the forms that two proposals draw."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import InvalidRequestError
from reconciler.protocol import (
    KIP516,
    KIP694,
    ControllerRequest,
    ControllerResponse,
    RequestType,
    UnsupportedVersionError,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopic,
    Version,
    begins_update_metadata,
    decode_request,
    decode_response,
    decode_update_metadata,
    encode_message,
    parse_metadata_request,
    parse_request,
)
from reconciler.protocol.json_messages import encode_json
from reconciler.protocol.messages import encode_request, encode_response
from reconciler.protocol.schema import MalformedMessageError
from tests.reconciler.protocol.control_requests import A, B
from tests.reconciler.protocol.test_message_bytes import BROKERS, IDS, INT32, NAMES, by_kio, kio_bytes, numbered, uuid

FORMS: list[Version] = [*range(9), KIP516, KIP694]
STATES = st.builds(
    UpdateMetadataPartition,
    *(st.just(0), INT32, INT32, INT32, BROKERS, INT32, BROKERS, BROKERS, st.sampled_from([-1, 0, 1])),
)
TOPICS = st.lists(
    st.builds(UpdateMetadataTopic, NAMES, IDS, st.lists(STATES, min_size=1, max_size=3).map(numbered)),
    max_size=3,
    unique_by=(lambda each: each.topic, lambda each: each.topic_id or object()),
).map(tuple)
ENDPOINTS = st.builds(UpdateMetadataEndpoint, INT32, st.text(min_size=1, max_size=5), st.just("PLAINTEXT"), st.just(0))
LIVE = st.builds(
    UpdateMetadataBroker, INT32, st.lists(ENDPOINTS, min_size=1, max_size=2).map(tuple), st.none() | st.text(max_size=3)
)
REQUESTS = st.builds(
    UpdateMetadataRequest,
    *(INT32, INT32, TOPICS, st.lists(LIVE, max_size=2).map(tuple)),
    *(st.integers(-(2**63), 2**63 - 1), st.sampled_from(RequestType), st.booleans()),
)


def sayable(request: UpdateMetadataRequest, version: Version) -> UpdateMetadataRequest:
    """The part of a request that a form has words for."""
    number = version if isinstance(version, int) else 6
    has_ids = number >= 7 or not isinstance(version, int)

    def state(each: UpdateMetadataPartition) -> UpdateMetadataPartition:
        return replace(each, offline=each.offline if number >= 4 else (), mode=each.mode if version == KIP694 else 0)

    def broker(each: UpdateMetadataBroker) -> UpdateMetadataBroker:
        rack = each.rack if number >= 2 else None
        return replace(each, endpoints=each.endpoints if number else each.endpoints[:1], rack=rack)

    return replace(
        request,
        topics=tuple(
            UpdateMetadataTopic(each.topic, each.topic_id if has_ids else None, tuple(map(state, each.partitions)))
            for each in request.topics
        ),
        live_brokers=tuple(map(broker, request.live_brokers)),
        broker_epoch=request.broker_epoch if number >= 5 else -1,
        type=request.type if number >= 8 else RequestType.UNSPECIFIED,
        is_kraft_controller=request.is_kraft_controller and number >= 8,
    )


PLAIN = UpdateMetadataBroker(1, (UpdateMetadataEndpoint(9092, "host1", "PLAINTEXT", 0),), "r1")
ORDERS = UpdateMetadataTopic("orders", A, (UpdateMetadataPartition(0, 3, 1, 5, (1, 2), 9, (1, 2, 3), (3,)),))
ONE: ControllerRequest = UpdateMetadataRequest(1000, 3, (ORDERS,), (PLAIN,), 77)


# KIP516-9, KIP694-1
@pytest.mark.parametrize("version", FORMS)
@settings(max_examples=25)
@given(request=REQUESTS)
def test_a_request_comes_back_from_bytes_and_from_json(version: Version, request: UpdateMetadataRequest) -> None:
    sent = sayable(request, version)
    assert decode_update_metadata(encode_message(sent, version), version) == sent
    document = encode_json(sent, version)
    assert parse_metadata_request(document, "r.json") == parse_request(document, "r.json") == sent


@pytest.mark.parametrize("version", range(9))
@settings(max_examples=25)
@given(request=REQUESTS)
def test_kio_reads_our_requests_and_writes_the_same(version: int, request: UpdateMetadataRequest) -> None:
    sent = sayable(request, version)
    data = encode_message(sent, version)
    read = by_kio("update_metadata.request", version, data)
    assert (read.controller_id, read.controller_epoch) == (sent.controller_id, sent.controller_epoch)
    if version >= 5:
        assert [each.topic_name for each in read.topic_states] == [each.topic for each in sent.topics]
    if version >= 7:
        assert [each.topic_id for each in read.topic_states] == [uuid(each.topic_id) for each in sent.topics]
    if version >= 1:
        assert [each.rack for each in read.live_brokers if version >= 2] == [
            each.rack for each in sent.live_brokers if version >= 2
        ]
        hosts = [[one.host for one in each.endpoints] for each in read.live_brokers]
        assert hosts == [[one.host for one in each.endpoints] for each in sent.live_brokers]
    assert kio_bytes(read) == data


@pytest.mark.parametrize("version", [0, 5, 6, 7, 8])
def test_the_header_before_it_names_kind_and_version(version: int) -> None:
    data = encode_request(sayable(ONE, version), version, 12, "controller-1")  # type: ignore[arg-type]
    for framed in (data, len(data).to_bytes(4, "big") + data):
        header, read = decode_request(framed)
        assert (header.api_key, header.api_version, header.correlation_id) == (6, version, 12)
        assert read == sayable(ONE, version)  # type: ignore[arg-type]
        assert begins_update_metadata(framed[:64])
    assert not begins_update_metadata(b"\0\4" + data[2:])


@pytest.mark.parametrize("version", FORMS)
def test_the_answer_is_one_error(version: Version) -> None:
    sent: ControllerResponse = UpdateMetadataResponse(77)
    assert decode_response(UpdateMetadataResponse, encode_message(sent, version), version) == sent
    if isinstance(version, int):
        header = 4 + (version >= 6)
        assert encode_response(sent, version, 12)[header:] == encode_message(sent, version)


def test_the_proposals_tag_the_topic_id_and_only_one_has_the_mode() -> None:
    leaving = replace(ONE, topics=(replace(ORDERS, partitions=(replace(ORDERS.partitions[0], mode=1),)),))
    (topic,) = json.loads(encode_json(leaving, KIP694))["topic_states"]
    assert (topic["topic_name"], topic["topic_id"], topic["partition_states"][0]["mode"]) == ("orders", str(A), 1)
    tagged = b"\x01\x00\x10" + A.to_bytes()
    assert tagged in encode_message(ONE, KIP516) and tagged in encode_message(leaving, KIP694)
    for version in (8, KIP516):
        with pytest.raises(UnsupportedVersionError, match="has no mode, and cannot say that it is 1"):
            encode_message(leaving, version)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "version"),
    [({"type": RequestType.FULL}, 7), ({"is_kraft_controller": True}, 7), ({"type": RequestType.FULL}, KIP516)],
)
def test_what_a_form_has_no_words_for_is_not_written(changes: dict[str, Any], version: Version) -> None:
    with pytest.raises(UnsupportedVersionError, match="cannot say that it is"):
        encode_message(replace(ONE, **changes), version)


def test_there_are_no_other_versions() -> None:
    for version in (-1, 9):
        with pytest.raises(UnsupportedVersionError, match="UpdateMetadata request: 0 to 8, and kip-516 or kip-694 for"):
            encode_message(ONE, version)


def test_a_request_that_is_cut_off_anywhere_is_refused() -> None:
    data = encode_message(ONE, 8)
    for end in range(len(data)):
        with pytest.raises(MalformedMessageError, match="is no UpdateMetadata request of version 8"):
            decode_update_metadata(data[:end], 8)


def test_what_cannot_be_meant_is_refused_with_every_reason() -> None:
    bad = UpdateMetadataPartition(-1, 3, 1, 5, (2, 2), 9, (1,), (-4,))
    twice = UpdateMetadataTopic("orders", B, (bad,)), UpdateMetadataTopic("no/name", B, ())
    with pytest.raises(InvalidRequestError, match="UpdateMetadata request") as caught:
        decode_update_metadata(encode_message(UpdateMetadataRequest(1, 1, twice), 8), 8)
    assert list(caught.value.reasons) == [
        "'no/name' is no topic name: it has a character other than a-z A-Z 0-9 . _ -",
        f"topic ID {B} is expected of one topic, and found of 'orders' and 'no/name'",
        "partition -1 of topic 'orders': 0 to 2147483647 is expected",
        "orders--1: isr are no distinct broker ids: 2, 2",
        "orders--1: offline are no distinct broker ids: -4",
    ]


def test_one_topic_in_two_pieces_is_one_topic() -> None:
    second = replace(ORDERS, partitions=(replace(ORDERS.partitions[0], partition=1),))
    read = decode_update_metadata(encode_message(replace(ONE, topics=(ORDERS, second)), 7), 7)
    assert [(each.topic, [one.partition for one in each.partitions]) for each in read.topics] == [("orders", [0, 1])]


def document(**more: Any) -> dict[str, Any]:
    """A LeaderAndIsr request as JSON, with further fields of its partition, its topic or itself."""
    state = {
        **dict.fromkeys(("partitionIndex", "controllerEpoch", "leader", "leaderEpoch", "partitionEpoch"), 1),
        **{"isr": [1], "replicas": [1], **more.pop("state", {})},
    }
    topic = {"topicName": "orders", "topicId": str(A), "partitionStates": [state], **more.pop("topic", {})}
    return {"controllerId": 9, "controllerEpoch": 1, "type": 2, "topicStates": [topic], "liveLeaders": [], **more}


@pytest.mark.parametrize(
    "more",
    [
        {"liveBrokers": []},
        {"state": {"offlineReplicas": []}},
        {"state": {"offline_replicas": []}},
        {"state": {"mode": 0}},
    ],
    ids=str,
)
def test_bare_json_with_a_field_that_only_update_metadata_has_is_no_leader_and_isr(more: dict[str, Any]) -> None:
    data = json.dumps(document(**more)).encode()
    with pytest.raises(InvalidRequestError, match="UpdateMetadata request"):
        parse_request(data, "r.json")
    with pytest.raises(InvalidRequestError, match="UpdateMetadata request"):
        parse_metadata_request(data, "r.json")


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"dryRun": True}, "dryRun"),
        ({"topic": {"keep": True}}, r"topicStates\[0\].keep"),
        ({"state": {"deleteAfter": 1}}, r"topicStates\[0\].partitionStates\[0\].deleteAfter"),
        ({"liveLeaders": [{"brokerId": 1, "hostName": "h", "port": 1, "rack": ""}]}, r"liveLeaders\[0\].rack"),
    ],
)
def test_a_field_that_no_form_has_is_refused_where_the_request_may_be_carried_out(more: Any, place: str) -> None:
    data = json.dumps(document(**more)).encode()
    with pytest.raises(InvalidRequestError, match=f"{place}: no LeaderAndIsr request has such a field"):
        parse_request(data, "r.json")
    assert parse_metadata_request(data, "r.json") == parse_request(json.dumps(document()).encode(), "r.json") or (
        "liveLeaders" in more
    )


def test_the_same_holds_for_a_stop_replica_and_in_a_line_of_a_request_log() -> None:
    stop = {"controllerId": 9, "controllerEpoch": 1, "deletePartitions": True, "topics": [{"name": "a", "except": [1]}]}
    wrapped = {"requestHeader": {"requestApiKey": 5}, "request": stop}
    for each in (stop, wrapped):
        with pytest.raises(InvalidRequestError, match=r"topics\[0\].except: no StopReplica request has such a field"):
            parse_request(json.dumps(each).encode(), "r.json")
    logged = {"requestHeader": {"requestApiKey": 6}, "request": json.loads(encode_json(ONE, 7))}
    assert parse_request(json.dumps(logged).encode(), "r.json") == ONE
