"""The field tables against Kafka's own message layouts, field by field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.protocol import CONTROL_RECORDS, METADATA_RECORDS, Array, Field, Kind, Message, Struct
from reconciler.protocol.schema import dict_struct

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


def _kind(layout: dict[str, Any], field: dict[str, Any]) -> Any:
    text = field["type"]
    if text.startswith("[]"):
        return [_kind(layout, {**field, "type": text[2:]})]
    common = {struct["name"]: struct["fields"] for struct in layout.get("commonStructs", [])}
    inner = field.get("fields") or common.get(text)
    return text if inner is None else _by_tag([_field(layout, each) for each in inner])


def _field(layout: dict[str, Any], field: dict[str, Any]) -> tuple[Any, ...]:
    """Name, kind, first version, tag, default (... for the empty value of the kind), and whether it may be null."""
    name = field["name"][0].lower() + field["name"][1:]
    first = int(re.match(r"\d+", field["versions"])[0])  # type: ignore[index]
    default = {"null": None, "true": True, "false": False}.get(field.get("default", "..."), field.get("default", ...))
    default = int(default) if isinstance(default, str) else default
    is_empty = default in (0, False) and default is not None
    tag = int(field["tag"]) if "tag" in field else None
    return name, _kind(layout, field), first, tag, ... if is_empty else default, "nullableVersions" in field


def _our_kind(kind: Kind) -> Any:
    if isinstance(kind, Array):
        return [_our_kind(kind.item)]
    return _by_tag(list(map(_our_field, kind.fields))) if isinstance(kind, Struct) else kind


def _our_field(field: Field) -> tuple[Any, ...]:
    default = ... if field.default == Field("", field.kind).default else field.default
    return field.name, _our_kind(field.kind), field.first, field.tag, default, field.nullable


def _by_tag(fields: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Written fields in order, then tagged ones by tag, whose order of declaration means nothing."""
    return sorted(fields, key=lambda field: -1 if field[3] is None else field[3])


@pytest.mark.shared
@pytest.mark.parametrize("message", METADATA_RECORDS.values(), ids=lambda message: message.name)
def test_a_metadata_record_has_kafkas_layout(shared: Path, message: Message) -> None:
    layout = _layouts(shared, "metadata-3.9", "later-than-3.9")[message.name]
    assert (message.key, message.versions[-1]) == (layout["apiKey"], int(layout["validVersions"].split("-")[-1]))
    assert _our_kind(message.body) == _by_tag([_field(layout, each) for each in layout["fields"]])


@pytest.mark.shared
@pytest.mark.parametrize("message", CONTROL_RECORDS.values(), ids=lambda message: message.name)
def test_a_control_record_has_kafkas_layout(shared: Path, message: Message) -> None:
    layout = _layouts(shared, "raft-control-3.9")[message.name]
    assert message.versions[-1] == int(layout["validVersions"].split("-")[-1])
    assert _our_kind(message.body) == _by_tag([_field(layout, each) for each in layout["fields"]])


@pytest.mark.shared
def test_no_layout_is_left_out(shared: Path) -> None:
    layouts = _layouts(shared, "metadata-3.9", "later-than-3.9", "raft-control-3.9")
    tables = (*METADATA_RECORDS.values(), *CONTROL_RECORDS.values())
    assert {message.name for message in tables} == set(layouts) - NOT_OURS


def test_a_field_that_is_not_written_has_the_empty_value_of_its_kind() -> None:
    inner = dict_struct("inner", Field("port", "uint16"), Field("rack", "string", default=None, nullable=True))
    assert Field("it", "uuid").default == bytes(16)
    assert Field("it", Array("string")).default == ()
    assert Field("it", "int32", default=-1).default == -1
    assert Field("it", inner).default == {"port": 0, "rack": None}
