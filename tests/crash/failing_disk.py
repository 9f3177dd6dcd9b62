"""A disk on which one step fails, or everything from one step on, with an error of our choice."""

from __future__ import annotations

import errno
import os

from logstore.fs import Disk

_TAKES_SPACE = {"create", "write", "mkdir", "link"}
_BETWEEN_DEVICES = {"rename", "link"}


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

    def create(self, parent: int, name: str) -> int:
        self._step("create")
        return self.inner.create(parent, name)

    def open_to_change(self, parent: int, name: str) -> int:
        self._step("open_to_change")
        return self.inner.open_to_change(parent, name)

    def write(self, descriptor: int, data: bytes) -> None:
        if self._fails("write"):
            if self.number == errno.ENOSPC:
                self.inner.write(descriptor, data[: len(data) // 2])
            raise OSError(self.number, os.strerror(self.number))
        self.inner.write(descriptor, data)

    def truncate(self, descriptor: int, length: int) -> None:
        self._step("truncate")
        self.inner.truncate(descriptor, length)

    def set_modified(self, descriptor: int, nanoseconds: int) -> None:
        self._step("set_modified")
        self.inner.set_modified(descriptor, nanoseconds)

    def sync(self, descriptor: int) -> None:
        self._step("sync")
        self.inner.sync(descriptor)

    def sync_file_system(self, descriptor: int) -> bool:
        self._step("sync_file_system")
        return self.inner.sync_file_system(descriptor)

    def mkdir(self, parent: int, name: str) -> None:
        self._step("mkdir")
        self.inner.mkdir(parent, name)

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        self._step("rename")
        self.inner.rename(source, name, target, new_name)

    def link(self, source: int, name: str, target: int, new_name: str) -> None:
        self._step("link")
        self.inner.link(source, name, target, new_name)

    def unlink(self, parent: int, name: str) -> None:
        self._step("unlink")
        self.inner.unlink(parent, name)

    def rmdir(self, parent: int, name: str) -> None:
        self._step("rmdir")
        self.inner.rmdir(parent, name)
