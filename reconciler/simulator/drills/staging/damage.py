"""Damages one durable line of a ledger, and says by the other lines what that costs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from layout.ours import LedgerEvent
from layout.scheme import LEDGER_FILE
from logstore.fs import Directory, Disk

_CHECKSUM: Final = 9
"""Bytes before the text of a line."""

EVENTS: Final[dict[str, LedgerEvent]] = {event.value: event for event in LedgerEvent}


class Said(NamedTuple):
    """What the lines that can be read say of one directory.

    Attributes:
        event: of the newest.
        in_doubt: none of them is behind the damaged one.
        has_record: the one with its record is among them.
    """

    event: LedgerEvent
    in_doubt: bool
    has_record: bool


class Damaged(NamedTuple):
    """A damaged line.

    Attributes:
        number: of the line in its file.
        said: name of a directory → what is said of it without that line.
    """

    number: int
    said: dict[str, Said]


def damage_line(disk: Disk, folder: Directory, random: Random) -> Damaged | None:
    """Change one byte of a line about a directory, which a mark says to be durable; None: there is no such line."""
    pieces = Path(folder.path, LEDGER_FILE).read_bytes().rstrip(b"\0").split(b"\n")
    values = [_values(each) for each in pieces]
    durable = max((value[1] for value in values if value[0] == "mark"), default=0)
    ends = [sum(len(each) + 1 for each in pieces[: place + 1]) for place in range(len(pieces))]
    lines = [place for place, value in enumerate(values) if value[0] in EVENTS and ends[place] <= durable]
    if not lines:
        return None
    place = random.choice(lines)
    offset = random.randint(_CHECKSUM, len(pieces[place]) - 1)
    descriptor = disk.open_to_change(folder.descriptor, LEDGER_FILE)
    try:
        os.lseek(descriptor, ends[place] - 1 - len(pieces[place]) + offset, os.SEEK_SET)
        disk.write(descriptor, bytes([pieces[place][offset] ^ 1]))
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
    return Damaged(place + 1, _without(values, place))


def _values(line: bytes) -> list[Any]:
    """Give the values of a line; nothing of what a full disk has cut off, and of an empty one."""
    try:
        values = json.loads(line[_CHECKSUM:])
    except ValueError:
        values = []
    return values if isinstance(values, list) and values else [""]


def _without(values: list[list[Any]], damaged: int) -> dict[str, Said]:
    said = dict[str, Said]()
    for place, (kind, *rest) in enumerate(values):
        if kind in EVENTS and place != damaged:
            event, before = EVENTS[kind], said.get(rest[0])
            has_record = event is LedgerEvent.STAGED or (before is not None and before.has_record)
            means = LedgerEvent.STAGED if event is LedgerEvent.KEPT else event
            said[rest[0]] = Said(means, place < damaged, has_record)
    return said
