"""UpdateMetadata, with which a controller tells a broker what clients may know: its types, and the tables of its forms.

It changes no disk. Kafka's versions 0 to 8 are here, and what two proposals draw as 6 and 7: ``kip-516`` has topic IDs
as tagged fields, and ``kip-694`` the mode of each partition besides. In version 0 a broker has one address, which is
its endpoint for plain text here; before version 3 a listener is called as its protocol is.
Source: FACTS §5.4; KIP-516 and KIP-694, *UpdateMetadata*; KIP516-9, KIP694-1.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias

from layout.ids import TopicId
from reconciler.protocol.requests import ControlRequest, ControlResponse, RequestType, check_elements, check_types
from reconciler.protocol.schema import INTS, NEWEST, Array, Field, Kind, Message, Struct
from reconciler.protocol.tables import by_topic, id_of, pairs

_PLAINTEXT = 0
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_INTEGER, _TUPLE, _TEXT = (int, "an integer"), (tuple, "a tuple"), (str, "a text")
_LISTS = ("isr", "replicas", "offline")


@dataclass(frozen=True, slots=True)
class UpdateMetadataPartition:
    """The state of one partition, as clients may know it. Broker ids and epochs are int32.

    Raises:
        InvalidRequestError: a field is of another type; here, and in the types below.
    """

    partition: int
    controller_epoch: int
    leader: int
    """-1: none; -2: the topic is being deleted."""
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    offline: tuple[int, ...] = ()
    """Replicas on unavailable brokers or disks."""
    mode: int = 0
    """0: read and write, 1: read only, -1: none; only in the form of KIP-694."""

    def __post_init__(self) -> None:
        numbers = ("partition", "controller_epoch", "leader", "leader_epoch", "partition_epoch", "mode")
        check_types(self, dict.fromkeys(numbers, _INTEGER) | dict.fromkeys(_LISTS, _TUPLE))


@dataclass(frozen=True, slots=True)
class UpdateMetadataTopic:
    """Some partitions of one topic; ``topic_id`` is None where the request has none or the zero ID."""

    topic: str
    topic_id: TopicId | None
    partitions: tuple[UpdateMetadataPartition, ...]

    def __post_init__(self) -> None:
        check_types(self, {"topic": _TEXT, "topic_id": (TopicId | None, "a TopicId or None"), "partitions": _TUPLE})
        check_elements(self, "partitions", UpdateMetadataPartition)


@dataclass(frozen=True, slots=True)
class UpdateMetadataEndpoint:
    """One address of a broker; ``security_protocol`` is Kafka's number, 0 for plain text."""

    port: int
    host: str
    listener: str
    security_protocol: int

    def __post_init__(self) -> None:
        numbers = dict.fromkeys(("port", "security_protocol"), _INTEGER)
        check_types(self, numbers | dict.fromkeys(("host", "listener"), _TEXT))


@dataclass(frozen=True, slots=True)
class UpdateMetadataBroker:
    """A broker that is alive, and its addresses."""

    broker_id: int
    endpoints: tuple[UpdateMetadataEndpoint, ...] = ()
    rack: str | None = None

    def __post_init__(self) -> None:
        check_types(self, {"broker_id": _INTEGER, "endpoints": _TUPLE, "rack": (str | None, "a text or None")})
        check_elements(self, "endpoints", UpdateMetadataEndpoint)


@dataclass(frozen=True, slots=True)
class UpdateMetadataRequest:
    """A request to any broker, about all of them. Topics are distinct, and so are the partitions of each."""

    controller_id: int
    controller_epoch: int
    topics: tuple[UpdateMetadataTopic, ...]
    live_brokers: tuple[UpdateMetadataBroker, ...] = ()
    broker_epoch: int = -1
    """-1: not given."""
    type: RequestType = RequestType.UNSPECIFIED
    """FULL: it has every topic of the cluster."""
    is_kraft_controller: bool = False

    def __post_init__(self) -> None:
        numbers = dict.fromkeys(("controller_id", "controller_epoch", "broker_epoch"), _INTEGER)
        flags = {"type": (RequestType, "a RequestType"), "is_kraft_controller": (bool, "True or False")}
        check_types(self, numbers | flags | dict.fromkeys(("topics", "live_brokers"), _TUPLE))
        check_elements(self, "topics", UpdateMetadataTopic)
        check_elements(self, "live_brokers", UpdateMetadataBroker)


@dataclass(frozen=True, slots=True)
class UpdateMetadataResponse:
    """The answer to an UpdateMetadata request: one error number."""

    error: int


ControllerRequest: TypeAlias = ControlRequest | UpdateMetadataRequest
"""What a controller sends to a broker."""

ControllerResponse: TypeAlias = ControlResponse | UpdateMetadataResponse


def _listener(name: str, protocol: int) -> str:
    return name or (_PROTOCOLS[protocol] if 0 <= protocol < len(_PROTOCOLS) else "")


def _make_endpoint(port: int, host: str, listener: str, protocol: int) -> UpdateMetadataEndpoint:
    return UpdateMetadataEndpoint(port, host, _listener(listener, protocol), protocol)


def _make_broker(number: int, host: str, port: int, endpoints: Any, rack: str | None) -> UpdateMetadataBroker:
    only = (_make_endpoint(port, host, "", _PLAINTEXT),) if host and not endpoints else ()
    return UpdateMetadataBroker(number, endpoints or only, rack)


def _make_topic(name: str, raw: bytes, states: Any) -> UpdateMetadataTopic:
    return UpdateMetadataTopic(name, id_of(raw), states)


def _take_broker(broker: UpdateMetadataBroker) -> tuple[Any, ...]:
    plain = next((each for each in broker.endpoints if each.security_protocol == _PLAINTEXT), None)
    host, port = ("", 0) if plain is None else (plain.host, plain.port)
    return broker.broker_id, host, port, broker.endpoints, broker.rack


_NEVER = 100
"""The first version of a field that a form does not have: a value in it cannot be written."""

_take_state = attrgetter(*UpdateMetadataPartition.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class _Form:
    """How one form spells its fields, and which of them it has.

    Attributes:
        drawn: the version that a proposal draws: all fields of it are in the form, and none of later ones.
        mode: whether its partitions have a mode.
    """

    drawn: int | None = None
    mode: bool = False

    def field(self, name: str, kind: Kind, first: int = 0, last: int = NEWEST, **more: Any) -> Field:
        """Make a field of a name in the proposals' spelling, for the versions of Kafka that have it."""
        if self.drawn is None:
            head, *rest = name.replace("kraft", "k_raft").split("_")
            name = head + "".join(each.upper() if each == "k" else each.title() for each in rest)
            return Field(name, kind, first, last, **more)
        has = first <= self.drawn <= last or "tag" in more
        return Field(name, kind, 0 if has else _NEVER, NEWEST, **more)

    def brokers(self) -> Array:
        """Make the list of live brokers."""
        endpoint = Struct(
            "UpdateMetadataEndpoint",
            (
                Field("port", "int32"),
                Field("host", "string"),
                self.field("listener", "string", 3, ignorable=True),
                self.field("security_protocol", "int16"),
            ),
            _make_endpoint,
            attrgetter("port", "host", "listener", "security_protocol"),
        )
        broker = (
            Field("id", "int32"),
            self.field("v0_host", "string", 0, 0, ignorable=True),
            self.field("v0_port", "int32", 0, 0, ignorable=True),
            self.field("endpoints", Array(endpoint), 1, ignorable=True),
            self.field("rack", "string", 2, default=None, ignorable=True, nullable=True),
        )
        return Array(Struct("UpdateMetadataBroker", broker, _make_broker, _take_broker))

    def states(self) -> tuple[Field, ...]:
        """Make the fields of a partition."""
        numbers = ("partition_index", "controller_epoch", "leader", "leader_epoch")
        return (
            *(self.field(name, "int32") for name in numbers),
            *(self.field("isr", INTS), self.field("zk_version", "int32"), self.field("replicas", INTS)),
            self.field("offline_replicas", INTS, 4, ignorable=True),
            Field("mode", "int8", 0 if self.mode else _NEVER),
        )

    def topics(self) -> Array:
        """Make the list of topics; a proposal tags the topic ID, which Kafka then put into version 7."""
        tagged = {"first": 7} if self.drawn is None else {"tag": 0}
        state = Struct("UpdateMetadataPartitionState", self.states(), UpdateMetadataPartition, _take_state)
        topic = (
            self.field("topic_name", "string"),
            self.field("topic_id", "uuid", ignorable=True, **tagged),
            self.field("partition_states", Array(state)),
        )
        take = attrgetter("topic", "topic_id", "partitions")
        return Array(Struct("UpdateMetadataTopicState", topic, _make_topic, take))

    def flat(self) -> Array:
        """Make the list of partitions, each with its topic."""
        return Array(
            Struct(
                "UpdateMetadataPartitionState",
                (self.field("topic_name", "string"), *self.states()),
                lambda topic, *values: (topic, UpdateMetadataPartition(*values)),
                lambda pair: (pair[0], *_take_state(pair[1])),
            )
        )

    def message(self) -> Message:
        """Make the request."""
        fields = (
            self.field("controller_id", "int32"),
            self.field("is_kraft_controller", "bool", 8),
            self.field("type", "int8", 8, **({"tag": 0} if self.drawn is None else {})),
            self.field("controller_epoch", "int32"),
            self.field("broker_epoch", "int64", 5, default=-1, ignorable=True),
            self.field("ungrouped_partition_states", self.flat(), 0, 4, ignorable=True),
            self.field("topic_states", self.topics(), 5, ignorable=True),
            self.field("live_brokers", self.brokers()),
        )
        body = Struct("UpdateMetadataRequest", fields, _make_request, _take_request)
        versions, flexible = (range(9), 6) if self.drawn is None else (range(1), 0)
        return Message("UpdateMetadata request", 6, body, versions, flexible)


def _take_request(request: UpdateMetadataRequest) -> tuple[Any, ...]:
    return (
        *(request.controller_id, request.is_kraft_controller, int(request.type), request.controller_epoch),
        *(request.broker_epoch, pairs(request.topics), request.topics, request.live_brokers),
    )


def _make_request(*values: Any) -> UpdateMetadataRequest:
    controller, is_kraft, kind, epoch, broker_epoch, flat, topics, brokers = values
    topics = by_topic(flat, UpdateMetadataTopic) if flat else topics
    return UpdateMetadataRequest(controller, epoch, topics, brokers, broker_epoch, RequestType.of(kind), is_kraft)


def _answer(error_name: str, versions: range, flexible: int) -> Message:
    error = (Field(error_name, "int16"),)
    body = Struct("UpdateMetadataResponse", error, UpdateMetadataResponse, lambda response: (response.error,))
    return Message("UpdateMetadata response", 6, body, versions, flexible)


UPDATE_METADATA = _Form().message()
UPDATE_METADATA_RESPONSE = _answer("errorCode", range(9), 6)
PROPOSED_WITH_IDS = _Form(6).message()
PROPOSED_WITH_MODE = _Form(7, mode=True).message()
PROPOSED_RESPONSE = _answer("error_code", range(1), 0)
