"""A disk behind the cache of a system, which writes a file back page by page, in whatever order it likes.

The disks of a machine (``logstore.fs.crash_disk``) lose the later of two writes to a file, or both. A real one may also
lose the earlier one alone, for it writes back what was changed in any order. And after a sync that failed, it takes
what it could not write for written: the bytes can be read until the power goes, and no later sync writes them. That is
so for the bytes of files here; names are durable at once.
"""

from __future__ import annotations

import errno
import os
import stat
from random import Random
from typing import ClassVar, Final

from logstore.fs import Directory, Disk

_PAGE: Final = 512
"""Bytes that are written at once: a sector, which no power cut tears."""

_LOST: Final = 0.5
"""How likely a page is lost that was not synced."""


class PageCache(Disk):
    """One disk.

    Attributes:
        room: bytes to which a file may grow; what it has already can always be written over.
        refuses_sync: whether the next sync of a file fails for lack of space, as on a disk that allocates late.
    """

    is_shared: ClassVar[bool] = False

    def __init__(self, room: int = 1 << 30) -> None:
        """Start with an empty disk."""
        self.room, self.refuses_sync = room, False
        self._durable = dict[int, bytes]()
        self._dirty = dict[int, set[int]]()

    def create(self, parent: int, name: str) -> int:
        """Create a file; its inode may have been another file's."""
        descriptor = super().create(parent, name)
        inode = os.fstat(descriptor).st_ino
        self._durable.pop(inode, None)
        self._dirty.pop(inode, None)
        return descriptor

    def write(self, descriptor: int, data: bytes) -> None:
        """Write to the cache, or nothing where the file has no room to grow."""
        status, start = os.fstat(descriptor), os.lseek(descriptor, 0, os.SEEK_CUR)
        end = start + len(data)
        if end > max(self.room, status.st_size):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(descriptor, data)
        self._dirty.setdefault(status.st_ino, set()).update(range(start // _PAGE, -(-end // _PAGE)))

    def sync(self, descriptor: int) -> None:
        """Write the pages of a file back; where that fails, they count as written all the same."""
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            return
        dirty = self._dirty.pop(status.st_ino, set())
        if self.refuses_sync:
            self.refuses_sync = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._durable[status.st_ino] = self._written(status.st_ino, _bytes_of(descriptor), dirty)

    def sync_file_system(self, descriptor: int) -> bool:
        """Say that there is no such call here."""
        return False

    def crash(self, folder: Directory, name: str, random: Random) -> None:
        """Lose the power: of each page of a file that was not synced, the old bytes are there, or the new ones."""
        descriptor = self.open_to_change(folder.descriptor, name)
        try:
            inode = os.fstat(descriptor).st_ino
            kept = {page for page in sorted(self._dirty.pop(inode, set())) if random.random() >= _LOST}
            left = self._written(inode, _bytes_of(descriptor), kept)
            super().truncate(descriptor, 0)
            super().write(descriptor, left)
        finally:
            os.close(descriptor)
        self._durable[inode] = left

    def _written(self, inode: int, present: bytes, pages: set[int]) -> bytes:
        """Give the bytes of a file after some of its pages were written back."""
        found = bytearray(self._durable.get(inode, b""))
        for page in sorted(pages):
            piece = slice(page * _PAGE, min((page + 1) * _PAGE, len(present)))
            found.extend(bytes(max(0, piece.stop - len(found))))
            found[piece] = present[piece]
        return bytes(found)


def _bytes_of(descriptor: int) -> bytes:
    """Read a file that is open for writing only."""
    with open(f"/proc/self/fd/{descriptor}", "rb") as file:
        return file.read()
