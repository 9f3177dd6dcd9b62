"""The layouts of KRaft's records, as tables: which fields, in which version, under which tag, with which default.

``records`` reads bytes by these tables, and ``tools/writers/kraft_writer.py`` writes bytes by them. Field names are
Kafka's own. All messages here are flexible from version 0, so a list of tagged fields ends every struct. Source:
FACTS §7.4 (control records), §7.5 (metadata records).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import Any


class Type(Enum):
    """A primitive of the wire (FACTS §7.3)."""

    INT8 = auto()
    INT16 = auto()
    INT32 = auto()
    INT64 = auto()
    UINT16 = auto()
    FLOAT64 = auto()
    BOOL = auto()
    UUID = auto()
    STRING = auto()
    BYTES = auto()


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct: fields in their declared order, then tagged fields."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """An array: a count, then that many items."""

    item: Type | Struct


FieldType = Type | Struct | Array


class _Implied(Enum):
    """Marks a field with the default of its type: zero, the empty text, the empty array."""

    IMPLIED = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message.

    Attributes:
        name: Kafka's name for it, with a small first letter.
        type: its type on the wire.
        since: the first version that has it.
        tag: its tag, or None for a field that is always written.
        default: its value where it is not written; see :attr:`absent`.
        nullable: whether null can be written.
    """

    name: str
    type: FieldType
    since: int = 0
    tag: int | None = None
    default: int | bool | _Implied | None = _Implied.IMPLIED
    nullable: bool = False

    @property
    def absent(self) -> Any:
        """The value of a field that is not written, as a decoder returns it."""
        if self.default is not _Implied.IMPLIED:
            return self.default
        if isinstance(self.type, Array):
            return ()
        if isinstance(self.type, Struct):
            return {field.name: field.absent for field in self.type.fields}
        return _ZEROS[self.type]


_ZEROS: dict[Type, int | float | bool | bytes | str] = {
    Type.INT8: 0,
    Type.INT16: 0,
    Type.INT32: 0,
    Type.INT64: 0,
    Type.UINT16: 0,
    Type.FLOAT64: 0.0,
    Type.BOOL: False,
    Type.UUID: bytes(16),
    Type.STRING: "",
    Type.BYTES: b"",
}


@dataclass(frozen=True, slots=True)
class Message:
    """One record type: its number, its name, the highest known version, and its fields over all versions."""

    number: int
    name: str
    highest: int
    fields: tuple[Field, ...] = ()


@cache
def written(fields: tuple[Field, ...], version: int) -> tuple[Field, ...]:
    """The fields that are always written in a version, in order."""
    return tuple(field for field in fields if field.tag is None and field.since <= version)


@cache
def tagged(fields: tuple[Field, ...], version: int) -> dict[int, Field]:
    """The tagged fields of a version, by tag, ascending."""
    found = {field.tag: field for field in fields if field.tag is not None and field.since <= version}
    return dict(sorted(found.items()))


_INT32S = Array(Type.INT32)
_UUIDS = Array(Type.UUID)


def _optional(name: str, kind: FieldType, tag: int, since: int = 0) -> Field:
    """Make a tagged field that is null where it is absent."""
    return Field(name, kind, since, tag, default=None, nullable=True)


_ENDPOINTS = Array(
    Struct(
        (
            Field("name", Type.STRING),
            Field("host", Type.STRING),
            Field("port", Type.UINT16),
            Field("securityProtocol", Type.INT16),
        )
    )
)
_FEATURES = Array(
    Struct(
        (
            Field("name", Type.STRING),
            Field("minSupportedVersion", Type.INT16),
            Field("maxSupportedVersion", Type.INT16),
        )
    )
)

_REGISTER_BROKER = (
    Field("brokerId", Type.INT32),
    Field("isMigratingZkBroker", Type.BOOL, since=2),
    Field("incarnationId", Type.UUID),
    Field("brokerEpoch", Type.INT64),
    Field("endPoints", _ENDPOINTS),
    Field("features", _FEATURES),
    Field("rack", Type.STRING, nullable=True),
    Field("fenced", Type.BOOL, default=True),
    Field("inControlledShutdown", Type.BOOL, since=1),
    Field("logDirs", _UUIDS, since=3, tag=0),
)

_PARTITION = (
    Field("partitionId", Type.INT32, default=-1),
    Field("topicId", Type.UUID),
    Field("replicas", _INT32S),
    Field("isr", _INT32S),
    Field("removingReplicas", _INT32S),
    Field("addingReplicas", _INT32S),
    Field("leader", Type.INT32, default=-1),
    Field("leaderEpoch", Type.INT32, default=-1),
    Field("partitionEpoch", Type.INT32, default=-1),
    Field("directories", _UUIDS, since=1),
    Field("leaderRecoveryState", Type.INT8, tag=0),
    _optional("eligibleLeaderReplicas", _INT32S, tag=1, since=2),
    _optional("lastKnownElr", _INT32S, tag=2, since=2),
)

_PARTITION_CHANGE = (
    Field("partitionId", Type.INT32, default=-1),
    Field("topicId", Type.UUID),
    _optional("isr", _INT32S, tag=0),
    Field("leader", Type.INT32, tag=1, default=-2),
    _optional("replicas", _INT32S, tag=2),
    _optional("removingReplicas", _INT32S, tag=3),
    _optional("addingReplicas", _INT32S, tag=4),
    Field("leaderRecoveryState", Type.INT8, tag=5, default=-1),
    _optional("eligibleLeaderReplicas", _INT32S, tag=6, since=2),
    _optional("lastKnownElr", _INT32S, tag=7, since=2),
    _optional("directories", _UUIDS, tag=8, since=1),
)

_BROKER_CHANGE = (
    Field("brokerId", Type.INT32),
    Field("brokerEpoch", Type.INT64),
    Field("fenced", Type.INT8, tag=0),
    Field("inControlledShutdown", Type.INT8, since=1, tag=1),
    Field("logDirs", _UUIDS, since=2, tag=2),
)

_REGISTER_CONTROLLER = (
    Field("controllerId", Type.INT32),
    Field("incarnationId", Type.UUID),
    Field("zkMigrationReady", Type.BOOL),
    Field("endPoints", _ENDPOINTS),
    Field("features", _FEATURES),
)

_DELEGATION_TOKEN = (
    Field("owner", Type.STRING),
    Field("requester", Type.STRING),
    Field("renewers", Array(Type.STRING)),
    Field("issueTimestamp", Type.INT64),
    Field("maxTimestamp", Type.INT64),
    Field("expirationTimestamp", Type.INT64),
    Field("tokenId", Type.STRING),
)

_USER_SCRAM_CREDENTIAL = (
    Field("name", Type.STRING),
    Field("mechanism", Type.INT8),
    Field("salt", Type.BYTES),
    Field("storedKey", Type.BYTES),
    Field("serverKey", Type.BYTES),
    Field("iterations", Type.INT32),
)

_ACCESS_CONTROL_ENTRY = (
    Field("id", Type.UUID),
    Field("resourceType", Type.INT8),
    Field("resourceName", Type.STRING),
    Field("patternType", Type.INT8),
    Field("principal", Type.STRING),
    Field("host", Type.STRING),
    Field("operation", Type.INT8),
    Field("permissionType", Type.INT8),
)

_CONFIG = (
    Field("resourceType", Type.INT8),
    Field("resourceName", Type.STRING),
    Field("name", Type.STRING),
    Field("value", Type.STRING, nullable=True),
)

_QUOTA_ENTITY = Struct((Field("entityType", Type.STRING), Field("entityName", Type.STRING, nullable=True)))
_CLIENT_QUOTA = (
    Field("entity", Array(_QUOTA_ENTITY)),
    Field("key", Type.STRING),
    Field("value", Type.FLOAT64),
    Field("remove", Type.BOOL),
)

_PRODUCER_IDS = (
    Field("brokerId", Type.INT32),
    Field("brokerEpoch", Type.INT64, default=-1),
    Field("nextProducerId", Type.INT64),
)

_ID_AND_EPOCH = (Field("id", Type.INT32), Field("epoch", Type.INT64))
_NAME = Field("name", Type.STRING)

METADATA_RECORDS: dict[int, Message] = {
    message.number: message
    for message in (
        Message(0, "RegisterBrokerRecord", 3, _REGISTER_BROKER),
        Message(1, "UnregisterBrokerRecord", 0, (Field("brokerId", Type.INT32), Field("brokerEpoch", Type.INT64))),
        Message(2, "TopicRecord", 0, (_NAME, Field("topicId", Type.UUID))),
        Message(3, "PartitionRecord", 2, _PARTITION),
        Message(4, "ConfigRecord", 0, _CONFIG),
        Message(5, "PartitionChangeRecord", 2, _PARTITION_CHANGE),
        Message(7, "FenceBrokerRecord", 0, _ID_AND_EPOCH),
        Message(8, "UnfenceBrokerRecord", 0, _ID_AND_EPOCH),
        Message(9, "RemoveTopicRecord", 0, (Field("topicId", Type.UUID),)),
        Message(10, "DelegationTokenRecord", 0, _DELEGATION_TOKEN),
        Message(11, "UserScramCredentialRecord", 0, _USER_SCRAM_CREDENTIAL),
        Message(12, "FeatureLevelRecord", 0, (_NAME, Field("featureLevel", Type.INT16))),
        Message(14, "ClientQuotaRecord", 0, _CLIENT_QUOTA),
        Message(15, "ProducerIdsRecord", 0, _PRODUCER_IDS),
        Message(17, "BrokerRegistrationChangeRecord", 2, _BROKER_CHANGE),
        Message(18, "AccessControlEntryRecord", 0, _ACCESS_CONTROL_ENTRY),
        Message(19, "RemoveAccessControlEntryRecord", 0, (Field("id", Type.UUID),)),
        Message(20, "NoOpRecord", 0),
        Message(21, "ZkMigrationStateRecord", 0, (Field("zkMigrationState", Type.INT8),)),
        Message(22, "RemoveUserScramCredentialRecord", 0, (_NAME, Field("mechanism", Type.INT8))),
        Message(23, "BeginTransactionRecord", 0, (_optional("name", Type.STRING, tag=0),)),
        Message(24, "EndTransactionRecord", 0),
        Message(25, "AbortTransactionRecord", 0, (_optional("reason", Type.STRING, tag=0),)),
        Message(26, "RemoveDelegationTokenRecord", 0, (Field("tokenId", Type.STRING),)),
        Message(27, "RegisterControllerRecord", 0, _REGISTER_CONTROLLER),
        Message(28, "ClearElrRecord", 0, (Field("topicName", Type.STRING),)),
        Message(29, "UnregisterControllerRecord", 0, (Field("controllerId", Type.INT32),)),
    )
}
"""By record type. 28 and 29 came after 3.9; 6, 13 and 16 are not in use."""

_VERSION = Field("version", Type.INT16)
_LEADER_VOTERS = Array(Struct((Field("voterId", Type.INT32), Field("voterDirectoryId", Type.UUID, since=1))))
_VOTER = Struct(
    (
        Field("voterId", Type.INT32),
        Field("voterDirectoryId", Type.UUID),
        Field(
            "endpoints",
            Array(Struct((Field("name", Type.STRING), Field("host", Type.STRING), Field("port", Type.UINT16)))),
        ),
        Field(
            "kRaftVersionFeature",
            Struct((Field("minSupportedVersion", Type.INT16), Field("maxSupportedVersion", Type.INT16))),
        ),
    )
)

CONTROL_RECORDS: dict[int, Message] = {
    message.number: message
    for message in (
        Message(
            2,
            "LeaderChangeMessage",
            1,
            (
                _VERSION,
                Field("leaderId", Type.INT32),
                Field("voters", _LEADER_VOTERS),
                Field("grantingVoters", _LEADER_VOTERS),
            ),
        ),
        Message(3, "SnapshotHeaderRecord", 0, (_VERSION, Field("lastContainedLogTimestamp", Type.INT64))),
        Message(4, "SnapshotFooterRecord", 0, (_VERSION,)),
        Message(5, "KRaftVersionRecord", 0, (_VERSION, Field("kRaftVersion", Type.INT16))),
        Message(6, "VotersRecord", 0, (_VERSION, Field("voters", Array(_VOTER)))),
    )
}
"""By control record type. Types 0 and 1, a producer's abort and commit, do not occur in metadata."""
