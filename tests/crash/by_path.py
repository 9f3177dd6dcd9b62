"""A disk that takes paths instead of descriptors, for histories that are written by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from logstore.fs import Directory, Disk


class ByPath:
    """The primitives of a disk, by path below a root."""

    def __init__(self, disk: Disk, root: str) -> None:
        self.disk, self.root = disk, root

    @contextmanager
    def directory(self, path: str) -> Iterator[Directory]:
        with Directory.open(self.root) as root, root.below(path) as found:
            yield found

    def create(self, path: str, data: bytes = b"") -> None:
        """Create a file, and write to it if there are bytes."""
        folder, _, name = path.rpartition("/")
        with self.directory(folder) as parent:
            descriptor = self.disk.create(parent.descriptor, name)
            if data:
                self.disk.write(descriptor, data)
            os.close(descriptor)

    def overwrite(self, path: str, data: bytes, *, keep: int | None = None) -> None:
        """Write over the beginning of a file, after cutting it off."""
        with self._open(path) as descriptor:
            if keep is not None:
                self.disk.truncate(descriptor, keep)
            self.disk.write(descriptor, data)

    def sync(self, path: str = "") -> None:
        """Sync a file or a directory."""
        if os.path.isdir(f"{self.root}/{path}"):
            with self.directory(path) as found:
                self.disk.sync(found.descriptor)
        else:
            with self._open(path) as descriptor:
                self.disk.sync(descriptor)

    def barrier(self, path: str = "") -> None:
        with self.directory(path) as found:
            self.disk.sync_file_system(found.descriptor)

    def mkdir(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        with self.directory(folder) as parent:
            self.disk.mkdir(parent.descriptor, name)

    def rename(self, path: str, new_path: str) -> None:
        with self._two(path, new_path) as names:
            self.disk.rename(*names)

    def link(self, path: str, new_path: str) -> None:
        with self._two(path, new_path) as names:
            self.disk.link(*names)

    def unlink(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        with self.directory(folder) as parent:
            self.disk.unlink(parent.descriptor, name)

    def rmdir(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        with self.directory(folder) as parent:
            self.disk.rmdir(parent.descriptor, name)

    @contextmanager
    def _two(self, path: str, new_path: str) -> Iterator[tuple[int, str, int, str]]:
        (folder, _, name), (new_folder, _, new_name) = path.rpartition("/"), new_path.rpartition("/")
        with self.directory(folder) as source, self.directory(new_folder) as target:
            yield source.descriptor, name, target.descriptor, new_name

    @contextmanager
    def _open(self, path: str) -> Iterator[int]:
        folder, _, name = path.rpartition("/")
        with self.directory(folder) as parent:
            descriptor = self.disk.open_to_change(parent.descriptor, name)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
