"""Control messages as bytes, with and without headers: every version against another library, and damaged bytes."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout.ids import TopicId
from reconciler import ReconcilerError
from reconciler.errors import InvalidRequestError
from reconciler.protocol import (
    KIP516,
    LONGEST_BEGINNING,
    ControlRequest,
    ControlResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LiveLeader,
    PartitionError,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    StopTopic,
    TopicErrors,
    TopicState,
    UnsupportedVersionError,
    Version,
    begins_leader_and_isr,
    decode_leader_and_isr,
    decode_request,
    decode_response,
    decode_stop_replica,
    encode_message,
)
from reconciler.protocol.messages import (
    RequestHeader,
    decode_response_header,
    encode_request,
    encode_response,
    is_flexible,
    tree,
)
from reconciler.protocol.reading import MAX_MESSAGE_BYTES
from reconciler.protocol.schema import MalformedMessageError
from tests.reconciler.protocol.control_requests import FULL, A, B, leader_and_isr, stop_replica, topic

LEADING = [*range(8), KIP516]
STOPPING = [*range(5), KIP516]

INT32 = st.integers(-(2**31), 2**31 - 1)
BROKERS = st.lists(st.integers(0, 2**31 - 1), max_size=4, unique=True).map(tuple)
NAMES = st.text("abz._-", min_size=1, max_size=9).filter(lambda name: name not in (".", ".."))
IDS = st.binary(min_size=16, max_size=16).map(TopicId).map(lambda each: None if each.is_zero else each)
PARTITIONS = st.builds(
    PartitionState,
    st.just(0), INT32, INT32, INT32, BROKERS, INT32, BROKERS, BROKERS, BROKERS, st.booleans(), st.sampled_from([0, 1]),
)  # fmt: skip


def numbered(states: list[Any]) -> tuple[Any, ...]:
    return tuple(replace(each, partition=number * 7) for number, each in enumerate(states))


TOPICS = st.lists(
    st.builds(TopicState, NAMES, IDS, st.lists(PARTITIONS, min_size=1, max_size=3).map(numbered)),
    max_size=3,
    unique_by=(lambda each: each.topic, lambda each: each.topic_id or object()),
).map(tuple)
LEADERS = st.lists(st.builds(LiveLeader, INT32, st.text(max_size=5), INT32), max_size=2).map(tuple)
REQUESTS = st.builds(
    LeaderAndIsrRequest,
    INT32, INT32, TOPICS, st.integers(-(2**63), 2**63 - 1), st.sampled_from(RequestType), st.booleans(), LEADERS,
)  # fmt: skip
STOPPED = st.builds(StopPartition, st.just(0), st.integers(-2, 2**31 - 1), st.booleans())
STOPS = st.builds(
    StopReplicaRequest,
    INT32,
    INT32,
    st.lists(
        st.builds(StopTopic, NAMES, IDS, st.lists(STOPPED, min_size=1, max_size=3).map(numbered)),
        max_size=3,
        unique_by=(lambda each: each.topic, lambda each: each.topic_id or object()),
    ).map(tuple),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
)


def sayable(request: LeaderAndIsrRequest, version: Version) -> LeaderAndIsrRequest:
    """The part of a request that a version has words for."""
    number = 5 if version == KIP516 else version

    def state(each: PartitionState) -> PartitionState:
        moving = {} if number >= 3 and version != KIP516 else {"adding": (), "removing": ()}
        new = {} if number >= 1 else {"is_new": False}
        return replace(each, **moving, **new, **({} if number >= 6 else {"leader_recovery_state": 0}))

    topics = tuple(
        TopicState(each.topic, each.topic_id if number >= 5 else None, tuple(map(state, each.partitions)))
        for each in request.topics
    )
    return replace(
        request,
        topics=topics,
        broker_epoch=request.broker_epoch if number >= 2 else -1,
        type=request.type if number >= 5 else RequestType.UNSPECIFIED,
        is_kraft_controller=request.is_kraft_controller and number >= 7,
    )


def stoppable(request: StopReplicaRequest, version: Version) -> StopReplicaRequest:
    """The same for a StopReplica; the older forms have one flag, and no epochs."""
    old = version == KIP516 or version < 3
    topics = tuple(
        StopTopic(
            each.topic,
            each.topic_id if version == KIP516 else None,
            tuple(StopPartition(one.partition, delete=True) for one in each.partitions) if old else each.partitions,
        )
        for each in request.topics
    )
    epoch = request.broker_epoch if version != 0 else -1
    return replace(
        request,
        topics=topics,
        broker_epoch=epoch,
        is_kraft_controller=request.is_kraft_controller and version == 4,
    )


@pytest.mark.parametrize("version", LEADING)
@settings(max_examples=40)
@given(request=REQUESTS)
def test_a_leader_and_isr_request_comes_back_from_its_bytes(version: Version, request: LeaderAndIsrRequest) -> None:
    # KIP516-4
    sent = sayable(request, version)
    assert decode_leader_and_isr(encode_message(sent, version), version) == sent


@pytest.mark.parametrize("version", STOPPING)
@settings(max_examples=40)
@given(request=STOPS)
def test_a_stop_replica_request_comes_back_from_its_bytes(version: Version, request: StopReplicaRequest) -> None:
    # KIP516-7
    sent = stoppable(request, version)
    assert decode_stop_replica(encode_message(sent, version), version) == sent


# kio as an oracle


def by_kio(kind: str, version: int, data: bytes) -> Any:
    """What kio reads."""
    from kio.serial import entity_reader

    name, _, which = kind.partition(".")
    entity = getattr(import_module(f"kio.schema.{name}.v{version}.{which}"), f"{camel(name)}{which.title()}")
    found, size = entity_reader(entity)(data, 0)
    assert size == len(data)
    return found


def camel(name: str) -> str:
    return "".join(part.title() for part in name.split("_"))


def kio_bytes(entity: Any) -> bytes:
    """What kio writes."""
    from kio.serial import entity_writer

    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def uuid(topic_id: TopicId | None) -> UUID | None:
    return None if topic_id is None else UUID(bytes=topic_id.to_bytes())


@pytest.mark.parametrize("version", range(8))
@settings(max_examples=25)
@given(request=REQUESTS)
def test_kio_reads_our_leader_and_isr_requests_and_writes_the_same(version: int, request: LeaderAndIsrRequest) -> None:
    sent = sayable(request, version)
    data = encode_message(sent, version)
    read = by_kio("leader_and_isr.request", version, data)
    assert (read.controller_id, read.controller_epoch) == (sent.controller_id, sent.controller_epoch)
    if version >= 2:
        assert read.broker_epoch == sent.broker_epoch
        assert [each.topic_name for each in read.topic_states] == [each.topic for each in sent.topics]
        states = [one for each in read.topic_states for one in each.partition_states]
    else:
        states = list(read.ungrouped_partition_states)
    ours = [one for each in sent.topics for one in each.partitions]
    for theirs, one in zip(states, ours, strict=True):
        assert (theirs.partition_index, theirs.leader, theirs.leader_epoch) == (
            *(one.partition, one.leader, one.leader_epoch),
        )
        assert (theirs.isr, theirs.replicas, theirs.partition_epoch) == (one.isr, one.replicas, one.partition_epoch)
        if version >= 3:
            assert (theirs.adding_replicas, theirs.removing_replicas) == (one.adding, one.removing)
        if version >= 1:
            assert theirs.is_new == one.is_new
    if version >= 5:
        assert read.type_ == sent.type
        assert [each.topic_id for each in read.topic_states] == [uuid(each.topic_id) for each in sent.topics]
    assert kio_bytes(read) == data


@pytest.mark.parametrize("version", range(5))
@settings(max_examples=25)
@given(request=STOPS)
def test_kio_reads_our_stop_replica_requests_and_writes_the_same(version: int, request: StopReplicaRequest) -> None:
    data = encode_message(stoppable(request, version), version)
    assert kio_bytes(by_kio("stop_replica.request", version, data)) == data


ERRORS = (
    TopicErrors("a", A, (PartitionError(0, 0), PartitionError(3, 103))),
    TopicErrors("b", B, (PartitionError(1, -1),)),
)


@pytest.mark.parametrize("version", range(8))
def test_kio_reads_our_leader_and_isr_answers(version: int) -> None:
    data = encode_message(LeaderAndIsrResponse(11, ERRORS), version)
    read = by_kio("leader_and_isr.response", version, data)
    assert int(read.error_code) == 11
    assert kio_bytes(read) == data


@pytest.mark.parametrize("version", range(5))
def test_kio_reads_our_stop_replica_answers(version: int) -> None:
    data = encode_message(StopReplicaResponse(0, ERRORS), version)
    assert kio_bytes(by_kio("stop_replica.response", version, data)) == data


# Answers


@pytest.mark.parametrize("version", LEADING)
def test_a_leader_and_isr_answer_comes_back_by_name_or_by_id(version: Version) -> None:
    # KIP516-4: "the topic name field has been removed"
    read = decode_response(LeaderAndIsrResponse, encode_message(LeaderAndIsrResponse(0, ERRORS), version), version)
    by_id = version == KIP516 or version >= 5
    assert read == LeaderAndIsrResponse(
        0, tuple(replace(each, topic="") if by_id else replace(each, topic_id=None) for each in ERRORS)
    )


@pytest.mark.parametrize("version", STOPPING)
def test_a_stop_replica_answer_comes_back_by_name(version: Version) -> None:
    # KIP516-7
    read = decode_response(StopReplicaResponse, encode_message(StopReplicaResponse(0, ERRORS), version), version)
    kept = version == KIP516
    assert read == StopReplicaResponse(0, tuple(each if kept else replace(each, topic_id=None) for each in ERRORS))


def test_topics_without_an_id_are_one_group_in_an_answer_by_id() -> None:
    # FACTS §4.2, 7
    nameless = tuple(replace(each, topic_id=None) for each in ERRORS)
    read = decode_response(LeaderAndIsrResponse, encode_message(LeaderAndIsrResponse(0, nameless), 7), 7)
    assert read.topics == (TopicErrors("", None, tuple(one for each in ERRORS for one in each.partitions)),)


# The proposal's forms, byte by byte


def test_the_proposal_s_leader_and_isr_request_has_the_type_and_the_id_as_tagged_fields() -> None:
    # KIP516-4
    request = leader_and_isr(FULL, topic("ab", A))
    assert encode_message(request, KIP516) == (
        b"\0\0\0\x09" b"\0\0\0\x01" + b"\xff" * 8  # controller, its epoch, no broker epoch
        + b"\x02" b"\x03ab" b"\x01" + b"\x01\x00\x10" + A.to_bytes()  # one topic, no partitions, tag 0 of 16 bytes
        + b"\x01"  # no live leaders
        + b"\x01\x00\x01\x02"  # tag 0 of 1 byte: FULL
    )  # fmt: skip
    assert tree(request, KIP516)["topic_states"] == [{"topic": "ab", "topic_id": str(A), "partition_states": []}]


def test_what_the_proposal_s_request_does_not_tag_is_unspecified_and_without_an_id() -> None:
    request = leader_and_isr(RequestType.UNSPECIFIED, topic("ab", None, 0))
    data = encode_message(request, KIP516)
    assert data.endswith(b"\x00") and decode_leader_and_isr(data, KIP516) == request


def test_the_proposal_s_stop_replica_has_topic_ids_and_one_flag() -> None:
    # KIP516-7
    request = stop_replica("ab", 5, topic_id=A)
    assert encode_message(request, KIP516) == (
        b"\0\0\0\x09" b"\0\0\0\x01" + b"\xff" * 8 + b"\x01"  # deletes
        + b"\x02" b"\x03ab" b"\x02\0\0\0\x05" + b"\x01\x00\x10" + A.to_bytes() + b"\x00"
    )  # fmt: skip
    response = StopReplicaResponse(0, (TopicErrors("ab", A, (PartitionError(5, 103),)),))
    assert encode_message(response, KIP516) == b"\0\0\x02\x03ab\0\0\0\x05\0\x67\x01\x00\x10" + A.to_bytes() + b"\0"


# What cannot be said


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (leader_and_isr(FULL), 8),
        (leader_and_isr(FULL), -1),
        (stop_replica(), 5),
        (LeaderAndIsrResponse(0), 8),
        (StopReplicaResponse(0), 5),
    ],
)
def test_there_is_no_such_version(message: ControlRequest | ControlResponse, version: int) -> None:
    for call in (lambda: encode_message(message, version), lambda: tree(message, version)):
        with pytest.raises(UnsupportedVersionError, match=f"there is no version {version} of a "):
            call()
    with pytest.raises(UnsupportedVersionError):
        is_flexible(type(message), version)


@pytest.mark.parametrize(
    ("request_", "version", "said"),
    [
        (leader_and_isr(FULL), 4, "version 4 of LeaderAndIsrRequest has no type, and cannot say that it is 2"),
        (leader_and_isr(RequestType.UNSPECIFIED, kraft=True), 6, "has no isKRaftController"),
        (
            leader_and_isr(
                RequestType.UNSPECIFIED, topic("a", A, PartitionState(0, 1, 1, 1, (), 1, (), leader_recovery_state=1))
            ),
            5,
            "has no leaderRecoveryState",
        ),
        (replace(stop_replica(), is_kraft_controller=True), 3, "has no isKRaftController"),
        (
            StopReplicaRequest(1, 1, (StopTopic("a", None, (StopPartition(0), StopPartition(1, delete=True))),)),
            2,
            "deletes all its partitions or none: send two requests",
        ),
    ],
)
def test_what_a_version_has_no_words_for_is_not_written(request_: ControlRequest, version: int, said: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=said):
        encode_message(request_, version)
    with pytest.raises(UnsupportedVersionError, match=said):
        tree(request_, version)


# Bytes gone bad

GOOD = leader_and_isr(FULL, topic("orders", A, 0, 1), topic("payments", B, 5))


@pytest.mark.parametrize("version", [5, 7, KIP516])
def test_a_message_that_is_cut_off_anywhere_is_refused(version: Version) -> None:
    data = encode_message(GOOD, version)
    for length in range(len(data)):
        with pytest.raises(
            MalformedMessageError, match=f"the message is no LeaderAndIsr request of version {version}: "
        ):
            decode_leader_and_isr(data[:length], version)
    with pytest.raises(MalformedMessageError, match="3 bytes follow"):
        decode_leader_and_isr(data + b"abc", version)


def test_a_message_says_where_it_is_broken() -> None:
    data = encode_message(GOOD, 7)
    cut = data[: data.index(b"payments") + 30]
    with pytest.raises(MalformedMessageError, match=r"topicStates\[1\]: partitionStates"):
        decode_leader_and_isr(cut, 7)


@pytest.mark.parametrize("version", [0, 2, 4, 7, KIP516])
@settings(max_examples=150)
@given(data=st.data())
def test_broken_bytes_give_a_request_or_an_error_of_ours(version: Version, data: st.DataObject) -> None:
    good = bytearray(encode_message(sayable(GOOD, version), version))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(good) - 1))
        good[place] = data.draw(st.integers(0, 255))
    try:
        read = decode_leader_and_isr(bytes(good), version)
    except (MalformedMessageError, InvalidRequestError):
        return
    assert isinstance(read, LeaderAndIsrRequest)


@settings(max_examples=200)
@given(data=st.binary(max_size=60), version=st.sampled_from(STOPPING))
def test_bytes_at_random_give_a_request_or_an_error_of_ours(data: bytes, version: Version) -> None:
    for read in (decode_stop_replica, decode_leader_and_isr):
        try:
            read(data, version)
        except (MalformedMessageError, InvalidRequestError):
            continue


def test_what_reads_and_cannot_be_meant_is_refused_with_every_reason() -> None:
    bad = encode_message(leader_and_isr(FULL, topic("orders", A, 0, 0), topic("no name", B, 1)), 7)
    with pytest.raises(InvalidRequestError) as caught:
        decode_leader_and_isr(bad, 7, "capture.bin")
    assert str(caught.value).startswith("capture.bin is not a LeaderAndIsr request: ")
    assert len(caught.value.reasons) == 2


def test_one_topic_in_two_pieces_is_one_topic() -> None:
    pieces = encode_message(leader_and_isr(FULL, topic("a", A, 0), topic("b", B, 0), topic("a", A, 1)), 7)
    assert decode_leader_and_isr(pieces, 7) == leader_and_isr(FULL, topic("a", A, 0, 1), topic("b", B, 0))
    stops = StopReplicaRequest(
        9, 1, tuple(StopTopic("a", None, (StopPartition(number, 1),)) for number in (0, 1)), broker_epoch=2
    )
    (only,) = decode_stop_replica(encode_message(stops, 4), 4).topics
    assert [each.partition for each in only.partitions] == [0, 1]


def test_one_topic_under_two_ids_is_refused() -> None:
    torn = encode_message(leader_and_isr(FULL, topic("a", A, 0), topic("a", B, 1)), 7)
    with pytest.raises(InvalidRequestError, match=f"topic 'a' is there under the IDs {B}, {A}"):
        decode_leader_and_isr(torn, 7)


def test_a_message_that_is_too_long_is_not_looked_at() -> None:
    with pytest.raises(MalformedMessageError, match="are the most"):
        decode_leader_and_isr(bytes(MAX_MESSAGE_BYTES + 1), 7)


PLAIN = leader_and_isr(RequestType.UNSPECIFIED, topic("a", None, 0))


@pytest.mark.parametrize("version", range(8))
@pytest.mark.parametrize("client", [None, "", "controller-1"])
def test_a_leader_and_isr_request_is_read_by_the_version_in_its_header(version: int, client: str | None) -> None:
    # KIP516-4
    header, request = decode_request(encode_request(PLAIN, version, 77, client))
    assert header == RequestHeader(4, version, 77, client)
    assert request == PLAIN


@pytest.mark.parametrize("version", range(5))
def test_a_stop_replica_request_is_read_by_the_version_in_its_header(version: int) -> None:
    header, request = decode_request(encode_request(stop_replica("a", 1), version, -5, "x"))
    assert (header.api_key, header.api_version) == (5, version)
    assert request == stop_replica("a", 1)


@pytest.mark.parametrize("partitions", [5_500, 7_000])
def test_a_length_before_a_request_is_no_header_even_where_it_looks_like_one(partitions: int) -> None:
    # Read as a header, a length of 262144 to 393215 has the API key of LeaderAndIsr or of StopReplica.
    request = leader_and_isr(RequestType.UNSPECIFIED, topic("a", None, *range(partitions)))
    plain = encode_request(request, 7, 77, "controller-1")
    framed = struct.pack(">i", len(plain)) + plain
    assert framed[:2] in (b"\x00\x04", b"\x00\x05")
    assert decode_request(framed) == decode_request(plain) == (RequestHeader(4, 7, 77, "controller-1"), request)


def test_a_request_as_long_as_its_header_would_say_is_read_from_its_first_byte() -> None:
    data = encode_request(PLAIN, 7, 1, "")
    long = data[:10] + struct.pack(">B", 1)  # one tag of unknown meaning fills it up to that length
    room = 262144 + 7 + 4 - len(data) - 4
    long += b"\x09" + bytes([room & 0x7F | 0x80, room >> 7 & 0x7F | 0x80, room >> 14]) + bytes(room) + data[11:]
    assert len(long) - 4 == struct.unpack_from(">i", long)[0]
    assert decode_request(long)[1] == PLAIN


@pytest.mark.parametrize("version", range(8))
@pytest.mark.parametrize(("client", "known"), [(None, True), ("c" * 249, True), ("c" * 250, False), ("ctrl\n", False)])
def test_a_leader_and_isr_request_is_known_by_its_first_bytes(version: int, client: str | None, known: bool) -> None:
    plain = encode_request(PLAIN, version, 77, client)
    for data in (plain, struct.pack(">i", len(plain)) + plain):
        assert begins_leader_and_isr(data[:LONGEST_BEGINNING]) is known
    assert not begins_leader_and_isr(encode_request(stop_replica("a", 1), 3))


def test_the_header_of_a_flexible_version_may_carry_tags() -> None:
    data = encode_request(PLAIN, 7, 1, "x")
    assert data[11:12] == b"\0"
    assert decode_request(data[:11] + b"\x01\x09\x02hi" + data[12:])[1] == PLAIN


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (struct.pack(">hhih", 3, 0, 0, -1), UnsupportedVersionError, "API key 3 is no control request"),
        (struct.pack(">hhih", 4, 8, 0, -1), UnsupportedVersionError, "no version 8 of a LeaderAndIsr request"),
        (struct.pack(">hhih", 5, -1, 0, -1), UnsupportedVersionError, "no version -1 of a StopReplica request"),
        (b"", MalformedMessageError, "end in the middle of a request's header"),
        (struct.pack(">hhi", 4, 7, 0), MalformedMessageError, "end in the middle"),
        (struct.pack(">hhih", 4, 7, 0, 9), MalformedMessageError, "has no request's header"),
        (struct.pack(">hhih", 4, 7, 0, -1) + b"\x01", MalformedMessageError, "end in the middle"),
    ],
)
def test_bytes_without_a_known_header_are_refused(data: bytes, error: type[ReconcilerError], said: str) -> None:
    with pytest.raises(error, match=said):
        decode_request(data)


def test_a_request_that_is_cut_off_anywhere_is_refused() -> None:
    data = encode_request(PLAIN, 7, 1, "client")
    for length in range(len(data)):
        with pytest.raises(MalformedMessageError):
            decode_request(data[:length])


@pytest.mark.parametrize(("kind", "versions"), [(LeaderAndIsrResponse, range(8)), (StopReplicaResponse, range(5))])
def test_an_answer_has_its_correlation_id_before_it(
    kind: type[LeaderAndIsrResponse] | type[StopReplicaResponse], versions: range
) -> None:
    for version in versions:
        correlation_id, body = decode_response_header(kind, encode_response(kind(11), version, 42), version)
        assert (correlation_id, decode_response(kind, body, version)) == (42, kind(11))
    with pytest.raises(MalformedMessageError, match="an answer's header"):
        decode_response_header(kind, b"\0\0\0", 0)


def test_the_api_key_decides_on_the_kind_of_request() -> None:
    assert isinstance(decode_request(encode_request(leader_and_isr(RequestType.FULL), 7))[1], LeaderAndIsrRequest)
