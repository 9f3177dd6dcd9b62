"""Entries of one size after another, as the indexes of a segment have them, and the zeros that follow them."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any

from layout.errors import DamagedFileError


def unpack_entries(data: bytes, entry: Struct, file: str) -> Iterator[tuple[Any, ...]]:
    """Unpack entry after entry.

    Raises:
        DamagedFileError: the size is no multiple of an entry's.
    """
    if len(data) % entry.size:
        raise DamagedFileError(file, f"{len(data)} bytes are no multiple of {entry.size}, the size of an entry")
    return entry.iter_unpack(data)


def without_preallocated(data: bytes, entry_size: int) -> bytes:
    """Cut the entries of zeros alone at the end: what is preallocated, and not yet written.

    A first entry may be of zeros too. Where nothing follows it, it looks like preallocated space, and says no more than
    the name of the file: the segment begins at its base offset.
    """
    written = len(data.rstrip(b"\0"))
    return data[: written + -written % entry_size] if written else b""
