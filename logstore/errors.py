"""The errors of ``logstore``: one root; damage, misuse, refusals and failing disks are kept apart.

What was asked for and cannot be had carries the number that a Kafka client would be told, ``kafka_error``, so that a
broker that embeds the engine can answer with it. Every message says what was found, where, and what to do next.
"""

from __future__ import annotations

from typing import ClassVar

from logstore.kafka_error import KafkaError


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
