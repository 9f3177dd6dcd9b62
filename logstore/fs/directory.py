"""An open directory: where every change to a disk starts, so that no link and no swap can lead it elsewhere.

A path is a promise that anybody may break between two looks; a descriptor is not. A :class:`Directory` is opened once,
its children are opened through it, never along a link and never into another file system, and whatever is done in it
goes by descriptor and one component of a name. Nothing here changes anything; that is for ``durable``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from logstore.errors import UnsafePathError

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""For ``os.open``: a link is an error."""

_ROOT_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""For the path that the user gave, which may lead through links: the user wrote them."""


class Directory:
    """One open directory. Close it, or use it as a context manager.

    Attributes:
        path: how it was reached; for messages only.
        descriptor: of the open directory.
        key: device and inode, which tell one directory from another.
    """

    __slots__ = ("descriptor", "key", "path")

    def __init__(self, descriptor: int, path: str) -> None:
        """Take over a descriptor; whoever calls has made sure that it is a directory's."""
        status = os.fstat(descriptor)
        self.descriptor, self.path = descriptor, path
        self.key = (status.st_dev, status.st_ino)

    @classmethod
    def open(cls, path: str) -> Directory:
        """Open a directory by a path that the user gave; links in it are followed.

        Raises:
            OSError: there is none, it is no directory, or the system refuses.
        """
        return cls(os.open(path, _ROOT_FLAGS), path.rstrip("/") or "/")

    @property
    def device(self) -> int:
        """The file system that holds it."""
        return self.key[0]

    def child(self, name: str) -> Directory:
        """Open a directory in this one, along no link.

        Raises:
            UnsafePathError: it is a link, another file system is mounted there, or the name leads elsewhere.
            OSError: there is none, it is no directory, or the system refuses.
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
        """Open a directory any number of levels below, component by component; the empty path is this directory again.

        Raises:
            UnsafePathError, OSError: as :meth:`child`.
        """
        found = Directory(os.dup(self.descriptor), self.path)
        for name in path.split("/") if path else ():
            parent = found
            try:
                found = parent.child(name)
            finally:
                parent.close()
        return found

    def status(self, name: str) -> os.stat_result | None:
        """What has this name here, a link as itself; None: nothing."""
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def holds(self, name: str) -> bool:
        """Whether the name is taken, by anything."""
        return self.status(name) is not None

    def entries(self) -> Iterator[tuple[str, bool]]:
        """Every name in it, and whether it is a directory, which a link is not.

        All names are read before the first is told, so the caller may remove them as they come.
        """
        with os.scandir(self.descriptor) as found:
            listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        yield from listed

    def directories(self) -> list[str]:
        """The names of the directories in it, which links are not, in the order of their inodes.

        That is about the order in which they were made, so a disk that looks at each works on one place after the
        other, and what was made together comes together.
        """
        with os.scandir(self.descriptor) as found:
            listed = sorted((entry.inode(), entry.name) for entry in found if entry.is_dir(follow_symlinks=False))
        return [name for _, name in listed]

    def plain_files(self) -> list[str]:
        """The names of the plain files in it."""
        with os.scandir(self.descriptor) as found:
            return [entry.name for entry in found if entry.is_file(follow_symlinks=False)]

    def path_of(self, name: str) -> str:
        """The path of an entry; for messages only."""
        return f"{self.path.rstrip('/')}/{name}"

    def _is_link(self, name: str) -> bool:
        status = self.status(name)
        return status is not None and stat.S_ISLNK(status.st_mode)

    def close(self) -> None:
        """Give the descriptor back; a second time does nothing."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _OpenHow(ctypes.Structure):
    """``struct open_how`` of Linux."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_OPENAT2 = 437
"""Number of the system call, which Python does not offer; the same on the machines below."""
_NO_MOUNTS, _NO_LINKS = 0x01, 0x04
_HOW = _OpenHow(DIRECTORY_FLAGS, 0, _NO_MOUNTS | _NO_LINKS)


def _open_beneath(parent: int, name: str) -> int:
    """Open a directory by name, across no mount point: a bind mount has the same device, so only the kernel can tell.

    Where the kernel has no such call, or a sandbox forbids it, the device alone is looked at, by the caller.
    """
    if _SYSCALL is None:
        return os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
    path = os.fsencode(name)
    if b"\0" in path:
        raise ValueError("embedded null byte")
    while True:
        descriptor = _SYSCALL(_OPENAT2, parent, path, ctypes.byref(_HOW), ctypes.sizeof(_HOW))
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
    """What tells one mount from another, for bind mounts have the same device; None where the system does not tell."""
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as lines:
            return next((line for line in lines if line.startswith("mnt_id:")), None)
    except OSError:
        return None
