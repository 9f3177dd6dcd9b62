"""The messages between controllers, brokers and clients, besides those of ``reconciler.protocol``, as values.

Shapes follow Kafka's messages, one partition at a time where Kafka batches: the simulator is about protocols, not about
bytes on a wire. What controllers send to brokers, and DeletePartitions, which are types of ``reconciler.protocol``, are
encoded as bytes and decoded again on their way (``machine``). Every message that names a topic carries a topic ID, and
``None`` stands for a sender that knows none. In a request to a leader, an empty topic name stands for a sender that
gives the ID alone, as in Kafka's Fetch since version 13. Error numbers are :class:`~logstore.KafkaError`.
Source: FACTS §4, §5.4; KIP516-8, KIP516-9; KIP694-1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import (
    ControllerRequest,
    ControllerResponse,
    DeletePartitionsRequest,
    DeletePartitionsResponse,
)

DURING_DELETE = -2
"""The leader that an UpdateMetadata request gives a partition whose topic is being deleted (FACTS §8)."""

ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client that names none."""

CONSUMER = -1
"""The replica ID in a fetch request of a consumer."""

METADATA_WITH_MODES = 10
"""The first version of Metadata whose answers have the modes of partitions, as KIP-694 draws it."""


class PartitionMode(IntEnum):
    """Who may use a partition that is on its way out (KIP694-1)."""

    NONE = -1
    """Nobody: producers and consumers skip the partition."""
    READ_WRITE = 0
    READ_ONLY = 1
    """Consumers alone: producers skip the partition."""


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition in a Metadata answer, as the last UpdateMetadata request had it."""

    partition: int
    leader: int
    """-1: none; -2: its topic is being deleted."""
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    offline: tuple[int, ...] = ()
    """Replicas on unavailable brokers or disks."""
    mode: PartitionMode = PartitionMode.READ_WRITE
    error: KafkaError = KafkaError.NONE
    """In a Metadata answer: why the partition cannot be used; 5, with no leader, for a client that knows no modes."""


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One topic with some of its partitions."""

    topic: str
    topic_id: TopicId | None
    partitions: tuple[PartitionMetadata, ...]


@dataclass(frozen=True, slots=True, order=True)
class LiveBroker:
    """A broker that the controller regards as alive, and where it listens, as it is registered."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Numbered:
    """A controller's request with its number among all requests it sends, as the correlation ID in Kafka's header.

    A late copy, from a connection that was given up, has a smaller number than the requests handled since.
    """

    number: int
    request: ControllerRequest


@dataclass(frozen=True, slots=True)
class OfClient:
    """A client's request that has no field for who sends it, with the principal that its connection has."""

    principal: str
    request: DeletePartitionsRequest


@dataclass(frozen=True, slots=True)
class AlterIsrRequest:
    """Asks the controller for another in-sync set; valid only from the leader, at its newest epochs."""

    broker_id: int
    broker_epoch: int
    partition: TopicPartition
    topic_id: TopicId | None
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AlterIsrResponse:
    """The state in force afterwards, where the error is NONE."""

    error: KafkaError
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a replica's log; ``value`` is unique in a history, which identifies the record."""

    offset: int
    leader_epoch: int
    topic_id: TopicId | None
    value: str
    timestamp_ms: int = -1
    """The time of day at its first leader; -1: not known."""


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Asks a leader for records, for a follower or a consumer (KIP516-8)."""

    replica_id: int
    partition: TopicPartition
    topic_id: TopicId | None
    leader_epoch: int
    """The epoch that the sender knows; -1 skips the check."""
    offset: int
    """The first offset wanted: all before it are on the sender's disk."""
    broker_epoch: int = -1
    principal: str = ANONYMOUS
    """Of a consumer; a follower is a broker, which may fetch everything."""


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """Records from the requested offset, in order, and the offset up to which all in-sync replicas have them."""

    error: KafkaError
    records: tuple[Record, ...] = ()
    high_watermark: int = 0
    log_end: int = 0
    log_start: int = 0


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest:
    """Asks where a partition begins and ends, for a client."""

    partition: TopicPartition
    topic_id: TopicId | None
    principal: str = ANONYMOUS


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    """The first offset, and the offset after the last visible record."""

    error: KafkaError
    start: int = 0
    high_watermark: int = 0


@dataclass(frozen=True, slots=True)
class EpochEndRequest:
    """Asks the leader where an epoch ended (OffsetForLeaderEpoch), so that the follower can truncate to it."""

    partition: TopicPartition
    topic_id: TopicId | None
    leader_epoch: int
    """The leader epoch that the follower knows."""
    of_epoch: int
    """The last epoch in the follower's log."""


@dataclass(frozen=True, slots=True)
class EpochEndResponse:
    """The leader's greatest epoch that is not above the requested one, and the offset after its last record."""

    error: KafkaError
    epoch: int = -1
    end: int = 0


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """Writes one record for a client; answered when all in-sync replicas have it (acks=all)."""

    partition: TopicPartition
    topic_id: TopicId | None
    value: str
    principal: str = ANONYMOUS


@dataclass(frozen=True, slots=True)
class ProduceResponse:
    """The record's offset, where the error is NONE: from then on the record is acknowledged."""

    error: KafkaError
    offset: int = -1


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """Asks any broker for topics; empty: for all topics."""

    topics: tuple[str, ...] = ()
    principal: str = ANONYMOUS
    version: int = METADATA_WITH_MODES
    """Of the client's Metadata requests: an answer to an older one has no modes (KIP694-1)."""


@dataclass(frozen=True, slots=True)
class MetadataResponse:
    """The broker's newest metadata, with topic IDs and partition modes (KIP516-9, KIP694-1)."""

    topics: tuple[TopicMetadata, ...]
    live_brokers: tuple[LiveBroker, ...]
    controller_id: int
    unknown: tuple[str, ...] = ()
    """Requested topics that the broker does not know."""
    unauthorized: tuple[str, ...] = ()
    """Requested topics, known or not, that the principal may not describe: each has the error 29 (KIP37-6)."""


Request: TypeAlias = (
    ControllerRequest
    | Numbered
    | AlterIsrRequest
    | FetchRequest
    | ListOffsetsRequest
    | EpochEndRequest
    | ProduceRequest
    | MetadataRequest
    | DeletePartitionsRequest
    | OfClient
)

Response: TypeAlias = (
    ControllerResponse
    | AlterIsrResponse
    | FetchResponse
    | ListOffsetsResponse
    | EpochEndResponse
    | ProduceResponse
    | MetadataResponse
    | DeletePartitionsResponse
)
