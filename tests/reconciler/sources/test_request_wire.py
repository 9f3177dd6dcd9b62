"""LeaderAndIsr requests as bytes: the same state as from JSON, with and without a length before the header."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.ids import TopicId
from reconciler.desired import Completeness
from reconciler.errors import MetadataError, UsageError
from reconciler.protocol import LeaderAndIsrRequest, PartitionState, RequestType, TopicState
from reconciler.protocol.header import encode_request
from reconciler.protocol.messages import tree
from reconciler.sources import load, request_json, request_wire
from tests.reconciler.protocol.control_requests import FULL, INCREMENTAL, A, B, leader_and_isr, stop_replica, topic

REQUEST = leader_and_isr(FULL, topic("orders", A, 0, 1), topic("other", B, 0))


def written(folder: Path, data: bytes, name: str = "capture.bin") -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


BROKERS = st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True).map(tuple)
STATES = st.builds(
    PartitionState,
    partition=st.integers(0, 3),
    controller_epoch=st.just(3),
    leader=st.integers(-1, 5),
    leader_epoch=st.integers(0, 9),
    isr=BROKERS,
    partition_epoch=st.integers(0, 9),
    replicas=BROKERS,
    is_new=st.booleans(),
)
STATE_LISTS = st.lists(STATES, max_size=4, unique_by=lambda state: state.partition).map(tuple)


@st.composite
def requests(draw: st.DrawFn) -> tuple[LeaderAndIsrRequest, int]:
    """A request, and a version that has words for all of it."""
    version = draw(st.integers(1, 7))
    names = draw(st.lists(st.sampled_from(["a", "b", "c"]), unique=True))
    # A list by partition, as of versions 0 and 1, has no words for a topic without any.
    lists = STATE_LISTS if version > 1 else STATE_LISTS.filter(bool)
    topics = [
        TopicState(name, TopicId.from_halves(1, 1 + number) if version >= 5 else None, draw(lists))
        for number, name in enumerate(names)
    ]
    kind = draw(st.sampled_from(RequestType)) if version >= 5 else RequestType.UNSPECIFIED
    return LeaderAndIsrRequest(9, draw(st.integers(0, 99)), tuple(topics), type=kind), version


@given(requests(), st.integers(0, 5), st.booleans())
def test_bytes_make_the_state_that_the_json_of_the_same_request_makes(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[LeaderAndIsrRequest, int], node_id: int, with_length: bool
) -> None:
    # KIP516-4
    request, version = made
    folder = tmp_path_factory.mktemp("requests")
    data = encode_request(request, version, 0x0102_0304, "controller-1")
    wire = request_wire.load(written(folder, framed(data) if with_length else data) + f"@{node_id}")
    text = request_json.load(written(folder, orjson.dumps(tree(request, version)), "r.json") + f"@{node_id}")
    assert wire.replicas.equals(text.replicas)
    assert wire.topics.equals(text.topics)
    assert wire.brokers.equals(text.brokers)
    assert replace(wire.identity, location="", digest="") == replace(text.identity, location="", digest="")


@pytest.mark.parametrize("version", range(8))
@pytest.mark.parametrize("client", [None, "", "controller-1"])
@pytest.mark.parametrize("frame", [bytes, framed])
def test_a_request_of_every_version_is_recognised_and_read(
    tmp_path: Path, version: int, client: str | None, frame: Callable[[bytes], bytes]
) -> None:
    request = leader_and_isr(RequestType.UNSPECIFIED, topic("a", None, 0))
    path = written(tmp_path, frame(encode_request(request, version, 5, client)))
    assert request_wire.recognises(path)
    (state,) = load(f"wire:{path}@2")
    assert (state.identity.source, state.identity.scope) == ("request", frozenset({2}))
    assert state.replicas.select(["topic", "node_id"]).to_pylist() == [{"topic": "a", "node_id": 2}]


def test_the_broker_that_received_it_is_asked_for_where_it_cannot_be_told(tmp_path: Path) -> None:
    path = written(tmp_path, encode_request(REQUEST, 7))
    with pytest.raises(UsageError, match=f"name the broker that received it, as wire:{path}@1"):
        load(path)


def test_requests_in_a_folder_make_one_state(tmp_path: Path) -> None:
    for node, kind in ((1, FULL), (2, INCREMENTAL)):
        only = PartitionState(0, 1, node, 0, (node,), 0, (node,))
        request = leader_and_isr(kind, TopicState(f"t{node}", (A, B)[node - 1], (only,)))
        written(tmp_path, encode_request(request, 7), f"{node}.bin")
    (state,) = load(f"wire:{tmp_path}")
    assert state.identity.scope == frozenset({1, 2})
    assert state.identity.completeness is Completeness.INCREMENTAL


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"text", "header"),
        (encode_request(stop_replica("a", 1), 4), "is a StopReplica request, which says what a broker should let go"),
        (struct.pack(">hhih", 3, 0, 0, -1), "does not begin with the header of a LeaderAndIsr request"),
        (struct.pack(">hhih", 4, 8, 0, -1), "no version 8 of a LeaderAndIsr request"),
        (encode_request(REQUEST, 7)[:-1], "capture.bin"),
        (encode_request(REQUEST, 7) + b"\0", "bytes follow"),
        (framed(encode_request(REQUEST, 7))[:-1], "capture.bin"),
    ],
)
def test_bytes_that_are_no_whole_request_are_refused(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(MetadataError, match=said) as caught:
        load(f"wire:{written(tmp_path, data)}@1")
    assert "capture.bin" in str(caught.value)


@given(st.integers(0, len(encode_request(REQUEST, 7)) - 1))
def test_a_request_that_is_cut_off_anywhere_is_refused(at: int) -> None:
    with pytest.raises(MetadataError):
        request_wire.parse(encode_request(REQUEST, 7)[:at], "r")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    try:
        request_wire.parse(data, "r")
    except MetadataError as error:
        assert "r" in str(error)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\4\0\7",
        struct.pack(">hhih", 4, 7, 0, 3) + b"a\0b",
        struct.pack(">hhih", 4, 7, 0, -2),
        struct.pack(">hhih", 5, 3, 0, -1),
        b"Topic: orders\tPartitionCount: 1",
    ],
)
def test_other_files_are_not_taken_for_requests(tmp_path: Path, data: bytes) -> None:
    assert not request_wire.recognises(written(tmp_path, data))
    assert not request_wire.recognises(str(tmp_path))
