"""Control requests and a broker's answers as types, in the words of Kafka's schemas.

A controller sends LeaderAndIsr and StopReplica. A broker answers with one error number for the whole request and one
for each partition: a :class:`logstore.KafkaError` where this engine answers, any int16 where another broker did. The
types check the types of what they are given, so that no request fails half-way for what is in it; the rules for names
and numbers are in ``check``, which gives all reasons at once.
Source: FACTS §4.1, §4.2, §4.5, §5.1 to §5.3; KIP516-4, KIP516-7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import UnionType
from typing import NamedTuple, TypeAlias, overload

from layout.ids import TopicId
from logstore import KafkaError
from reconciler.errors import InvalidRequestError


class RequestType(IntEnum):
    """How complete a LeaderAndIsr request is (FACTS §5.2)."""

    UNSPECIFIED = 0
    """From versions without a type; shipped as UNKNOWN."""
    INCREMENTAL = 1
    """Some of the broker's partitions may be missing from it."""
    FULL = 2
    """It holds every partition that the broker should have."""

    @classmethod
    def _missing_(cls, value: object) -> RequestType:
        """Refuse a value that is no type; :meth:`of` and :meth:`named` read what others wrote."""
        expected = " or ".join(f"{cls.__name__}.{each.name}" for each in cls)
        raise InvalidRequestError(f"{value!r:.60}", [f"{expected} is expected"], "type of a request")

    @classmethod
    def of(cls, number: int) -> RequestType:
        """The type of a number; unknown numbers are UNSPECIFIED, as in Kafka."""
        return cls(number) if number in tuple(cls) else cls.UNSPECIFIED

    @classmethod
    def named(cls, name: str) -> RequestType | None:
        """The type of a name, shipped or KIP-516's; None for unknown names."""
        return cls.UNSPECIFIED if name == "UNKNOWN" else cls.__members__.get(name)


def check_types(value: object, expected: Mapping[str, tuple[type | UnionType, str]]) -> None:
    """Refuse a value with fields of other types, with a reason for each: field → its type, and the type's name."""
    reasons = [
        f"{name}: {noun} is expected, found {getattr(value, name)!r:.60}"
        for name, (kind, noun) in expected.items()
        if not isinstance(getattr(value, name), kind) or (kind is int and isinstance(getattr(value, name), bool))
    ]
    if reasons:
        raise InvalidRequestError("what was given", reasons, type(value).__name__)


def check_elements(value: object, name: str, kind: type) -> None:
    """Refuse a tuple with an element of another type."""
    elements: tuple[object, ...] = getattr(value, name)
    if not set(map(type, elements)) <= {kind}:
        found = next(each for each in elements if type(each) is not kind)
        raise InvalidRequestError(
            "what was given", [f"{name}: each should be a {kind.__name__}, found {found!r:.60}"], type(value).__name__
        )


_INTEGER, _YES_OR_NO, _TUPLE, _TEXT = (int, "an integer"), (bool, "True or False"), (tuple, "a tuple"), (str, "a text")
_TOPIC = {"topic": _TEXT, "topic_id": (TopicId | None, "a TopicId or None"), "partitions": _TUPLE}
_PARTITION = {
    **dict.fromkeys(("partition", "controller_epoch", "leader", "leader_epoch", "partition_epoch"), _INTEGER),
    **dict.fromkeys(("isr", "replicas", "adding", "removing"), _TUPLE),
    **{"is_new": _YES_OR_NO, "leader_recovery_state": _INTEGER},
}
_REQUEST = {
    **dict.fromkeys(("controller_id", "controller_epoch", "broker_epoch"), _INTEGER),
    **{"topics": _TUPLE, "is_kraft_controller": _YES_OR_NO},
}


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of one partition in a LeaderAndIsr request. Broker ids and epochs are int32.

    Raises:
        InvalidRequestError: a field is of another type; here, and in the types below.
    """

    partition: int
    controller_epoch: int
    leader: int
    """-1: none."""
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    """The version of the partition's znode in a ZooKeeper cluster."""
    replicas: tuple[int, ...]
    """Distinct; they include the replicas being added and removed."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    is_new: bool = False
    leader_recovery_state: int = 0
    """0: recovered, 1: recovering."""

    def __post_init__(self) -> None:
        # The fast path, for nearly all: a request has up to a million of them.
        if not (
            type(self.partition) is type(self.controller_epoch) is type(self.leader) is type(self.leader_epoch) is int
            and type(self.partition_epoch) is type(self.leader_recovery_state) is int
            and type(self.isr) is type(self.replicas) is type(self.adding) is type(self.removing) is tuple
            and type(self.is_new) is bool
        ):
            check_types(self, _PARTITION)


@dataclass(frozen=True, slots=True)
class TopicState:
    """The partitions of one topic; ``topic_id`` is None where the request has none or the zero ID."""

    topic: str
    topic_id: TopicId | None
    partitions: tuple[PartitionState, ...]

    def __post_init__(self) -> None:
        check_types(self, _TOPIC)
        check_elements(self, "partitions", PartitionState)


@dataclass(frozen=True, slots=True)
class LiveLeader:
    """A broker that leads one of the partitions, and its address."""

    broker_id: int
    host: str
    port: int

    def __post_init__(self) -> None:
        check_types(self, {"broker_id": _INTEGER, "host": _TEXT, "port": _INTEGER})


@dataclass(frozen=True, slots=True)
class LeaderAndIsrRequest:
    """A request to one broker, which it does not name. Topics are distinct, and so are the partitions of each."""

    controller_id: int
    controller_epoch: int
    topics: tuple[TopicState, ...]
    broker_epoch: int = -1
    """-1: not given."""
    type: RequestType = RequestType.UNSPECIFIED
    is_kraft_controller: bool = False
    live_leaders: tuple[LiveLeader, ...] = ()

    def __post_init__(self) -> None:
        kinds = {"type": (RequestType, "a RequestType"), "live_leaders": _TUPLE}
        check_types(self, {**_REQUEST, **kinds})
        check_elements(self, "topics", TopicState)
        check_elements(self, "live_leaders", LiveLeader)

    def receivers(self) -> frozenset[int]:
        """The possible receivers: the brokers that are among the replicas of every partition."""
        replicas = [frozenset(state.replicas) for topic in self.topics for state in topic.partitions]
        return frozenset.intersection(*replicas) if replicas else frozenset()


@dataclass(frozen=True, slots=True)
class StopPartition:
    """One partition that a broker is to stop serving."""

    partition: int
    leader_epoch: int = -1
    """-1: not given; -2: the topic is being deleted."""
    delete: bool = False
    """Delete the replica too."""

    def __post_init__(self) -> None:
        if not (type(self.partition) is type(self.leader_epoch) is int and type(self.delete) is bool):
            check_types(self, {"partition": _INTEGER, "leader_epoch": _INTEGER, "delete": _YES_OR_NO})


@dataclass(frozen=True, slots=True)
class StopTopic:
    """The partitions of one topic; ``topic_id`` is None except in KIP-516's own form."""

    topic: str
    topic_id: TopicId | None
    partitions: tuple[StopPartition, ...]

    def __post_init__(self) -> None:
        check_types(self, _TOPIC)
        check_elements(self, "partitions", StopPartition)


@dataclass(frozen=True, slots=True)
class StopReplicaRequest:
    """A request to one broker, which it does not name. Topics are distinct, and so are the partitions of each."""

    controller_id: int
    controller_epoch: int
    topics: tuple[StopTopic, ...]
    broker_epoch: int = -1
    """-1: not given."""
    is_kraft_controller: bool = False

    def __post_init__(self) -> None:
        check_types(self, _REQUEST)
        check_elements(self, "topics", StopTopic)


ControlRequest: TypeAlias = LeaderAndIsrRequest | StopReplicaRequest


class PartitionError(NamedTuple):
    """The answer for one partition; error 0: done."""

    partition: int
    error: int


@dataclass(frozen=True, slots=True)
class TopicErrors:
    """The answers for the partitions of one topic.

    Attributes:
        topic: full name; empty in a LeaderAndIsr answer that came over the wire by topic ID (version 5 and later).
        topic_id: None: the request had none, or the version has no field for it.
        partitions: in the order of the request.
    """

    topic: str
    topic_id: TopicId | None
    partitions: tuple[PartitionError, ...]


def errors_by_topic(found: Iterable[tuple[str, TopicId | None, PartitionError]]) -> tuple[TopicErrors, ...]:
    """Group answers for partitions by name and ID of their topics, in order of first occurrence."""
    grouped: dict[tuple[str, TopicId | None], list[PartitionError]] = {}
    for topic, topic_id, error in found:
        grouped.setdefault((topic, topic_id), []).append(error)
    return tuple(TopicErrors(*key, tuple(errors)) for key, errors in grouped.items())


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponse:
    """The answer to a LeaderAndIsr request."""

    error: int
    topics: tuple[TopicErrors, ...] = ()


@dataclass(frozen=True, slots=True)
class StopReplicaResponse:
    """The answer to a StopReplica request."""

    error: int
    topics: tuple[TopicErrors, ...] = ()


ControlResponse: TypeAlias = LeaderAndIsrResponse | StopReplicaResponse


@overload
def error_response(request: LeaderAndIsrRequest, error: KafkaError) -> LeaderAndIsrResponse: ...


@overload
def error_response(request: StopReplicaRequest, error: KafkaError) -> StopReplicaResponse: ...


def error_response(request: ControlRequest, error: KafkaError) -> ControlResponse:
    """Answer a request with one error, for the whole request and for every partition in it."""
    topics = tuple(
        TopicErrors(
            topic.topic, topic.topic_id, tuple(PartitionError(state.partition, error) for state in topic.partitions)
        )
        for topic in request.topics
    )
    return (LeaderAndIsrResponse if isinstance(request, LeaderAndIsrRequest) else StopReplicaResponse)(error, topics)
