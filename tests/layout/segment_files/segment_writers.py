"""The binary files beside a segment, as a broker writes them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from layout.segment_files import AbortedTransaction, OffsetIndexEntry, ProducerState, TimeIndexEntry
from logstore.fs import crc32c_of


def offset_index(entries: Iterable[OffsetIndexEntry], base_offset: int, preallocated: int = 0) -> bytes:
    written = b"".join(struct.pack(">ii", offset - base_offset, position) for offset, position in entries)
    return written + bytes(preallocated)


def time_index(entries: Iterable[TimeIndexEntry], base_offset: int, preallocated: int = 0) -> bytes:
    written = b"".join(struct.pack(">qi", timestamp, offset - base_offset) for timestamp, offset in entries)
    return written + bytes(preallocated)


def transaction_index(entries: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(struct.pack(">hqqqq", 0, *entry) for entry in entries)


def producer_snapshot(states: Sequence[ProducerState], *, version: int = 1, number: int | None = None) -> bytes:
    content = struct.pack(">i", len(states) if number is None else number)
    for state in states:
        content += struct.pack(">qhiqiqiq", *(-1 if field is None else field for field in state))
    return struct.pack(">h", version) + bytes.fromhex(crc32c_of(content)) + content
