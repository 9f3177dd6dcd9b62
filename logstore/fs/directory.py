"""An open directory: every change to a disk starts from one, so that no link and no swap can lead it elsewhere.

A path may lead elsewhere at its next use; a descriptor may not. A :class:`Directory` is opened once, and its children
are opened through it, never along a link and never into another file system. Every operation in it goes by the
descriptor and one component of a name. This module changes nothing; changes are in ``durable``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterator
from operator import itemgetter
from typing import Self

from logstore.errors import UnsafePathError

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""For ``os.open``: a link is an error."""

_ROOT_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""For a path that the user gave, which may lead through the user's links."""


class Directory:
    """One open directory. Close it, or use it as a context manager.

    Attributes:
        path: the path by which it was opened; for messages only.
        descriptor: of the open directory.
        key: device and inode, which identify the directory.
    """

    __slots__ = ("descriptor", "key", "path")

    def __init__(self, descriptor: int, path: str) -> None:
        """Take over a descriptor. The caller has made sure that it belongs to a directory."""
        status = os.fstat(descriptor)
        self.descriptor, self.path = descriptor, path
        self.key = (status.st_dev, status.st_ino)

    @classmethod
    def open(cls, path: str) -> Directory:
        """Open a directory by a path that the user gave; links in it are followed.

        Raises:
            OSError: nothing is there, it is no directory, or the system refuses.
        """
        return cls(os.open(path, _ROOT_FLAGS), path.rstrip("/") or "/")

    @property
    def device(self) -> int:
        """The device number of its file system."""
        return self.key[0]

    def child(self, name: str) -> Directory:
        """Open a directory in this one, along no link.

        Raises:
            UnsafePathError: it is a link, another file system is mounted there, or the name is no single component.
            OSError: nothing is there, it is no directory, or the system refuses.
        """
        if not name or name in (".", "..") or "/" in name:
            raise UnsafePathError(f"{name!r:.80} is no name of a directory in {self.path}")
        try:
            descriptor = _open_beneath(self.descriptor, name)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise UnsafePathError(f"something is mounted at {self.path_of(name)}; it is never entered") from error
            if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and self._is_link(name)):
                raise UnsafePathError(f"{self.path_of(name)} is a symbolic link, which is never followed") from error
            raise
        found = Directory(descriptor, self.path_of(name))
        if found.device != self.device:
            found.close()
            raise UnsafePathError(f"another file system is mounted at {self.path_of(name)}; it is never entered")
        return found

    def below(self, path: str) -> Directory:
        """Open a directory any number of levels below, component by component. The empty path gives this one again.

        Raises:
            UnsafePathError, OSError: as :meth:`child`.
        """
        if not path:
            return Directory(os.dup(self.descriptor), self.path)
        first, *rest = path.split("/")
        found = self.child(first)
        for name in rest:
            parent = found
            try:
                found = parent.child(name)
            finally:
                parent.close()
        return found

    def status(self, name: str) -> os.stat_result | None:
        """Give the status of an entry, of a link itself; None when the name is free."""
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def holds(self, name: str) -> bool:
        """Say whether the name is taken, by an entry of any kind."""
        return self.status(name) is not None

    def holds_below(self, path: str) -> bool:
        """Say the same of a path any number of levels below. Raises as :meth:`below`."""
        folder, _, name = path.rpartition("/")
        with self.below(folder) as parent:
            return parent.holds(name)

    def names(self) -> set[str]:
        """Give the names of all entries, of any kind."""
        return set(os.listdir(self.descriptor))

    def entries(self) -> Iterator[tuple[str, bool]]:
        """List every name, with whether it is a directory; a link is none.

        All names are read before the first is yielded, so the caller may remove entries meanwhile.
        """
        with os.scandir(self.descriptor) as found:
            listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        yield from listed

    def directories(self) -> list[str]:
        """List the names of its directories, without links, by inode."""
        return [name for name, _ in self.directory_inodes()]

    def directory_inodes(self) -> list[tuple[str, int]]:
        """List the names and inodes of its directories, without links, by inode.

        That is about the order of their creation, so a disk reads one area after the other.
        """
        with os.scandir(self.descriptor) as found:
            listed = [(entry.name, entry.inode()) for entry in found if entry.is_dir(follow_symlinks=False)]
        return sorted(listed, key=itemgetter(1))

    def plain_files(self) -> list[str]:
        """List the names of its plain files."""
        with os.scandir(self.descriptor) as found:
            return [entry.name for entry in found if entry.is_file(follow_symlinks=False)]

    def path_of(self, name: str) -> str:
        """Give the path of an entry; for messages only."""
        return f"{self.path.rstrip('/')}/{name}"

    def _is_link(self, name: str) -> bool:
        status = self.status(name)
        return status is not None and stat.S_ISLNK(status.st_mode)

    def close(self) -> None:
        """Close the descriptor; a second time does nothing."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _OpenHow(ctypes.Structure):
    """``struct open_how`` of Linux."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_OPENAT2 = 437
"""Number of the ``openat2`` system call, which Python does not offer; x86_64 and aarch64 share it."""
_NO_MOUNTS, _NO_LINKS = 0x01, 0x04
_HOW = ctypes.byref(_OpenHow(DIRECTORY_FLAGS, 0, _NO_MOUNTS | _NO_LINKS)), ctypes.sizeof(_OpenHow)
"""The last two arguments of the call."""


def _open_beneath(parent: int, name: str) -> int:
    """Open a directory by name, across no mount point. A bind mount has the same device, so only the kernel can tell.

    Where the kernel has no such call, or a sandbox forbids it, only the caller's comparison of devices remains.
    """
    if _SYSCALL is None:
        return os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
    path = os.fsencode(name)
    if b"\0" in path:
        raise ValueError("embedded null byte")
    while True:
        descriptor = _SYSCALL(_OPENAT2, parent, path, *_HOW)
        if descriptor >= 0:
            return int(descriptor)
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EPERM):
            return os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number), name)


def _find_syscall() -> ctypes._NamedFuncPointer | None:
    if sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"):
        return None
    found = ctypes.CDLL(None, use_errno=True).syscall
    found.restype = ctypes.c_long
    return found


_SYSCALL = _find_syscall()


def mount_of(descriptor: int) -> str | None:
    """Give an ID of the mount, since bind mounts share a device; None where the system does not provide one."""
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as lines:
            return next((line for line in lines if line.startswith("mnt_id:")), None)
    except OSError:
        return None
