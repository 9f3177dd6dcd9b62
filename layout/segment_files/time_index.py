"""``<20 digits>.timeindex``: the time index of a segment, which leads from a timestamp to an offset.

::

    0000018bcfe56800 00000000       int64: a timestamp in ms; int32: the offset of its record less the base offset
    0000018bcfe569f4 00000032       timestamps grow, offsets do not fall
    0000000000000000 00000000 …     preallocated

It is preallocated, cut and rebuilt as the offset index is. Source: FACTS §2.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from layout.errors import DamagedFileError
from layout.segment_files.entries import unpack_entries, without_preallocated

_FILE = "time index"
_ENTRY = Struct(">qi")


class TimeIndexEntry(NamedTuple):
    """The greatest timestamp so far, in ms since 1970, and the offset of the record that has it."""

    timestamp_ms: int
    offset: int


@dataclass(frozen=True, slots=True)
class TimeIndex:
    """What a time index holds.

    Attributes:
        entries: in the order of timestamps.
        preallocated: bytes of zeros behind the entries; 0: the segment was rolled, or the broker stopped.
    """

    entries: tuple[TimeIndexEntry, ...]
    preallocated: int


def parse_time_index(data: bytes, base_offset: int) -> TimeIndex:
    """Read a time index.

    Args:
        data: the whole file.
        base_offset: of the segment; it stands in the file's name.

    Raises:
        DamagedFileError: the size is no multiple of 12, a timestamp does not grow, or an offset falls.
    """
    written = data if len(data) % _ENTRY.size else without_preallocated(data, _ENTRY.size)
    entries: list[TimeIndexEntry] = []
    last_timestamp, last_offset = -1, 0
    for timestamp, relative in unpack_entries(written, _ENTRY, _FILE):
        if timestamp <= last_timestamp or relative < last_offset:
            raise DamagedFileError(
                _FILE,
                f"entry {len(entries)} has timestamp {timestamp} at offset {base_offset + relative}, "
                "which is not behind the entry before it",
            )
        entries.append(TimeIndexEntry(timestamp, base_offset + relative))
        last_timestamp, last_offset = timestamp, relative
    return TimeIndex(tuple(entries), len(data) - len(written))
