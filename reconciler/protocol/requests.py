"""Control requests as types: what a controller tells a broker. A value that exists is known good.

Owns LeaderAndIsr and StopReplica, in the words of Kafka's schemas. What makes them good is ``requests_check``; JSON is
``requests_json`` and the sources, bytes are ``wire``, what a broker does with them is ``broker``, and what it answers
``responses``. Source: FACTS §5.1 to §5.3; KIP516-4, KIP516-7.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from layout.ids import TopicId


class RequestType(IntEnum):
    """How much a LeaderAndIsr request says (FACTS §5.2)."""

    UNSPECIFIED = 0
    """As before there was a type; shipped as UNKNOWN."""
    INCREMENTAL = 1
    """It may lack some of the broker's partitions."""
    FULL = 2
    """It holds every partition that the broker should have."""

    @classmethod
    def of(cls, number: int) -> RequestType:
        """The type of a number; any other number reads as UNSPECIFIED, as Kafka reads it."""
        return cls(number) if number in tuple(cls) else cls.UNSPECIFIED

    @classmethod
    def named(cls, name: str) -> RequestType | None:
        """The type of a name, shipped or KIP-516's; None for any other."""
        return cls.UNSPECIFIED if name == "UNKNOWN" else cls.__members__.get(name)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What a LeaderAndIsr request says of one partition. Broker ids and epochs are int32."""

    partition: int
    controller_epoch: int
    leader: int
    """-1: none."""
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    """The version of the partition's znode in a ZooKeeper cluster."""
    replicas: tuple[int, ...]
    """Distinct; those being added and removed are among them."""
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
    """A broker that leads one of the partitions, and where it listens."""

    broker_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class LeaderAndIsrRequest:
    """One request, to one broker that it does not name. Topics are distinct, and so are the partitions of each."""

    controller_id: int
    controller_epoch: int
    topics: tuple[TopicState, ...]
    broker_epoch: int = -1
    """-1: not given."""
    type: RequestType = RequestType.UNSPECIFIED
    is_kraft_controller: bool = False
    live_leaders: tuple[LiveLeader, ...] = ()

    def receivers(self) -> frozenset[int]:
        """The brokers that every partition has among its replicas: one of them may be the receiver."""
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
    """The partitions of one topic; ``topic_id`` is None where the request has none: only KIP-516's own form has one."""

    topic: str
    topic_id: TopicId | None
    partitions: tuple[StopPartition, ...]


@dataclass(frozen=True, slots=True)
class StopReplicaRequest:
    """One request, to one broker that it does not name. Topics are distinct, and so are the partitions of each."""

    controller_id: int
    controller_epoch: int
    topics: tuple[StopTopic, ...]
    broker_epoch: int = -1
    """-1: not given."""
    is_kraft_controller: bool = False


ControlRequest: TypeAlias = LeaderAndIsrRequest | StopReplicaRequest
