"""``<20 digits>.index``: the offset index of a segment, which leads from an offset to a position in the ``.log``.

::

    00000000 00000000       two int32: the offset less the base offset of the segment, the position in bytes
    00000032 00001000       for every few KiB of records one entry; both numbers grow
    00000000 00000000 …     preallocated

While a segment is written to, its index is preallocated to ``segment.index.bytes`` (10 MiB) of zeros. They are cut when
the segment is rolled or the broker stops. A broker rebuilds it with the recovery of the segment alone.
Source: FACTS §2.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from layout.errors import DamagedFileError
from layout.segment_files.entries import unpack_entries, without_preallocated

_FILE = "offset index"
_ENTRY = Struct(">ii")


class OffsetIndexEntry(NamedTuple):
    """An offset, and the position in the segment, in bytes, where the batch that ends with it begins."""

    offset: int
    position: int


@dataclass(frozen=True, slots=True)
class OffsetIndex:
    """What an offset index holds.

    Attributes:
        entries: in the order of offsets.
        preallocated: bytes of zeros behind the entries; 0: the segment was rolled, or the broker stopped.
    """

    entries: tuple[OffsetIndexEntry, ...]
    preallocated: int


def parse_offset_index(data: bytes, base_offset: int) -> OffsetIndex:
    """Read an offset index.

    Args:
        data: the whole file.
        base_offset: of the segment; it stands in the file's name.

    Raises:
        DamagedFileError: the size is no multiple of 8, or an entry does not lie behind the one before it.
    """
    written = data if len(data) % _ENTRY.size else without_preallocated(data, _ENTRY.size)
    entries: list[OffsetIndexEntry] = []
    last_offset = last_position = -1
    for relative, position in unpack_entries(written, _ENTRY, _FILE):
        if relative <= last_offset or position <= last_position:
            raise DamagedFileError(
                _FILE,
                f"entry {len(entries)} has offset {base_offset + relative} at position {position}, "
                "which is not behind the entry before it",
            )
        entries.append(OffsetIndexEntry(base_offset + relative, position))
        last_offset, last_position = relative, position
    return OffsetIndex(tuple(entries), len(data) - len(written))
