"""The errors of ``logstore``: one root; damage, misuse, refusals and failing disks are kept apart.

Each error carries the code that a Kafka client would receive, ``kafka_error``, so that a broker that embeds the engine
can answer with it. Every message says what was found, where, and what to do next.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class KafkaError(IntEnum):
    """An error code of a Kafka response, under Kafka's name (FACTS §4.1); printed, it is name and number."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
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

    def __str__(self) -> str:
        return f"{self.name} ({self.value})"


class LogStoreError(Exception):
    """The root of all errors that ``logstore`` raises."""

    kafka_error: ClassVar[KafkaError] = KafkaError.UNKNOWN_SERVER_ERROR
    """The code that a broker answers to its client."""


class NotALogDirError(LogStoreError):
    """A path does not lead to a log dir: it is absent, a file, not readable, or of another identity."""


class InventoryError(LogStoreError):
    """An inventory file is damaged, is no inventory, or has an unknown schema version."""


class InventoryStoreError(LogStoreError):
    """An object store or another file system with inventories is not there, does not answer, fails or refuses."""


class StoreDownError(InventoryStoreError):
    """No file can be had: the store does not answer or fails at every try, or there is no room for a copy."""


class UnreadableFileError(LogStoreError):
    """A file of a log dir is no plain file, is larger than its limit, or the system refuses to read it."""


class FailedReadError(UnreadableFileError):
    """The system refuses to read a file, as a bad disk does, so that what it holds is not known."""


class ChangeRefusedError(LogStoreError):
    """Nothing was changed, because the change would do harm or makes no sense here. The message says what to do."""


class InvalidArgumentError(ChangeRefusedError):
    """A caller gave a value of another type than is expected, or out of its range. Nothing was done."""


class LogDirInUseError(ChangeRefusedError):
    """A process, perhaps this one, holds the log dir's lock: a broker, or another run of this engine."""

    kafka_error = KafkaError.KAFKA_STORAGE_ERROR


class UnsafePathError(ChangeRefusedError):
    """A link, a mount point or a name with path components stands where a directory of the log dir should be."""


class NameTakenError(ChangeRefusedError):
    """The name is taken already, and nothing is ever overwritten or merged."""


class NamespaceClashError(NameTakenError):
    """A partition and a tier of a namespace would have one directory, so only one of them may exist (KIP37-2)."""

    kafka_error = KafkaError.INVALID_TOPIC_EXCEPTION


class DamagedRecordError(LogStoreError):
    """A staged directory's record is missing, does not parse, or belongs to another directory."""


class OfflineLogDirError(LogStoreError):
    """The log dir failed with an I/O error and is no longer used. The broker's other log dirs go on."""

    kafka_error = KafkaError.KAFKA_STORAGE_ERROR


class ChangeFailedError(LogStoreError):
    """The system refused a change, for lack of space or permission. Its finished steps were undone."""

    kafka_error = KafkaError.KAFKA_STORAGE_ERROR


class UnknownReplicaError(LogStoreError):
    """No log dir of the store has a live replica of the partition."""

    kafka_error = KafkaError.UNKNOWN_TOPIC_OR_PARTITION


class InconsistentTopicIdError(LogStoreError):
    """The replica has another topic ID than the one given."""

    kafka_error = KafkaError.INCONSISTENT_TOPIC_ID


class InvalidNamespaceError(ChangeRefusedError):
    """A namespace was not created, exists already, or still holds other namespaces (KIP37-3)."""

    kafka_error = KafkaError.INVALID_TOPIC_EXCEPTION
