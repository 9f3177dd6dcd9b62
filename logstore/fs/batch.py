"""Many changes below one directory behind few syncs: files written together, directories renamed together.

Directories are opened once each. What nothing reads yet is written and made durable before it gets a name that counts.
Directories that were renamed are durable once their parents are synced (:meth:`Batch.sync`): first those that gained an
entry, then those that lost one. Until then a crash takes each rename back or keeps it, by itself.

Each replaced file holds its old bytes or its new ones at any time, also after a crash. For one file that takes two
syncs. For thousands of files it takes two barriers for each batch::

    1  write every new file beside the old one, under its name with .logstore.tmp
    2  one barrier                                        the bytes must be durable before any rename is
    3  rename every new file, or remove the old one
    4  one barrier                                        the names are durable

A crash leaves at most temporary files, which the next open of a log dir removes. Where there are few files, each is
synced by itself instead: a barrier also waits for everything else that is written to the file system.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Self

from logstore.fs.directory import Directory
from logstore.fs.durable import (
    TEMPORARY,
    Disk,
    barrier,
    remove_file,
    rename_exclusively,
    sync_all,
    write_draft,
)
from logstore.tunables import DIRECTORIES_SYNCED_ALONE, FILES_AT_ONCE, FILES_SYNCED_ALONE


class Batch:
    """Changes below one directory, by paths from there. Use it as a context manager.

    A batch may work in more directories than a process may have open, so only :data:`FILES_AT_ONCE` stay open.
    """

    def __init__(self, disk: Disk, root: Directory) -> None:
        """Start with no directory open.

        Args:
            disk: the seam.
            root: the directory that paths start from; it stays open, and is not closed here.
        """
        self._disk, self._root = disk, root
        self._opened: dict[str, Directory] = {}

    def at(self, path: str) -> Directory:
        """Give the directory of a path, open; it stays open until :data:`FILES_AT_ONCE` others were asked for.

        Raises:
            UnsafePathError, OSError: as :meth:`logstore.fs.Directory.below`.
        """
        found = self._opened.pop(path, None) or self._root.below(path)
        self._opened[path] = found
        while len(self._opened) > FILES_AT_ONCE:
            self.forget(next(iter(self._opened)))
        return found

    def parent(self, path: str) -> Directory:
        """Give the directory that holds a path, open, as :meth:`at` does."""
        return self.at(_split(path)[0])

    def has(self, path: str) -> bool:
        """Say whether the path is a directory."""
        try:
            self.at(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def holds(self, path: str) -> bool:
        """Say whether the path below the root is taken."""
        folder, name = _split(path)
        return self.has(folder) and self.at(folder).holds(name)

    def forget(self, path: str) -> None:
        """Close a directory, for example because it is about to be removed."""
        found = self._opened.pop(path, None)
        if found is not None:
            found.close()

    def rename(self, path: str, new_path: str) -> None:
        """Rename a directory, and refuse to replace anything; the caller syncs the parents once for all of its renames.

        Raises:
            FileExistsError: the new path is taken.
            UnsafePathError, OSError: as :meth:`at`; or from the system.
        """
        self.forget(path)
        (folder, name), (new_folder, new_name) = _split(path), _split(new_path)
        source = self.at(folder)
        target = source if new_folder == folder else self.at(new_folder)
        rename_exclusively(self._disk, source, name, target, new_name)

    def create(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write files that nothing reads yet, durably, under their own names.

        Args:
            files: the path and the bytes of each. A file that an earlier crash left there is removed.

        Raises:
            OSError: no file is left; or only the sync of an entry failed.
        """
        self._write(files)
        if len(files) <= FILES_SYNCED_ALONE:
            self.sync(_split(path)[0] for path, _ in files)

    def replace(self, changes: Sequence[tuple[str, bytes | None]], touched: Iterable[str] = ()) -> None:
        """Make files hold new bytes, durably: steps 1 to 4.

        Args:
            changes: the path of each file, once, and its new bytes; None: remove it.
            touched: further directories whose entries are made durable with those of the files.

        Raises:
            OSError: no temporary file is left. Where the system refused to write, nothing was changed; else some of the
                files may be done.
        """
        waiting = {path + TEMPORARY: data for path, data in changes if data is not None}
        self._write(list(waiting.items()))
        try:
            for path, data in changes:
                folder, name = _split(path)
                parent = self.at(folder)
                if data is None:
                    remove_file(self._disk, parent, name, durable=False)
                else:
                    self._disk.rename(parent.descriptor, name + TEMPORARY, parent.descriptor, name)
                    del waiting[path + TEMPORARY]
        except BaseException:
            self._remove(waiting)
            raise
        self.sync([*(_split(path)[0] for path, _ in changes), *touched])

    def sync(self, paths: Iterable[str]) -> None:
        """Make the entries of directories durable, in the order given, or all at once where they are many.

        Raises:
            OSError: a sync failed, so the state on disk is unknown.
        """
        distinct = list(dict.fromkeys(paths))
        if len(distinct) > DIRECTORIES_SYNCED_ALONE and self._disk.sync_file_system(self._root.descriptor):
            return
        for path in distinct:
            sync_all(self._disk, [self.at(path)])

    def _write(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Steps 1 and 2; where they fail, no file is left."""
        few, written = len(files) <= FILES_SYNCED_ALONE, list[str]()
        try:
            for path, data in files:
                folder, name = _split(path)
                write_draft(self._disk, self.at(folder), name, data, sync=few)
                written.append(path)
            if not few:
                barrier(self._disk, self._root, map(self.parent, written))
        except BaseException:
            self._remove(written)
            raise

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with suppress(OSError):
                remove_file(self._disk, self.parent(path), _split(path)[1], durable=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for path in list(self._opened):
            self.forget(path)


def _split(path: str) -> tuple[str, str]:
    """Split a path into its directory and its name."""
    folder, _, name = path.rpartition("/")
    return folder, name
