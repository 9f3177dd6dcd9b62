"""What is left of a damaged offset checkpoint: every line that obeys the rules, and the rest, told line by line.

A broker writes one line for each entry, each with its line end. Damage leaves zeros, halves of lines, a count that no
longer fits, or bytes of another file; the lines between are whole. What is lost does no harm: without an entry a broker
recovers a log from its beginning, takes its first segment for the log start, and learns the high watermark anew
(FACTS §2.4). A half line could give a wrong offset, so a last line without its line end does not count.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from layout import checkpoint
from layout.errors import NumberFormatError
from layout.java_text import parse_java_int

_LINE_END = re.compile(rb"\r\n|\r|\n")
_ENTRY = re.compile(r"([^\s]+) ([+-]?[0-9]+) ([+-]?[0-9]+)")
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What a damaged file still says.

    Attributes:
        entries: (topic, partition) → offset, in the order of the file.
        lost: the lines that do not count, as escapes, each cut to a length that can be shown.
        version: that the file claims; None: none that can be read. One other than 0 is another format, not damage.
    """

    entries: dict[tuple[str, int], int]
    lost: tuple[str, ...]
    version: int | None


def salvage(data: bytes) -> Salvaged:
    """Read what can be read. Never raises."""
    lines = _LINE_END.split(data)
    cut = lines.pop()
    entries: dict[tuple[str, int], int] = {}
    lost: list[str] = []
    for number, line in enumerate(lines):
        entry = _entry(line)
        if entry is not None:
            entries[entry[0], entry[1]] = entry[2]
        elif number > 1 or _integer(line) is None:
            lost.append(_shown(line))
    if cut:
        lost.append(_shown(cut))
    return Salvaged(entries, tuple(lost), _integer(lines[0]) if lines else None)


def rebuilt(data: bytes, dropped: Collection[tuple[str, int]]) -> bytes:
    """A file of what can be read, without some entries: what a repair writes in place of a damaged one."""
    return _without(salvage(data).entries, dropped)


def pruned(data: bytes, file: str, dropped: Collection[tuple[str, int]]) -> bytes:
    """A sound file without some entries.

    Raises:
        DamagedFileError: it is not sound.
    """
    return _without(checkpoint.parse_offsets(data, file), dropped)


def _without(entries: dict[tuple[str, int], int], dropped: Collection[tuple[str, int]]) -> bytes:
    return checkpoint.encode_offsets({key: offset for key, offset in entries.items() if key not in dropped})


def _entry(line: bytes) -> tuple[str, int, int] | None:
    try:
        text = line.decode("utf-8")
        match = _ENTRY.fullmatch(text)
        if match is None or not text.isprintable():
            return None
        partition, offset = parse_java_int(match[2]), parse_java_int(match[3], 64)
    except (UnicodeDecodeError, NumberFormatError):
        return None
    return (match[1], partition, offset) if partition >= 0 and offset >= 0 else None


def _integer(line: bytes) -> int | None:
    try:
        return parse_java_int(line.decode("ascii"))
    except (UnicodeDecodeError, NumberFormatError):
        return None


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
