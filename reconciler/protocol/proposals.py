"""Messages as proposals draw them: KIP-516's LeaderAndIsr 5 and StopReplica 2, and KIP-694's DeletePartitions.

The first two shipped otherwise. KIP-516 marks ``type`` and every ``topic_id`` as tagged fields, so its messages are
flexible. It gives no numbers to the tags, so each is the first of its struct. Fields that it does not draw (adding,
removing, leader recovery, KRaft) are absent, and a LeaderAndIsr answer names its topics by ID alone.
Source: KIP-516, *Protocol Changes*; KIP516-4, KIP516-7.

DeletePartitions never shipped. A client sends it to the controller, to leave a topic fewer partitions. Version 0 is
drawn, with one delay for all its topics; in version 1, which is our own, each topic has its delay. The proposal gives
no API key. Source: KIP-694, *Protocol RPC changes*; KIP694-2.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from layout.ids import TopicId
from reconciler.protocol.records import KIP694_NUMBER
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
    check_elements,
    check_types,
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


_INTEGER, _TUPLE, _TEXT = (int, "an integer"), (tuple, "a tuple"), (str, "a text")
_TEXT_OR_NONE = (str | None, "a text or None")
NO_DELAY = -1
"""In place of a delay that was not given."""


@dataclass(frozen=True, slots=True)
class DeletePartitionsTopic:
    """A topic, and its new, smaller number of partitions.

    Raises:
        InvalidRequestError: a field is of another type; here, and in the types below.
    """

    topic: str
    total: int
    delay_ms: int = 0
    """How long consumers may read the partitions that go; 0: not at all."""

    def __post_init__(self) -> None:
        check_types(self, {"topic": _TEXT, "total": _INTEGER, "delay_ms": _INTEGER})


@dataclass(frozen=True, slots=True)
class DeletePartitionsRequest:
    """A client's request to the controller; it is answered when clients may no longer write, or after the timeout."""

    topics: tuple[DeletePartitionsTopic, ...]
    timeout_ms: int

    def __post_init__(self) -> None:
        check_types(self, {"topics": _TUPLE, "timeout_ms": _INTEGER})
        check_elements(self, "topics", DeletePartitionsTopic)


@dataclass(frozen=True, slots=True)
class DeletedPartition:
    """The answer for one partition; -1 is the topic, where it was refused whole."""

    partition: int
    status: int
    """The mode of the partition: 0 to read and write, 1 to read, -1 for none."""
    error: int = 0
    message: str | None = None

    def __post_init__(self) -> None:
        numbers = dict.fromkeys(("partition", "status", "error"), _INTEGER)
        check_types(self, numbers | {"message": _TEXT_OR_NONE})


@dataclass(frozen=True, slots=True)
class DeletedPartitions:
    """The answers for the partitions of one topic."""

    topic: str
    partitions: tuple[DeletedPartition, ...]

    def __post_init__(self) -> None:
        check_types(self, {"topic": _TEXT, "partitions": _TUPLE})
        check_elements(self, "partitions", DeletedPartition)


@dataclass(frozen=True, slots=True)
class DeletePartitionsResponse:
    """The answer to a request to delete partitions; ``error`` is that of the whole request."""

    error: int
    topics: tuple[DeletedPartitions, ...] = ()
    message: str | None = None
    throttle_time_ms: int = 0

    def __post_init__(self) -> None:
        check_types(self, dict.fromkeys(("error", "throttle_time_ms"), _INTEGER) | {"topics": _TUPLE})
        check_types(self, {"message": _TEXT_OR_NONE})
        check_elements(self, "topics", DeletedPartitions)


def _make_deletion(timeout_ms: int, delay_ms: int, topics: Any) -> DeletePartitionsRequest:
    def with_delay(name: str, total: int, own_ms: int) -> DeletePartitionsTopic:
        return DeletePartitionsTopic(name, total, delay_ms if own_ms == NO_DELAY else own_ms)

    return DeletePartitionsRequest(tuple(with_delay(*each) for each in topics), timeout_ms)


def _take_deletion(request: DeletePartitionsRequest) -> tuple[Any, ...]:
    return request.timeout_ms, request.topics[0].delay_ms if request.topics else 0, request.topics


def _delay(first: int, last: int) -> Field:
    return Field("delete_partitions_delay", "int64", first, last, default=NO_DELAY, ignorable=True)


_DELETED_TOPIC = Struct(
    "topics",
    (Field("name", "string"), Field("partitions", "int32"), _delay(1, 1)),
    lambda *values: values,
    attrgetter("topic", "total", "delay_ms"),
)
_DELETED_PARTITION = Struct(
    "partitions",
    (
        Field("partition_index", "int32"),
        Field("status_code", "int8"),
        Field("error_code", "int16"),
        Field("error_message", "string", default=None, nullable=True),
    ),
    DeletedPartition,
    attrgetter("partition", "status", "error", "message"),
)
_DELETED_PARTITIONS = Struct(
    "responses",
    (Field("name", "string"), Field("partitions", Array(_DELETED_PARTITION))),
    DeletedPartitions,
    attrgetter("topic", "partitions"),
)

DELETE_PARTITIONS = Message(
    "DeletePartitions request",
    KIP694_NUMBER,
    Struct(
        "DeletePartitions Request",
        (Field("timeout_ms", "int32"), _delay(0, 0), Field("topics", Array(_DELETED_TOPIC))),
        _make_deletion,
        _take_deletion,
    ),
    range(2),
    0,
)
DELETE_PARTITIONS_RESPONSE = Message(
    "DeletePartitions response",
    KIP694_NUMBER,
    Struct(
        "DeletePartitions Response",
        (
            Field("throttle_time_ms", "int32"),
            Field("error_code", "int16"),
            Field("error_message", "string", default=None, nullable=True),
            Field("responses", Array(_DELETED_PARTITIONS)),
        ),
        lambda throttle_ms, error, message, topics: DeletePartitionsResponse(error, topics, message, throttle_ms),
        lambda answer: (answer.throttle_time_ms, int(answer.error), answer.message, answer.topics),
    ),
    range(2),
    0,
)
