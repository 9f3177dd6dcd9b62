"""The tables of the shipped messages against upstream's own layouts, field by field (FACTS §5.1, §5.3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.protocol.schema import Array, Message, Struct
from reconciler.protocol.tables import LEADER_AND_ISR, LEADER_AND_ISR_RESPONSE, STOP_REPLICA, STOP_REPLICA_RESPONSE

MESSAGES = {
    "LeaderAndIsrRequest": LEADER_AND_ISR,
    "LeaderAndIsrResponse": LEADER_AND_ISR_RESPONSE,
    "StopReplicaRequest": STOP_REPLICA,
    "StopReplicaResponse": STOP_REPLICA_RESPONSE,
}


def of_version(fields: list[dict[str, Any]], structs: dict[str, Any], version: int) -> list[Any]:
    """Name and kind of the fields that a version has, by upstream's layout."""
    found = []
    for field in fields:
        first, _, last = field["versions"].partition("-")
        low = int(first.rstrip("+"))
        high = 99 if first.endswith("+") else int(last or low)
        if low <= version <= high:
            inner = field.get("fields") or structs.get(field["type"].removeprefix("[]"))
            kind = of_version(inner, structs, version) if inner else field["type"]
            found.append((field["name"][0].lower() + field["name"][1:], kind))
    return found


def ours(table: Struct, version: int) -> list[Any]:
    """The same, by our table."""
    return [
        (field.name, _kind(field.kind.item, version, "[]") if isinstance(field.kind, Array) else field.kind)
        for field in table.fields
        if field.first <= version <= field.last
    ]


def _kind(item: Struct | str, version: int, prefix: str) -> Any:
    return ours(item, version) if isinstance(item, Struct) else prefix + item


@pytest.mark.shared
@pytest.mark.parametrize("name", MESSAGES)
def test_every_version_has_upstream_s_fields_in_upstream_s_order(shared: Path, name: str) -> None:
    # KIP516-4, KIP516-7: the shipped forms
    text = (shared / "kafka" / "schemas" / "rpc-3.9" / f"{name}.json").read_text(encoding="utf-8")
    layout = json.loads(text)
    message: Message = MESSAGES[name]
    low, _, high = layout["validVersions"].partition("-")
    assert message.versions == range(int(low), int(high) + 1)
    assert layout["flexibleVersions"] == f"{message.flexible}+"
    assert layout["apiKey"] == message.key
    structs = {each["name"]: each["fields"] for each in layout.get("commonStructs", ())}
    for version in message.versions:
        assert ours(message.body, version) == of_version(layout["fields"], structs, version)


def test_a_value_of_ours_gives_as_many_fields_as_its_table_has() -> None:
    def check(table: Struct) -> None:
        for field in table.fields:
            assert isinstance(field.kind, Array | str)
            if isinstance(field.kind, Array) and isinstance(field.kind.item, Struct):
                check(field.kind.item)

    for message in MESSAGES.values():
        check(message.body)
        empty = message.body.make(*(field.default for field in message.body.fields))
        assert len(message.body.take(empty)) == len(message.body.fields)
