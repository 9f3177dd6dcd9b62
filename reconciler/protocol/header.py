"""What stands before a control request on a connection: which request it is, of which version, and from whom.

Request headers have version 1, and 2 where the body is flexible; those of answers 0 and 1 (FACTS §5.1). A capture of a
whole request is read here without being told its version.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from reconciler.protocol.messages import decode_leader_and_isr, decode_stop_replica, encode_message, is_flexible
from reconciler.protocol.reading import read_string, skip_tags
from reconciler.protocol.requests import ControlRequest, LeaderAndIsrRequest, StopReplicaRequest
from reconciler.protocol.responses import ControlResponse
from reconciler.protocol.tables import LEADER_AND_ISR, STOP_REPLICA
from reconciler.protocol.wire_errors import MalformedMessageError, UnsupportedVersionError
from reconciler.protocol.writing import write_string

_FIXED = struct.Struct(">hhi")


class RequestHeader(NamedTuple):
    """A request's header; ``client_id`` may be null."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request(data: bytes, location: str = "the message") -> tuple[RequestHeader, ControlRequest]:
    """Read a control request with its header, without the length that goes before it on a connection.

    Raises:
        UnsupportedVersionError: it is no control request that is known here, or there is no such version of it.
        MalformedMessageError, InvalidRequestError: as :func:`reconciler.protocol.decode_leader_and_isr`.
    """
    try:
        key, version, correlation_id = _FIXED.unpack_from(data)
        kind = _kind(key)
        client_id, at = read_string(data, _FIXED.size, flexible=False)
        at = skip_tags(data, at) if is_flexible(kind, version) else at
    except (struct.error, IndexError) as error:
        raise MalformedMessageError(f"{location}: the bytes end in the middle of a request's header") from error
    except MalformedMessageError as error:
        raise MalformedMessageError(f"{location} has no request's header: {error}") from error
    decode = decode_leader_and_isr if kind is LeaderAndIsrRequest else decode_stop_replica
    return RequestHeader(key, version, correlation_id, client_id), decode(data[at:], version, location)


def encode_request(
    request: ControlRequest, version: int, correlation_id: int = 0, client_id: str | None = None
) -> bytes:
    """Write a request with its header; raises as :func:`reconciler.protocol.encode_message`."""
    key = LEADER_AND_ISR.key if isinstance(request, LeaderAndIsrRequest) else STOP_REPLICA.key
    client = b"\xff\xff" if client_id is None else write_string(client_id, flexible=False)
    tags = b"\0" if is_flexible(type(request), version) else b""
    return _FIXED.pack(key, version, correlation_id) + client + tags + encode_message(request, version)


def encode_response(response: ControlResponse, version: int, correlation_id: int) -> bytes:
    """Write an answer with its header; raises as :func:`reconciler.protocol.encode_message`."""
    tags = b"\0" if is_flexible(type(response), version) else b""
    return struct.pack(">i", correlation_id) + tags + encode_message(response, version)


def decode_response_header(kind: type[ControlResponse], data: bytes, version: int) -> tuple[int, bytes]:
    """The correlation ID of an answer, and the body behind its header; raises as :func:`decode_request`."""
    try:
        (correlation_id,) = struct.unpack_from(">i", data)
        at = skip_tags(data, 4) if is_flexible(kind, version) else 4
    except (struct.error, IndexError) as error:
        raise MalformedMessageError("the bytes end in the middle of an answer's header") from error
    return correlation_id, data[at:]


def _kind(key: int) -> type[LeaderAndIsrRequest] | type[StopReplicaRequest]:
    kinds = {LEADER_AND_ISR.key: LeaderAndIsrRequest, STOP_REPLICA.key: StopReplicaRequest}
    if key not in kinds:
        raise UnsupportedVersionError(
            f"API key {key} is no control request that is known here: {LEADER_AND_ISR.key} is LeaderAndIsr, "
            f"{STOP_REPLICA.key} StopReplica"
        )
    return kinds[key]
