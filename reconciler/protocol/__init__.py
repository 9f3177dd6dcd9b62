"""Control requests and their answers: Kafka's LeaderAndIsr and StopReplica as types, as bytes and as JSON.

All shipped versions are here (LeaderAndIsr 0 to 7, StopReplica 0 to 4) and, as version ``kip-516``, the forms that the
proposal draws: they are flexible, its tagged fields have tag 0, and fields that it does not draw are absent.
Source: FACTS §5, §7.3; KIP516-4, KIP516-7.
"""

from reconciler.protocol.check import MAX_PARTITIONS, check_extent, check_request
from reconciler.protocol.errors import UnsupportedVersionError
from reconciler.protocol.json_fields import INT64, JsonFields
from reconciler.protocol.json_messages import parse_leader_and_isr, parse_request, parse_stop_replica
from reconciler.protocol.messages import (
    decode_leader_and_isr,
    decode_request,
    decode_response,
    decode_stop_replica,
    encode_message,
)
from reconciler.protocol.requests import (
    ControlRequest,
    ControlResponse,
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
    error_response,
)
from reconciler.protocol.tables import KIP516, Version

__all__ = [
    "INT64",
    "KIP516",
    "MAX_PARTITIONS",
    "ControlRequest",
    "ControlResponse",
    "JsonFields",
    "LeaderAndIsrRequest",
    "LeaderAndIsrResponse",
    "LiveLeader",
    "PartitionError",
    "PartitionState",
    "RequestType",
    "StopPartition",
    "StopReplicaRequest",
    "StopReplicaResponse",
    "StopTopic",
    "TopicErrors",
    "TopicState",
    "UnsupportedVersionError",
    "Version",
    "check_extent",
    "check_request",
    "decode_leader_and_isr",
    "decode_request",
    "decode_response",
    "decode_stop_replica",
    "encode_message",
    "error_response",
    "parse_leader_and_isr",
    "parse_request",
    "parse_stop_replica",
]
