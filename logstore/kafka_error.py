"""The numbers of Kafka's errors that a store, or a broker that embeds it, has cause to answer with (FACTS §4.1)."""

from __future__ import annotations

from enum import IntEnum


class KafkaError(IntEnum):
    """An error code as it stands in a response; the names are Kafka's."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    STALE_CONTROLLER_EPOCH = 11
    INVALID_TOPIC_EXCEPTION = 17
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_REQUEST = 42
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    FENCED_LEADER_EPOCH = 74
    STALE_BROKER_EPOCH = 77
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
