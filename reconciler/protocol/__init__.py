"""Kafka's messages: tables of their fields, and a reader and a writer that go by them.

Control requests and their answers, LeaderAndIsr and StopReplica, are types, bytes and JSON; KRaft's records are bytes
and dicts. All shipped versions are here (LeaderAndIsr 0 to 7, StopReplica 0 to 4) and, as version ``kip-516``, the
forms that the proposal draws: they are flexible, its tagged fields have tag 0, and fields that it does not draw are
absent.
Source: FACTS §5, §7.3 to §7.5; KIP516-4, KIP516-7.
"""

from reconciler.protocol.check import MAX_PARTITIONS, check_extent, check_request
from reconciler.protocol.errors import MalformedMessageError, UnsupportedVersionError
from reconciler.protocol.json_messages import parse_leader_and_isr, parse_request, parse_stop_replica
from reconciler.protocol.messages import (
    LONGEST_BEGINNING,
    begins_leader_and_isr,
    decode_leader_and_isr,
    decode_request,
    decode_response,
    decode_stop_replica,
    encode_message,
)
from reconciler.protocol.reading import UNREADABLE, Budget, read_long_zigzag, read_varint, read_zigzag, reader
from reconciler.protocol.records import CONTROL_RECORDS, METADATA_RECORDS
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
from reconciler.protocol.schema import Array, Field, Kind, Message, Struct
from reconciler.protocol.tables import KIP516, Version
from reconciler.protocol.writing import write_struct, write_varint, write_zigzag

__all__ = [
    "CONTROL_RECORDS",
    "KIP516",
    "LONGEST_BEGINNING",
    "MAX_PARTITIONS",
    "METADATA_RECORDS",
    "UNREADABLE",
    "Array",
    "Budget",
    "ControlRequest",
    "ControlResponse",
    "Field",
    "Kind",
    "LeaderAndIsrRequest",
    "LeaderAndIsrResponse",
    "LiveLeader",
    "MalformedMessageError",
    "Message",
    "PartitionError",
    "PartitionState",
    "RequestType",
    "StopPartition",
    "StopReplicaRequest",
    "StopReplicaResponse",
    "StopTopic",
    "Struct",
    "TopicErrors",
    "TopicState",
    "UnsupportedVersionError",
    "Version",
    "begins_leader_and_isr",
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
    "read_long_zigzag",
    "read_varint",
    "read_zigzag",
    "reader",
    "write_struct",
    "write_varint",
    "write_zigzag",
]
