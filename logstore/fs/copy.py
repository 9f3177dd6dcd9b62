"""Copies a replica's files into another directory, and verifies the copy (KIP516-3).

Every file is read once, written once, synced, and read back; the CRC-32C of the copy must equal the source's. Stretches
of zeros, which preallocated indexes are full of (FACTS §2.11), become holes. Modification times are copied too. A
replica holds plain files only, so anything else in it is refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

import google_crc32c

from logstore.errors import ChangeRefusedError
from logstore.fs.directory import Directory
from logstore.fs.durable import Disk, create_anew
from logstore.fs.small_file import READ_FLAGS, kind_of_file
from logstore.tunables import BYTES_AT_ONCE

Progress = Callable[[int], None]
"""Called with the number of bytes after each piece. It may wait, to throttle the copy, or raise, to end it."""


def copy_replica(source: Directory, target: Directory, disk: Disk, progress: Progress | None = None) -> int:
    """Copy all files of a directory, each one durable; return the bytes copied. The entries are not synced.

    Errors of ``progress`` are raised here.

    Raises:
        ChangeRefusedError: an entry is no plain file, or a file changed meanwhile.
        OSError: the system refuses to read or to write.
    """
    total = 0
    for name, is_directory in sorted(source.entries()):
        if is_directory:
            raise ChangeRefusedError(
                f"{source.path_of(name)} is a directory, which no replica holds: nothing is copied"
            )
        total += _copy_file(source, name, target, disk, progress or (lambda _: None))
    return total


def _copy_file(source: Directory, name: str, target: Directory, disk: Disk, progress: Progress) -> int:
    reading = os.open(name, READ_FLAGS, dir_fd=source.descriptor)
    try:
        before = os.fstat(reading)
        if not stat.S_ISREG(before.st_mode):
            what = kind_of_file(before.st_mode)
            raise ChangeRefusedError(f"{source.path_of(name)} is {what}, not a plain file: nothing is copied")
        writing = create_anew(disk, target, name)
        try:
            checksum, length = _copy_bytes(reading, before.st_size, writing, disk, progress)
            disk.set_modified(writing, before.st_mtime_ns)
            disk.sync(writing)
        finally:
            os.close(writing)
        after = os.fstat(reading)
    finally:
        os.close(reading)
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns) or length != before.st_size:
        raise ChangeRefusedError(
            f"{source.path_of(name)} changed while it was copied: stop writing to it, and try again"
        )
    if _checksum(target, name) != checksum:
        raise ChangeRefusedError(f"{target.path_of(name)} does not read back as it was written: distrust that disk")
    return length


def _copy_bytes(reading: int, length: int, writing: int, disk: Disk, progress: Progress) -> tuple[int, int]:
    """Copy the bytes; return the CRC-32C and the number of bytes read. Zeros are skipped, not written.

    At most one byte beyond the length is read, which shows that the file grew: it may grow for ever.
    """
    checksum, position, hole = 0, 0, False
    while chunk := os.read(reading, min(BYTES_AT_ONCE, length + 1 - position)):
        checksum = google_crc32c.extend(checksum, chunk)
        if any(chunk):
            if hole:
                os.lseek(writing, position, os.SEEK_SET)
            disk.write(writing, chunk)
            hole = False
        else:
            hole = True
        position += len(chunk)
        progress(len(chunk))
    if hole:
        disk.truncate(writing, position)
    return checksum, position


def _checksum(directory: Directory, name: str) -> int:
    checksum = 0
    descriptor = os.open(name, READ_FLAGS, dir_fd=directory.descriptor)
    try:
        while chunk := os.read(descriptor, BYTES_AT_ONCE):
            checksum = google_crc32c.extend(checksum, chunk)
    finally:
        os.close(descriptor)
    return checksum
