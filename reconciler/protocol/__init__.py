"""Kafka's messages: tables of their fields, and a reader and a writer that go by them.

A controller's requests and their answers, LeaderAndIsr, StopReplica and UpdateMetadata, are types, bytes and JSON;
KRaft's records are bytes and dicts. All shipped versions are here (LeaderAndIsr 0 to 7, StopReplica 0 to 4,
UpdateMetadata 0 to 8) and, as versions ``kip-516`` and ``kip-694``, the forms that the proposals draw: they are
flexible, their tagged fields have tag 0, and fields that they do not draw are absent. A broker carries out the first
two, which are the control requests; UpdateMetadata changes no disk. DeletePartitions, which never shipped, is what a
client asks of a controller.
Source: FACTS §5, §7.3 to §7.5; KIP516-4, KIP516-7, KIP516-9, KIP694-1, KIP694-2.
"""

from reconciler.protocol.check import MAX_PARTITIONS, check_extent, check_request
from reconciler.protocol.json_messages import (
    parse_delete_partitions,
    parse_leader_and_isr,
    parse_metadata_request,
    parse_request,
    parse_stop_replica,
)
from reconciler.protocol.messages import (
    LONGEST_BEGINNING,
    begins_leader_and_isr,
    begins_update_metadata,
    decode_delete_partitions,
    decode_leader_and_isr,
    decode_request,
    decode_response,
    decode_stop_replica,
    decode_update_metadata,
    encode_message,
)
from reconciler.protocol.proposals import (
    DeletedPartition,
    DeletedPartitions,
    DeletePartitionsRequest,
    DeletePartitionsResponse,
    DeletePartitionsTopic,
)
from reconciler.protocol.reading import UNREADABLE, Budget, read_long_zigzag, read_varint, read_zigzag, reader
from reconciler.protocol.records import CONTROL_RECORDS, KIP694_NUMBER, METADATA_RECORDS, PROPOSED_RECORDS
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
from reconciler.protocol.schema import (
    Array,
    Field,
    Kind,
    MalformedMessageError,
    Message,
    Struct,
    UnsupportedVersionError,
)
from reconciler.protocol.tables import KIP516, KIP694, Version
from reconciler.protocol.update_metadata import (
    ControllerRequest,
    ControllerResponse,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopic,
)
from reconciler.protocol.writing import write_struct, write_varint, write_zigzag

__all__ = [
    "CONTROL_RECORDS",
    "KIP516",
    "KIP694",
    "KIP694_NUMBER",
    "LONGEST_BEGINNING",
    "MAX_PARTITIONS",
    "METADATA_RECORDS",
    "PROPOSED_RECORDS",
    "UNREADABLE",
    "Array",
    "Budget",
    "ControlRequest",
    "ControlResponse",
    "ControllerRequest",
    "ControllerResponse",
    "DeletePartitionsRequest",
    "DeletePartitionsResponse",
    "DeletePartitionsTopic",
    "DeletedPartition",
    "DeletedPartitions",
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
    "UpdateMetadataBroker",
    "UpdateMetadataEndpoint",
    "UpdateMetadataPartition",
    "UpdateMetadataRequest",
    "UpdateMetadataResponse",
    "UpdateMetadataTopic",
    "Version",
    "begins_leader_and_isr",
    "begins_update_metadata",
    "check_extent",
    "check_request",
    "decode_delete_partitions",
    "decode_leader_and_isr",
    "decode_request",
    "decode_response",
    "decode_stop_replica",
    "decode_update_metadata",
    "encode_message",
    "error_response",
    "parse_delete_partitions",
    "parse_leader_and_isr",
    "parse_metadata_request",
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
