"""The layouts of KRaft's records, as tables: which fields, in which version, under which tag, with which default.

All are flexible from version 0, and their values are dicts by Kafka's names. Source: FACTS §7.4 (control records), §7.5
(metadata records); KIP-694, *Metadata Changes*.
"""

from __future__ import annotations

from typing import Final

from reconciler.protocol.schema import INTS, Array, Field, Kind, Message, dict_struct

_UUIDS = Array("uuid")


def _optional(name: str, kind: Kind, tag: int, first: int = 0) -> Field:
    """Make a tagged field that is null where it is absent."""
    return Field(name, kind, first, tag=tag, default=None, nullable=True)


def _record(key: int, name: str, highest: int, fields: tuple[Field, ...] = ()) -> Message:
    return Message(name, key, dict_struct(name, *fields), range(highest + 1), 0)


_ENDPOINTS = Array(
    dict_struct(
        "Endpoint",
        Field("name", "string"),
        Field("host", "string"),
        Field("port", "uint16"),
        Field("securityProtocol", "int16"),
    )
)
_FEATURES = Array(
    dict_struct(
        "Feature",
        Field("name", "string"),
        Field("minSupportedVersion", "int16"),
        Field("maxSupportedVersion", "int16"),
    )
)

_REGISTER_BROKER = (
    Field("brokerId", "int32"),
    Field("isMigratingZkBroker", "bool", first=2),
    Field("incarnationId", "uuid"),
    Field("brokerEpoch", "int64"),
    Field("endPoints", _ENDPOINTS),
    Field("features", _FEATURES),
    Field("rack", "string", nullable=True),
    Field("fenced", "bool", default=True),
    Field("inControlledShutdown", "bool", first=1),
    Field("logDirs", _UUIDS, first=3, tag=0),
)

_PARTITION = (
    Field("partitionId", "int32", default=-1),
    Field("topicId", "uuid"),
    Field("replicas", INTS),
    Field("isr", INTS),
    Field("removingReplicas", INTS),
    Field("addingReplicas", INTS),
    Field("leader", "int32", default=-1),
    Field("leaderEpoch", "int32", default=-1),
    Field("partitionEpoch", "int32", default=-1),
    Field("directories", _UUIDS, first=1),
    Field("leaderRecoveryState", "int8", tag=0),
    _optional("eligibleLeaderReplicas", INTS, tag=1, first=2),
    _optional("lastKnownElr", INTS, tag=2, first=2),
)

_PARTITION_CHANGE = (
    Field("partitionId", "int32", default=-1),
    Field("topicId", "uuid"),
    _optional("isr", INTS, tag=0),
    Field("leader", "int32", tag=1, default=-2),
    _optional("replicas", INTS, tag=2),
    _optional("removingReplicas", INTS, tag=3),
    _optional("addingReplicas", INTS, tag=4),
    Field("leaderRecoveryState", "int8", tag=5, default=-1),
    _optional("eligibleLeaderReplicas", INTS, tag=6, first=2),
    _optional("lastKnownElr", INTS, tag=7, first=2),
    _optional("directories", _UUIDS, tag=8, first=1),
)

_BROKER_CHANGE = (
    Field("brokerId", "int32"),
    Field("brokerEpoch", "int64"),
    Field("fenced", "int8", tag=0),
    Field("inControlledShutdown", "int8", first=1, tag=1),
    Field("logDirs", _UUIDS, first=2, tag=2),
)

_REGISTER_CONTROLLER = (
    Field("controllerId", "int32"),
    Field("incarnationId", "uuid"),
    Field("zkMigrationReady", "bool"),
    Field("endPoints", _ENDPOINTS),
    Field("features", _FEATURES),
)

_DELEGATION_TOKEN = (
    Field("owner", "string"),
    Field("requester", "string"),
    Field("renewers", Array("string")),
    Field("issueTimestamp", "int64"),
    Field("maxTimestamp", "int64"),
    Field("expirationTimestamp", "int64"),
    Field("tokenId", "string"),
)

_USER_SCRAM_CREDENTIAL = (
    Field("name", "string"),
    Field("mechanism", "int8"),
    Field("salt", "bytes"),
    Field("storedKey", "bytes"),
    Field("serverKey", "bytes"),
    Field("iterations", "int32"),
)

_ACCESS_CONTROL_ENTRY = (
    Field("id", "uuid"),
    Field("resourceType", "int8"),
    Field("resourceName", "string"),
    Field("patternType", "int8"),
    Field("principal", "string"),
    Field("host", "string"),
    Field("operation", "int8"),
    Field("permissionType", "int8"),
)

_CONFIG = (
    Field("resourceType", "int8"),
    Field("resourceName", "string"),
    Field("name", "string"),
    Field("value", "string", nullable=True),
)

_QUOTA_ENTITY = dict_struct("Entity", Field("entityType", "string"), Field("entityName", "string", nullable=True))
_CLIENT_QUOTA = (
    Field("entity", Array(_QUOTA_ENTITY)),
    Field("key", "string"),
    Field("value", "float64"),
    Field("remove", "bool"),
)

_PRODUCER_IDS = (
    Field("brokerId", "int32"),
    Field("brokerEpoch", "int64", default=-1),
    Field("nextProducerId", "int64"),
)

_ID_AND_EPOCH = (Field("id", "int32"), Field("epoch", "int64"))
_NAME = Field("name", "string")

METADATA_RECORDS: dict[int, Message] = {
    message.key: message
    for message in (
        _record(0, "RegisterBrokerRecord", 3, _REGISTER_BROKER),
        _record(1, "UnregisterBrokerRecord", 0, (Field("brokerId", "int32"), Field("brokerEpoch", "int64"))),
        _record(2, "TopicRecord", 0, (_NAME, Field("topicId", "uuid"))),
        _record(3, "PartitionRecord", 2, _PARTITION),
        _record(4, "ConfigRecord", 0, _CONFIG),
        _record(5, "PartitionChangeRecord", 2, _PARTITION_CHANGE),
        _record(7, "FenceBrokerRecord", 0, _ID_AND_EPOCH),
        _record(8, "UnfenceBrokerRecord", 0, _ID_AND_EPOCH),
        _record(9, "RemoveTopicRecord", 0, (Field("topicId", "uuid"),)),
        _record(10, "DelegationTokenRecord", 0, _DELEGATION_TOKEN),
        _record(11, "UserScramCredentialRecord", 0, _USER_SCRAM_CREDENTIAL),
        _record(12, "FeatureLevelRecord", 0, (_NAME, Field("featureLevel", "int16"))),
        _record(14, "ClientQuotaRecord", 0, _CLIENT_QUOTA),
        _record(15, "ProducerIdsRecord", 0, _PRODUCER_IDS),
        _record(17, "BrokerRegistrationChangeRecord", 2, _BROKER_CHANGE),
        _record(18, "AccessControlEntryRecord", 0, _ACCESS_CONTROL_ENTRY),
        _record(19, "RemoveAccessControlEntryRecord", 0, (Field("id", "uuid"),)),
        _record(20, "NoOpRecord", 0),
        _record(21, "ZkMigrationStateRecord", 0, (Field("zkMigrationState", "int8"),)),
        _record(22, "RemoveUserScramCredentialRecord", 0, (_NAME, Field("mechanism", "int8"))),
        _record(23, "BeginTransactionRecord", 0, (_optional("name", "string", tag=0),)),
        _record(24, "EndTransactionRecord", 0),
        _record(25, "AbortTransactionRecord", 0, (_optional("reason", "string", tag=0),)),
        _record(26, "RemoveDelegationTokenRecord", 0, (Field("tokenId", "string"),)),
        _record(27, "RegisterControllerRecord", 0, _REGISTER_CONTROLLER),
        _record(28, "ClearElrRecord", 0, (Field("topicName", "string"),)),
        _record(29, "UnregisterControllerRecord", 0, (Field("controllerId", "int32"),)),
    )
}
"""By record type. 28 and 29 came after 3.9; 6, 13 and 16 are not in use."""

KIP694_NUMBER: Final = 694
"""Stands in a log where KIP-694 gives no number, or one that shipped: as the version of its PartitionRecord, which it
calls version 0, and as the type of its DeleteTopicPartitionsRecord. No shipped Kafka writes either."""

_PARTITION_WITH_MODE = (
    Field("partitionId", "int32", default=-1),
    Field("topicId", "uuid"),
    Field("replicas", INTS),
    Field("isr", INTS),
    Field("removingReplicas", INTS, nullable=True),
    Field("addingReplicas", INTS, nullable=True),
    Field("leader", "int32", default=-1),
    Field("leaderEpoch", "int32", default=-1),
    Field("mode", "int32"),
)
_DELETE_TOPIC_PARTITIONS = (
    Field("topicId", "uuid"),
    Field("deletePartitions", "int32"),
    Field("deletePartitionsDelayTimestamp", "bool"),
    Field("createTimestamp", "int64"),
)

PROPOSED_RECORDS: Final[dict[tuple[int, int], Message]] = {
    (3, KIP694_NUMBER): _record(3, "PartitionRecord", 0, _PARTITION_WITH_MODE),
    (KIP694_NUMBER, 0): _record(KIP694_NUMBER, "DeleteTopicPartitionsRecord", 0, _DELETE_TOPIC_PARTITIONS),
}
"""By record type and version: the forms that KIP-694 draws. ``mode`` is 0 to read and write, 1 to read, -1 for none;
``deletePartitions`` is one partition, whose data stays for a while where the flag is set."""

_VERSION = Field("version", "int16")
_LEADER_VOTERS = Array(dict_struct("Voter", Field("voterId", "int32"), Field("voterDirectoryId", "uuid", first=1)))
_VOTER = dict_struct(
    "Voter",
    Field("voterId", "int32"),
    Field("voterDirectoryId", "uuid"),
    Field(
        "endpoints",
        Array(dict_struct("Endpoint", Field("name", "string"), Field("host", "string"), Field("port", "uint16"))),
    ),
    Field(
        "kRaftVersionFeature",
        dict_struct("Feature", Field("minSupportedVersion", "int16"), Field("maxSupportedVersion", "int16")),
    ),
)

CONTROL_RECORDS: dict[int, Message] = {
    message.key: message
    for message in (
        _record(
            2,
            "LeaderChangeMessage",
            1,
            (
                _VERSION,
                Field("leaderId", "int32"),
                Field("voters", _LEADER_VOTERS),
                Field("grantingVoters", _LEADER_VOTERS),
            ),
        ),
        _record(3, "SnapshotHeaderRecord", 0, (_VERSION, Field("lastContainedLogTimestamp", "int64"))),
        _record(4, "SnapshotFooterRecord", 0, (_VERSION,)),
        _record(5, "KRaftVersionRecord", 0, (_VERSION, Field("kRaftVersion", "int16"))),
        _record(6, "VotersRecord", 0, (_VERSION, Field("voters", Array(_VOTER)))),
    )
}
"""By control record type. Types 0 and 1, a producer's abort and commit, do not occur in metadata."""
