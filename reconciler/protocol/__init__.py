"""Control requests and their answers as Kafka's bytes.

::

    tables      the messages as data: which field stands where, in which versions, under which name
    reading     from bytes, by a table: every length is checked before anything is made of it
    writing     to bytes, and to the JSON of Kafka's own tools, by the same table
    messages    bytes <-> the types of ``reconciler.protocol.requests`` and ``reconciler.protocol.responses``
    header      what stands before a request or an answer on a connection, and says which it is

All shipped versions are here (LeaderAndIsr 0 to 7, StopReplica 0 to 4) and, as version ``kip-516``, the forms that the
proposal draws: they are flexible, its tagged fields have tag 0, and what it does not draw is not there.
Source: FACTS §5, §7.3; KIP516-4, KIP516-7.
"""

from reconciler.protocol.header import decode_request
from reconciler.protocol.json_fields import INT64, JsonFields
from reconciler.protocol.messages import decode_leader_and_isr, decode_response, decode_stop_replica, encode_message
from reconciler.protocol.requests import (
    ControlRequest,
    LeaderAndIsrRequest,
    LiveLeader,
    PartitionState,
    RequestType,
    StopPartition,
    StopReplicaRequest,
    StopTopic,
    TopicState,
)
from reconciler.protocol.requests_check import MAX_PARTITIONS, check_extent, check_request
from reconciler.protocol.requests_json import parse_stop_replica
from reconciler.protocol.responses import (
    ControlResponse,
    LeaderAndIsrResponse,
    PartitionError,
    StopReplicaResponse,
    TopicErrors,
    error_response,
)
from reconciler.protocol.tables import KIP516, Version
from reconciler.protocol.wire_errors import UnsupportedVersionError

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
    "parse_stop_replica",
]
