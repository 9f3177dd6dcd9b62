"""Encodes KRaft's records and record batches: the reverse of ``records`` and ``batches`` (FACTS §7.3, §7.4).

``reconciler.protocol`` reads and writes the records by one table each, and golden vectors hold both directions to real
bytes. What a controller writes in which order, and into which files, belongs to the simulator's drill and to
``tools/writers``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import google_crc32c

from reconciler.protocol import (
    CONTROL_RECORDS,
    METADATA_RECORDS,
    PROPOSED_RECORDS,
    Message,
    write_struct,
    write_varint,
    write_zigzag,
)

_MESSAGES = {message.name: message for message in (*METADATA_RECORDS.values(), *CONTROL_RECORDS.values())}
_AFTER_CRC = struct.Struct(">hiqqqhii")


def record(name: str, version: int = 0, /, **fields: Any) -> bytes:
    """The frame of a metadata record by Kafka's name for it, for example ``record("NoOpRecord")``.

    Fields that are not given have their default. IDs are given as objects, bytes or text.

    Raises:
        ValueError: the record has no such field.
        UnsupportedVersionError: the version has no such field, and its value is not the default.
    """
    message = _MESSAGES[name]
    _check_names(message, fields)
    return _head(message.key, version) + write_struct(message.body, fields, version, flexible=True)


def proposed_record(name: str, /, **fields: Any) -> bytes:
    """The frame of a record in the form that a proposal draws; otherwise as :func:`record`."""
    ((key, version), message), *_ = [each for each in PROPOSED_RECORDS.items() if each[1].name == name]
    _check_names(message, fields)
    return _head(key, version) + write_struct(message.body, fields, 0, flexible=True)


def _check_names(message: Message, fields: dict[str, Any]) -> None:
    unknown = fields.keys() - {field.name for field in message.body.fields}
    if unknown:
        raise ValueError(f"{message.name} has no field {', '.join(sorted(unknown))}")


def _head(key: int, version: int) -> bytes:
    return write_varint(1) + write_varint(key) + write_varint(version)


def control_record(name: str, /, **fields: Any) -> tuple[bytes, bytes]:
    """Key and value of a control record by the name of its message, for example ``SnapshotHeaderRecord``."""
    message = _MESSAGES[name]
    value = write_struct(message.body, fields, fields.get("version", 0), flexible=True)
    return struct.pack(">hh", 0, message.key), value


def batch(
    entries: Sequence[tuple[bytes | None, bytes]],
    *,
    base_offset: int,
    epoch: int,
    timestamp_ms: int,
    attributes: int = 0,
    compress: Callable[[bytes], bytes] | None = None,
) -> bytes:
    """One record batch, magic 2, of (key, value) entries; ``compress`` must fit the codec bits of ``attributes``."""
    records = b"".join(_envelope(delta, key, value) for delta, (key, value) in enumerate(entries))
    last = len(entries) - 1
    after_crc = _AFTER_CRC.pack(attributes, last, timestamp_ms, timestamp_ms, -1, -1, -1, len(entries))
    after_crc += compress(records) if compress else records
    head = struct.pack(">qiibI", base_offset, len(after_crc) + 9, epoch, 2, google_crc32c.value(after_crc))
    return head + after_crc


def _envelope(offset_delta: int, key: bytes | None, value: bytes) -> bytes:
    """The envelope of one record: no timestamp delta, no headers."""
    written_key = write_zigzag(-1) if key is None else write_zigzag(len(key)) + key
    body = b"\0\0" + write_zigzag(offset_delta) + written_key + write_zigzag(len(value)) + value + b"\0"
    return write_zigzag(len(body)) + body
