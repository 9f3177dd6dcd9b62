"""What the tables say of a JSON document: which fields it may have, and how a message is read from them.

A document may have Kafka's names or those of a proposal, and fields of any version. A field that every version has must
be there. A name that no table has is found apart from that: whoever carries a request out refuses it, because the field
may say what the request means. Source: FACTS §5; KIP516-4, KIP516-7, KIP516-9.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from layout.errors import InvalidIdError
from layout.ids import TopicId
from layout.json_text import FieldReader
from reconciler.protocol.schema import NEWEST, Array, Field, Struct

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def topic_id_of(fields: FieldReader) -> TopicId | None:
    """Read the topic ID; None for a missing ID and for the zero ID, which means the same."""
    found = fields.raw("topicId", "topic_id")
    if found is None:
        return None
    try:
        topic_id = TopicId.parse(found) if isinstance(found, str) else None
    except InvalidIdError:
        topic_id = None
    if topic_id is None:
        fields.wrong("topicId", "a topic ID of 22 characters of base64url", found)
    return None if topic_id is None or topic_id.is_zero else topic_id


def read_fields(table: Struct, fields: FieldReader) -> Any:
    """Make a struct of a JSON object; what is missing or of another type becomes a reason of the document."""
    return table.make(*(_value(field, fields) for field in table.fields))


def unknown_fields(
    value: object, tables: Sequence[Struct], more: frozenset[str] = frozenset(), path: str = ""
) -> Iterator[str]:
    """Yield the place of each field that none of the tables has, on any level of a document.

    Args:
        value: the document, or what lies at ``path`` in it.
        tables: of a message, in all its forms.
        more: further names that are read on any level, of earlier releases.
        path: ends with a dot; empty for the document itself.
    """
    if not isinstance(value, Mapping):
        return
    fields = [field for table in tables for field in table.fields]
    for name in value.keys() - {field.name for field in fields} - more:
        yield f"{path}{name}"
    below = defaultdict[str, list[Struct]](list)
    for field in fields:
        if isinstance(field.kind, Array) and isinstance(field.kind.item, Struct):
            below[_plain(field.name)].append(field.kind.item)
    for name, inner in value.items():
        structs = below.get(_plain(name)) if isinstance(inner, list) else None
        for index, each in enumerate(inner if structs else ()):
            # The rows of one list are many, and nearly always have known names alone.
            yield from unknown_fields(each, structs or (), more, f"{path}{name}[{index}].")


def _plain(name: str) -> str:
    """The same text for both spellings of a name."""
    return name.replace("_", "").lower()


def _value(field: Field, fields: FieldReader) -> Any:
    kind, name = field.kind, field.name
    if not fields.has(name) and (field.first > 0 or field.last < NEWEST or field.tag is not None or field.nullable):
        return field.default
    if isinstance(kind, Array):
        if not isinstance(kind.item, Struct):
            return fields.broker_ids(name)
        return tuple(read_fields(kind.item, each) for each in fields.objects(name))
    if kind == "bool":
        return fields.boolean(name, default=False)
    if kind == "string":
        return None if field.nullable and fields.raw(name) is None else fields.text(name, may_be_empty=True)
    if kind == "uuid":
        return (topic_id_of(fields) or TopicId.ZERO).to_bytes()
    return fields.integer(name, bits=_BITS[str(kind)])
