"""What a broker answers to control requests: one error number for the whole, and one for each partition.

Numbers are :class:`logstore.KafkaError` where this engine gives them, and any int16 where a peer did.
Source: FACTS §4.1, §4.2, §4.5, §5.1, §5.3; KIP516-4, KIP516-7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, overload

from layout.ids import TopicId
from logstore import KafkaError
from reconciler.protocol.requests import ControlRequest, LeaderAndIsrRequest, StopReplicaRequest


class PartitionError(NamedTuple):
    """The answer for one partition; 0: done."""

    partition: int
    error: int


@dataclass(frozen=True, slots=True)
class TopicErrors:
    """The answers for the partitions of one topic.

    Attributes:
        topic: full name; empty in a LeaderAndIsr answer that came over the wire by topic ID (version 5 and later).
        topic_id: None: the request had none, or the form has no room for it.
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
    """The answer that gives one error for the whole request and for every partition in it."""
    topics = tuple(
        TopicErrors(
            topic.topic, topic.topic_id, tuple(PartitionError(state.partition, error) for state in topic.partitions)
        )
        for topic in request.topics
    )
    return (LeaderAndIsrResponse if isinstance(request, LeaderAndIsrRequest) else StopReplicaResponse)(error, topics)
