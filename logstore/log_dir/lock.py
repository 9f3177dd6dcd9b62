"""Kafka's own lock on a log dir, held by a running broker or by this engine: takes it, and finds out who holds it.

A broker holds a POSIX record lock on the whole of ``.lock`` for all its life; that the file exists means nothing. We
lock it by ``F_OFD_SETLK``: such a lock conflicts with a JVM's in both directions, but belongs to the open file, so that
another descriptor of the same process neither shares nor drops it (LIBRARIES §7). ``flock`` is another family, which no
broker sees. The file stays afterwards, with 0 bytes, as releases up to 3.7 leave it (FACTS §2.7).

The holder is found without taking the lock. ``F_OFD_GETLK`` asks the kernel about the one file, also for a broker in
another container, but needs a descriptor, and *closing any descriptor of a file drops all POSIX locks that this very
process holds on it*; so what this process holds itself is looked for first, among its own open files. ``/proc/locks``,
the list of all locks that this process can see, is read only where the file may not be opened: while somebody reads it,
every lock and unlock on the machine waits, and a read takes 0.3 ms alone, but 96 ms beside five others on two busy
cores. Outside Linux the holder is unknown.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from logstore.errors import LogDirInUseError
from logstore.fs import READ_FLAGS, Directory, Disk

LOCK_FILE = ".lock"

_FLOCK = struct.Struct("hhqqi4x")
"""``struct flock`` of 64-bit Linux: type, whence, start, length (0: to the end), pid (0 in a request)."""

_TRIES = 3
"""Releases since 3.8 remove the file on a clean stop, so the locked file may be gone already."""


class Lock:
    """The lock of one log dir, held until :meth:`release`."""

    def __init__(self, descriptor: int) -> None:
        """Take over the descriptor that holds the lock."""
        self._descriptor = descriptor
        self._process = os.getpid()

    @classmethod
    def take(cls, root: Directory, disk: Disk, before_made: Callable[[], object] = lambda: None) -> Lock:
        """Lock a log dir, without waiting.

        Args:
            root: the log dir.
            disk: the primitive changes.
            before_made: called before the file is made where there is none; raises where it must not be.

        Raises:
            LogDirInUseError: a process holds it; the message names the process where the system does.
            OSError: the file can be neither opened nor made.
        """
        for _ in range(_TRIES):
            descriptor = _open(root, disk, before_made)
            try:
                _set_lock(descriptor)
            except BlockingIOError as error:
                os.close(descriptor)
                holder = find_lock_holder(root.path) or "a process that has let go of it since, or cannot be seen"
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
        """Release the lock; a second time does nothing.

        A child that was forked meanwhile shares the lock, and would keep it for all its life; so the lock is dropped
        explicitly. A child that calls this itself only closes its own descriptor.
        """
        if self._descriptor >= 0:
            if os.getpid() == self._process:
                with suppress(OSError):
                    _set_lock_type(self._descriptor, fcntl.F_UNLCK)
            os.close(self._descriptor)
            self._descriptor = -1


def _open(root: Directory, disk: Disk, before_made: Callable[[], object]) -> int:
    try:
        return disk.open_to_change(root.descriptor, LOCK_FILE)
    except FileNotFoundError:
        before_made()
        try:
            return disk.create(root.descriptor, LOCK_FILE)
        except FileExistsError:
            return disk.open_to_change(root.descriptor, LOCK_FILE)


def _set_lock(descriptor: int) -> None:
    """Take the lock; raise BlockingIOError when it is taken, whichever number the system gives for that."""
    try:
        _set_lock_type(descriptor, fcntl.F_WRLCK)
    except PermissionError as error:
        raise BlockingIOError(errno.EAGAIN, "locked") from error


def _set_lock_type(descriptor: int, kind: int) -> None:
    if hasattr(fcntl, "F_OFD_SETLK"):
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0))
    else:
        fcntl.lockf(descriptor, (fcntl.LOCK_EX if kind == fcntl.F_WRLCK else fcntl.LOCK_UN) | fcntl.LOCK_NB)


def _is_still_there(root: Directory, descriptor: int) -> bool:
    status = root.status(LOCK_FILE)
    return status is not None and os.path.samestat(status, os.fstat(descriptor))


@dataclass(frozen=True, slots=True)
class LockHolder:
    """A process that holds ``.lock``."""

    pid: int | None
    """None: this process cannot see the holder, for example in another container."""
    command: str | None
    """The system's short name of the process, for example ``java``."""

    def __str__(self) -> str:
        if self.pid is None:
            return "a process that cannot be seen from here"
        return f"process {self.pid}" + (f" ({self.command})" if self.command else "")


def find_lock_holder(log_dir: str, *, search: bool = True) -> LockHolder | None:
    """Find the holder of a log dir's lock, without taking the lock; None when the lock is free or unknown.

    Args:
        log_dir: its path.
        search: where the system does not name the process, look for it among the open files of all processes, which
            takes some ms. False: only find out whether the lock is held.
    """
    path = f"{log_dir}/{LOCK_FILE}"
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    if _is_held_here(status):
        return _holder_by_pid(os.getpid())
    try:
        pid = _pid_by_kernel(path)
    except OSError:
        return find_holder_in_proc_locks(status, ("POSIX", "OFDLCK"), search=search)
    if pid is None:
        return None
    return _holder_by_pid(_search_pid(_numbers(status)) if search and pid <= 0 else pid)


def find_holder_in_proc_locks(status: os.stat_result, families: Collection[str], *, search: bool) -> LockHolder | None:
    """Look for a file in ``/proc/locks``: ``1: POSIX  ADVISORY  WRITE 4242 fd:01:131 0 EOF``.

    Args:
        status: of the file or directory.
        families: which kinds of locks count, since none sees those of another: ``POSIX`` and ``OFDLCK``, or ``FLOCK``.
        search: as for :func:`find_lock_holder`.
    """
    wanted = _numbers(status)
    try:
        with open("/proc/locks", encoding="ascii") as locks:
            lines = [line.split() for line in locks]
    except (OSError, UnicodeDecodeError):
        return None
    for words in lines:
        # A waiter has one word more, "->", and holds nothing.
        if len(words) == 8 and words[1] in families and words[3] == "WRITE" and _parse_inode(words[5]) == wanted:
            return _holder_by_pid(_search_pid(wanted) if search and words[1] == "OFDLCK" else int(words[4]))
    return None


def _search_pid(wanted: tuple[int, int, int]) -> int:
    """Find the process that holds an OFD lock on a file, since no list has a pid for it; 0: none can be seen."""
    for pid in filter(str.isdigit, _names("/proc")):
        if any("OFDLCK" in _families_of_locks(pid, each, wanted) for each in _names(f"/proc/{pid}/fdinfo")):
            return int(pid)
    return 0


def _is_held_here(status: os.stat_result) -> bool:
    """Whether this very process holds a lock on a file, which it then has open."""
    wanted = _numbers(status)
    return any(
        _is_open_as(status, int(each)) and {"POSIX", "OFDLCK"} & _families_of_locks("self", each, wanted)
        for each in _names("/proc/self/fd")
    )


def _is_open_as(status: os.stat_result, descriptor: int) -> bool:
    try:
        return os.path.samestat(status, os.fstat(descriptor))
    except OSError:
        return False  # it was closed meanwhile


def _families_of_locks(pid: str, descriptor: str, wanted: tuple[int, int, int]) -> set[str]:
    """The families of the locks on a file that a process holds by a descriptor.

    ``/proc/<pid>/fdinfo/<n>`` repeats the line of ``/proc/locks`` behind ``lock:``.
    """
    try:
        with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii", errors="replace") as info:
            lines = [line.split() for line in info if line.startswith("lock:")]
    except OSError:
        return set()
    return {words[2] for words in lines if len(words) == 9 and _parse_inode(words[6]) == wanted}


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # the process is gone, or belongs to another user


def _numbers(status: os.stat_result) -> tuple[int, int, int]:
    """By which lists of locks name a file: major and minor number of its device, and its inode."""
    return os.major(status.st_dev), os.minor(status.st_dev), status.st_ino


def _parse_inode(text: str) -> tuple[int, int, int] | None:
    """Parse ``major:minor:inode``, the first two in hexadecimal."""
    try:
        major, minor, inode = text.split(":")
        return int(major, 16), int(minor, 16), int(inode)
    except ValueError:
        return None


def _pid_by_kernel(path: str) -> int | None:
    """Ask the kernel whose lock would conflict with an exclusive one over the whole file.

    None: nobody's. 0 or less: that of a process that has no number here, or whose lock belongs to the open file.

    Raises:
        OSError: it cannot be asked.
    """
    if not hasattr(fcntl, "F_OFD_GETLK"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), path)
    descriptor = os.open(path, READ_FLAGS)
    try:
        question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, *_, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, question))
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else int(pid)


def _holder_by_pid(pid: int) -> LockHolder:
    """Look up the name of a process; a pid of 0 or -1 stands for a process that cannot be seen."""
    if pid <= 0:
        return LockHolder(None, None)
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="backslashreplace") as comm:
            return LockHolder(pid, comm.read(64).strip() or None)
    except OSError:
        return LockHolder(pid, None)
