"""Read one control request from a file or standard input: JSON of any form, or the bytes of a connection.

The first byte decides: JSON begins with ``{``. Bytes begin with the request's header, whose first field is the API key,
or with the length that goes before the header on a connection. Source: FACTS §5; KIP516-4, KIP516-7.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from logstore.parallel import paused_gc
from reconciler.errors import MetadataError
from reconciler.protocol import (
    ControllerRequest,
    ControlRequest,
    UnsupportedVersionError,
    UpdateMetadataRequest,
    decode_request,
    parse_request,
)
from reconciler.sources.files import MAX_FILE_BYTES, read_file

STANDARD_INPUT: Final = "-"
FORMS: Final = ("request", "wire")
"""The prefixes of a path: ``request:`` for JSON, ``wire:`` for bytes with their header."""


def read_request(spec: str) -> tuple[ControlRequest, str]:
    """Read a request; return it with its name in messages.

    Args:
        spec: a path, with ``request:`` or ``wire:`` before it to set the form; ``-``: standard input.

    Raises:
        UsageError: there is no such file.
        MetadataError: it cannot be read, is too long, or holds no request that can be carried out.
        InvalidRequestError, MalformedMessageError: its request is not valid; with every reason.
    """
    form, path = _split(spec)
    location = "standard input" if path == STANDARD_INPUT else path
    data = _read(path)
    if form is None:
        form = "request" if data.lstrip()[:1] in (b"{", b"[", b"") else "wire"
    with paused_gc():
        request = parse_request(data, location) if form == "request" else _decode_wire(data, location)
    if isinstance(request, UpdateMetadataRequest):
        raise MetadataError(
            f"{location} is an UpdateMetadata request, which tells a broker what clients may know and changes no disk: "
            f"only LeaderAndIsr and StopReplica are carried out; --metadata {form}:FILE compares disks with it"
        )
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
        data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError, AttributeError) as error:
        raise MetadataError(f"standard input cannot be read: {error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise MetadataError(f"standard input is longer than {MAX_FILE_BYTES} bytes, the most of a request")
    return data


def _decode_wire(data: bytes, location: str) -> ControllerRequest:
    try:
        return decode_request(data, location)[1]
    except UnsupportedVersionError as error:
        raise MetadataError(f"{location} holds no request that is known: {error}") from error
