"""Control requests and a broker's answers as types, in the words of Kafka's schemas.

A controller sends LeaderAndIsr and StopReplica. A broker answers with one error number for the whole request and one
for each partition: a :class:`logstore.KafkaError` where this engine answers, any int16 where another broker did. The
types carry no rules; ``check`` has them. Source: FACTS §4.1, §4.2, §4.5, §5.1 to §5.3; KIP516-4, KIP516-7.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias, overload

from layout.ids import TopicId
from logstore import KafkaError


class RequestType(IntEnum):
    """How complete a LeaderAndIsr request is (FACTS §5.2)."""

    UNSPECIFIED = 0
    """From versions without a type; shipped as UNKNOWN."""
    INCREMENTAL = 1
    """Some of the broker's partitions may be missing from it."""
    FULL = 2
    """It holds every partition that the broker should have."""

    @classmethod
    def of(cls, number: int) -> RequestType:
        """The type of a number; unknown numbers are UNSPECIFIED, as in Kafka."""
        return cls(number) if number in tuple(cls) else cls.UNSPECIFIED

    @classmethod
    def named(cls, name: str) -> RequestType | None:
        """The type of a name, shipped or KIP-516's; None for unknown names."""
        return cls.UNSPECIFIED if name == "UNKNOWN" else cls.__members__.get(name)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of one partition in a LeaderAndIsr request. Broker ids and epochs are int32."""

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


@dataclass(frozen=True, slots=True)
class TopicState:
    """The partitions of one topic; ``topic_id`` is None where the request has none or the zero ID."""

    topic: str
    topic_id: TopicId | None
    partitions: tuple[PartitionState, ...]


@dataclass(frozen=True, slots=True)
class LiveLeader:
    """A broker that leads one of the partitions, and its address."""

    broker_id: int
    host: str
    port: int


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


@dataclass(frozen=True, slots=True)
class StopTopic:
    """The partitions of one topic; ``topic_id`` is None except in KIP-516's own form."""

    topic: str
    topic_id: TopicId | None
    partitions: tuple[StopPartition, ...]


@dataclass(frozen=True, slots=True)
class StopReplicaRequest:
    """A request to one broker, which it does not name. Topics are distinct, and so are the partitions of each."""

    controller_id: int
    controller_epoch: int
    topics: tuple[StopTopic, ...]
    broker_epoch: int = -1
    """-1: not given."""
    is_kraft_controller: bool = False


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
