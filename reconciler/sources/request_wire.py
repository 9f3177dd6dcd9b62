"""LeaderAndIsr requests as Kafka's bytes: ``wire:FILE``, or ``wire:FILE@N`` where broker N received the request.

The bytes begin with the request's header, which tells the version; the length that goes before it on a connection may
be there or not. They make the same state as the JSON of the same request. Owns telling these files from others; the
bytes belong to ``reconciler.wire``, the files to ``request_files``. Source: FACTS §5.1; KIP516-4; DESIGN §7.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence

from reconciler.desired import DesiredState
from reconciler.errors import MetadataError
from reconciler.protocol import LeaderAndIsrRequest
from reconciler.sources.first_bytes import first_bytes
from reconciler.sources.request_files import load_requests

_LEADER_AND_ISR = 4
_LAST_VERSION = 7
_HEAD = struct.Struct(">hhih")
"""API key, API version, correlation ID, and the length of the client ID, -1 for null."""

_LENGTH = struct.Struct(">i")
_MOST_CLIENT_ID = 249


def recognises(path: str) -> bool:
    """Whether the path is a file that begins like a LeaderAndIsr request's header with a readable client ID."""
    if not os.path.isfile(path):
        return False
    head = first_bytes(path, _LENGTH.size + _HEAD.size + _MOST_CLIENT_ID)
    return _is_header(head) or _is_header(head[_LENGTH.size :])


def load(path: str) -> DesiredState:
    """Read one request, ``FILE`` or ``FILE@N``; see :func:`load_all`."""
    return load_all([path], path)


def load_all(paths: Sequence[str], location: str) -> DesiredState:
    """Read requests, each ``FILE`` or ``FILE@N`` where N received it, and merge them into one state.

    Raises:
        UsageError: no such file; or it cannot be told who received a request, or which of two for one broker is newer.
        MetadataError: bytes that are no LeaderAndIsr request, or requests that contradict each other.
    """
    return load_requests(paths, location, parse, "wire")


def parse(data: bytes, location: str) -> LeaderAndIsrRequest:
    """Read one request with its header.

    Raises:
        MetadataError: the bytes are cut off or malformed, or the header is of another request or an unknown version.
    """
    # Here, because the codec uses this package's own ``bulk`` and so imports this module first.
    from reconciler.protocol import UnsupportedVersionError, decode_request

    if not data:
        raise MetadataError(f"{location} is empty: the bytes of a LeaderAndIsr request are expected")
    try:
        _, request = decode_request(data[_LENGTH.size :] if _is_framed(data) else data, location)
    except UnsupportedVersionError as error:
        raise MetadataError(
            f"{location} does not begin with the header of a LeaderAndIsr request of version 0 to 7: {error}"
        ) from error
    if not isinstance(request, LeaderAndIsrRequest):
        raise MetadataError(
            f"{location} is a StopReplica request, which says what a broker should let go and not what it should hold:"
            " give a LeaderAndIsr request"
        )
    return request


def _is_framed(data: bytes) -> bool:
    """Whether the length of all the rest stands before the header; a header of our kind would be a length of 262144."""
    return len(data) > _LENGTH.size and _LENGTH.unpack_from(data)[0] == len(data) - _LENGTH.size


def _is_header(head: bytes) -> bool:
    if len(head) < _HEAD.size:
        return False
    key, version, _, length = _HEAD.unpack_from(head)
    client_id = head[_HEAD.size : _HEAD.size + max(length, 0)]
    is_client_id = -1 <= length <= _MOST_CLIENT_ID and all(32 <= byte < 127 for byte in client_id)
    return key == _LEADER_AND_ISR and 0 <= version <= _LAST_VERSION and is_client_id
