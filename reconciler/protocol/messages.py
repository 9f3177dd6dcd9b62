"""Control requests and answers as Kafka's bytes, both ways, with and without their headers.

A header stands before a message on a connection and says which request it is, of which version, and from whom. Without
one, the version is an argument. Request headers have version 1, and version 2 where the body is flexible; the headers
of answers have versions 0 and 1. A decoded request follows its table and the rules of ``check``.
Source: FACTS §5; KIP516-4, KIP516-7.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

from logstore.parallel import paused_gc
from reconciler.errors import InvalidRequestError
from reconciler.protocol import proposals as proposal
from reconciler.protocol import tables
from reconciler.protocol.check import check_request
from reconciler.protocol.proposals import DeletePartitionsRequest, DeletePartitionsResponse
from reconciler.protocol.reading import MAX_MESSAGE_BYTES, Budget, read_string, reader, skip_tags
from reconciler.protocol.requests import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
)
from reconciler.protocol.schema import MalformedMessageError, Message, UnsupportedVersionError
from reconciler.protocol.tables import KIP516, KIP694, LEADER_AND_ISR, STOP_REPLICA, Version
from reconciler.protocol.update_metadata import (
    PROPOSED_RESPONSE,
    PROPOSED_WITH_IDS,
    PROPOSED_WITH_MODE,
    UPDATE_METADATA,
    UPDATE_METADATA_RESPONSE,
    ControllerRequest,
    ControllerResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from reconciler.protocol.writing import tree_of, write_string, write_struct

_LENGTH = struct.Struct(">i")
_FIXED_HEADER = struct.Struct(">hhi")
"""API key, API version, correlation ID."""

_CLIENT_ID = struct.Struct(">h")
"""The length of the client ID, -1 for null."""

_LONGEST_CLIENT_ID = 249
LONGEST_BEGINNING = _LENGTH.size + _FIXED_HEADER.size + _CLIENT_ID.size + _LONGEST_CLIENT_ID
"""So many bytes are enough for :func:`begins_leader_and_isr`."""

_KEYS = tuple(each.key.to_bytes(2, "big") for each in (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA))


AnyRequest: TypeAlias = ControllerRequest | DeletePartitionsRequest
AnyResponse: TypeAlias = ControllerResponse | DeletePartitionsResponse


class RequestHeader(NamedTuple):
    """The header of a request; ``client_id`` may be null."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_leader_and_isr(data: bytes, version: Version, location: str = "the message") -> LeaderAndIsrRequest:
    """Read a LeaderAndIsr request.

    The data is the whole request, without its header; versions are 0 to 7 and ``kip-516``; ``location`` names it in
    messages.

    Raises:
        UnsupportedVersionError: there is no such version.
        MalformedMessageError: the bytes are no such request.
        InvalidRequestError: the request is not valid; with every reason.
    """
    return _decode_request(LeaderAndIsrRequest, data, version, location)


def decode_stop_replica(data: bytes, version: Version, location: str = "the message") -> StopReplicaRequest:
    """Read a StopReplica request, of version 0 to 4 or ``kip-516``; otherwise as :func:`decode_leader_and_isr`."""
    return _decode_request(StopReplicaRequest, data, version, location)


def decode_update_metadata(data: bytes, version: Version, location: str = "the message") -> UpdateMetadataRequest:
    """Read an UpdateMetadata request, of version 0 to 8 or a proposal's; otherwise as :func:`decode_leader_and_isr`."""
    return _decode_request(UpdateMetadataRequest, data, version, location)


_Request = TypeVar("_Request", LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest)


def _decode_request(kind: type[_Request], data: bytes, version: Version, location: str) -> _Request:
    """Read a request of one kind, bring the parts of a topic that stand apart together, and check it."""
    request = _decode(_message(kind, version), data, version, location)
    assert isinstance(request, kind)
    if len({topic.topic for topic in request.topics}) < len(request.topics):
        request = replace(request, topics=tuple(_merged(request.topics, location)))
    check_request(request, location)
    return request


def decode_delete_partitions(data: bytes, version: Version, location: str = "the message") -> DeletePartitionsRequest:
    """Read a DeletePartitions request, of version 0 or 1; what it asks is not judged (KIP694-2).

    Raises:
        UnsupportedVersionError, MalformedMessageError: as :func:`decode_leader_and_isr`.
    """
    request = _decode(_message(DeletePartitionsRequest, version), data, version, location)
    assert isinstance(request, DeletePartitionsRequest)
    return request


_Response = TypeVar("_Response", bound=AnyResponse)


def decode_response(
    kind: type[_Response],
    data: bytes,
    version: Version,
    location: str = "the message",
) -> _Response:
    """Read the answer to a request; raises as :func:`decode_leader_and_isr`, except for InvalidRequestError."""
    response = _decode(_message(kind, version), data, version, location)
    assert isinstance(response, kind)
    return response


def encode_message(message: AnyRequest | AnyResponse, version: Version) -> bytes:
    """Write a request or an answer.

    Raises:
        UnsupportedVersionError: there is no such version, or it cannot express the message.
    """
    table = _message(type(message), version)
    _check_one_flag(message, version)
    number = _number(version)
    return write_struct(table.body, message, number, number >= table.flexible)


def tree(message: AnyRequest | AnyResponse, version: Version) -> dict[str, Any]:
    """Make a message a JSON object, with Kafka's or the proposal's names; raises as :func:`encode_message`."""
    table = _message(type(message), version)
    _check_one_flag(message, version)
    return tree_of(table.body, message, _number(version))


def is_flexible(kind: type[ControllerRequest] | type[ControllerResponse], version: Version) -> bool:
    """Whether that version of a message, and so its header, is flexible; raises UnsupportedVersionError."""
    return _number(version) >= _message(kind, version).flexible


def decode_request(data: bytes, location: str = "the message") -> tuple[RequestHeader, ControllerRequest]:
    """Read a control request with its header, with or without the length that goes before it on a connection.

    Raises:
        UnsupportedVersionError: it is none of the requests that a controller sends, or there is no such version of it.
        MalformedMessageError, InvalidRequestError: as :func:`reconciler.protocol.decode_leader_and_isr`.
    """
    data = _unframed(data)
    try:
        key, version, correlation_id = _FIXED_HEADER.unpack_from(data)
        kind = _request_kind(key)
        client_id, at = read_string(data, _FIXED_HEADER.size, flexible=False)
        at = skip_tags(data, at) if is_flexible(kind, version) else at
    except (struct.error, IndexError) as error:
        raise MalformedMessageError(f"{location}: the bytes end in the middle of a request's header") from error
    except MalformedMessageError as error:
        raise MalformedMessageError(f"{location} has no request's header: {error}") from error
    return RequestHeader(key, version, correlation_id, client_id), _DECODERS[kind](data[at:], version, location)


def begins_leader_and_isr(head: bytes) -> bool:
    """Whether bytes begin like a LeaderAndIsr request with a readable client ID, or with the length and then so."""
    return any(_is_header_of(LEADER_AND_ISR, each) for each in (head, head[_LENGTH.size :]))


def begins_update_metadata(head: bytes) -> bool:
    """Whether bytes begin so like an UpdateMetadata request."""
    return any(_is_header_of(UPDATE_METADATA, each) for each in (head, head[_LENGTH.size :]))


def encode_request(
    request: ControllerRequest, version: int, correlation_id: int = 0, client_id: str | None = None
) -> bytes:
    """Write a request with its header; raises as :func:`reconciler.protocol.encode_message`."""
    key = _NUMBERED[type(request)].key
    client = b"\xff\xff" if client_id is None else write_string(client_id, flexible=False)
    tags = b"\0" if is_flexible(type(request), version) else b""
    return _FIXED_HEADER.pack(key, version, correlation_id) + client + tags + encode_message(request, version)


def encode_response(response: ControllerResponse, version: int, correlation_id: int) -> bytes:
    """Write an answer with its header; raises as :func:`reconciler.protocol.encode_message`."""
    tags = b"\0" if is_flexible(type(response), version) else b""
    return struct.pack(">i", correlation_id) + tags + encode_message(response, version)


def decode_response_header(kind: type[ControllerResponse], data: bytes, version: int) -> tuple[int, bytes]:
    """The correlation ID of an answer, and the body behind its header; raises as :func:`decode_request`."""
    try:
        (correlation_id,) = struct.unpack_from(">i", data)
        at = skip_tags(data, 4) if is_flexible(kind, version) else 4
    except (struct.error, IndexError) as error:
        raise MalformedMessageError("the bytes end in the middle of an answer's header") from error
    return correlation_id, data[at:]


_NUMBERED: dict[type, Message] = {
    LeaderAndIsrRequest: tables.LEADER_AND_ISR,
    LeaderAndIsrResponse: tables.LEADER_AND_ISR_RESPONSE,
    StopReplicaRequest: tables.STOP_REPLICA,
    StopReplicaResponse: tables.STOP_REPLICA_RESPONSE,
    UpdateMetadataRequest: UPDATE_METADATA,
    UpdateMetadataResponse: UPDATE_METADATA_RESPONSE,
    DeletePartitionsRequest: proposal.DELETE_PARTITIONS,
    DeletePartitionsResponse: proposal.DELETE_PARTITIONS_RESPONSE,
}
_PROPOSED: dict[tuple[type, Version], Message] = {
    (LeaderAndIsrRequest, KIP516): proposal.LEADER_AND_ISR,
    (LeaderAndIsrResponse, KIP516): proposal.LEADER_AND_ISR_RESPONSE,
    (StopReplicaRequest, KIP516): proposal.STOP_REPLICA,
    (StopReplicaResponse, KIP516): proposal.STOP_REPLICA_RESPONSE,
    (UpdateMetadataRequest, KIP516): PROPOSED_WITH_IDS,
    (UpdateMetadataResponse, KIP516): PROPOSED_RESPONSE,
    (UpdateMetadataRequest, KIP694): PROPOSED_WITH_MODE,
    (UpdateMetadataResponse, KIP694): PROPOSED_RESPONSE,
}
_DECODERS: dict[type[ControllerRequest], Callable[[bytes, Version, str], ControllerRequest]] = {
    LeaderAndIsrRequest: decode_leader_and_isr,
    StopReplicaRequest: decode_stop_replica,
    UpdateMetadataRequest: decode_update_metadata,
}


def _number(version: Version) -> int:
    """The number by which the fields of a form are chosen; a proposal's form has one version."""
    return version if isinstance(version, int) else 0


def _message(kind: type, version: Version) -> Message:
    if (kind, version) in _PROPOSED:
        return _PROPOSED[kind, version]
    message = _NUMBERED[kind]
    if version not in message.versions:
        drawn = [form for form in (KIP516, KIP694) if (kind, form) in _PROPOSED]
        further = f", and {' or '.join(drawn)} for the proposal's own form" if drawn else ""
        raise UnsupportedVersionError(
            f"there is no version {version} of a {message.name}: "
            f"{message.versions[0]} to {message.versions[-1]}{further}"
        )
    return message


def _decode(message: Message, data: bytes, version: Version, location: str) -> Any:
    what = f"{location} is no {message.name} of version {version}"
    if len(data) > MAX_MESSAGE_BYTES:
        raise MalformedMessageError(f"{what}: it has {len(data)} bytes, and {MAX_MESSAGE_BYTES} are the most")
    number = _number(version)
    try:
        with paused_gc():
            found, end = reader(message.body, number, number >= message.flexible)(bytes(data), 0, Budget())
    except (struct.error, IndexError) as error:
        raise MalformedMessageError(f"{what}: it is cut off after {len(data)} bytes") from error
    except MalformedMessageError as error:
        raise MalformedMessageError(f"{what}: {error}") from error
    if end != len(data):
        raise MalformedMessageError(f"{what}: it ends at byte {end}, and {len(data) - end} bytes follow")
    return found


def _unframed(data: bytes) -> bytes:
    """Drop the length before a request where it is there; a length of some 300,000 looks like the key of a header."""
    behind = _LENGTH.size
    is_framed = len(data) > behind and _LENGTH.unpack_from(data)[0] == len(data) - behind
    return data[behind:] if is_framed and (data[behind : behind + 2] in _KEYS or data[:2] not in _KEYS) else data


def _is_header_of(message: Message, head: bytes) -> bool:
    if len(head) < _FIXED_HEADER.size + _CLIENT_ID.size:
        return False
    key, version, _ = _FIXED_HEADER.unpack_from(head)
    (length,) = _CLIENT_ID.unpack_from(head, _FIXED_HEADER.size)
    client_id = head[_FIXED_HEADER.size + _CLIENT_ID.size :][: max(length, 0)]
    is_readable = -1 <= length <= _LONGEST_CLIENT_ID and all(32 <= byte < 127 for byte in client_id)
    return is_readable and key == message.key and version in message.versions


def _merged(topics: Iterable[Any], location: str) -> list[Any]:
    """Merge topics of the same name, in order of first occurrence; refuse a name under two IDs."""
    together: dict[str, list[Any]] = {}
    for topic in topics:
        together.setdefault(topic.topic, []).append(topic)
    wrong = [
        f"topic {name!r:.80} is there under the IDs {', '.join(sorted({str(one.topic_id) for one in same}))}"
        for name, same in together.items()
        if len({one.topic_id for one in same}) > 1
    ]
    if wrong:
        raise InvalidRequestError(location, wrong)
    return [
        replace(same[0], partitions=tuple(state for one in same for state in one.partitions))
        for same in together.values()
    ]


def _check_one_flag(message: AnyRequest | AnyResponse, version: Version) -> None:
    """Refuse mixed flags: older versions of StopReplica and DeletePartitions have one flag, or one delay, for all."""
    delays = (
        {topic.delay_ms for topic in message.topics} if isinstance(message, DeletePartitionsRequest) else set[int]()
    )
    if version == 0 and len(delays) > 1:
        raise UnsupportedVersionError(
            "version 0 of a DeletePartitions request has one delay for all its topics: send version 1, or two requests"
        )
    if isinstance(message, StopReplicaRequest) and _number(version) < 3:
        flags = {state.delete for topic in message.topics for state in topic.partitions}
        if len(flags) > 1:
            raise UnsupportedVersionError(
                f"version {version} of a StopReplica request deletes all its partitions or none: send two requests"
            )


def _request_kind(key: int) -> type[ControllerRequest]:
    kinds = {_NUMBERED[kind].key: kind for kind in _DECODERS}
    if key not in kinds:
        known = ", ".join(f"{number} is {kind.__name__.removesuffix('Request')}" for number, kind in kinds.items())
        raise UnsupportedVersionError(f"API key {key} is no control request that is known here: {known}")
    return kinds[key]
