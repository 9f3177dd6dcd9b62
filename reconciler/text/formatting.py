"""How numbers, times and names read to a person: bytes, counts, ages, and text that may hold anything.

Used by the command line and by the reports, so that all of them say the same thing the same way. What is measured, and
which figures are shown, is left to them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime

NOTHING = "–"
"""Stands for a figure that is not known."""

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_AGES = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_UNSAFE_SURROGATES = re.compile("[\udc80-\udcff]")


def size(number_of_bytes: int | None) -> str:
    """Bytes in powers of 1000, as disks are sold: ``1.9 TB``, ``43 B``."""
    if number_of_bytes is None:
        return NOTHING
    value, unit = float(number_of_bytes), 0
    while round(abs(value), 1 if abs(value) < 9.95 else 0) >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and abs(value) < 9.95 else f"{value:.0f} {_UNITS[unit]}"


def count(number: int, one: str = "", many: str = "") -> str:
    """A number with its thousands apart, and what is counted: ``1 log dir``, ``12,000 log dirs``."""
    noun = one if number == 1 else many or f"{one}s"
    return f"{number:,} {noun}" if one else f"{number:,}"


def age(milliseconds: int | None) -> str:
    """A span in the largest unit of which it has two: ``90 min``, ``3 d``; a span that is negative lies ahead."""
    if milliseconds is None:
        return NOTHING
    if milliseconds < 0:
        return f"in {age(-milliseconds)}"
    for length, unit in _AGES:
        if milliseconds >= 2 * length:
            return f"{milliseconds // length:,} {unit}"
    return f"{milliseconds // 1000} s"


def moment(ms: int | None) -> str:
    """A time in ms since 1970 as a date in UTC; one that no calendar has stays a number."""
    if ms is None:
        return NOTHING
    try:
        return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms since 1970"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names in a sentence, no more than so many: ``a, b and 3 more``."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def visible(text: str) -> str:
    r"""The text with everything that does not print as an escape, so that no name can steer a terminal: ``\x1b[2J``.

    Bytes that are not UTF-8, which Python carries as surrogates, stand as ``\xNN``.
    """
    if text.isprintable():
        return text
    bytes_shown = _UNSAFE_SURROGATES.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", text)
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in bytes_shown
    )


def quoted(text: str) -> str:
    r"""One word of a command for bash: plain where that is safe, else quoted; what does not print as ``$'\x1b'``."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = visible(text.replace("\\", "\\\\")).replace("'", "\\'")
    return f"$'{escaped}'"
