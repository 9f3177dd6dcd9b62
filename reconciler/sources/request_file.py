"""A control request from a file: JSON of any form, or the bytes of a connection, told apart by the first of them.

JSON begins with ``{``. On a wire a request begins with its header, whose first bytes are the API key, or with the
length that goes before it. Which request a JSON document is, its fields say. What is made of a file is bounded.
Source: FACTS §5; KIP516-4, KIP516-7.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Mapping
from typing import Any, Final

import orjson

from logstore.parallel import paused_gc
from reconciler.errors import InvalidRequestError, MetadataError
from reconciler.protocol import (
    MAX_PARTITIONS,
    ControlRequest,
    UnsupportedVersionError,
    check_extent,
    check_request,
    decode_request,
    parse_stop_replica,
)
from reconciler.sources import request_json
from reconciler.sources.request_files import MAX_REQUEST_BYTES, read_file

STANDARD_INPUT: Final = "-"
FORMS: Final = ("request", "wire")
"""What may stand before a path: ``request:`` for JSON, ``wire:`` for bytes with their header."""

_STOP_REPLICA_KEY = 5
_OF_STOP = frozenset({"deletePartitions", "delete_partitions", "ungroupedPartitions", "topics", "partitions"})
_OF_LEAD = frozenset({"ungroupedPartitionStates", "topic_states", "liveLeaders", "live_leaders", "type"})
_HEADER = struct.Struct(">hh")
_LENGTH = struct.Struct(">i")
_KEYS = (request_json.API_KEY, _STOP_REPLICA_KEY)


def read_request(spec: str) -> tuple[ControlRequest, str]:
    """Read a request, and give the name that messages call it by.

    Args:
        spec: a path, with ``request:`` or ``wire:`` before it where the form is not to be guessed; ``-``: standard
            input.

    Raises:
        UsageError: there is no such file.
        MetadataError: it cannot be read, is too long, or holds no request that is known.
        InvalidRequestError, MalformedMessageError: it holds no good request; with every reason.
    """
    form, path = _split(spec)
    location = "standard input" if path == STANDARD_INPUT else path
    data = _read(path)
    if form is None:
        form = "request" if data.lstrip()[:1] in (b"{", b"[", b"") else "wire"
    with paused_gc():
        request = _decode_json(data, location) if form == "request" else _decode_wire(data, location)
    check_request(request, location)
    return request, location


def _split(spec: str) -> tuple[str | None, str]:
    form, colon, path = spec.partition(":")
    if colon and form in FORMS and not os.path.lexists(spec):
        return form, path
    return None, spec


def _read(path: str) -> bytes:
    if path != STANDARD_INPUT:
        return read_file(path)
    try:
        data = sys.stdin.buffer.read(MAX_REQUEST_BYTES + 1)
    except (OSError, ValueError, AttributeError) as error:
        raise MetadataError(f"standard input cannot be read: {error}") from error
    if len(data) > MAX_REQUEST_BYTES:
        raise MetadataError(f"standard input is longer than {MAX_REQUEST_BYTES} bytes, the most of a request")
    return data


def _decode_wire(data: bytes, location: str) -> ControlRequest:
    if len(data) >= _HEADER.size and _HEADER.unpack_from(data)[0] not in _KEYS:
        (length,) = _LENGTH.unpack_from(data)
        if length == len(data) - _LENGTH.size:
            data = data[_LENGTH.size :]
    try:
        return decode_request(data, location)[1]
    except UnsupportedVersionError as error:
        raise MetadataError(f"{location} holds no request that is known: {error}") from error


def _decode_json(data: bytes, location: str) -> ControlRequest:
    check_extent(data, location)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return request_json.parse(data, location)  # which says what is wrong with it
    found, key = document, None
    if isinstance(document, dict) and isinstance(document.get("request"), dict):
        header = document.get("requestHeader")
        found, key = document["request"], header.get("requestApiKey") if isinstance(header, dict) else None
    if not isinstance(found, dict) or not (key == _STOP_REPLICA_KEY or (key is None and _is_stop_replica(found))):
        return request_json.parse_document(document, location)
    number = _count_stopped(found)
    if number > MAX_PARTITIONS:
        reason = f"it names {number} partitions, and {MAX_PARTITIONS} are the most that one request may name"
        raise InvalidRequestError(location, [reason], "StopReplica request")
    return parse_stop_replica(data if found is document else orjson.dumps(found), location)


def _is_stop_replica(fields: Mapping[str, Any]) -> bool:
    """Newer forms of both requests have ``topicStates``; then what stands in the first partition tells."""
    if not _OF_LEAD.isdisjoint(fields):
        return False
    if not _OF_STOP.isdisjoint(fields):
        return True
    topics = fields.get("topicStates")
    for topic in topics if isinstance(topics, list) else ():
        states = topic.get("partitionStates") if isinstance(topic, dict) else None
        for state in states if isinstance(states, list) else ():
            return isinstance(state, dict) and "deletePartition" in state
    return False


def _count_stopped(fields: Mapping[str, Any]) -> int:
    """How many partitions a StopReplica document names, before anything is made of them."""
    number = 0
    for name in ("ungroupedPartitions", "topics", "partitions", "topicStates"):
        listed = fields.get(name)
        if not isinstance(listed, list):
            continue
        number += len(listed)
        for topic in listed:
            for inner in ("partitionIndexes", "partition_ids", "partitionStates"):
                below = topic.get(inner) if isinstance(topic, dict) else None
                number += len(below) if isinstance(below, list) else 0
    return number
