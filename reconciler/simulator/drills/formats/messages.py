"""A game with a controller's requests: each is written and read in one version, damaged, or wrong in itself.

The bytes of a request are put together by ``bytes_of`` and compared with those of ``reconciler.protocol``; what a
version cannot say is left out here by hand. A request that is cut, that claims more than there is, or that contradicts
itself is refused, and the refusal names what was claimed. Source: FACTS §5.1 to §5.3; KIP516-4, KIP516-7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final, TypeVar

from layout.ids import TopicId
from reconciler.errors import InvalidRequestError
from reconciler.protocol import (
    KIP516,
    LeaderAndIsrRequest,
    LiveLeader,
    MalformedMessageError,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopTopic,
    TopicState,
    Version,
    check_request,
    decode_leader_and_isr,
    decode_stop_replica,
    encode_message,
)
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.formats.bytes_of import (
    Bytes,
    Count,
    drawn_by_516,
    leader_and_isr,
    stop_replica,
    varint,
)

_NAMES: Final = ("orders", "clicks", "org:payments", "hits")
_ZERO: Final = bytes(16)
_CONTRADICTIONS: Final = ("name", "id", "partition", "broker", "zero", "bad")

_Request = TypeVar("_Request", LeaderAndIsrRequest, StopReplicaRequest)


def _ids(random: Random) -> list[TopicId | None]:
    return [random.choice((None, TopicId(random.randbytes(16)))) for _ in _NAMES]


def _numbers(random: Random) -> list[int]:
    return random.sample(range(99), random.randint(1, 3))


def _state(random: Random, number: int) -> PartitionState:
    replicas = tuple(random.sample(range(9), random.randint(1, 4)))
    controller, leader, leader_epoch, partition_epoch = (random.randrange(-1, 1 << 31) for _ in range(4))
    isr, adding, removing = replicas[: random.randint(0, 3)], replicas[:1], replicas[1:2]
    return PartitionState(
        *(number, controller, leader, leader_epoch, isr, partition_epoch, replicas, adding, removing),
        is_new=random.random() < 0.5,
        leader_recovery_state=random.choice((0, 1)),
    )


def _leader_and_isr(random: Random) -> LeaderAndIsrRequest:
    topics = tuple(
        TopicState(name, topic_id, tuple(_state(random, each) for each in _numbers(random)))
        for name, topic_id in zip(random.sample(_NAMES, random.randint(0, 3)), _ids(random), strict=False)
    )
    leaders = tuple(LiveLeader(each, "hä", 9092) for each in range(random.randint(0, 2)))
    kind, is_kraft = random.choice(tuple(RequestType)), random.random() < 0.5
    numbers = (random.randrange(9), random.randrange(1 << 31))
    return LeaderAndIsrRequest(*numbers, topics, random.randrange(1 << 60), kind, is_kraft, leaders)


def _as_of(request: LeaderAndIsrRequest, version: int) -> LeaderAndIsrRequest:
    """The request as a version can say it."""

    def state_of(each: PartitionState) -> PartitionState:
        lists = (each.adding, each.removing) if version >= 3 else ((), ())
        new = replace(each, adding=lists[0], removing=lists[1], is_new=each.is_new and version >= 1)
        return new if version >= 6 else replace(new, leader_recovery_state=0)

    topics = tuple(
        TopicState(each.topic, each.topic_id if version >= 5 else None, tuple(map(state_of, each.partitions)))
        for each in request.topics
    )
    return replace(
        request,
        topics=topics,
        broker_epoch=request.broker_epoch if version >= 2 else -1,
        type=request.type if version >= 5 else RequestType.UNSPECIFIED,
        is_kraft_controller=request.is_kraft_controller and version >= 7,
    )


def _play_leader_and_isr(random: Random) -> None:
    version = random.randrange(8)
    request = _as_of(_leader_and_isr(random), version)
    written = leader_and_isr(request, version)
    _compare(random, request, written, version, decode_leader_and_isr)


def _play_stop_replica(random: Random) -> None:
    version, has_delete = random.randrange(5), random.random() < 0.5
    topics = list[StopTopic]()
    for name in random.sample(_NAMES, random.randint(0, 3)):
        states = [
            StopPartition(each, random.choice((-2, -1, 7)), random.random() < 0.5)
            if version >= 3
            else StopPartition(each, delete=has_delete)
            for each in _numbers(random)
        ]
        topics.append(StopTopic(name, None, tuple(states)))
    epoch = random.randrange(1 << 60) if version >= 1 else -1
    request = StopReplicaRequest(3, random.randrange(1 << 31), tuple(topics), epoch, version >= 4 and has_delete)
    _compare(random, request, stop_replica(request, version), version, decode_stop_replica)


def _play_drawn(random: Random) -> None:
    """The form that KIP-516 draws, in which a topic ID may take more bytes than it has."""
    drawn = _as_of(_leader_and_isr(random), 5)
    topics = tuple(
        replace(each, partitions=tuple(replace(one, adding=(), removing=()) for one in each.partitions))
        for each in drawn.topics
    )
    request = replace(drawn, topics=topics)
    _compare(random, request, drawn_by_516(request), KIP516, decode_leader_and_isr)
    with_id = [place for place, each in enumerate(topics) if each.topic_id is not None]
    if with_id:
        wrong = drawn_by_516(request, {random.choice(with_id)}).data
        _refused(wrong, KIP516, decode_leader_and_isr, "tag 0")


def _compare(
    random: Random,
    request: _Request,
    written: Bytes,
    version: Version,
    decode: Callable[[bytes, Version], _Request],
) -> None:
    found = encode_message(request, version)
    if found != written.data:
        raise BrokenInvariantError(f"{request} of version {version} is written as {found!r}, not {written.data!r}")
    if (read := _read(written.data, version, decode)) != request:
        raise BrokenInvariantError(f"{request} of version {version} is read as {read}")
    _refused(written.data[: random.randrange(len(written.data))], version, decode, "")
    count = random.choice(written.counts)
    wrong, says = _claiming(random, written, count)
    _refused(wrong, version, decode, says)


def _read(data: bytes, version: Version, decode: Callable[[bytes, Version], _Request]) -> _Request:
    """Read bytes that are sound."""
    try:
        return decode(data, version)
    except (MalformedMessageError, InvalidRequestError) as error:
        raise BrokenInvariantError(f"{data!r} of version {version} cannot be read: {error}") from error


def _claiming(random: Random, written: Bytes, count: Count) -> tuple[bytes, str]:
    """Let a count claim more than there are bytes for; gives the message, and what is to be said of it.

    No item takes less than three bytes, which a topic has that has no name and no partitions in a flexible version.
    """
    rest = written.data[count.at + count.width :]
    claimed = random.choice((len(rest) // 3 + 1, len(rest) // 3 + 2, len(rest) + 1))
    raw = varint(claimed + 1) if written.flexible else claimed.to_bytes(4, "big")
    says = f"{count.name} at byte {count.at + len(raw)} says that it has {claimed} elements"
    return written.data[: count.at] + raw + rest, says


def _refused(data: bytes, version: Version, decode: Callable[[bytes, Version], object], says: str) -> None:
    try:
        found = decode(data, version)
    except MalformedMessageError as error:
        if says not in str(error):
            raise BrokenInvariantError(
                f"{data!r} of version {version} should be refused by {says!r}: {error}"
            ) from error
        return
    raise BrokenInvariantError(f"{data!r} of version {version} is damaged, and read as {found}")


def _play_contradiction(random: Random) -> None:
    """A request that is wrong in itself is refused, by each of its reasons, and only then."""
    request = _leader_and_isr(random)
    _check(request, "")
    for what in _CONTRADICTIONS if request.topics else ():
        topics = _contradicting(list(request.topics), random.randrange(len(request.topics)), what)
        _check(replace(request, topics=tuple(topics)), what)


def _contradicting(topics: list[TopicState], place: int, what: str) -> list[TopicState]:
    first = topics[place]
    state = first.partitions[0]
    match what:
        case "name":
            topics.append(first)
        case "id":
            topics[place] = replace(first, topic_id=TopicId(b"\1" * 16))
            topics.append(TopicState("others", TopicId(b"\1" * 16), ()))
        case "partition":
            topics[place] = replace(first, partitions=(*first.partitions, state))
        case "broker":
            topics[place] = replace(first, partitions=(replace(state, isr=(3, 3)),))
        case "zero":
            topics[place] = replace(first, topic_id=TopicId(_ZERO))
        case _:
            topics[place] = replace(first, partitions=(replace(state, partition=-1),))
    return topics


def _check(request: LeaderAndIsrRequest, what: str) -> None:
    """Check a request in which one thing is wrong; empty: nothing."""
    try:
        check_request(request, "it")
    except InvalidRequestError as error:
        if not what or len(error.reasons) != 1:
            raise BrokenInvariantError(f"{request} is refused, and {what or 'nothing'} is wrong: {error}") from error
        return
    if what:
        raise BrokenInvariantError(f"a request with a {what} that is wrong is accepted: {request}")


def _play_ids(random: Random) -> None:
    """A zero ID on the wire is none; one ID of two topics is refused as the bytes are read."""
    request = _as_of(_leader_and_isr(random), 5)
    data = leader_and_isr(request, 5).data
    read = _read(data, 5, decode_leader_and_isr)
    for wanted, found in zip(request.topics, read.topics, strict=True):
        if found.topic_id != wanted.topic_id:
            raise BrokenInvariantError(f"the ID of {wanted.topic} is read as {found.topic_id}, not {wanted.topic_id}")
    if len(request.topics) < 2:
        return
    same = replace(request, topics=tuple(replace(each, topic_id=TopicId(b"\2" * 16)) for each in request.topics))
    try:
        found_all = decode_leader_and_isr(leader_and_isr(same, 5).data, 5)
    except InvalidRequestError:
        return
    raise BrokenInvariantError(f"one ID of several topics is accepted: {found_all}")


MESSAGES: Final[tuple[tuple[str, Callable[[Random], None]], ...]] = (
    ("leader_and_isr", _play_leader_and_isr),
    ("stop_replica", _play_stop_replica),
    ("drawn", _play_drawn),
    ("contradiction", _play_contradiction),
    ("ids", _play_ids),
)
