"""CRC-32C checksums of files that this program writes and reads again, to find damage by a disk or a copy.

Parquet and JSON carry no checksum of their own that every engine verifies, and a flipped bit in a topic ID reads as
another topic ID. Each format decides where its checksum is kept and what a wrong one means.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import google_crc32c

from logstore.tunables import BYTES_AT_ONCE


def crc32c_of_file(path: str, length: int | None = None) -> str:
    """Compute the checksum of a file's first ``length`` bytes, or of all of them, as 8 hex digits.

    Raises:
        OSError: the file cannot be read.
    """
    value, left = 0, length
    with open(path, "rb") as file:
        while piece := file.read(BYTES_AT_ONCE if left is None else min(left, BYTES_AT_ONCE)):
            value = google_crc32c.extend(value, piece)
            left = None if left is None else left - len(piece)
    return f"{value:08x}"


def crc32c_of(data: bytes) -> str:
    """Compute the checksum of some bytes, as 8 hex digits."""
    return f"{google_crc32c.value(data):08x}"


class SummedWriter:
    """An open file that keeps the checksum of all bytes written to it."""

    def __init__(self, out: BinaryIO) -> None:
        """Wrap a file that is open for writing bytes."""
        self._out = out
        self._value = 0
        self.length = 0

    closed = False

    @property
    def crc32c(self) -> str:
        """The checksum of all bytes written so far, as 8 hex digits."""
        return f"{self._value:08x}"

    def write(self, data: Any) -> int:
        """Write bytes, or an object that converts to bytes."""
        piece = bytes(data)
        self._value = google_crc32c.extend(self._value, piece)
        self.length += len(piece)
        return self._out.write(piece)

    def flush(self) -> None:
        """Pass buffered bytes on to the system."""
        self._out.flush()
