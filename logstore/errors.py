"""The errors of ``logstore``: one root; damage, misuse, refusals and failing disks are kept apart.

What was asked for and cannot be had carries the number that a Kafka client would be told, ``kafka_error``, so that a
broker that embeds the engine can answer with it. Every message says what was found, where, and what to do next.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class KafkaError(IntEnum):
    """An error code as it stands in a response; the names are Kafka's (FACTS §4.1)."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    STALE_CONTROLLER_EPOCH = 11
    INVALID_TOPIC_EXCEPTION = 17
    NOT_ENOUGH_REPLICAS = 19
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    REASSIGNMENT_IN_PROGRESS = 60
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    INVALID_UPDATE_VERSION = 95
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103


class LogStoreError(Exception):
    """Root of everything that ``logstore`` raises."""

    kafka_error: ClassVar[KafkaError] = KafkaError.UNKNOWN_SERVER_ERROR
    """What a broker answers to whoever asked."""


class NotALogDirError(LogStoreError):
    """A path that was given as a log dir cannot be looked at as one: absent, a file, or not readable."""


class InventoryError(LogStoreError):
    """A file of rows that another run wrote is not one, is damaged, or has a schema version that is not known."""


class UnreadableFileError(LogStoreError):
    """A file of a log dir is no plain file, is larger than such a file can be, or the system refuses to read it."""


class ChangeRefusedError(LogStoreError):
    """Nothing was changed, because the change would do harm or makes no sense here; the message says what to do."""


class LogDirInUseError(ChangeRefusedError):
    """Another process, or this one, holds the log dir's lock: a broker runs on it, or another of our runs does."""

    kafka_error = KafkaError.KAFKA_STORAGE_ERROR


class UnsafePathError(ChangeRefusedError):
    """A link, a mount point or a name that leads elsewhere stands where a directory of the log dir should be."""


class NameTakenError(ChangeRefusedError):
    """Something of that name is there already, and nothing is ever overwritten or merged."""


class DamagedRecordError(LogStoreError):
    """A staged directory's record is missing, does not parse, or does not speak of the directory that holds it."""


class OfflineLogDirError(LogStoreError):
    """The log dir failed with an I/O error and is no longer used; the broker's other log dirs go on."""

    kafka_error = KafkaError.KAFKA_STORAGE_ERROR


class ChangeFailedError(LogStoreError):
    """The system refused a change, and what was done of it before was undone: no space, no permission."""

    kafka_error = KafkaError.KAFKA_STORAGE_ERROR


class UnknownReplicaError(LogStoreError):
    """No log dir of the store has a live replica of that partition."""

    kafka_error = KafkaError.UNKNOWN_TOPIC_OR_PARTITION


class InconsistentTopicIdError(LogStoreError):
    """The replica has another topic ID than the one given."""

    kafka_error = KafkaError.INCONSISTENT_TOPIC_ID


class InvalidNamespaceError(ChangeRefusedError):
    """A namespace that was not created, exists already, or still holds others (KIP37-3)."""

    kafka_error = KafkaError.INVALID_TOPIC_EXCEPTION
