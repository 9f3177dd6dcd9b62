"""Many changes in one log dir behind few syncs: small files replaced together, directories opened once each.

Each replaced file holds its old bytes or its new ones at any time, also after a crash. That takes two syncs for one
file. For thousands of files, as after a loss of every ``partition.metadata`` of a broker, it takes two barriers for
each batch::

    1  write every new file beside the old one, under its name with .logstore.tmp
    2  one barrier                                        the bytes must be durable before any rename is
    3  rename every new file, or remove the old one
    4  one barrier                                        the names are durable

A crash leaves at most temporary files, which the next open removes. Where the system refuses a step, the files of the
batch are done again one by one, so that each file is either replaced or gets its own error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from logstore.errors import LogStoreError, UnreadableFileError
from logstore.fs import (
    TEMPORARY,
    Directory,
    barrier,
    read_small_file,
    remove_file,
    replace_file,
    sync_all,
    write_new_file,
)
from logstore.log_dir.checkpoints import CHECKPOINT_LIMIT
from logstore.log_dir.log_dir import DISK_FAILURES, LogDir

logger = logging.getLogger(__name__)

FILES_AT_ONCE = 400
"""Files behind one pair of barriers; each keeps a directory open."""

_FEW_FILES = 4
"""Up to this number, each file is synced by itself."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file and the bytes that it shall hold.

    Attributes:
        path: of the file, below the log dir.
        data: its new bytes; None: remove it.
        inode: of the directory that holds it; None: any.
    """

    path: str
    data: bytes | None
    inode: int | None = None


def change_files(log_dir: LogDir, changes: Sequence[FileChange], what: str) -> dict[str, LogStoreError]:
    """Make files hold new bytes, durably. Never raises for a file: the answer holds the errors, by path.

    A file that is not in the answer is done. One in the answer holds its old bytes, unless the disk itself failed.

    Args:
        log_dir: open, and so under its lock.
        changes: each path once.
        what: the change, for messages: ``cannot be repaired``.
    """
    failed: dict[str, LogStoreError] = {}
    for start in range(0, len(changes), FILES_AT_ONCE):
        batch = changes[start : start + FILES_AT_ONCE]
        if len(batch) > _FEW_FILES and log_dir.offline is None:
            try:
                with log_dir.changing(f"{batch[0].path} and {len(batch) - 1} more {what}"):
                    _change_together(log_dir, batch)
                continue
            except LogStoreError as error:
                logger.warning("%s; trying one by one", error)
        for change in batch:
            try:
                with log_dir.changing(f"{change.path} {what}"), _open_parent(log_dir, change) as parent:
                    change_file(log_dir, parent, change.path.rpartition("/")[2], change.data)
            except LogStoreError as error:
                failed[change.path] = error
    return failed


def change_file(log_dir: LogDir, parent: Directory, name: str, data: bytes | None) -> None:
    """Make one file hold new bytes, or remove it; either succeeds, or changes nothing.

    Raises:
        OSError: nothing was changed; or the disk fails.
    """
    try:
        if data is None:
            remove_file(log_dir.disk, parent, name)
        else:
            replace_file(log_dir.disk, parent, name, data)
    except OSError as error:
        if error.errno in DISK_FAILURES or not _holds(parent, name, data):
            raise
        # Only the last sync failed: the file is changed, and a power cut may undo that.
        logger.warning("%s: %s is changed, and may change back (%s)", parent.path, name, error.strerror)


def _open_parent(log_dir: LogDir, change: FileChange) -> Directory:
    """Open the directory of a file, along no link; raise OSError where it is gone or replaced."""
    parent = log_dir.root.below(change.path.rpartition("/")[0])
    if change.inode is not None and parent.key[1] != change.inode:
        parent.close()
        raise FileNotFoundError(2, "the directory is another one by now", parent.path)
    return parent


def _change_together(log_dir: LogDir, batch: Sequence[FileChange]) -> None:
    """Steps 1 to 4. Where it fails, no temporary file is left, and some of the files may be done."""
    disk = log_dir.disk
    with ExitStack() as opened:
        waiting: dict[tuple[int, str], Directory] = {}
        try:
            parents = [opened.enter_context(_open_parent(log_dir, change)) for change in batch]
            for parent, change in zip(parents, batch, strict=True):
                if change.data is not None:
                    name = change.path.rpartition("/")[2]
                    write_new_file(disk, parent, name + TEMPORARY, change.data, durable=False)
                    waiting[parent.descriptor, name] = parent
            if waiting:
                barrier(disk, log_dir.root, parents)
            for parent, change in zip(parents, batch, strict=True):
                name = change.path.rpartition("/")[2]
                if change.data is None:
                    remove_file(disk, parent, name, durable=False)
                else:
                    disk.rename(parent.descriptor, name + TEMPORARY, parent.descriptor, name)
                    del waiting[parent.descriptor, name]
            barrier(disk, log_dir.root, parents)
        except BaseException:
            for (_, name), parent in waiting.items():
                with suppress(OSError):
                    remove_file(disk, parent, name + TEMPORARY, durable=False)
            raise


def _holds(parent: Directory, name: str, data: bytes | None) -> bool:
    try:
        return read_small_file(name, CHECKPOINT_LIMIT, parent.descriptor) == data
    except UnreadableFileError:
        return False


MOST_OPEN = 64
"""Directories that stay open; a process may usually open 1024 files."""

_FEW_DIRECTORIES = 8
"""Up to this number, each directory is synced by itself; for more, one barrier over the file system costs less."""


class OpenDirectories:
    """Directories of one log dir, opened once each while a batch works in them. Use it as a context manager.

    A batch may work in more directories than a process may have open, so only :data:`MOST_OPEN` stay open.
    """

    def __init__(self, log_dir: LogDir) -> None:
        """Start with no directory open."""
        self._log_dir = log_dir
        self._opened: dict[str, Directory] = {}

    def at(self, path: str) -> Directory:
        """Give the directory of a path, open; it stays open until :data:`MOST_OPEN` others were asked for.

        Raises:
            UnsafePathError, OSError: as :meth:`logstore.fs.Directory.below`.
        """
        found = self._opened.pop(path, None) or self._log_dir.root.below(path)
        self._opened[path] = found
        while len(self._opened) > MOST_OPEN:
            self.forget(next(iter(self._opened)))
        return found

    def has(self, path: str) -> bool:
        """Say whether the path is a directory."""
        try:
            self.at(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def holds(self, path: str) -> bool:
        """Say whether the path below the log dir is taken."""
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
            OSError: a sync failed, so the state on disk is unknown.
        """
        distinct = list(dict.fromkeys(paths))
        disk = self._log_dir.disk
        if len(distinct) > _FEW_DIRECTORIES and disk.sync_file_system(self._log_dir.root.descriptor):
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
