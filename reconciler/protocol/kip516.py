"""The control messages as KIP-516 draws them: its LeaderAndIsr 5 and its StopReplica 2, which shipped otherwise.

The proposal marks ``type`` and every ``topic_id`` as tagged fields, so its messages are flexible. It gives no numbers
to the tags, so each is the first of its struct. Fields that it does not draw (adding, removing, leader recovery, KRaft)
are absent, and a LeaderAndIsr answer names its topics by ID alone. Source: KIP-516, *Protocol Changes*; KIP516-4,
KIP516-7.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from layout.ids import TopicId
from reconciler.protocol.requests import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LiveLeader,
    PartitionError,
    PartitionState,
    RequestType,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicErrors,
    TopicState,
    errors_by_topic,
)
from reconciler.protocol.schema import INTS, Array, Field, Message, Struct
from reconciler.protocol.tables import id_of, partition_numbers, stop_topics

_TOPIC_ID = Field("topic_id", "uuid", tag=0)
_ONE = range(1)
_STATE_OF: Any = PartitionState


def _make_state(*values: Any) -> PartitionState:
    *drawn, is_new = values
    state: PartitionState = _STATE_OF(*drawn, (), (), is_new)
    return state


_PARTITION_STATE = Struct(
    "partition_states",
    (
        Field("partition", "int32"),
        Field("controller_epoch", "int32"),
        Field("leader", "int32"),
        Field("leader_epoch", "int32"),
        Field("isr", INTS),
        Field("zk_version", "int32"),
        Field("replicas", INTS),
        Field("is_new", "bool"),
    ),
    _make_state,
    attrgetter(
        *("partition", "controller_epoch", "leader", "leader_epoch", "isr", "partition_epoch", "replicas", "is_new")
    ),
)

_TOPIC_STATE = Struct(
    "topic_states",
    (Field("topic", "string"), _TOPIC_ID, Field("partition_states", Array(_PARTITION_STATE))),
    lambda topic, raw, states: TopicState(topic, id_of(raw), states),
    attrgetter("topic", "topic_id", "partitions"),
)
_LIVE_LEADER = Struct(
    "live_leaders",
    (Field("id", "int32"), Field("host", "string"), Field("port", "int32")),
    LiveLeader,
    attrgetter("broker_id", "host", "port"),
)

LEADER_AND_ISR = Message(
    "LeaderAndIsr request",
    4,
    Struct(
        "LeaderAndIsr Request",
        (
            Field("controller_id", "int32"),
            Field("controller_epoch", "int32"),
            Field("broker_epoch", "int64"),
            Field("type", "int8", tag=0),
            Field("topic_states", Array(_TOPIC_STATE)),
            Field("live_leaders", Array(_LIVE_LEADER)),
        ),
        lambda controller, epoch, broker_epoch, kind, topics, leaders: LeaderAndIsrRequest(
            controller, epoch, topics, broker_epoch, RequestType.of(kind), live_leaders=leaders
        ),
        attrgetter("controller_id", "controller_epoch", "broker_epoch", "type", "topics", "live_leaders"),
    ),
    _ONE,
    0,
)

_Flat = tuple[str, TopicId | None, int, int]


def _by_topic(flat: tuple[_Flat, ...]) -> tuple[TopicErrors, ...]:
    return errors_by_topic((topic, topic_id, PartitionError(*error)) for topic, topic_id, *error in flat)


def _flat(topics: tuple[TopicErrors, ...]) -> tuple[_Flat, ...]:
    return tuple((each.topic, each.topic_id, *error) for each in topics for error in each.partitions)


_ERRORS = (Field("partition", "int32"), Field("error_code", "int16"))
_ERROR_BY_ID = Struct(
    "partitions", (_TOPIC_ID, *_ERRORS), lambda raw, *error: ("", id_of(raw), *error), lambda flat: flat[1:]
)
_ERROR_BY_NAME = Struct(
    "partitions",
    (Field("topic", "string"), _TOPIC_ID, *_ERRORS),
    lambda topic, raw, *error: (topic, id_of(raw), *error),
    tuple,
)

LEADER_AND_ISR_RESPONSE = Message(
    "LeaderAndIsr response",
    4,
    Struct(
        "LeaderAndIsr Response",
        (Field("error_code", "int16"), Field("partitions", Array(_ERROR_BY_ID))),
        lambda error, flat: LeaderAndIsrResponse(error, _by_topic(flat)),
        lambda response: (int(response.error), _flat(response.topics)),
    ),
    _ONE,
    0,
)


def _take_stop(request: StopReplicaRequest) -> tuple[Any, ...]:
    delete = any(state.delete for topic in request.topics for state in topic.partitions)
    return request.controller_id, request.controller_epoch, request.broker_epoch, delete, partition_numbers(request)


def _make_stop(controller: int, epoch: int, broker_epoch: int, delete: bool, topics: Any) -> StopReplicaRequest:
    return StopReplicaRequest(controller, epoch, stop_topics(topics, delete), broker_epoch)


_STOPPED = Struct(
    "partitions",
    (Field("topic", "string"), _TOPIC_ID, Field("partition_ids", INTS)),
    lambda topic, raw, numbers: (topic, id_of(raw), numbers),
    tuple,
)

STOP_REPLICA = Message(
    "StopReplica request",
    5,
    Struct(
        "StopReplica Request",
        (
            Field("controller_id", "int32"),
            Field("controller_epoch", "int32"),
            Field("broker_epoch", "int64"),
            Field("delete_partitions", "bool"),
            Field("partitions", Array(_STOPPED)),
        ),
        _make_stop,
        _take_stop,
    ),
    _ONE,
    0,
)
STOP_REPLICA_RESPONSE = Message(
    "StopReplica response",
    5,
    Struct(
        "StopReplica Response",
        (Field("error_code", "int16"), Field("partitions", Array(_ERROR_BY_NAME))),
        lambda error, flat: StopReplicaResponse(error, _by_topic(flat)),
        lambda response: (int(response.error), _flat(response.topics)),
    ),
    _ONE,
    0,
)
