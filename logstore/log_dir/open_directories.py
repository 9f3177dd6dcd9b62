"""Directories of one log dir, opened once each while a batch works in them, and synced together at its end.

A batch may work in more directories than a process may have open, so only some stay open at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from logstore.fs import Directory, sync_all
from logstore.log_dir.log_dir import LogDir

MOST_OPEN = 64
"""Directories that stay open; a process may usually open 1024 files."""

_FEW = 8
"""Directories up to which each is synced by itself; for more, one barrier over the file system costs less."""


class OpenDirectories:
    """Directories by their path below the log dir; use it as a context manager."""

    def __init__(self, log_dir: LogDir) -> None:
        """Start with none open."""
        self._log_dir = log_dir
        self._opened: dict[str, Directory] = {}

    def at(self, path: str) -> Directory:
        """Open a directory, or give the one that is open; it stays open until :data:`MOST_OPEN` others were asked for.

        Raises:
            UnsafePathError, OSError: as :meth:`logstore.fs.Directory.below`.
        """
        found = self._opened.pop(path, None) or self._log_dir.root.below(path)
        self._opened[path] = found
        while len(self._opened) > MOST_OPEN:
            self.forget(next(iter(self._opened)))
        return found

    def has(self, path: str) -> bool:
        """Whether there is such a directory."""
        try:
            self.at(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def holds(self, path: str) -> bool:
        """Whether anything has this path below the log dir."""
        folder, _, name = path.rpartition("/")
        return self.has(folder) and self.at(folder).holds(name)

    def forget(self, path: str) -> None:
        """Close a directory, for example because it is about to be removed."""
        found = self._opened.pop(path, None)
        if found is not None:
            found.close()

    def sync(self, paths: Iterable[str]) -> None:
        """Make the entries of directories durable, in the order given, or all at once where they are many.

        Raises:
            OSError: a sync failed, so nothing is known.
        """
        distinct = list(dict.fromkeys(paths))
        disk = self._log_dir.disk
        if len(distinct) > _FEW and disk.sync_file_system(self._log_dir.root.descriptor):
            return
        for path in distinct:
            sync_all(disk, [self.at(path)])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for path in list(self._opened):
            self.forget(path)
