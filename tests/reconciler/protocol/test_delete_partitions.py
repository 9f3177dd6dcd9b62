"""DeletePartitions as KIP-694 draws it, and with a delay for each topic: bytes and JSON, both ways (KIP694-2)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import InvalidRequestError
from reconciler.protocol import (
    DeletedPartition,
    DeletedPartitions,
    DeletePartitionsRequest,
    DeletePartitionsResponse,
    DeletePartitionsTopic,
    MalformedMessageError,
    UnsupportedVersionError,
    decode_delete_partitions,
    decode_response,
    encode_message,
    parse_delete_partitions,
)
from reconciler.protocol.json_messages import encode_json, parse_delete_partitions_response
from tests.reconciler.protocol.test_message_bytes import INT32

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=10)
DELAYS = st.integers(0, 2**63 - 1)
TOPICS = st.lists(st.builds(DeletePartitionsTopic, NAMES, INT32, DELAYS), max_size=3).map(tuple)
REQUESTS = st.builds(DeletePartitionsRequest, TOPICS, INT32)
INT16 = st.integers(-(2**15), 2**15 - 1)
PARTITIONS = st.lists(
    st.builds(DeletedPartition, INT32, st.sampled_from([-1, 0, 1]), INT16, st.none() | NAMES), max_size=3
)
ANSWERS = st.builds(
    DeletePartitionsResponse,
    INT16,
    st.lists(st.builds(DeletedPartitions, NAMES, PARTITIONS.map(tuple)), max_size=3).map(tuple),
    st.none() | NAMES,
    INT32,
)
ORDERS = DeletePartitionsRequest((DeletePartitionsTopic("orders", 2, 5), DeletePartitionsTopic("clicks", 1, 7)), 3_000)


@settings(max_examples=50)
@given(request=REQUESTS)
def test_a_request_with_a_delay_for_each_topic_comes_back_from_bytes_and_from_json(
    request: DeletePartitionsRequest,
) -> None:
    assert decode_delete_partitions(encode_message(request, 1), 1) == request
    assert parse_delete_partitions(encode_json(request, 1), "r.json") == request


@settings(max_examples=50)
@given(request=REQUESTS, delay_ms=DELAYS)
def test_the_drawn_form_has_one_delay_for_all_topics(request: DeletePartitionsRequest, delay_ms: int) -> None:
    sent = replace(request, topics=tuple(replace(each, delay_ms=delay_ms) for each in request.topics))
    assert decode_delete_partitions(encode_message(sent, 0), 0) == sent
    assert parse_delete_partitions(encode_json(sent, 0), "r.json") == sent


@pytest.mark.parametrize("version", [0, 1])
@settings(max_examples=50)
@given(answer=ANSWERS)
def test_an_answer_comes_back_from_bytes_and_from_json(version: int, answer: DeletePartitionsResponse) -> None:
    assert decode_response(DeletePartitionsResponse, encode_message(answer, version), version) == answer
    assert parse_delete_partitions_response(encode_json(answer, version), "a.json") == answer


def test_the_bytes_are_those_of_the_drawn_fields_in_their_order() -> None:
    sent = DeletePartitionsRequest((DeletePartitionsTopic("orders", 2, 5),), 3_000)
    timeout, delay, topic = b"\0\0\x0b\xb8", b"\0\0\0\0\0\0\0\x05", b"\x02\x07orders\0\0\0\x02"
    assert encode_message(sent, 0) == timeout + delay + topic + b"\0\0"
    assert encode_message(sent, 1) == timeout + topic + delay + b"\0\0"
    answer = DeletePartitionsResponse(0, (DeletedPartitions("orders", (DeletedPartition(3, -1),)),))
    partition = b"\x02\0\0\0\x03\xff\0\0\0\0"
    assert encode_message(answer, 0) == b"\0\0\0\0" + b"\0\0" + b"\0" + b"\x02\x07orders" + partition + b"\0\0"


def test_delays_that_differ_are_refused_by_the_form_that_has_one() -> None:
    with pytest.raises(UnsupportedVersionError, match="one delay for all its topics: send version 1, or two requests"):
        encode_message(ORDERS, 0)


def test_another_version_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"no version 2 of a DeletePartitions request: 0 to 1$"):
        encode_message(ORDERS, 2)


@pytest.mark.parametrize("cut", [0, 3, 10, 20])
def test_bytes_that_are_cut_off_are_refused(cut: int) -> None:
    with pytest.raises(MalformedMessageError, match="is no DeletePartitions request of version 1"):
        decode_delete_partitions(encode_message(ORDERS, 1)[:cut], 1)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"timeout_ms": "soon"}, 'timeout_ms: expected an integer, found "soon"'),
        ({"immediate_delete": True}, "immediate_delete: no DeletePartitions request has such a field"),
        ({"topics": [{"name": "orders", "partitions": 2}]}, "topics[0].delete_partitions_delay: missing"),
        ({"topics": [{"partitions": 2, "delete_partitions_delay": 0}]}, "topics[0].name: missing"),
    ],
)
def test_json_that_is_no_request_is_refused_with_every_reason(change: dict[str, Any], why: str) -> None:
    document = json.loads(encode_json(ORDERS, 1)) | change
    with pytest.raises(InvalidRequestError) as refused:
        parse_delete_partitions(json.dumps(document).encode(), "r.json")
    assert str(refused.value).startswith("r.json is not a DeletePartitions request: ")
    assert why in refused.value.reasons


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="DeletePartitions request: the document: expected an object"):
        parse_delete_partitions(b"[]", "r.json")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: DeletePartitionsTopic("orders", "2"), "total: an integer is expected"),  # type: ignore[arg-type]
        (lambda: DeletePartitionsRequest(("orders",), 1), "topics: each should be a DeletePartitionsTopic"),  # type: ignore[arg-type]
        (lambda: DeletedPartition(0, 0, 0, 7), "message: a text or None is expected"),  # type: ignore[arg-type]
    ],
)
def test_a_value_of_another_type_is_refused_where_it_is_made(make: Any, why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why):
        make()
