"""The few primitive changes to a disk, and why each is done in its order. The only code that changes a log dir.

A change is safe when a power cut at any moment leaves either what was or what should be. A file system promises little
of that by itself: what was written, created, renamed or removed may be lost or kept, each thing apart from the others,
until it was synced. Three facts carry everything here:

- a *file's bytes* are durable once the file was synced;
- an *entry* (a name that was created, renamed or removed) is durable once the directory that holds it was synced;
- a rename is atomic: after a crash the thing lies under one of the two names, never under both or none.

Every change names a directory by an open descriptor and one component of a path, so that nothing on the way can be
swapped for a link between the check and the change. :class:`Disk` is the seam: tests put another one in its place,
which records every change, or lets the n-th one fail. Source: DESIGN §5; FACTS §2 (Kafka's own recipe for small files).
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import ClassVar

from logstore.fs.directory import Directory

TEMPORARY = ".tmp"
"""Behind the name of a file while it is written: Kafka's own suffix, which every reader passes over (FACTS §2)."""

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD_FILE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Disk:
    """The primitive changes, each one system call. Every method raises OSError as the system gives it.

    Attributes:
        is_shared: several threads may use it at once; where not, whoever has one works with it alone.
    """

    is_shared: ClassVar[bool] = True

    def unique(self) -> str:
        """32 hex digits that nothing else has, for names that Kafka makes the same way; drawn anew each time."""
        return uuid.uuid4().hex

    def create(self, parent: int, name: str) -> int:
        """Make a file that was not there, and give a descriptor to write to it; a name that is taken is an error."""
        return os.open(_component(name), _NEW_FILE, 0o644, dir_fd=parent)

    def open_to_change(self, parent: int, name: str) -> int:
        """Open a file that is there, for :meth:`truncate` and for locks; nothing changes yet."""
        return os.open(_component(name), _OLD_FILE, dir_fd=parent)

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of the bytes where the descriptor stands; the system may take them in several pieces."""
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]

    def truncate(self, descriptor: int, length: int) -> None:
        """Cut a file off at that many bytes."""
        os.ftruncate(descriptor, length)

    def set_modified(self, descriptor: int, nanoseconds: int) -> None:
        """Give a file the modification time of what it is a copy of; brokers go by it for records without a time."""
        os.utime(descriptor, ns=(nanoseconds, nanoseconds))

    def sync(self, descriptor: int) -> None:
        """Make a file's bytes, or a directory's entries, durable. One that fails leaves open what is on the disk."""
        os.fsync(descriptor)

    def sync_file_system(self, descriptor: int) -> bool:
        """Make everything durable on the file system that holds the descriptor; False: this system has no such call.

        One such barrier for a thousand small files costs about as much as syncing a few of them, one by one.
        """
        if _SYNCFS is None:
            return False
        if _SYNCFS(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return True

    def mkdir(self, parent: int, name: str) -> None:
        """Make a directory that was not there."""
        os.mkdir(_component(name), 0o755, dir_fd=parent)

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        """Give a file or directory another name or another parent; a *file* that has the new name is replaced."""
        os.rename(_component(name), _component(new_name), src_dir_fd=source, dst_dir_fd=target)

    def link(self, source: int, name: str, target: int, new_name: str) -> None:
        """Give a file one more name, which must not be taken. A link to a file costs a fifth of making one."""
        os.link(_component(name), _component(new_name), src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)

    def unlink(self, parent: int, name: str) -> None:
        """Remove the name of a file, or of a link, never what a link leads to."""
        os.unlink(_component(name), dir_fd=parent)

    def rmdir(self, parent: int, name: str) -> None:
        """Remove a directory that is empty."""
        os.rmdir(_component(name), dir_fd=parent)


def replace_file(disk: Disk, parent: Directory, name: str, data: bytes) -> None:
    """Write a small file so that a reader finds the old bytes or the new ones, whatever happens meanwhile.

    The bytes go into a temporary file beside it, and are synced *before* the rename: a rename may become durable before
    the bytes do, and then the file would be empty. The directory is synced after it, else the old file may come back.

    Raises:
        OSError: nothing was replaced, and no temporary file is left; or only the last sync failed, and either the old
            or the new bytes are there after a crash.
    """
    temporary = name + TEMPORARY
    descriptor = create_anew(disk, parent, temporary)
    try:
        try:
            disk.write(descriptor, data)
            disk.sync(descriptor)
        finally:
            os.close(descriptor)
        disk.rename(parent.descriptor, temporary, parent.descriptor, name)
    except OSError:
        with suppress(OSError):
            disk.unlink(parent.descriptor, temporary)
        raise
    disk.sync(parent.descriptor)


def create_anew(disk: Disk, parent: Directory, name: str) -> int:
    """Create a file of a name that is ours alone; what an earlier crash left under it goes."""
    try:
        return disk.create(parent.descriptor, name)
    except FileExistsError:
        disk.unlink(parent.descriptor, name)
        return disk.create(parent.descriptor, name)


def write_new_file(disk: Disk, parent: Directory, name: str, data: bytes, *, durable: bool) -> None:
    """Write a small file into a directory that nobody reads yet; where that fails, no file is left.

    Args:
        disk: the seam.
        parent: where it goes.
        name: one that is ours alone: what an earlier crash left under it goes.
        data: all of its bytes.
        durable: sync the file and its entry now; False: the caller sets one barrier for many (:func:`barrier`).

    Raises:
        OSError: there is no such file; or only the sync of its entry failed.
    """
    descriptor = create_anew(disk, parent, name)
    try:
        try:
            disk.write(descriptor, data)
            if durable:
                disk.sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        with suppress(OSError):
            disk.unlink(parent.descriptor, name)
        raise
    if durable:
        disk.sync(parent.descriptor)


def make_directory(disk: Disk, parent: Directory, name: str) -> Directory:
    """Make a directory, durable as an entry of its parent, and open it; one that is there already is opened.

    The parent is synced also when the directory was there: whoever made it may have crashed before doing that.

    Raises:
        OSError: it cannot be made, or what has that name is no directory.
    """
    with suppress(FileExistsError):
        disk.mkdir(parent.descriptor, name)
    disk.sync(parent.descriptor)
    return parent.child(name)


def rename_exclusively(disk: Disk, source: Directory, name: str, target: Directory, new_name: str) -> None:
    """Rename within one file system, and refuse to replace anything.

    Nothing is synced: the caller syncs the parents, :func:`sync_all`, once for all that it moves. The look before the
    rename is safe because whoever changes a log dir holds its lock; the system itself refuses to replace a directory
    that is not empty.

    Raises:
        FileExistsError: the new name is taken.
        OSError: as the system gives it.
    """
    if target.holds(new_name):
        raise FileExistsError(errno.EEXIST, "the name is taken", target.path_of(new_name))
    disk.rename(source.descriptor, name, target.descriptor, new_name)


def sync_all(disk: Disk, directories: Iterable[Directory]) -> None:
    """Make the entries of several directories durable, each directory once, the ones that gained entries first.

    The order that is given is kept, for a directory may be among them under two handles.
    """
    seen: set[tuple[int, int]] = set()
    for directory in directories:
        if directory.key not in seen:
            seen.add(directory.key)
            disk.sync(directory.descriptor)


def barrier(disk: Disk, of_file_system: Directory, directories: Iterable[Directory]) -> bool:
    """Make many small files durable at once: the whole file system, or where there is no such call each by itself.

    Args:
        disk: the seam.
        of_file_system: any directory on it.
        directories: those that hold the new files, asked for only where there is no such call; then each of their
            files is synced, and its entry.

    Returns:
        Whether it was the whole file system.
    """
    if disk.sync_file_system(of_file_system.descriptor):
        return True
    for directory in directories:
        for name in directory.plain_files():
            descriptor = disk.open_to_change(directory.descriptor, name)
            try:
                disk.sync(descriptor)
            finally:
                os.close(descriptor)
        disk.sync(directory.descriptor)
    return False


def remove_file(disk: Disk, parent: Directory, name: str, *, durable: bool = True) -> None:
    """Remove a file's name, unless it is gone already; without ``durable`` it may come back after a crash."""
    with suppress(FileNotFoundError):
        disk.unlink(parent.descriptor, name)
    if durable:
        disk.sync(parent.descriptor)


def remove_tree(disk: Disk, parent: Directory, name: str) -> None:
    """Remove a directory and all below it, a file at a time, along no link and into no other file system.

    One descriptor is open for each level and nothing calls itself, so a tree that somebody made too deep on purpose is
    an error of the system like any other. Not durable by itself: the caller syncs the parent. What was removed so far
    stays removed where this stops, so it can be called again. For trees that nobody will ask for again; ``purge`` has
    its own way, which keeps a record.

    Raises:
        OSError: something in it cannot be removed.
        UnsafePathError: another file system is mounted in it.
    """
    path, names = [parent.child(name)], [name]
    left = [path[0].entries()]
    try:
        while path:
            for entry, is_directory in left[-1]:
                if is_directory:
                    path.append(path[-1].child(entry))
                    names.append(entry)
                    left.append(path[-1].entries())
                    break
                disk.unlink(path[-1].descriptor, entry)
            else:
                path.pop().close()
                left.pop()
                disk.rmdir((path[-1] if path else parent).descriptor, names.pop())
    finally:
        for directory in path:
            directory.close()


def _component(name: str) -> str:
    """One component of a path; anything that would lead elsewhere is the caller's bug, and never reaches the disk."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name!r:.80} is no name of a directory entry")
    return name


def _find_syncfs() -> ctypes._NamedFuncPointer | None:
    """Linux's ``syncfs``, which Python does not offer; None elsewhere."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


_SYNCFS = _find_syncfs()
