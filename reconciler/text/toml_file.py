"""A TOML file that somebody wrote by hand: what it says, and in which line each key stands. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.errors import UsageError

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]")


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A parsed file; its place is named as it was given."""

    path: str
    text: str
    document: Mapping[str, Any]

    @classmethod
    def parse(cls, path: str, data: bytes) -> TomlFile:
        """Parse the bytes of a file.

        Raises:
            UsageError: they are no TOML; the message has file and line.
        """
        try:
            text = data.decode()
            return cls(path, text, tomllib.loads(text))
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise UsageError(f"{path}:{line}: this is no UTF-8, as TOML is") from error
        except tomllib.TOMLDecodeError as error:
            match = re.search(r"^(.*) \(at line (\d+), column \d+\)$", str(error))
            what, place = (match[1], match[2]) if match else (str(error), str(text.count("\n") + 1))
            raise UsageError(f"{path}:{place}: this is no TOML: {what}") from error

    def place(self, key: str, table: str = "", number: int = 1) -> str:
        """Return ``FILE:LINE`` of a key, to begin a message with; where it hides, of its table, else of the top.

        Args:
            key: its name; empty: the header of the table.
            table: in which the key stands; empty: at the top.
            number: which of the tables of this name, from 1.
        """
        inside, seen, best = "", 0, 1
        for line, text in enumerate(self.text.splitlines(), 1):
            header = _HEADER.match(text)
            if header:
                inside = ".".join(each.strip("\"' ") for each in header[2].split("."))
                seen += bool(table) and inside == table
                if (not table and inside.split(".")[0] == key) or (not key and inside == table and seen == number):
                    return f"{self.path}:{line}"
                if inside == table and seen == number:
                    best = line
            elif inside == table and seen in (0, number) and _begins(text, key):
                return f"{self.path}:{line}"
            elif table and not inside and _begins(text, table):
                best = line
        return f"{self.path}:{best}"


def _begins(line: str, key: str) -> bool:
    return re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line) is not None
