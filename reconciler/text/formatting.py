"""Format numbers, times and names for people: bytes, counts, ages, and text that may hold anything.

The command line and the reports use these functions, so that all of them format alike.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

NOTHING = "–"
"""Stands for an unknown number."""

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_AGES = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_UNSAFE_SURROGATES = re.compile("[\udc80-\udcff]")


def size(number_of_bytes: int | None) -> str:
    """Format bytes in powers of 1000, as disks are sold: ``1.9 TB``, ``43 B``."""
    if number_of_bytes is None:
        return NOTHING
    value, unit = float(number_of_bytes), 0
    while round(abs(value), 1 if abs(value) < 9.95 else 0) >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and abs(value) < 9.95 else f"{value:.0f} {_UNITS[unit]}"


def count(number: int, one: str = "", many: str = "") -> str:
    """Format a number with thousands separators and its noun: ``1 log dir``, ``12,000 log dirs``."""
    noun = one if number == 1 else many or f"{one}s"
    return f"{number:,} {noun}" if one else f"{number:,}"


def age(milliseconds: int | None) -> str:
    """Format a span in the largest unit of which it has two: ``90 min``, ``3 d``; a negative span is in the future.

    A past span counts whole units, as ages do. A future one is rounded, so that a delay of 7 d is not 6 d at once.
    """
    if milliseconds is None:
        return NOTHING
    if milliseconds < 0:
        half = next((length for length, _ in _AGES if -milliseconds >= 2 * length), 1000) // 2
        return f"in {age(-milliseconds + half)}"
    for length, unit in _AGES:
        if milliseconds >= 2 * length:
            return f"{milliseconds // length:,} {unit}"
    return f"{milliseconds // 1000} s"


def moment(ms: int | None) -> str:
    """Format a time in ms since 1970 as a date in UTC; a time that no calendar has stays a number."""
    if ms is None:
        return NOTHING
    try:
        return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms since 1970"


def listed(names: Sequence[str], most: int = 5) -> str:
    """List at most ``most`` names for a sentence: ``a, b and 3 more``."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def visible(text: str) -> str:
    r"""Escape every character that does not print, so that no name can steer a terminal: ``\x1b[2J``.

    Bytes that are not UTF-8, which Python carries as surrogates, become ``\xNN``.
    """
    if text.isprintable():
        return text
    bytes_shown = _UNSAFE_SURROGATES.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", text)
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in bytes_shown
    )


FORMULA_STARTS = "=+@＝＋＠－-"
"""First characters by which a spreadsheet knows a formula, the wide ones of East Asian keyboards too; tab and carriage
return do not print, and are escaped."""


def csv_cell(text: str) -> str:
    """Escape what does not print, and put a ``'`` before text that a spreadsheet would run as a formula."""
    shown = visible(text)
    return f"'{shown}" if shown.startswith(tuple(FORMULA_STARTS)) else shown


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Write rows as CSV with a header row; text as :func:`csv_cell` has it, and numbers as they are."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: csv_cell(value) if isinstance(value, str) else value for name, value in row.items()})
    return text.getvalue()


def quoted(text: str) -> str:
    r"""Quote one word of a command for bash, where that is needed; a word that does not print becomes ``$'\x1b'``."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = visible(text.replace("\\", "\\\\")).replace("'", "\\'")
    return f"$'{escaped}'"
