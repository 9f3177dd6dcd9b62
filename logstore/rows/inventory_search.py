"""Finds the inventories that an argument stands for: a folder of a store, a pattern, or a list in a file.

- ``@FILE`` is a manifest: one path, URI or pattern in a line, taken as if each was given itself, relative to the
  current directory; empty lines and lines that begin with ``#`` are passed over. A path that begins with ``@`` is
  written ``./@…``.
- A URI is a file, a folder (all inventories at any depth below it) or a pattern with ``*``, ``[…]`` and ``**``, where
  ``?`` begins the query. A ``file`` URI is a path.
- A path that is not there and has ``*``, ``?`` or ``[`` is a pattern, as in a shell.

In a folder, files count whose name ends in ``.parquet`` or ``.arrow``, unless a part of it below the folder begins with
``_`` or ``.``, as Spark and Arrow have it. Files come sorted by name, so that the order is the same in every run.
"""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from urllib.parse import unquote

from logstore.errors import InventoryError
from logstore.rows.uris import is_uri, join_uri, list_uri, path_of_uri

SUFFIXES = (".parquet", ".arrow")
_WILD = frozenset("*[")


def expand(given: str) -> list[str]:
    """Return the paths and the URIs of files that a text stands for; a path stands for itself, whatever lies there.

    Raises:
        InventoryError: a manifest cannot be read or names nothing, or there is no inventory at a URI.
        InventoryStoreError: a store cannot be reached, or refuses.
    """
    if given.startswith("@"):
        return [each for line in _lines(given[1:]) for each in _found(line)]
    return _found(given)


def inventories_below(folder: str) -> list[str]:
    """List the inventories at any depth below a folder of this machine, sorted, along no link."""
    found = [
        os.path.relpath(os.path.join(path, name), folder)
        for path, _, names in os.walk(folder)
        for name in names
        if name.endswith(SUFFIXES)
    ]
    return [os.path.join(folder, name) for name in sorted(found) if _counts(name)]


def _lines(manifest: str) -> list[str]:
    try:
        with open(manifest, encoding="utf-8-sig", errors="surrogateescape") as file:
            lines = [line for line in map(str.strip, file) if line and not line.startswith("#")]
    except OSError as error:
        raise InventoryError(
            f"@{manifest} stands for a list of inventories, and {manifest} cannot be read: {error.strerror}; a path "
            "that begins with @ is written ./@…"
        ) from error
    if any("\0" in line for line in lines):
        raise InventoryError(f"@{manifest} is no list of inventories but other data: an inventory is given without @")
    nested = next((line for line in lines if line.startswith("@")), None)
    if nested is not None or not lines:
        why = "names no path" if nested is None else f"names another list, {nested}"
        raise InventoryError(f"@{manifest} {why}: write a path or a URI of inventories in each line")
    return lines


def _found(given: str) -> list[str]:
    if not is_uri(given):
        return _matches(given)
    path = path_of_uri(given)
    return _at_uri(given) if path is None else _matches(path)


def _matches(path: str) -> list[str]:
    if os.path.lexists(path) or not glob.has_magic(path):
        return [path]
    return sorted(glob.glob(path, recursive=True)) or [path]


def _at_uri(uri: str) -> list[str]:
    """List the files at a URI, at and below its folder, or at its pattern."""
    address, mark, query = uri.partition("?")
    scheme, _, parts = address.partition("://")
    bucket, *below = parts.split("/")
    plain = next((number for number, part in enumerate(below) if _WILD & set(part)), len(below))
    pattern = [unquote(part) for part in below[plain:] if part]
    folder = f"{scheme}://{'/'.join([bucket, *below[:plain]])}{'/' if pattern else ''}{mark}{query}"
    listed = list_uri(folder) or []
    if not pattern and [each.uri for each in listed] == [uri]:
        return [uri]
    found = [each.uri for each in listed if _fits(pattern, each.name.split("/")) and _counts(each.name)]
    if found:
        return found
    wrong = "matches no inventory" if pattern else "holds no inventory"
    others = f"; {len(listed):,} files lie at {folder.partition('?')[0]}" if pattern and listed else ""
    raise InventoryError(
        f"{uri} {wrong} (a file whose name ends in .parquet or .arrow){others}: check it, or write inventories there "
        f"with 'logstore scan' and this option: -o {shlex.quote(join_uri(folder, ''))}"
    )


def _fits(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a name matches a pattern, or lies below a folder that matches."""
    if not pattern:
        return True
    first, *rest = pattern
    if first == "**":
        return any(_fits(rest, names[skipped:]) for skipped in range(len(names)))
    return bool(names) and fnmatchcase(names[0], first) and _fits(rest, names[1:])


def _counts(name: str) -> bool:
    return name.endswith(SUFFIXES) and not any(part.startswith(("_", ".")) for part in name.split("/"))
