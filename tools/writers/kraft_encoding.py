"""Encodes KRaft's records and record batches: the reverse of ``reconciler.sources.kraft`` (FACTS §7.3, §7.4).

Owns the bytes; both directions go by the same field tables, and golden vectors hold the two of them to real bytes. What
a controller writes in which order, and into which files, belongs to ``kraft_writer``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import google_crc32c

from layout.ids import KafkaId, TopicId
from reconciler.sources.kraft import (
    CONTROL_RECORDS,
    METADATA_RECORDS,
    Array,
    Field,
    FieldType,
    Struct,
    Type,
    tagged,
    written,
)

_MESSAGES = {message.name: message for message in (*METADATA_RECORDS.values(), *CONTROL_RECORDS.values())}
_FIXED = {
    Type.INT8: ">b",
    Type.INT16: ">h",
    Type.INT32: ">i",
    Type.INT64: ">q",
    Type.UINT16: ">H",
    Type.FLOAT64: ">d",
    Type.BOOL: ">?",
}
_AFTER_CRC = struct.Struct(">hiqqqhii")


def unsigned_varint(value: int) -> bytes:
    """LEB128 of a 32-bit value; a negative one is taken as its unsigned twin."""
    return _leb128(value & 0xFFFF_FFFF)


def varint(value: int) -> bytes:
    """Zig-zag, then LEB128: the form inside a record's envelope. Good for 64 bits too."""
    return _leb128((value << 1) ^ (value >> 63))


def _leb128(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def uuid_bytes(value: KafkaId | bytes | str) -> bytes:
    """The 16 bytes of an ID that is given as an object, as bytes, or as its text."""
    if isinstance(value, KafkaId):
        return value.to_bytes()
    return TopicId.parse(value).to_bytes() if isinstance(value, str) else value


def _encode_value(kind: FieldType, value: Any, version: int) -> bytes:
    """One value of a field, null included where the type has a null."""
    if isinstance(kind, Struct):
        return _encode_struct(kind.fields, value, version)
    if kind in _FIXED:
        return struct.pack(_FIXED[kind], value)
    if kind is Type.UUID:
        return uuid_bytes(value)
    if value is None:
        return b"\0"
    if isinstance(kind, Array):
        if kind.item is Type.INT32:
            return unsigned_varint(len(value) + 1) + struct.pack(f">{len(value)}i", *value)
        return unsigned_varint(len(value) + 1) + b"".join(_encode_value(kind.item, item, version) for item in value)
    raw = value.encode() if isinstance(value, str) else bytes(value)
    return unsigned_varint(len(raw) + 1) + raw


def _encode_struct(fields: tuple[Field, ...], values: Mapping[str, Any], version: int) -> bytes:
    """Fields in order, then those tagged fields that differ from their default."""
    plain = [_encode_value(f.type, values.get(f.name, f.absent), version) for f in written(fields, version)]
    extra = []
    for tag, field in tagged(fields, version).items():
        value = values.get(field.name, field.absent)
        if value is not None and (tuple(value) if isinstance(field.type, Array) else value) != field.absent:
            payload = _encode_value(field.type, value, version)
            extra.append(unsigned_varint(tag) + unsigned_varint(len(payload)) + payload)
    return b"".join((*plain, unsigned_varint(len(extra)), *extra))


def record(name: str, version: int = 0, /, **fields: Any) -> bytes:
    """The frame of a metadata record by Kafka's name for it, for example ``record("NoOpRecord")``.

    Fields that are not given have their default. IDs are given as objects, bytes or text.

    Raises:
        ValueError: the record has no such field, or the version has not and its value is not the default.
    """
    message = _MESSAGES[name]
    known = {field.name: field for field in message.fields}
    for key, value in fields.items():
        if key not in known or (known[key].since > version and value not in (known[key].absent, [], None)):
            raise ValueError(f"{name} version {version} has no field {key}")
    head = unsigned_varint(1) + unsigned_varint(message.number) + unsigned_varint(version)
    return head + _encode_struct(message.fields, fields, version)


def control_record(name: str, /, **fields: Any) -> tuple[bytes, bytes]:
    """Key and value of a control record by the name of its message, for example ``SnapshotHeaderRecord``."""
    message = _MESSAGES[name]
    return struct.pack(">hh", 0, message.number), _encode_struct(message.fields, fields, fields.get("version", 0))


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
    written_key = varint(-1) if key is None else varint(len(key)) + key
    body = b"\0\0" + varint(offset_delta) + written_key + varint(len(value)) + value + b"\0"
    return varint(len(body)) + body
