"""Read files that may be metadata sources: whole but bounded, or only their first bytes."""

from __future__ import annotations

import os

from reconciler.errors import MetadataError, UsageError

MAX_FILE_BYTES = 256 << 20
"""A longer file is refused; 100 000 partitions take about 21 MB as JSON, and a quarter of that as bytes."""


def first_bytes(path: str, most: int) -> bytes:
    """Read the beginning of a file; nothing when it cannot be read, or not without waiting.

    A folder may hold files that look plain but block their reader for ever, such as ``/proc/kmsg``.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, most)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def read_file(path: str) -> bytes:
    """Read a whole file.

    Raises:
        UsageError: there is no such file.
        MetadataError: it cannot be read, or is longer than :data:`MAX_FILE_BYTES`.
    """
    if not os.path.lexists(path):
        raise UsageError(f"{path}: no such file")
    if not os.path.isfile(path):
        raise UsageError(f"{path} is not a file")
    try:
        with open(path, "rb") as file:
            # The size is checked first, so that a file that is far too long costs nothing.
            too_long = os.fstat(file.fileno()).st_size > MAX_FILE_BYTES
            data = b"" if too_long else file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise MetadataError(f"{path} cannot be read: {error.strerror or error}") from error
    if too_long or len(data) > MAX_FILE_BYTES:
        raise MetadataError(f"{path} is longer than {MAX_FILE_BYTES} bytes, the most that is read of such a file")
    return data
