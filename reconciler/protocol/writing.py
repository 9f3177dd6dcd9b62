"""Write a struct by its table: to bytes, and to the JSON of Kafka's own tools.

A value that a version has no field for is dropped where the table calls it ignorable. Otherwise the version cannot
express the message, and nothing is written. Source: FACTS §5, §7.3.
"""

from __future__ import annotations

import struct
from typing import Any

from layout.ids import KafkaId, TopicId
from reconciler.protocol.reading import FORMATS
from reconciler.protocol.schema import Array, Field, Kind, Struct, UnsupportedVersionError


def write_struct(table: Struct, value: Any, version: int, flexible: bool) -> bytes:
    """Encode a struct as bytes.

    Raises:
        UnsupportedVersionError: the version cannot express it, or a value is too large for its field.
    """
    pieces: list[bytes] = []
    _write(table, value, version, flexible, pieces)
    return b"".join(pieces)


def tree_of(table: Struct, value: Any, version: int) -> dict[str, Any]:
    """Make a struct a JSON object of the fields that the version has.

    Raises:
        UnsupportedVersionError: the version cannot express it.
    """
    return {
        field.name: _tree(field.kind, each, version)
        for field, each in zip(table.fields, table.take(value), strict=True)
        if _has_field(table, field, each, version)
    }


def write_varint(number: int) -> bytes:
    """Encode an unsigned varint."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def write_zigzag(number: int) -> bytes:
    """Encode a signed varint of up to 64 bits."""
    return write_varint((number << 1) ^ (number >> 63))


def write_string(text: str, flexible: bool) -> bytes:
    """Encode a string with its length before it.

    Raises:
        UnsupportedVersionError: it is longer than 32767 bytes, or is no Unicode.
    """
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedVersionError(f"{text!r:.60} cannot be written as UTF-8") from error
    if len(raw) > 32767:
        raise UnsupportedVersionError(f"{text!r:.60} has {len(raw)} bytes, and a string may have 32767")
    return (write_varint(len(raw) + 1) if flexible else len(raw).to_bytes(2, "big")) + raw


def _has_field(table: Struct, field: Field, value: Any, version: int) -> bool:
    """Whether the version has the field; a value that would be lost is refused, unless it is ignorable."""
    if field.is_in(version):
        return True
    if not field.ignorable and value != field.default:
        raise UnsupportedVersionError(
            f"version {version} of {table.name} has no {field.name}, and cannot say that it is {value!r:.40}"
        )
    return False


def _write(table: Struct, value: Any, version: int, flexible: bool, pieces: list[bytes]) -> None:
    tagged: list[tuple[int, bytes]] = []
    for field, each in zip(table.fields, table.take(value), strict=True):
        if not _has_field(table, field, each, version):
            continue
        if field.tag is None:
            _write_field(field, each, version, flexible, pieces)
        elif each != field.default:
            inner: list[bytes] = []
            _write_field(field, each, version, flexible, inner)
            tagged.append((field.tag, b"".join(inner)))
    if flexible:
        pieces.append(write_varint(len(tagged)))
        for tag, raw in sorted(tagged):
            pieces += [write_varint(tag), write_varint(len(raw)), raw]


def _write_field(field: Field, value: Any, version: int, flexible: bool, pieces: list[bytes]) -> None:
    if value is None and field.nullable:
        # Elsewhere a null is the length -1, which takes two bytes before a string, and four before anything else.
        pieces.append(b"\0" if flexible else b"\xff" * (2 if field.kind == "string" else 4))
        return
    try:
        _write_value(field.kind, value, version, flexible, pieces)
    except struct.error as error:
        raise UnsupportedVersionError(f"{field.name} = {value!r:.40} does not fit its field: {error}") from error


def _write_value(kind: Kind, value: Any, version: int, flexible: bool, pieces: list[bytes]) -> None:
    if isinstance(kind, Struct):
        _write(kind, value, version, flexible, pieces)
    elif isinstance(kind, Array):
        pieces.append(_count(len(value), flexible))
        if kind.item == "int32":
            pieces.append(struct.pack(f">{len(value)}i", *value))
        else:
            for each in value:
                _write_value(kind.item, each, version, flexible, pieces)
    elif kind == "uuid":
        pieces.append(_raw_id(value))
    elif kind == "string":
        pieces.append(write_string(value, flexible))
    elif kind == "bytes":
        pieces += [_count(len(value), flexible), value]
    else:
        pieces.append(struct.pack(f">{FORMATS[kind]}", value))


def _raw_id(value: KafkaId | bytes | str | None) -> bytes:
    """Return the 16 bytes of an ID that is given as an object, as bytes, as its text, or as None for none."""
    if isinstance(value, str):
        value = TopicId.parse(value)
    return value if isinstance(value, bytes) else (value or TopicId.ZERO).to_bytes()


def _count(count: int, flexible: bool) -> bytes:
    return write_varint(count + 1) if flexible else count.to_bytes(4, "big")


def _tree(kind: Kind, value: Any, version: int) -> Any:
    if isinstance(kind, Struct):
        return tree_of(kind, value, version)
    if isinstance(kind, Array):
        return [_tree(kind.item, each, version) for each in value]
    return str(value or TopicId.ZERO) if kind == "uuid" else value
