"""A queue of units of work: one process puts them in, and those it forked take them out, each unit once.

A unit's bytes lie in a file in memory, which all of the processes share, and a pipe holds where. The kernel serves one
reader of a pipe at a time, and what is read there has one size; so nobody gets half a unit, or another one's. Units
travel in Python's own ``marshal``, which only forked processes may do, and which keeps names that are not UTF-8.
"""

from __future__ import annotations

import marshal
import os
import struct
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

_WHERE = struct.Struct("=iiq")
"""A unit's number, its length in bytes, and where it begins. Its own size divides that of a page, so pipes do not split
it."""


class UnitQueue:
    """Opened before the fork; afterwards each process says by its first call on which side it is. Linux only."""

    __slots__ = ("_end", "_file", "_put", "_read", "_write")

    def __init__(self) -> None:
        self._file = _shared_file()
        try:
            self._read, self._write = os.pipe()
        except OSError:
            os.close(self._file)
            raise
        self._end = self._put = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()
        self._read = _closed(self._read)
        self._file = _closed(self._file)

    def put(self, unit: Any) -> None:
        """Put in the next unit, anything that marshal knows. The first one has number 0.

        Raises:
            OSError: there is no memory, or nobody is left who could take it out.
        """
        # A reader that is this process itself would keep it waiting for ever once the pipe is full.
        self._read = _closed(self._read)
        data = marshal.dumps(unit)
        left = memoryview(data)
        begin = self._end
        while left:
            written = os.pwrite(self._file, left, self._end)
            self._end += written
            left = left[written:]
        os.write(self._write, _WHERE.pack(self._put, len(data), begin))
        self._put += 1

    def finish(self) -> None:
        """Put in no more; whoever takes units out comes to the end."""
        self._write = _closed(self._write)

    def taken(self) -> Iterator[tuple[int, Any]]:
        """Units with their numbers, one at a time until there are no more; waits while there may be."""
        self.finish()
        while where := os.read(self._read, _WHERE.size):
            number, length, begin = _WHERE.unpack(where)
            yield number, marshal.loads(os.pread(self._file, length, begin))


def _shared_file() -> int:
    """A file without a name, in memory where this Python can make one there."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("units")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _closed(descriptor: int) -> int:
    """Close a descriptor that is open, and give one that is not."""
    if descriptor >= 0:
        os.close(descriptor)
    return -1
