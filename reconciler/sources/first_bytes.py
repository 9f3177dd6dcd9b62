"""What sources share: a look at the first bytes of any file. What they mean belongs to the sources."""

from __future__ import annotations

import os


def first_bytes(path: str, most: int) -> bytes:
    """The beginning of a file; nothing when it cannot be read, or when it would keep its reader waiting.

    Among files that nobody chose there are some that look plain and wait for ever, such as ``/proc/kmsg``.
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
