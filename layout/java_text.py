"""Read text as Java does where Python differs: numbers, lines, and splits.

The formats of a log dir are what Java's own classes accept, so their leniencies are part of the formats: ``+1``,
leading zeros and digits of any script are numbers; VT, FF and NEL end no line; a split drops empty parts at its end and
keeps empty parts at its start. Source: FACTS §11.
"""

from __future__ import annotations

import re

from layout.errors import NumberFormatError, excerpt

# Java reads UTF-16 units, so digits above U+FFFF, which take two units, are no digits to it.
_INTEGER = re.compile(r"[+-]?(?:(?![\U00010000-\U0010ffff])\d)+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_LONGEST_INT64 = 19


def parse_java_int(text: str, bits: int = 32) -> int:
    """Read a decimal integer as Java's ``parseInt`` (32 bits) or ``parseLong`` (64 bits) does.

    An optional ``+`` or ``-``, then one or more decimal digits of any script of the Basic Multilingual Plane. No
    spaces, no ``_``, and the value must fit the signed width.

    The digits are of any length: the work is linear in it.

    Raises:
        NumberFormatError: any other text, or a value out of range.
    """
    if not _INTEGER.fullmatch(text):
        raise NumberFormatError(f"{excerpt(text)} is no integer")
    digits = text.lstrip("+-")
    if len(digits) > _LONGEST_INT64:
        # Any number of leading zeros is legal, and int() refuses a text of thousands of digits.
        digits = "".join(str(int(digit)) for digit in digits).lstrip("0") or "0"
    limit = 1 << (bits - 1)
    value = int(digits) if len(digits) <= _LONGEST_INT64 else limit + 1
    if text.startswith("-"):
        value = -value
    if not -limit <= value < limit:
        raise NumberFormatError(f"{excerpt(text)} does not fit {bits} bits")
    return value


def java_lines(text: str) -> list[str]:
    """Split into lines at LF, CR or CRLF and nothing else; a final line end opens no further line."""
    lines = _LINE_END.split(text)
    if not lines[-1]:
        lines.pop()
    return lines


def java_split(pattern: re.Pattern[str], text: str) -> list[str]:
    """Split at a regular expression as Java does: drop empty parts at the end, and keep them at the start.

    Args:
        pattern: matches at least one character, and has no groups.
        text: is split; without a match it comes back whole, even when it is empty.
    """
    parts = pattern.split(text)
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts
