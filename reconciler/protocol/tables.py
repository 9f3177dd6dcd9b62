"""The control messages as data: one table for each struct, by which messages are read and written.

Source: FACTS §5.1, §5.3 and the message layouts of 3.9; KIP-516, *Protocol Changes*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

from layout.ids import TopicId
from reconciler.protocol.requests import (
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
)
from reconciler.protocol.schema import INTS, Array, Field, Message, Struct

KIP516: Final = "kip-516"
KIP694: Final = "kip-694"
Version: TypeAlias = int | Literal["kip-516", "kip-694"]
"""A shipped version, or the form that a proposal draws; KIP-694 draws UpdateMetadata alone."""


def id_of(raw: bytes) -> TopicId | None:
    """Make a topic ID of its bytes; None for the zero ID, which means none."""
    return TopicId(raw) if any(raw) else None


def pairs(topics: tuple[Any, ...]) -> tuple[tuple[str, Any], ...]:
    """List partitions, each with its topic; the reverse of :func:`by_topic`."""
    return tuple((topic.topic, state) for topic in topics for state in topic.partitions)


def by_topic(pairs: tuple[tuple[str, Any], ...], make: Callable[..., Any]) -> tuple[Any, ...]:
    """Group a flat list of (topic, partition) into topics without an ID."""
    grouped: dict[str, list[Any]] = {}
    for topic, state in pairs:
        grouped.setdefault(topic, []).append(state)
    return tuple(make(topic, None, tuple(states)) for topic, states in grouped.items())


_STATE = (
    Field("partitionIndex", "int32"),
    Field("controllerEpoch", "int32"),
    Field("leader", "int32"),
    Field("leaderEpoch", "int32"),
    Field("isr", INTS),
    Field("partitionEpoch", "int32"),
    Field("replicas", INTS),
    Field("addingReplicas", INTS, 3, ignorable=True),
    Field("removingReplicas", INTS, 3, ignorable=True),
    Field("isNew", "bool", 1, ignorable=True),
    Field("leaderRecoveryState", "int8", 6),
)
_take_state = attrgetter(*PartitionState.__dataclass_fields__)
_PARTITION_STATE = Struct("LeaderAndIsrPartitionState", _STATE, PartitionState, _take_state)
_UNGROUPED_STATE = Struct(
    "LeaderAndIsrPartitionState",
    (Field("topicName", "string"), *_STATE),
    lambda topic, *values: (topic, PartitionState(*values)),
    lambda pair: (pair[0], *_take_state(pair[1])),
)
_TOPIC_STATE = Struct(
    "LeaderAndIsrTopicState",
    (
        Field("topicName", "string"),
        Field("topicId", "uuid", 5, ignorable=True),
        Field("partitionStates", Array(_PARTITION_STATE)),
    ),
    lambda topic, raw, states: TopicState(topic, id_of(raw), states),
    attrgetter("topic", "topic_id", "partitions"),
)
_LIVE_LEADER = Struct(
    "LeaderAndIsrLiveLeader",
    (Field("brokerId", "int32"), Field("hostName", "string"), Field("port", "int32")),
    LiveLeader,
    attrgetter("broker_id", "host", "port"),
)


def _make_request(*values: Any) -> LeaderAndIsrRequest:
    controller, is_kraft, epoch, broker_epoch, kind, flat, topics, leaders = values
    topics = by_topic(flat, TopicState) if flat else topics
    return LeaderAndIsrRequest(controller, epoch, topics, broker_epoch, RequestType.of(kind), is_kraft, leaders)


def _take_request(request: LeaderAndIsrRequest) -> tuple[Any, ...]:
    return (
        *(request.controller_id, request.is_kraft_controller, request.controller_epoch, request.broker_epoch),
        *(int(request.type), pairs(request.topics), request.topics, request.live_leaders),
    )


LEADER_AND_ISR = Message(
    "LeaderAndIsr request",
    4,
    Struct(
        "LeaderAndIsrRequest",
        (
            Field("controllerId", "int32"),
            Field("isKRaftController", "bool", 7),
            Field("controllerEpoch", "int32"),
            Field("brokerEpoch", "int64", 2, default=-1, ignorable=True),
            Field("type", "int8", 5),
            Field("ungroupedPartitionStates", Array(_UNGROUPED_STATE), 0, 1, ignorable=True),
            Field("topicStates", Array(_TOPIC_STATE), 2, ignorable=True),
            Field("liveLeaders", Array(_LIVE_LEADER)),
        ),
        _make_request,
        _take_request,
    ),
    range(8),
    4,
)


_ERRORS = (Field("partitionIndex", "int32"), Field("errorCode", "int16"))
_PARTITION_ERROR = Struct("PartitionError", _ERRORS, PartitionError, tuple)
_UNGROUPED_ERROR = Struct(
    "PartitionError",
    (Field("topicName", "string"), *_ERRORS),
    lambda topic, *values: (topic, PartitionError(*values)),
    lambda pair: (pair[0], *pair[1]),
)
_TOPIC_ERROR = Struct(
    "LeaderAndIsrTopicError",
    (Field("topicId", "uuid"), Field("partitionErrors", Array(_PARTITION_ERROR))),
    lambda raw, errors: TopicErrors("", id_of(raw), errors),
    attrgetter("topic_id", "partitions"),
)


def _take_errors_by_id(response: LeaderAndIsrResponse) -> tuple[Any, ...]:
    """Group errors by topic ID; topics without one are one group, as in Kafka."""
    grouped: dict[TopicId | None, list[PartitionError]] = {}
    for topic in response.topics:
        grouped.setdefault(topic.topic_id, []).extend(topic.partitions)
    topics = tuple(TopicErrors("", topic_id, tuple(errors)) for topic_id, errors in grouped.items())
    return int(response.error), pairs(response.topics), topics


LEADER_AND_ISR_RESPONSE = Message(
    "LeaderAndIsr response",
    4,
    Struct(
        "LeaderAndIsrResponse",
        (
            Field("errorCode", "int16"),
            Field("partitionErrors", Array(_UNGROUPED_ERROR), 0, 4, ignorable=True),
            Field("topics", Array(_TOPIC_ERROR), 5, default=(), ignorable=True),
        ),
        lambda error, flat, topics: LeaderAndIsrResponse(error, by_topic(flat, TopicErrors) if flat else topics),
        _take_errors_by_id,
    ),
    range(8),
    4,
)


def stop_topics(by_number: Iterable[tuple[str, TopicId | None, Iterable[int]]], delete: bool) -> tuple[StopTopic, ...]:
    """Make topics of their names, IDs and partition numbers; all partitions have the same flag."""
    return tuple(
        StopTopic(topic, topic_id, tuple(StopPartition(number, delete=delete) for number in numbers))
        for topic, topic_id, numbers in by_number
    )


def partition_numbers(request: StopReplicaRequest) -> tuple[tuple[str, TopicId | None, tuple[int, ...]], ...]:
    """Give names, IDs and partition numbers of topics; the reverse of :func:`stop_topics`."""
    return tuple(
        (each.topic, each.topic_id, tuple(one.partition for one in each.partitions)) for each in request.topics
    )


def _make_stop(*values: Any) -> StopReplicaRequest:
    controller, is_kraft, epoch, broker_epoch, delete, flat, by_number, topics = values
    if flat:
        topics = by_topic(tuple((topic, StopPartition(number, delete=delete)) for topic, number in flat), StopTopic)
    elif by_number:
        topics = stop_topics(by_number, delete)
    return StopReplicaRequest(controller, epoch, topics, broker_epoch, is_kraft)


def _take_stop(request: StopReplicaRequest) -> tuple[Any, ...]:
    return (
        *(request.controller_id, request.is_kraft_controller, request.controller_epoch, request.broker_epoch),
        any(state.delete for topic in request.topics for state in topic.partitions),
        tuple((topic.topic, state.partition) for topic in request.topics for state in topic.partitions),
        partition_numbers(request),
        request.topics,
    )


_UNGROUPED_STOP = Struct(
    "StopReplicaPartitionV0",
    (Field("topicName", "string"), Field("partitionIndex", "int32")),
    lambda *pair: pair,
    tuple,
)
_STOPPED_TOPIC = Struct(
    "StopReplicaTopicV1",
    (Field("name", "string"), Field("partitionIndexes", INTS)),
    lambda topic, numbers: (topic, None, numbers),
    lambda topic: (topic[0], topic[2]),
)
_STOP_PARTITION = Struct(
    "StopReplicaPartitionState",
    (Field("partitionIndex", "int32"), Field("leaderEpoch", "int32"), Field("deletePartition", "bool")),
    StopPartition,
    attrgetter("partition", "leader_epoch", "delete"),
)
_STOP_TOPIC = Struct(
    "StopReplicaTopicState",
    (Field("topicName", "string"), Field("partitionStates", Array(_STOP_PARTITION))),
    lambda topic, states: StopTopic(topic, None, states),
    attrgetter("topic", "partitions"),
)

STOP_REPLICA = Message(
    "StopReplica request",
    5,
    Struct(
        "StopReplicaRequest",
        (
            Field("controllerId", "int32"),
            Field("isKRaftController", "bool", 4),
            Field("controllerEpoch", "int32"),
            Field("brokerEpoch", "int64", 1, default=-1, ignorable=True),
            Field("deletePartitions", "bool", 0, 2, ignorable=True),
            Field("ungroupedPartitions", Array(_UNGROUPED_STOP), 0, 0, ignorable=True),
            Field("topics", Array(_STOPPED_TOPIC), 1, 2, ignorable=True),
            Field("topicStates", Array(_STOP_TOPIC), 3, ignorable=True),
        ),
        _make_stop,
        _take_stop,
    ),
    range(5),
    2,
)
STOP_REPLICA_RESPONSE = Message(
    "StopReplica response",
    5,
    Struct(
        "StopReplicaResponse",
        (Field("errorCode", "int16"), Field("partitionErrors", Array(_UNGROUPED_ERROR))),
        lambda error, flat: StopReplicaResponse(error, by_topic(flat, TopicErrors)),
        lambda response: (int(response.error), pairs(response.topics)),
    ),
    range(5),
    2,
)
