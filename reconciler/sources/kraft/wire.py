"""Read the primitives and structs of Kafka's wire from bytes, with every length checked (FACTS §7.3).

A reader takes the bytes and an offset, and returns the value and the offset after it. The readers of whole structs are
compiled from ``tables``. Nothing is allocated for a length or a count that the bytes at hand could not hold. Reading
beyond the end raises ``IndexError``, ``struct.error`` or :class:`WireError`: see :data:`UNREADABLE`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from reconciler.errors import MetadataError
from reconciler.sources.kraft.tables import Array, Field, FieldType, Struct, Type, tagged, written

Reader = Callable[[bytes, int], tuple[Any, int]]


class WireError(MetadataError):
    """Bytes that do not follow their layout; the caller adds their position."""


UNREADABLE = (WireError, IndexError, struct.error, UnicodeDecodeError)
"""The errors of reading broken bytes; a caller that knows the position turns them into one ``MetadataError``."""

_FIXED = {
    Type.INT8: "b",
    Type.INT16: "h",
    Type.INT32: "i",
    Type.INT64: "q",
    Type.UINT16: "H",
    Type.FLOAT64: "d",
    Type.BOOL: "?",
    Type.UUID: "16s",
}
"""Primitives of a fixed width, as codes of ``struct``."""


def unsigned_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read LEB128 of at most five bytes as an unsigned 32-bit number.

    Raises:
        WireError: a fifth byte with its top bit set.
        IndexError: the bytes end within it.
    """
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value = byte & 0x7F
    for shift in (7, 14, 21, 28):
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF, at + 1
    raise WireError("a variable-length integer of more than 5 bytes")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read zig-zag LEB128 of 32 bits.

    Raises:
        WireError: a fifth byte with its top bit set.
        IndexError: the bytes end within it.
    """
    raw, at = unsigned_varint(data, at)
    return (raw >> 1) ^ -(raw & 1), at


def varlong(data: bytes, at: int) -> tuple[int, int]:
    """Read zig-zag LEB128 of 64 bits, at most ten bytes.

    Raises:
        WireError: a tenth byte with its top bit set.
        IndexError: the bytes end within it.
    """
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFF_FFFF_FFFF_FFFF
            return (value >> 1) ^ -(value & 1), at
    raise WireError("a variable-length integer of more than 10 bytes")


def struct_reader(fields: tuple[Field, ...], version: int) -> Reader:
    """Compile the reader of a struct in one version; it returns a dict with every field of every version.

    Runs of fixed-width fields are read at once. Equal lists of int32 and of IDs share one tuple, so that a million
    partitions on the same brokers share their tuples; these live as long as the reader.
    """
    steps = _steps(written(fields, version), version)
    tags = {
        tag: (field.name, _reader(field.type, version, field.nullable))
        for tag, field in tagged(fields, version).items()
    }
    defaults = {field.name: field.absent for field in fields}

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        values = defaults.copy()
        for names, step in steps:
            found, at = step(data, at)
            if isinstance(names, str):
                values[names] = found
            else:
                values.update(zip(names, found, strict=True))
        count, at = unsigned_varint(data, at)
        for _ in range(count):
            at = _read_tagged(data, at, tags, values)
        return values, at

    return read


def _read_tagged(data: bytes, at: int, tags: dict[int, tuple[str, Reader]], values: dict[str, Any]) -> int:
    """Read one tagged field into ``values``, or skip an unknown one."""
    tag, at = unsigned_varint(data, at)
    size, at = unsigned_varint(data, at)
    end = at + size
    if end > len(data):
        raise WireError(f"tagged field {tag} claims {size} bytes of {len(data) - at}")
    if tag in tags:
        name, reader = tags[tag]
        values[name], stop = reader(data, at)
        if stop != end:
            raise WireError(f"tagged field {name} has {size} bytes, but its value takes {stop - at}")
    return end


def _steps(fields: tuple[Field, ...], version: int) -> list[tuple[str | tuple[str, ...], Reader]]:
    """Compile one step for each field, or for each run of fixed-width fields."""
    steps: list[tuple[str | tuple[str, ...], Reader]] = []
    run: list[Field] = []
    for field in fields:
        if isinstance(field.type, Type) and field.type in _FIXED:
            run.append(field)
            continue
        if run:
            steps.append(_run_step(run))
            run = []
        steps.append((field.name, _reader(field.type, version, field.nullable)))
    return [*steps, _run_step(run)] if run else steps


def _run_step(run: list[Field]) -> tuple[tuple[str, ...], Reader]:
    codes = "".join(_FIXED[field.type] for field in run if isinstance(field.type, Type))
    layout = struct.Struct(">" + codes)

    def read(data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        return layout.unpack_from(data, at), at + layout.size

    return tuple(field.name for field in run), read


def _reader(kind: FieldType, version: int, nullable: bool) -> Reader:
    """Compile the reader of one field."""
    if isinstance(kind, Struct):
        return struct_reader(kind.fields, version)
    if isinstance(kind, Array):
        if isinstance(kind.item, Type) and kind.item in _FIXED:
            return _fixed_array_reader(_FIXED[kind.item], nullable)
        return _array_reader(_reader(kind.item, version, nullable=False), nullable)
    if kind in _FIXED:
        layout = struct.Struct(">" + _FIXED[kind])
        return lambda data, at: (layout.unpack_from(data, at)[0], at + layout.size)
    return _text_reader(nullable) if kind is Type.STRING else _bytes_reader(nullable)


def _length(data: bytes, at: int, width: int, nullable: bool) -> tuple[int, int]:
    """Read a length or count (-1 is null) of items of at least ``width`` bytes each."""
    raw, at = unsigned_varint(data, at)
    length = raw - 1
    if length < 0 and not nullable:
        raise WireError("null where a value must stand")
    if length * width > len(data) - at:
        raise WireError(f"a length of {length} where {len(data) - at} bytes are left")
    return length, at


def _fixed_array_reader(code: str, nullable: bool) -> Reader:
    width = struct.calcsize(">" + code)
    known: dict[bytes, tuple[Any, ...]] = {}

    def read(data: bytes, at: int) -> tuple[tuple[Any, ...] | None, int]:
        count, at = _length(data, at, width, nullable)
        if count < 0:
            return None, at
        end = at + count * width
        raw = data[at:end]
        items = known.get(raw)
        if items is None:
            items = known[raw] = struct.unpack(">" + code * count, raw)
        return items, end

    return read


def _array_reader(item: Reader, nullable: bool) -> Reader:
    def read(data: bytes, at: int) -> tuple[tuple[Any, ...] | None, int]:
        count, at = _length(data, at, 1, nullable)
        if count < 0:
            return None, at
        items = []
        for _ in range(count):
            value, at = item(data, at)
            items.append(value)
        return tuple(items), at

    return read


def _bytes_reader(nullable: bool) -> Reader:
    def read(data: bytes, at: int) -> tuple[bytes | None, int]:
        length, at = _length(data, at, 1, nullable)
        return (None, at) if length < 0 else (data[at : at + length], at + length)

    return read


def _text_reader(nullable: bool) -> Reader:
    raw_reader = _bytes_reader(nullable)

    def read(data: bytes, at: int) -> tuple[str | None, int]:
        raw, at = raw_reader(data, at)
        return (None if raw is None else raw.decode("utf-8")), at

    return read
