"""The proposal's own forms: the fields that KIP-516 draws, in the order in which it draws them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.protocol.proposals import LEADER_AND_ISR, LEADER_AND_ISR_RESPONSE, STOP_REPLICA, STOP_REPLICA_RESPONSE
from reconciler.protocol.schema import Array, Message, Struct

DRAWN = {
    "LeaderAndIsr Request (Version: 5)": LEADER_AND_ISR,
    "LeaderAndIsr Response (Version: 5)": LEADER_AND_ISR_RESPONSE,
    "StopReplica Request (Version: 2)": STOP_REPLICA,
    "StopReplica Response (Version: 2)": STOP_REPLICA_RESPONSE,
}


def drawn_names(text: str, title: str) -> list[str]:
    """The fields of one message, as the drawing lists them line by line; ``*`` marks what is tagged."""
    drawing = text[text.index(title) :].split("\n\n", maxsplit=1)[0].splitlines()[1:]
    lines = (re.match(r"\s+(\w+\*?) => ", line) for line in drawing)
    return [line[1] for line in lines if line]


def our_names(table: Struct) -> list[str]:
    names = []
    for field in table.fields:
        names.append(field.name + "*" * (field.tag is not None))
        if isinstance(field.kind, Array) and isinstance(field.kind.item, Struct):
            names += our_names(field.kind.item)
    return names


@pytest.mark.shared
@pytest.mark.parametrize("title", DRAWN)
def test_the_fields_are_those_of_the_drawing(shared: Path, title: str) -> None:
    # KIP516-4, KIP516-7
    text = (shared / "proposals" / "kip-516-topic-ids.txt").read_text(encoding="utf-8")
    message: Message = DRAWN[title]
    ours = our_names(message.body)
    # The drawing of the answer to LeaderAndIsr names its list and no topic: "the topic name field has been removed".
    drawn = drawn_names(text, title)
    # Its request names the topic and its states on one line before they are explained, so nothing is doubled there.
    assert [each for each in ours if each != "partition_states" or each in drawn] == drawn
