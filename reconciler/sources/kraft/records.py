"""Decode records of the metadata log: the frame of a metadata record, and the key of a control record.

As in Kafka, a version above the highest known one is read as that one, unless a proposal's form has that number, and
only a body that cannot be decoded or leaves bytes over is an error. Unlike in Kafka, an unknown type is no error here:
the caller decides.
Source: FACTS §7.3, §7.4, §7.5.
"""

from __future__ import annotations

import struct
import sys
from typing import Any, NamedTuple

from reconciler.protocol import (
    CONTROL_RECORDS,
    METADATA_RECORDS,
    PROPOSED_RECORDS,
    UNREADABLE,
    Budget,
    MalformedMessageError,
    Message,
    read_varint,
    reader,
)

SNAPSHOT_HEADER = 3
SNAPSHOT_FOOTER = 4

_HIGHEST_NUMBER = 32767
_CONTROL_KEY = struct.Struct(">hh")


class Frame(NamedTuple):
    """The head of a metadata record: its type, its version, and the offset of its body in the value."""

    type: int
    version: int
    body: int


def read_frame(value: bytes) -> Frame:
    """Read the head of a record's value.

    Raises:
        MalformedMessageError: the frame version is not 1 (version 0 is the preview of Kafka 2.8), or a number is
            out of range.
    """
    frame_version, at = _head_number(value, 0, "frame version")
    if frame_version != 1:
        raise MalformedMessageError(f"frame version {frame_version}, only 1 is known")
    number, at = _head_number(value, at, "record type")
    version, at = _head_number(value, at, "record version")
    return Frame(number, version, at)


def _head_number(value: bytes, at: int, what: str) -> tuple[int, int]:
    try:
        number, at = read_varint(value, at)
    except UNREADABLE as error:
        raise MalformedMessageError(f"the {what} cannot be read") from error
    if number > _HIGHEST_NUMBER:
        raise MalformedMessageError(f"{what} {number} is above {_HIGHEST_NUMBER}")
    return number, at


def read_control_type(key: bytes) -> int:
    """Read the type of a control record from its key.

    Raises:
        MalformedMessageError: the key is not two int16, or the first, the version, is negative.
    """
    if len(key) < _CONTROL_KEY.size:
        raise MalformedMessageError(f"a control record with a key of {len(key)} bytes")
    version, number = _CONTROL_KEY.unpack_from(key)
    if version < 0:
        raise MalformedMessageError(f"a control record with a key of version {version}")
    return int(number)


class RecordDecoder:
    """Decodes the bodies of records. Use one for each load: it shares equal lists as long as it lives."""

    def __init__(self) -> None:
        self._budget = Budget(sys.maxsize)  # a metadata log has no most that it may hold; a batch has

    def decode(self, frame: Frame, value: bytes) -> dict[str, Any]:
        """Decode the fields of a metadata record, by Kafka's names; IDs are 16 bytes, lists are tuples.

        Raises:
            MalformedMessageError: the body does not follow its layout, or bytes are left over.
            KeyError: no such type; see :data:`~reconciler.protocol.METADATA_RECORDS` and ``PROPOSED_RECORDS``.
        """
        shipped = frame.type in METADATA_RECORDS
        proposed = PROPOSED_RECORDS.get((frame.type, frame.version if shipped else 0))
        if proposed is not None:
            return self._body(proposed, 0, value, frame.body)
        return self._body(METADATA_RECORDS[frame.type], frame.version, value, frame.body)

    def decode_control(self, number: int, value: bytes) -> dict[str, Any]:
        """Decode the fields of a control record, in the version that its first field states.

        Raises:
            MalformedMessageError: the value does not follow its layout, or bytes are left over.
            KeyError: no such type; see :data:`~reconciler.protocol.CONTROL_RECORDS`.
        """
        stated = int.from_bytes(value[:2], "big", signed=True)
        return self._body(CONTROL_RECORDS[number], max(stated, 0), value, 0)

    def _body(self, message: Message, version: int, value: bytes, at: int) -> dict[str, Any]:
        read = reader(message.body, min(version, message.versions[-1]), True)
        try:
            fields: dict[str, Any]
            fields, end = read(value, at, self._budget)
        except UNREADABLE as error:
            raise MalformedMessageError(f"{message.name} version {version} cannot be read: {error}") from error
        if end != len(value):
            raise MalformedMessageError(
                f"{message.name} version {version}: {len(value) - end} bytes of garbage at its end"
            )
        return fields
