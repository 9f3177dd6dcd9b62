"""The lock of a staging root beside a broker's log dir, so that what is staged there can be purged while a broker runs.

A broker knows nothing of ``<log dir>.deleting``, so its lock says nothing about who works there. Whoever changes what
lies there holds this lock. It is a ``flock`` on the directory itself: no file has to be made, which a full disk might
refuse, and nothing stays behind after a crash. Who also needs the log dir's own lock takes that one first, and neither
waits for the other. Some network file systems cannot lock a directory. There the log dir's own lock is enough for the
rest, because nobody can purge beside a running broker without this one.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress

from layout.errors import InvalidNameError
from layout.scheme import sibling_staging_root
from logstore.errors import ChangeRefusedError, LogDirInUseError
from logstore.fs import DIRECTORY_FLAGS
from logstore.log_dir.lock import find_holder_in_proc_locks

_NOTHING_OF_OURS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_TRIES = 3
"""Somebody may remove the directory by hand, and it is made anew, while it is locked."""


class StagingLock:
    """The lock of one staging root, held until :meth:`release`."""

    def __init__(self, path: str, descriptor: int) -> None:
        """Take over the descriptor that holds the lock."""
        self._path, self._descriptor, self._process = path, descriptor, os.getpid()

    @classmethod
    def take(cls, log_dir: str, *, required: bool = False) -> StagingLock | None:
        """Lock the staging root beside a log dir, without waiting; None: there is none.

        Args:
            log_dir: the absolute path of the log dir.
            required: nothing else keeps others out, so a file system that cannot lock a directory is refused. False: it
                is passed over, and so is a directory that may not be opened.

        Raises:
            LogDirInUseError: another run of this engine works there.
            ChangeRefusedError: the file system cannot lock a directory.
            OSError: it cannot be opened.
        """
        try:
            path = sibling_staging_root(log_dir)
        except InvalidNameError:
            return None
        for _ in range(_TRIES):
            try:
                descriptor = os.open(path, DIRECTORY_FLAGS)
            except OSError as error:
                if error.errno in _NOTHING_OF_OURS or (error.errno == errno.EACCES and not required):
                    return None
                raise
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(descriptor)
                raise LogDirInUseError(_in_use(path)) from error
            except OSError as error:
                os.close(descriptor)
                if not required:
                    return None
                raise ChangeRefusedError(
                    f"{path} lies on a file system that cannot lock a directory ({error.strerror}), so it is purged "
                    "only while no broker runs"
                ) from error
            lock = cls(path, descriptor)
            if lock.is_current():
                return lock
            lock.release()
        raise LogDirInUseError(f"{path} was replaced again and again while it was locked: see who does that")

    def is_current(self) -> bool:
        """Whether the locked directory still has its name."""
        try:
            return os.path.samestat(os.lstat(self._path), os.fstat(self._descriptor))
        except OSError:
            return False

    def release(self) -> None:
        """Release the lock, also in children that were forked meanwhile; a second time does nothing."""
        if self._descriptor >= 0:
            if os.getpid() == self._process:
                with suppress(OSError):
                    fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = -1


def _in_use(path: str) -> str:
    holder = None
    with suppress(OSError):
        holder = find_holder_in_proc_locks(os.lstat(path), ("FLOCK",), search=False)
    who = holder or "a process that cannot be seen from here"
    return f"{path} is in use by {who}: wait until its purge or its other change of what is staged there is over"
