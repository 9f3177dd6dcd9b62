"""Reads one small file of a log dir without ever being caught: the only way in which metadata files are read.

A log dir may hold anything under a name that a broker would use: a FIFO that blocks its reader, a device, a link that
leads out of the log dir, a file of a terabyte. So a file is opened without following a link and without waiting, must
be a plain file, and is read up to a limit. ``layout`` parses the bytes.
"""

from __future__ import annotations

import errno
import os
import stat

from logstore.errors import FailedReadError, UnreadableFileError
from logstore.tunables import FIRST_READ_BYTES, FURTHER_READ_BYTES

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""For ``os.open``: a link is an error, a FIFO or a terminal neither blocks nor takes over, no child inherits it."""


def read_small_file(path: str, limit: int, directory: int | None = None) -> bytes | None:
    """Read a whole file of at most ``limit`` bytes; None when there is no file.

    Args:
        path: of the file.
        limit: in bytes.
        directory: descriptor of the open directory that a relative path starts from.

    Raises:
        UnreadableFileError: it is no plain file, or it is larger. The message is a clause to put behind the file's
            name, for example ``is a FIFO, not a plain file``.
        FailedReadError: the system refuses, which says nothing about the file.
    """
    try:
        descriptor = os.open(path, READ_FLAGS, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        kind = UnreadableFileError if error.errno in (errno.ELOOP, errno.ENXIO) else FailedReadError
        raise kind(refusal(error)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFileError(f"is {kind_of_file(status.st_mode)}, not a plain file")
        if status.st_size > limit:
            raise _too_large(limit)
        return _read_up_to(descriptor, limit, status.st_size)
    except OSError as error:
        raise FailedReadError(refusal(error)) from error
    finally:
        os.close(descriptor)


def _read_up_to(descriptor: int, limit: int, expected: int) -> bytes:
    """Read until the end, but at most one byte beyond the limit, which shows that the file is too large."""
    left = limit + 1
    asked = min(left, FIRST_READ_BYTES)
    piece = os.read(descriptor, asked)
    if len(piece) == expected < asked:
        return piece  # nearly always: all expected bytes, and no more although more were asked for
    pieces: list[bytes] = []
    while left and piece:
        pieces.append(piece)
        left -= len(piece)
        piece = os.read(descriptor, min(left, FURTHER_READ_BYTES))
    if not left:
        raise _too_large(limit)  # it grew, or it is a file without a size, as in /proc
    return b"".join(pieces)


def _too_large(limit: int) -> UnreadableFileError:
    return UnreadableFileError(f"is larger than {limit} bytes; nothing of it was used")


def kind_of_file(mode: int) -> str:
    """Name the type of an entry by its ``st_mode``, with an article."""
    kinds = {
        stat.S_IFREG: "a plain file",
        stat.S_IFDIR: "a directory",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a character device",
        stat.S_IFBLK: "a block device",
    }
    return kinds.get(stat.S_IFMT(mode), "of an unknown type")


_FORBIDDEN = tuple(os.strerror(number) for number in (errno.EACCES, errno.EPERM))


def when_refused(clause: str) -> str:
    """Add to a clause of :func:`refusal` what a broker does that is refused as well (FACTS §1.6).

    Where this user may not read, the broker's own user perhaps may.
    """
    broker = "a broker that may not either" if clause.endswith(_FORBIDDEN) else "a broker"
    return f"{clause}; {broker} takes the log dir offline"


def refusal(error: OSError) -> str:
    """Say in a clause why the system refused: a link that was not followed, or the system's own words."""
    if error.errno == errno.ELOOP:
        return "is a symbolic link, which is not followed"
    if error.errno == errno.ENXIO:
        return "is a socket or a device, not a plain file"
    return f"cannot be read: {os.strerror(error.errno) if error.errno else error}"
