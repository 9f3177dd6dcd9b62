"""What a table of a message says: fields, structs, and the message that they make; and the errors of messages.

One table for each struct says how it is read (``reading``) and written (``writing``). A field has its name as Kafka's
own JSON has it, its kind, and the versions that have it. Source: FACTS §5, §7.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from reconciler.errors import MetadataError, UsageError


class MalformedMessageError(MetadataError):
    """Bytes that are not the expected message: cut off, too long, or with impossible values."""


class UnsupportedVersionError(UsageError):
    """An unknown version, or one that cannot express the content of a message (UNSUPPORTED_VERSION, 35)."""


Primitive: TypeAlias = Literal[
    "bool", "int8", "int16", "int32", "int64", "uint16", "float64", "uuid", "string", "bytes"
]
"""A primitive by Kafka's name; a ``uuid`` is 16 bytes."""

NEWEST: Final = 99
_IMPLIED: Final = object()
_EMPTY: Final[dict[str, Any]] = {"bool": False, "float64": 0.0, "uuid": bytes(16), "string": "", "bytes": b""}


@dataclass(frozen=True, slots=True)
class Array:
    """An array: a count, then that many items; the value is a tuple."""

    item: Primitive | Struct


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """A struct: its fields in their order on the wire, and its conversion to a value and back.

    Attributes:
        name: for messages.
        fields: of all versions.
        make: turns the values of all fields, in the order of the table, into a value.
        take: does the reverse.
    """

    name: str
    fields: tuple[Field, ...]
    make: Callable[..., Any]
    take: Callable[[Any], tuple[Any, ...]]


Kind: TypeAlias = Primitive | Array | Struct


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct.

    Attributes:
        name: as in Kafka's JSON, or in the proposal.
        kind: of its value.
        first: the first version that has it.
        last: the last one.
        default: its value where a version lacks it or its tag is not sent; not given: the empty value of its kind.
        ignorable: a version without the field drops its value silently; otherwise such a value is refused.
        tag: its number in the tagged section; None: not a tagged field.
        nullable: whether it may be null, which is None.
    """

    name: str
    kind: Kind
    first: int = 0
    last: int = NEWEST
    default: Any = _IMPLIED
    ignorable: bool = False
    tag: int | None = None
    nullable: bool = False

    def __post_init__(self) -> None:
        if self.default is _IMPLIED:
            object.__setattr__(self, "default", _empty(self.kind))

    def is_in(self, version: int) -> bool:
        """Whether a version has the field."""
        return self.first <= version <= self.last


def _empty(kind: Kind) -> Any:
    if isinstance(kind, Struct):
        return kind.make(*(field.default for field in kind.fields))
    return () if isinstance(kind, Array) else _EMPTY.get(kind, 0)


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its API key or record type, its versions, and the first flexible version (FACTS §5)."""

    name: str
    key: int
    body: Struct
    versions: range
    flexible: int


def dict_struct(name: str, *fields: Field) -> Struct:
    """Make a struct whose value is a dict of all fields by name.

    A dict that is written may leave fields out, which then have their default, and may have lists for tuples.
    """
    names = tuple(field.name for field in fields)

    def make(*values: Any) -> dict[str, Any]:
        return dict(zip(names, values, strict=True))

    def take(value: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(_given(field, value.get(field.name, field.default)) for field in fields)

    return Struct(name, fields, make, take)


def _given(field: Field, value: Any) -> Any:
    if value is None and not field.nullable:
        return field.default
    return tuple(value) if isinstance(value, list) else value


INTS: Final = Array("int32")
"""An array of numbers, mostly broker ids."""
