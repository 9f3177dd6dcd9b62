"""What goes between controllers, brokers and clients besides control requests, as values.

Shapes follow Kafka's messages, one partition at a time where Kafka batches: the simulator is about protocols, not about
bytes on a wire; control requests are encoded as bytes and decoded again on their way (``machine``). Topic IDs go with
every message that names a topic, and ``None`` stands for a sender that knows none. Error numbers are
:class:`~logstore.KafkaError`. Source: FACTS §4, §5.4; KIP516-8, KIP516-9; KIP694-1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import ControlRequest, ControlResponse

DURING_DELETE = -2
"""The leader that an UpdateMetadata request gives a partition whose topic is being deleted (FACTS §8)."""

CONSUMER = -1
"""The replica ID of whoever fetches and is no replica."""


class PartitionMode(IntEnum):
    """Who may use a partition that is on its way out (KIP694-1)."""

    NONE = -1
    """Nobody: producers and consumers pass it over."""
    READ_WRITE = 0
    READ_ONLY = 1
    """Producers pass it over."""


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """What an UpdateMetadata request, and so a Metadata answer, says of one partition."""

    partition: int
    leader: int
    """-1: none; -2: its topic is being deleted."""
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    offline: tuple[int, ...] = ()
    """Replicas on brokers, or disks, that are away."""
    mode: PartitionMode = PartitionMode.READ_WRITE


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One topic with some of its partitions."""

    topic: str
    topic_id: TopicId | None
    partitions: tuple[PartitionMetadata, ...]


@dataclass(frozen=True, slots=True)
class UpdateMetadataRequest:
    """A controller tells a broker what clients may be told (FACTS §5.4); epochs are checked as in LeaderAndIsr."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    topics: tuple[TopicMetadata, ...]
    live_brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Numbered:
    """What a controller sends, with its place among all that it sends: as the correlation ID in Kafka's header.

    A copy that comes late, over a connection that was given up, has a smaller number than what was handled since.
    """

    number: int
    request: ControlRequest | UpdateMetadataRequest


@dataclass(frozen=True, slots=True)
class AlterIsrRequest:
    """A leader asks the controller for another in-sync set; it counts only from the leader, at its newest epochs."""

    broker_id: int
    broker_epoch: int
    partition: TopicPartition
    topic_id: TopicId | None
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AlterIsrResponse:
    """What is in force afterwards, where the error is NONE."""

    error: KafkaError
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a replica's log; ``value`` is unique in a history, so that it can be known again."""

    offset: int
    leader_epoch: int
    topic_id: TopicId | None
    value: str


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A follower, or a consumer, asks a leader for records (KIP516-8)."""

    replica_id: int
    partition: TopicPartition
    topic_id: TopicId | None
    leader_epoch: int
    """The epoch the asker believes in; -1 skips the check."""
    offset: int
    """The first offset wanted: all before it are on the asker's disk."""
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """Records from the offset that was asked for, in order, and how far all in-sync replicas have come."""

    error: KafkaError
    records: tuple[Record, ...] = ()
    high_watermark: int = 0
    log_end: int = 0


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest:
    """A client asks where a partition begins and ends."""

    partition: TopicPartition
    topic_id: TopicId | None


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    """The first offset, and the one after the last that is visible."""

    error: KafkaError
    start: int = 0
    high_watermark: int = 0


@dataclass(frozen=True, slots=True)
class EpochEndRequest:
    """A follower asks the leader where an epoch ended (OffsetForLeaderEpoch), to cut off what the leader never had."""

    partition: TopicPartition
    topic_id: TopicId | None
    leader_epoch: int
    """The leader epoch that the follower believes in."""
    of_epoch: int
    """The last epoch in the follower's log."""


@dataclass(frozen=True, slots=True)
class EpochEndResponse:
    """The greatest epoch the leader has that is not above the one asked for, and the offset after its last record."""

    error: KafkaError
    epoch: int = -1
    end: int = 0


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """A client gives one record; it is answered when all in-sync replicas have it (acks=all)."""

    partition: TopicPartition
    topic_id: TopicId | None
    value: str


@dataclass(frozen=True, slots=True)
class ProduceResponse:
    """The record's offset, where the error is NONE: from then on the record is acknowledged."""

    error: KafkaError
    offset: int = -1


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """A client asks any broker for topics; empty: for all of them."""

    topics: tuple[str, ...] = ()
    principal: str = "User:ANONYMOUS"


@dataclass(frozen=True, slots=True)
class MetadataResponse:
    """What the broker was told last, with topic IDs and partition modes (KIP516-9, KIP694-1)."""

    topics: tuple[TopicMetadata, ...]
    live_brokers: tuple[int, ...]
    controller_id: int
    unknown: tuple[str, ...] = ()
    """Topics that were asked for and are not known."""


Request: TypeAlias = (
    ControlRequest
    | UpdateMetadataRequest
    | Numbered
    | AlterIsrRequest
    | FetchRequest
    | ListOffsetsRequest
    | EpochEndRequest
    | ProduceRequest
    | MetadataRequest
)

Response: TypeAlias = (
    ControlResponse
    | KafkaError
    | AlterIsrResponse
    | FetchResponse
    | ListOffsetsResponse
    | EpochEndResponse
    | ProduceResponse
    | MetadataResponse
)
"""An UpdateMetadata request is answered with a bare error."""
