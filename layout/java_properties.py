"""The syntax of ``java.util.Properties``: keys, separators, escapes, comments and continued lines.

The keys and their meaning belong to the module of each file. Kafka writes these files in UTF-8 and reads them in
ISO-8859-1, so text beyond ASCII does not survive a round trip; this module does the same, because a broker and this
package must read the same value. Source: FACTS §2.2, §11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from layout.errors import BrokerEffect, DamagedFileError, excerpt
from layout.java_text import java_lines

_WHITE = " \t\f"
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_LETTER_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN_ESCAPES = str.maketrans(
    {
        "\\": r"\\",
        "\t": r"\t",
        "\n": r"\n",
        "\r": r"\r",
        "\f": r"\f",
        "=": r"\=",
        ":": r"\:",
        "#": r"\#",
        "!": r"\!",
    }
)


def parse(data: bytes, file: str, effect: BrokerEffect = BrokerEffect.NONE) -> dict[str, str]:
    r"""Read properties; of several values for one key, the last counts.

    Args:
        data: the whole file, ISO-8859-1 as Java reads it, so any byte is a character.
        file: name of the format, for the error.
        effect: what a real broker does with a file that does not parse.

    Raises:
        DamagedFileError: a ``\u`` is not followed by four hexadecimal digits; the syntax forbids nothing else.
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(data.decode("iso-8859-1")):
        entry = _ENTRY.fullmatch(line)
        assert entry is not None, "every text is a key, a separator that may be empty, and a value"
        try:
            properties[_unescape(entry[1])] = _unescape(entry[2])
        except ValueError as error:
            raise DamagedFileError(file, f"{error} in {excerpt(line)}", effect) from error
    return properties


def encode(properties: Mapping[str, str], comment: str = "") -> bytes:
    r"""Write properties as Java's ``store`` does: the comment's lines after ``#``, then a line for each key, in order.

    The text is UTF-8 without ``\u`` escapes. Every line ends with LF.
    """
    lines = ["#" + line for line in java_lines(comment) or [""]]
    for key, value in properties.items():
        escaped_key = key.translate(_WRITTEN_ESCAPES).replace(" ", r"\ ")
        escaped_value = value.translate(_WRITTEN_ESCAPES)
        if escaped_value.startswith(" "):
            escaped_value = "\\" + escaped_value
        lines.append(f"{escaped_key}={escaped_value}")
    return "".join(line + "\n" for line in lines).encode("utf-8", "replace")


def _logical_lines(text: str) -> Iterator[str]:
    """Join lines that end in an odd number of backslashes with the next one; leave out comments and blank lines.

    A line that continues another is never a comment, and a blank line ends the continuation. A last line that is only a
    backslash gives no entry here, and an entry with an empty key in Java.
    """
    pending = ""
    for line in java_lines(text):
        body = line.lstrip(_WHITE)
        if not pending and (not body or body[0] in "#!"):
            continue
        if (len(body) - len(body.rstrip("\\"))) % 2:
            pending += body[:-1]
            continue
        yield pending + body
        pending = ""
    if pending:
        yield pending


def _unescape(text: str) -> str:
    r"""Resolve escapes. The halves of a surrogate pair are joined; a single half has no UTF-8 form: U+FFFD."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_resolve, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _resolve(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    letter: str = escape[2]
    if letter == "u":
        raise ValueError("malformed \\u escape")
    return _LETTER_ESCAPES.get(letter, letter)
