"""``<20 digits>.txnindex``: the transactions that were aborted in a segment, for consumers that skip them.

::

    0000 00000000000003e8 000000000000006e 0000000000000078 0000000000000069

int16 version 0, then int64: producer ID, first offset, last offset, and the last stable offset when it was aborted. The
file is made with the first entry, and never preallocated. Source: FACTS §2.11.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from layout.errors import DamagedFileError
from layout.segment_files.entries import unpack_entries

_FILE = "transaction index"
_ENTRY = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted: its producer, its records, and where the end of it stands.

    Attributes:
        producer_id: of the producer.
        first_offset: of its first record.
        last_offset: of the control record that aborts it.
        last_stable_offset: the first offset of another transaction that was open then, or the end.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def parse_transaction_index(data: bytes, base_offset: int) -> list[AbortedTransaction]:
    """Read a transaction index; the transactions come in the order of their last offsets.

    Args:
        data: the whole file.
        base_offset: of the segment; it stands in the file's name. A transaction may begin before it, and ends behind.

    Raises:
        DamagedFileError: the size is no multiple of 34, the version is not 0, or a transaction ends before it begins,
            before the segment, or not behind the one before it.
    """
    found: list[AbortedTransaction] = []
    last = base_offset - 1
    for version, *numbers in unpack_entries(data, _ENTRY, _FILE):
        if version != 0:
            raise DamagedFileError(_FILE, f"entry {len(found)} has version {version}, expected 0")
        aborted = AbortedTransaction(*numbers)
        if aborted.last_offset <= max(last, aborted.first_offset - 1):
            raise DamagedFileError(
                _FILE,
                f"entry {len(found)} ends at offset {aborted.last_offset}: it began at {aborted.first_offset}, "
                f"and what stands before it ends at {last}",
            )
        found.append(aborted)
        last = aborted.last_offset
    return found
