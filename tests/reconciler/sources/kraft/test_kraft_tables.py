"""The field tables against Kafka's own message layouts, field by field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

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
from reconciler.sources.kraft.tables import Message

NOT_OURS = {"QuorumStateData"}
"""A text file, not a record."""


def _layouts(shared: Path, *folders: str) -> dict[str, dict[str, Any]]:
    layouts = {}
    for folder in folders:
        for file in sorted((shared / "kafka" / "schemas" / folder).glob("*.json")):
            lines = [line for line in file.read_text().splitlines() if not line.strip().startswith("//")]
            layout = json.loads("\n".join(lines))
            layouts[layout["name"]] = layout
    return layouts


def _type_of(layout: dict[str, Any], field: dict[str, Any]) -> FieldType:
    text = field["type"]
    if text.startswith("[]"):
        item = _type_of(layout, {**field, "type": text[2:]})
        assert not isinstance(item, Array)
        return Array(item)
    if text.upper() in Type.__members__:
        return Type[text.upper()]
    common = {struct["name"]: struct["fields"] for struct in layout.get("commonStructs", [])}
    return Struct(tuple(_field(layout, each) for each in field.get("fields") or common[text]))


def _field(layout: dict[str, Any], field: dict[str, Any]) -> Field:
    name = field["name"][0].lower() + field["name"][1:]
    since = int(re.match(r"\d+", field["versions"])[0])  # type: ignore[index]
    kind = _type_of(layout, field)
    tag = int(field["tag"]) if "tag" in field else None
    nullable = "nullableVersions" in field
    plain = Field(name, kind, since, tag, nullable=nullable)
    match field.get("default"):
        case None:
            return plain
        case "null":
            return Field(name, kind, since, tag, default=None, nullable=nullable)
        case "true" | "false" as truth:
            default: int | bool = truth == "true"
        case number:
            default = int(number)
    return plain if default == plain.absent else Field(name, kind, since, tag, default=default, nullable=nullable)


def _by_tag(fields: tuple[Field, ...]) -> tuple[tuple[Field, ...], list[Field]]:
    """Written fields in order, and tagged ones by tag, whose order of declaration means nothing."""
    every = 1 << 15
    return written(fields, every), list(tagged(fields, every).values())


@pytest.mark.shared
@pytest.mark.parametrize("message", METADATA_RECORDS.values(), ids=lambda message: message.name)
def test_a_metadata_record_has_kafkas_layout(shared: Path, message: Message) -> None:
    layout = _layouts(shared, "metadata-3.9", "later-than-3.9")[message.name]
    assert (message.number, message.highest) == (layout["apiKey"], int(layout["validVersions"].split("-")[-1]))
    assert _by_tag(message.fields) == _by_tag(tuple(_field(layout, each) for each in layout["fields"]))


@pytest.mark.shared
@pytest.mark.parametrize("message", CONTROL_RECORDS.values(), ids=lambda message: message.name)
def test_a_control_record_has_kafkas_layout(shared: Path, message: Message) -> None:
    layout = _layouts(shared, "raft-control-3.9")[message.name]
    assert message.highest == int(layout["validVersions"].split("-")[-1])
    assert _by_tag(message.fields) == _by_tag(tuple(_field(layout, each) for each in layout["fields"]))


@pytest.mark.shared
def test_no_layout_is_left_out(shared: Path) -> None:
    layouts = _layouts(shared, "metadata-3.9", "later-than-3.9", "raft-control-3.9")
    tables = (*METADATA_RECORDS.values(), *CONTROL_RECORDS.values())
    assert {message.name for message in tables} == set(layouts) - NOT_OURS


def test_a_field_that_is_absent_has_the_default_of_its_type() -> None:
    inner = Struct((Field("port", Type.UINT16), Field("rack", Type.STRING, default=None, nullable=True)))
    assert Field("it", Type.UUID).absent == bytes(16)
    assert Field("it", Array(Type.STRING)).absent == ()
    assert Field("it", Type.INT32, default=-1).absent == -1
    assert Field("it", inner).absent == {"port": 0, "rack": None}


def test_tagged_fields_come_by_tag_and_not_among_the_written_ones() -> None:
    fields = (Field("b", Type.INT8, tag=2), Field("a", Type.INT8), Field("c", Type.INT8, since=1, tag=1))
    assert [field.name for field in written(fields, 1)] == ["a"]
    assert list(tagged(fields, 1)) == [1, 2]
    assert list(tagged(fields, 0)) == [2]
