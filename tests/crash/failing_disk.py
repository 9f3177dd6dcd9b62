"""A disk on which one step fails, or everything from one step on, with an error of our choice."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from logstore.fs import Disk

_TAKES_SPACE = {"create", "write", "mkdir", "link"}
_BETWEEN_DEVICES = {"rename", "link"}


class DiskAround(Disk):
    """Passes every call on to another disk, but for the methods that a subclass has of its own."""

    def __init__(self, inner: Disk) -> None:
        """Take the methods of the other disk."""
        self.inner = inner
        for name in dir(Disk):
            if not name.startswith("_") and getattr(type(self), name) is getattr(Disk, name):
                setattr(self, name, getattr(inner, name))


class FullBelow(DiskAround):
    """Not one byte more fits below a directory, and no directory either.

    What a file has already can be written over, unless the file system writes everything to a new place.
    """

    def __init__(self, inner: Disk, path: str, *, names: bool, in_place: bool = True) -> None:
        """Say what is full.

        Args:
            inner: does what still fits.
            path: of the directory.
            names: whether new files still get a name.
            in_place: whether a file can be written over.
        """
        super().__init__(inner)
        self._path, self._names, self._in_place = path, names, in_place

    def _check(self, descriptor: int) -> None:
        if f"{os.readlink(f'/proc/self/fd/{descriptor}')}/".startswith(f"{self._path}/"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def create(self, parent: int, name: str) -> int:
        if not self._names:
            self._check(parent)
        return self.inner.create(parent, name)

    def write(self, descriptor: int, data: bytes) -> None:
        end = os.lseek(descriptor, 0, os.SEEK_CUR) + len(data)
        if data and not (self._in_place and end <= os.fstat(descriptor).st_size):
            self._check(descriptor)
        self.inner.write(descriptor, data)

    def mkdir(self, parent: int, name: str) -> None:
        if name not in os.listdir(parent):
            self._check(parent)
        self.inner.mkdir(parent, name)


class FailingDisk(Disk):
    """Counts the steps, and fails at one of them.

    What a full disk does not take is the second half of what is written, as it happens. A disk that stays full still
    renames and removes; one that stays broken or read-only does nothing any more. Only a rename or a link can lead to
    another device, so for EXDEV nothing else is counted.

    Attributes:
        failed: what the first step that failed was; None: none has failed yet.
    """

    def __init__(self, at: int, number: int, *, lasting: bool = False, inner: Disk | None = None) -> None:
        """Arrange for a failure.

        Args:
            at: how many steps succeed before it.
            number: of the error.
            lasting: whether later steps fail as well.
            inner: does what does not fail.
        """
        self.at, self.number, self.lasting = at, number, lasting
        self.inner = inner or Disk()
        self.count = 0
        self.failed: str | None = None

    def _fails(self, what: str) -> bool:
        if self.number == errno.EXDEV and what not in _BETWEEN_DEVICES:
            return False
        count, self.count = self.count, self.count + 1
        if self.failed is None:
            if count == self.at:
                self.failed = what
            return count == self.at
        return self.lasting and (self.number != errno.ENOSPC or what in _TAKES_SPACE)

    def _step(self, what: str) -> None:
        if self._fails(what):
            raise OSError(self.number, os.strerror(self.number))

    def write(self, descriptor: int, data: bytes) -> None:
        if self._fails("write"):
            if self.number == errno.ENOSPC:
                self.inner.write(descriptor, data[: len(data) // 2])
            raise OSError(self.number, os.strerror(self.number))
        self.inner.write(descriptor, data)


def _primitive(name: str) -> Callable[..., Any]:
    def step(self: FailingDisk, *arguments: Any) -> Any:
        self._step(name)
        return getattr(self.inner, name)(*arguments)

    return step


for _name in (
    *("create", "open_to_change", "truncate", "set_modified", "sync", "sync_file_system"),
    *("mkdir", "rename", "link", "unlink", "rmdir"),
):
    setattr(FailingDisk, _name, _primitive(_name))
