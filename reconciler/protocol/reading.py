"""Read a struct from bytes by its table.

For each version, a table is compiled once into a list of steps; adjacent numbers are one step. A count is compared with
the bytes that are left, and with the most that one message may hold, before anything is allocated. So wrong lengths
cost nothing. Every failure is a :class:`MalformedMessageError` that says where. Source: FACTS §5, §7.3.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import Any, Final, TypeAlias

from reconciler.protocol.schema import Array, Field, Kind, MalformedMessageError, Struct

MAX_MESSAGE_BYTES = 100 << 20
"""A longer message is refused, as on a broker's connection (``socket.request.max.bytes``)."""

MAX_WEIGHT = 16_000_000
"""The most that one message may hold: a number in an array weighs 1, a struct 8. 100,000 partitions of 3 replicas weigh
1.4 million; a message of this weight takes some 600 MB of memory."""

_STRUCT_WEIGHT = 8
_REMEMBERED_LISTS = 1 << 16

FORMATS: Final[dict[Kind, str]] = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "float64": "d", "uuid": "16s"
}  # fmt: skip
"""Primitives of a fixed width, as codes of ``struct``."""

UNREADABLE: Final = (MalformedMessageError, IndexError, struct.error)
"""The errors of reading broken bytes; a caller that knows the place turns them into one error with it."""


class Budget:
    """How much more may be read for one message or one log, and the lists of numbers read so far."""

    __slots__ = ("left", "lists")

    def __init__(self, weight: int = MAX_WEIGHT) -> None:
        self.left = weight
        self.lists: defaultdict[str, dict[bytes, tuple[Any, ...]]] = defaultdict(dict)

    def spend(self, weight: int) -> None:
        """Spend some of the budget; raises MalformedMessageError where not enough is left."""
        self.left -= weight
        if self.left < 0:
            raise MalformedMessageError(f"it holds more than one message may: a weight of {MAX_WEIGHT}")


ReadStep: TypeAlias = Callable[[bytes, int, list[Any], Budget], int]
"""Reads at an offset, appends the values it reads, and returns the offset behind them."""

StructReader: TypeAlias = Callable[[bytes, int, Budget], tuple[Any, int]]


@cache
def reader(table: Struct, version: int, flexible: bool) -> StructReader:
    """Compile the reader of a struct in one version; it returns the value and the offset behind it.

    It raises one of :data:`UNREADABLE`, for example ``IndexError`` where the bytes end too soon.
    """
    steps, make = _steps(table, version, flexible), table.make

    def read(data: bytes, at: int, budget: Budget) -> tuple[Any, int]:
        values: list[Any] = []
        for step in steps:
            at = step(data, at, values, budget)
        return make(*values), at

    return read


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits; return it with the offset behind it."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        value = 1 << 32
    if value >= 1 << 32:
        raise MalformedMessageError(f"the varint that ends at byte {at} has more than 32 bits")
    return value, at + 1


def read_zigzag(data: bytes, at: int) -> tuple[int, int]:
    """Read a signed varint of at most 32 bits; return it with the offset behind it."""
    raw, at = read_varint(data, at)
    return (raw >> 1) ^ -(raw & 1), at


def read_long_zigzag(data: bytes, at: int) -> tuple[int, int]:
    """Read a signed varint of at most 64 bits; return it with the offset behind it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFF_FFFF_FFFF_FFFF
            return (value >> 1) ^ -(value & 1), at
    raise MalformedMessageError(f"the varint that ends at byte {at - 1} has more than 64 bits")


def read_string(data: bytes, at: int, flexible: bool) -> tuple[str | None, int]:
    """Read a string, None where it is null; return it with the offset behind it."""
    raw, end = _read_bytes(data, at, flexible)
    if raw is None:
        return None, end
    try:
        return raw.decode(), end
    except UnicodeDecodeError as error:
        raise MalformedMessageError(f"the string at byte {end - len(raw)} is no UTF-8") from error


def _read_bytes(data: bytes, at: int, flexible: bool) -> tuple[bytes | None, int]:
    if flexible:
        length, at = read_varint(data, at)
        length -= 1
    else:
        length, at = int.from_bytes(data[at : at + 2], "big", signed=True), at + 2
        if at > len(data):
            raise IndexError
    if length < 0:
        return None, at
    end = at + length
    if end > len(data):
        raise MalformedMessageError(f"a string of {length} bytes at byte {at} is longer than what is left")
    return data[at:end], end


def skip_tags(data: bytes, at: int) -> int:
    """Skip a tagged section without known tags; return the offset behind it."""
    count, at = read_varint(data, at)
    for _ in range(count):
        _, at = read_varint(data, at)
        size, at = read_varint(data, at)
        at += size
        if at > len(data):
            raise IndexError
    return at


def _steps(table: Struct, version: int, flexible: bool) -> list[ReadStep]:
    """Compile a step for each field; one for adjacent numbers, and one for adjacent fields that are not written."""
    steps: list[ReadStep] = []
    for is_sent, fields in groupby(table.fields, lambda field: field.tag is None and field.is_in(version)):
        if not is_sent:
            steps.append(_constants([field.default for field in fields]))
            continue
        for code, run in groupby(fields, lambda field: field.kind in FORMATS):
            if code:
                steps.append(_numbers("".join(FORMATS[field.kind] for field in run)))
            else:
                steps += (_field_step(field, version, flexible) for field in run)
    if flexible:
        steps.append(_tags(table, version))
    return steps


def _numbers(codes: str) -> ReadStep:
    form = struct.Struct(f">{codes}")
    unpack, size = form.unpack_from, form.size

    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        values += unpack(data, at)
        return at + size

    return step


def _constants(defaults: list[Any]) -> ReadStep:
    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        values += defaults
        return at

    return step


def _field_step(field: Field, version: int, flexible: bool) -> ReadStep:
    kind = field.kind
    if kind in FORMATS:
        return _numbers(FORMATS[kind])
    if isinstance(kind, Struct):
        return _struct(reader(kind, version, flexible))
    if not isinstance(kind, Array):
        return _text(field, flexible)
    if kind.item in FORMATS:
        return _number_list(field, FORMATS[kind.item], flexible)
    if isinstance(kind.item, Struct):
        return _structs(field, kind.item, version, flexible)
    return _texts(field, _text(Field(field.name, kind.item), flexible), flexible)


def _struct(read: StructReader) -> ReadStep:
    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        value, at = read(data, at, budget)
        values.append(value)
        return at

    return step


def _text(field: Field, flexible: bool) -> ReadStep:
    name, nullable = field.name, field.nullable
    read = read_string if field.kind == "string" else _read_bytes

    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        text, behind = read(data, at, flexible)
        if text is None and not nullable:
            raise MalformedMessageError(f"{name} at byte {at} is null")
        values.append(text)
        return behind

    return step


def _count(data: bytes, at: int, field: Field, flexible: bool, least: int) -> tuple[int, int]:
    """Read the length of an array whose items take ``least`` bytes or more, -1 for null; and the offset behind it."""
    if flexible:
        count, at = read_varint(data, at)
        count -= 1
    else:
        count, at = int.from_bytes(data[at : at + 4], "big", signed=True), at + 4
        if at > len(data):
            raise IndexError
    if count < 0:
        if field.nullable:
            return -1, at
        raise MalformedMessageError(f"{field.name} at byte {at} is null")
    if count * least > len(data) - at:
        raise MalformedMessageError(
            f"{field.name} at byte {at} says that it has {count} elements, more than there is room for"
        )
    return count, at


def _number_list(field: Field, code: str, flexible: bool) -> ReadStep:
    width = struct.calcsize(f">{code}")

    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        count, at = _count(data, at, field, flexible, width)
        if count < 0:
            values.append(None)
            return at
        budget.left -= count
        if budget.left < 0:
            budget.spend(0)  # which says so
        end = at + width * count
        raw = data[at:end]
        # The same few lists of brokers occur again and again: making each once saves time and memory.
        known = budget.lists[code]
        found = known.get(raw)
        if found is None:
            found = struct.unpack(f">{code * count}", raw)
            if len(known) < _REMEMBERED_LISTS:
                known[raw] = found
        values.append(found)
        return end

    return step


def _texts(field: Field, item: ReadStep, flexible: bool) -> ReadStep:
    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        count, at = _count(data, at, field, flexible, 1 if flexible else 2)
        if count < 0:
            values.append(None)
            return at
        budget.spend(_STRUCT_WEIGHT * count)
        found: list[Any] = []
        for _ in range(count):
            at = item(data, at, found, budget)
        values.append(tuple(found))
        return at

    return step


def _structs(field: Field, table: Struct, version: int, flexible: bool) -> ReadStep:
    name, steps, make = field.name, _steps(table, version, flexible), table.make
    least = max(1, _least_size(table, version, flexible))

    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        count, at = _count(data, at, field, flexible, least)
        if count < 0:
            values.append(None)
            return at
        budget.spend(_STRUCT_WEIGHT * count)
        made: list[Any] = []
        try:
            for _ in range(count):
                fields: list[Any] = []
                for inner in steps:
                    at = inner(data, at, fields, budget)
                made.append(make(*fields))
        except (struct.error, IndexError) as error:
            raise MalformedMessageError(f"{name}[{len(made)}]: the bytes end in the middle of it") from error
        except MalformedMessageError as error:
            raise MalformedMessageError(f"{name}[{len(made)}]: {error}") from error
        values.append(tuple(made))
        return at

    return step


def _tags(table: Struct, version: int) -> ReadStep:
    known = {
        field.tag: (place, field.name, _field_step(field, version, flexible=True))
        for place, field in enumerate(table.fields)
        if field.tag is not None and field.is_in(version)
    }

    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        if data[at] == 0:
            return at + 1
        count, at = read_varint(data, at)
        for _ in range(count):
            tag, at = read_varint(data, at)
            size, at = read_varint(data, at)
            end = at + size
            if end > len(data):
                raise MalformedMessageError(f"tag {tag} at byte {at} is longer than what is left")
            if tag in known:
                place, name, read = known[tag]
                behind = read(data, at, values, budget)
                if behind != end:
                    raise MalformedMessageError(
                        f"tag {tag} at byte {at} has {size} bytes, and its {name} takes {behind - at}"
                    )
                values[place] = values.pop()
            at = end
        return at

    return step


def _least_size(table: Struct, version: int, flexible: bool) -> int:
    """The smallest size in bytes of a struct in this version."""
    size = int(flexible)
    for field in table.fields:
        if field.tag is None and field.is_in(version):
            size += _least_field(field.kind, version, flexible)
    return size


def _least_field(kind: Kind, version: int, flexible: bool) -> int:
    if isinstance(kind, Struct):
        return _least_size(kind, version, flexible)
    if kind in FORMATS:
        return struct.calcsize(f">{FORMATS[kind]}")
    return 1 if flexible else 4 if isinstance(kind, Array) else 2
