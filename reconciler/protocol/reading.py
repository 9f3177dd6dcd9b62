"""Read a struct from bytes by its table.

For each version, a table is compiled once into a list of steps; adjacent numbers are one step. A count is compared with
the bytes that are left, and with the most that one message may hold, before anything is allocated. So wrong lengths
cost nothing. Every failure is a :class:`MalformedMessageError` that says where. Source: FACTS §5, §7.3.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from layout.ids import TopicId
from reconciler.protocol.errors import MalformedMessageError
from reconciler.protocol.tables import INTS, Field, Struct

MAX_MESSAGE_BYTES = 100 << 20
"""A longer message is refused, as on a broker's connection (``socket.request.max.bytes``)."""

MAX_WEIGHT = 16_000_000
"""The most that one message may hold: a number in an array weighs 1, a struct 8. 100,000 partitions of 3 replicas weigh
1.4 million; a message of this weight takes some 600 MB of memory."""

_STRUCT_WEIGHT = 8
_REMEMBERED_LISTS = 4096

FORMATS = {"bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q"}
_SIZES = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uuid": 16}


class Budget:
    """The rest of :data:`MAX_WEIGHT` while one message is read, and the lists of brokers read so far."""

    __slots__ = ("left", "lists")

    def __init__(self) -> None:
        self.left = MAX_WEIGHT
        self.lists: dict[bytes, tuple[int, ...]] = {}

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

    Besides MalformedMessageError, a reader raises ``struct.error`` or ``IndexError`` where the bytes end too soon.
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


def read_string(data: bytes, at: int, flexible: bool) -> tuple[str | None, int]:
    """Read a string, None where it is null; return it with the offset behind it."""
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
    try:
        return data[at:end].decode(), end
    except UnicodeDecodeError as error:
        raise MalformedMessageError(f"the string at byte {at} is no UTF-8") from error


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
    steps: list[ReadStep] = []
    run = ""
    for field in table.fields:
        there = field.first <= version <= field.last
        if there and field.tag is None and field.kind in FORMATS:
            run += FORMATS[str(field.kind)]
            continue
        if run:
            steps.append(_numbers(run))
            run = ""
        steps.append(_other(field, version, flexible) if there and field.tag is None else _constant(field.default))
    if run:
        steps.append(_numbers(run))
    if flexible:
        steps.append(_tags(table, version))
    return steps


def _numbers(run: str) -> ReadStep:
    form = struct.Struct(f">{run}")
    unpack, size = form.unpack_from, form.size

    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        values += unpack(data, at)
        return at + size

    return step


def _constant(default: Any) -> ReadStep:
    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        values.append(default)
        return at

    return step


def _other(field: Field, version: int, flexible: bool) -> ReadStep:
    if isinstance(field.kind, Struct):
        return _structs(field.name, field.kind, version, flexible)
    if field.kind == INTS:
        return _ints(field.name, flexible)
    return _uuid() if field.kind == "uuid" else _string(field.name, flexible)


def _uuid() -> ReadStep:
    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        raw = data[at : at + 16]
        if len(raw) < 16:
            raise IndexError
        values.append(TopicId(raw) if any(raw) else None)
        return at + 16

    return step


def _string(name: str, flexible: bool) -> ReadStep:
    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        text, behind = read_string(data, at, flexible)
        if text is None:
            raise MalformedMessageError(f"{name} at byte {at} is null")
        values.append(text)
        return behind

    return step


def _count(data: bytes, at: int, flexible: bool, name: str, least: int) -> tuple[int, int]:
    """Read the length of an array whose elements take at least ``least`` bytes, and the offset of the first."""
    if flexible:
        count, at = read_varint(data, at)
        count -= 1
    else:
        count, at = int.from_bytes(data[at : at + 4], "big", signed=True), at + 4
        if at > len(data):
            raise IndexError
    if count < 0:
        raise MalformedMessageError(f"{name} at byte {at} is null")
    if count * least > len(data) - at:
        raise MalformedMessageError(
            f"{name} at byte {at} says that it has {count} elements, more than there is room for"
        )
    return count, at


def _ints(name: str, flexible: bool) -> ReadStep:
    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        count, at = _count(data, at, flexible, name, 4)
        budget.spend(count)
        end = at + 4 * count
        raw = data[at:end]
        # The same few lists of brokers occur again and again: making each once saves time and memory.
        found = budget.lists.get(raw)
        if found is None:
            found = struct.unpack(f">{count}i", raw)
            if len(budget.lists) < _REMEMBERED_LISTS:
                budget.lists[raw] = found
        values.append(found)
        return end

    return step


def _structs(name: str, table: Struct, version: int, flexible: bool) -> ReadStep:
    steps, make = _steps(table, version, flexible), table.make
    least = max(1, _least_size(table, version, flexible))

    def step(data: bytes, at: int, values: list[Any], budget: Budget) -> int:
        count, at = _count(data, at, flexible, name, least)
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
        field.tag: (place, reader(Struct("", (_untagged(field),), lambda value: value, tuple), version, True))
        for place, field in enumerate(table.fields)
        if field.tag is not None and field.first <= version <= field.last
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
                place, read = known[tag]
                # The field is read as a struct of its own, whose tagged section is empty.
                values[place], behind = read(data[at:end] + b"\0", 0, budget)
                if behind != size + 1:
                    raise MalformedMessageError(f"tag {tag} at byte {at} has {size} bytes, which its field has not")
            at = end
        return at

    return step


def _untagged(field: Field) -> Field:
    return Field(field.name, field.kind, field.first, field.last, field.default)


def _least_size(table: Struct, version: int, flexible: bool) -> int:
    """The smallest size in bytes of a struct in this version."""
    size = int(flexible)
    for field in table.fields:
        if field.tag is None and field.first <= version <= field.last:
            length = 1 if flexible else (2 if field.kind == "string" else 4)
            size += _SIZES.get(field.kind, length) if isinstance(field.kind, str) else length
    return size
