"""Checksums of files that this program writes and reads again: CRC-32C, which finds whatever a disk or a copy damages.

Parquet and JSON carry no checksum of their own that every engine verifies, and a flipped bit in a topic ID reads as
another topic ID. Where a checksum is kept, and what a wrong one means, is left to the formats.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import google_crc32c

_PIECE = 1 << 20


def crc32c_of_file(path: str, length: int | None = None) -> str:
    """The checksum of a file's first ``length`` bytes, or of all of them, as 8 hex digits.

    Raises:
        OSError: it cannot be read.
    """
    value, left = 0, length
    with open(path, "rb") as file:
        while piece := file.read(_PIECE if left is None else min(left, _PIECE)):
            value = google_crc32c.extend(value, piece)
            left = None if left is None else left - len(piece)
    return f"{value:08x}"


def crc32c_of(data: bytes) -> str:
    """The checksum of some bytes, as 8 hex digits."""
    return f"{google_crc32c.value(data):08x}"


class SummedWriter:
    """An open file that keeps the checksum of what is written to it, one piece after the other."""

    def __init__(self, out: BinaryIO) -> None:
        """Write to a file that is open for bytes."""
        self._out = out
        self._value = 0
        self.length = 0

    closed = False

    @property
    def crc32c(self) -> str:
        """The checksum of everything that was written, as 8 hex digits."""
        return f"{self._value:08x}"

    def write(self, data: Any) -> int:
        """Write bytes, or anything that holds some."""
        piece = bytes(data)
        self._value = google_crc32c.extend(self._value, piece)
        self.length += len(piece)
        return self._out.write(piece)

    def flush(self) -> None:
        """Hand everything on to the system."""
        self._out.flush()
