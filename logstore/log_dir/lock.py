"""Kafka's own lock on a log dir: whoever holds it may change the disk, a running broker or this engine.

A broker locks the whole of ``.lock`` with a POSIX record lock, and so do we, by ``F_OFD_SETLK``: such a lock meets a
JVM's in both directions, but belongs to the open file, so that another descriptor of the same process neither shares
nor drops it (LIBRARIES §7). ``flock`` is another family, which no broker sees. The file stays where it is afterwards, 0
bytes, as releases up to 3.7 leave it (FACTS §2.7).
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from contextlib import suppress

from logstore.errors import LogDirInUseError
from logstore.fs import Directory, Disk
from logstore.log_dir.lock_holder import LOCK_FILE, find_lock_holder

_FLOCK = struct.Struct("hhqqi4x")
"""``struct flock`` of 64-bit Linux: type, whence, start, length (0: to the end), pid, which must be 0 here."""

_TRIES = 3
"""Releases since 3.8 remove the file on a clean stop, so the one that was locked may be gone already."""


class Lock:
    """The lock of one log dir, held until :meth:`release`."""

    def __init__(self, descriptor: int) -> None:
        """Take over the descriptor that holds the lock."""
        self._descriptor = descriptor
        self._process = os.getpid()

    @classmethod
    def take(cls, root: Directory, disk: Disk) -> Lock:
        """Lock a log dir, without waiting.

        Raises:
            LogDirInUseError: somebody has it, with the process where the system tells.
            OSError: the file can be neither opened nor made.
        """
        for _ in range(_TRIES):
            descriptor = _open(root, disk)
            try:
                _set_lock(descriptor)
            except BlockingIOError as error:
                os.close(descriptor)
                holder = find_lock_holder(root.path) or "a process that cannot be seen from here"
                raise LogDirInUseError(
                    f"{root.path} is in use by {holder}: stop the broker, or whatever else works on this log dir, first"
                ) from error
            except OSError:
                os.close(descriptor)
                raise
            if _is_still_there(root, descriptor):
                return cls(descriptor)
            os.close(descriptor)
        raise LogDirInUseError(f"{root.path}/{LOCK_FILE} vanished while it was locked: a broker is stopping; try again")

    def release(self) -> None:
        """Give the lock back; a second time does nothing.

        A child that was forked meanwhile shares the lock, and would keep it for as long as it lives; so the lock is
        dropped by name. A child that comes here itself only lets go of its share.
        """
        if self._descriptor >= 0:
            if os.getpid() == self._process:
                with suppress(OSError):
                    _ask(self._descriptor, fcntl.F_UNLCK)
            os.close(self._descriptor)
            self._descriptor = -1


def _open(root: Directory, disk: Disk) -> int:
    try:
        return disk.open_to_change(root.descriptor, LOCK_FILE)
    except FileNotFoundError:
        try:
            return disk.create(root.descriptor, LOCK_FILE)
        except FileExistsError:
            return disk.open_to_change(root.descriptor, LOCK_FILE)


def _set_lock(descriptor: int) -> None:
    """Ask for the lock. BlockingIOError: somebody else has it, whichever number the system gives for that."""
    try:
        _ask(descriptor, fcntl.F_WRLCK)
    except PermissionError as error:
        raise BlockingIOError(errno.EAGAIN, "locked") from error


def _ask(descriptor: int, kind: int) -> None:
    if hasattr(fcntl, "F_OFD_SETLK"):
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0))
    else:
        fcntl.lockf(descriptor, (fcntl.LOCK_EX if kind == fcntl.F_WRLCK else fcntl.LOCK_UN) | fcntl.LOCK_NB)


def _is_still_there(root: Directory, descriptor: int) -> bool:
    status = root.status(LOCK_FILE)
    return status is not None and os.path.samestat(status, os.fstat(descriptor))
