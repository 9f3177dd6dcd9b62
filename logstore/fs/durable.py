"""The few primitive changes to a disk, and why each is done in its order. The only code that changes a log dir.

A change is safe when a power cut at any moment leaves either the old state or the new one. A file system promises
little of that by itself: until they are synced, a write, a creation, a rename and a removal may each be lost or kept,
independently of the others. Everything here rests on three facts:

- a *file's bytes* are durable once the file was synced;
- an *entry* (a name that was created, renamed or removed) is durable once the directory that holds it was synced;
- a rename is atomic: after a crash the entry has one of the two names, never both or none.

Every change names its target by the descriptor of an open directory and one component of a path, so that nothing on the
way can be swapped for a link between the check and the change. :class:`Disk` is the seam: tests replace it by a disk
that records every change, or fails the n-th one. Source: DESIGN §5; FACTS §2 (Kafka's own recipe for small files).

What root makes belongs to the owner of the directory that it is made in: a broker runs as the owner of its log dir, and
must read its checkpoints, open its lock and write to its replicas, whatever the umask of root is.
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

TEMPORARY = ".logstore.tmp"
"""Suffix of a file while this program writes it; every reader ignores it (FACTS §2).

Kafka's own suffix is ``.tmp``. Another one says whose the file is: what ends like this is ours to remove after a crash,
and a broker's half-written checkpoint, which may be all that is left of it, is not."""

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD_FILE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ROOT = 0


class Disk:
    """The primitive changes, each one system call. Every method raises the system's OSError.

    Attributes:
        is_shared: whether several threads may use it at once.
    """

    is_shared: ClassVar[bool] = True

    def unique(self) -> str:
        """Draw 32 random hex digits, for unique names as Kafka makes them."""
        return uuid.uuid4().hex

    def create(self, parent: int, name: str) -> int:
        """Create a file, and return a descriptor to write to it; a name that is taken is an error."""
        descriptor = os.open(_checked_name(name), _NEW_FILE, 0o644, dir_fd=parent)
        if _is_of_another(parent):
            _give_to_owner(descriptor, parent)
        return descriptor

    def open_to_change(self, parent: int, name: str) -> int:
        """Open an existing file, for :meth:`truncate` and for locks; nothing changes yet."""
        return os.open(_checked_name(name), _OLD_FILE, dir_fd=parent)

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of the bytes at the descriptor's position; the system may take them in several pieces."""
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]

    def truncate(self, descriptor: int, length: int) -> None:
        """Cut a file off at ``length`` bytes."""
        os.ftruncate(descriptor, length)

    def set_modified(self, descriptor: int, nanoseconds: int) -> None:
        """Set a file's modification time. Brokers use it for records without a timestamp, so a copy must keep it."""
        os.utime(descriptor, ns=(nanoseconds, nanoseconds))

    def sync(self, descriptor: int) -> None:
        """Make a file's bytes, or a directory's entries, durable. After a failure the disk's state is unknown."""
        os.fsync(descriptor)

    def sync_file_system(self, descriptor: int) -> bool:
        """Make the whole file system of the descriptor durable; return False where the system has no such call.

        One such barrier for a thousand small files costs about as much as syncing a few of them one by one.
        """
        if _SYNCFS is None:
            return False
        if _SYNCFS(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return True

    def mkdir(self, parent: int, name: str) -> None:
        """Make a directory; a name that is taken is an error."""
        os.mkdir(_checked_name(name), 0o755, dir_fd=parent)
        if _is_of_another(parent):
            with suppress(OSError):
                made = os.open(name, _DIRECTORY, dir_fd=parent)
                try:
                    # Its owner may have put another directory of root's there meanwhile, which is not to change hands.
                    if not os.listdir(made):
                        _give_to_owner(made, parent)
                finally:
                    os.close(made)

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        """Give a file or directory another name or another parent; a *file* of the new name is replaced."""
        os.rename(_checked_name(name), _checked_name(new_name), src_dir_fd=source, dst_dir_fd=target)

    def link(self, source: int, name: str, target: int, new_name: str) -> None:
        """Give a file one more name, which must be free. A link costs a fifth of a new file."""
        os.link(
            _checked_name(name), _checked_name(new_name), src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False
        )

    def unlink(self, parent: int, name: str) -> None:
        """Remove the name of a file, or a link itself, never the target of a link."""
        os.unlink(_checked_name(name), dir_fd=parent)

    def rmdir(self, parent: int, name: str) -> None:
        """Remove an empty directory."""
        os.rmdir(_checked_name(name), dir_fd=parent)


def replace_file(disk: Disk, parent: Directory, name: str, data: bytes) -> None:
    """Replace a small file so that a reader finds the old bytes or the new ones at any time, also after a crash.

    The bytes go into a temporary file beside it, and are synced *before* the rename: a rename may become durable before
    the bytes do, and then the file would be empty. The directory is synced afterwards, or the old file may come back.

    Raises:
        OSError: nothing was replaced, and no temporary file is left; or only the last sync failed, and a crash leaves
            either the old or the new bytes.
    """
    _replace(disk, parent, name, data, name + TEMPORARY)


def publish_file(path: str, data: bytes) -> None:
    """Replace a small file outside every log dir, which programs of other users read, whatever the umask says.

    A reader finds the old bytes or the new ones at any time. Nothing keeps two commands apart that write the same file,
    so the temporary file has the number of this process in its name.

    Raises:
        OSError: nothing was replaced, and no temporary file is left; or only the last sync failed.
    """
    disk, (folder, name) = Disk(), os.path.split(path)
    with Directory.open(folder or os.curdir) as parent:
        _replace(disk, parent, name, data, f"{name}.{os.getpid()}{TEMPORARY}", mode=0o644)


def _replace(disk: Disk, parent: Directory, name: str, data: bytes, temporary: str, *, mode: int | None = None) -> None:
    write_draft(disk, parent, temporary, data, sync=True, mode=mode)
    try:
        disk.rename(parent.descriptor, temporary, parent.descriptor, name)
    except OSError:
        with suppress(OSError):
            disk.unlink(parent.descriptor, temporary)
        raise
    disk.sync(parent.descriptor)


def create_anew(disk: Disk, parent: Directory, name: str) -> int:
    """Create a file under a name that only this program uses; remove a file that an earlier crash left there."""
    try:
        return disk.create(parent.descriptor, name)
    except FileExistsError:
        disk.unlink(parent.descriptor, name)
        return disk.create(parent.descriptor, name)


def write_new_file(disk: Disk, parent: Directory, name: str, data: bytes, *, durable: bool) -> None:
    """Write a small file that nothing reads yet; where that fails, no file is left.

    Args:
        disk: the seam.
        parent: the directory of the file.
        name: a name that only this program uses: a file that an earlier crash left there is removed.
        data: all of its bytes.
        durable: sync the file and its entry now; False: the caller sets one barrier for many files (:func:`barrier`).

    Raises:
        OSError: the file does not exist; or only the sync of its entry failed.
    """
    write_draft(disk, parent, name, data, sync=durable)
    if durable:
        disk.sync(parent.descriptor)


def write_draft(disk: Disk, parent: Directory, name: str, data: bytes, *, sync: bool, mode: int | None = None) -> None:
    """Write a file that nothing reads yet, without a sync of its entry; where that fails, no file is left.

    Args:
        disk: the seam.
        parent: the directory of the file.
        name: as for :func:`write_new_file`.
        data: all of its bytes.
        sync: make the bytes durable.
        mode: the permissions, whatever the umask says; None: 0644 as far as that allows.
    """
    descriptor = create_anew(disk, parent, name)
    try:
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            disk.write(descriptor, data)
            if sync:
                disk.sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        with suppress(OSError):
            disk.unlink(parent.descriptor, name)
        raise


def make_directory(disk: Disk, parent: Directory, name: str, *, owned_like: Directory | None = None) -> Directory:
    """Make a directory, durable as an entry of its parent, and open it; an existing directory is just opened.

    The parent is synced also for an existing directory, since its maker may have crashed before the sync.

    Args:
        disk: the seam.
        parent: the directory that holds it.
        name: its name there.
        owned_like: the directory whose owner it belongs to where root makes it; None: the parent.

    Raises:
        OSError: it cannot be made, or the name belongs to something that is no directory.
    """
    made = False
    with suppress(FileExistsError):
        disk.mkdir(parent.descriptor, name)
        made = True
    disk.sync(parent.descriptor)
    found = parent.child(name)
    if made and owned_like is not None and _is_of_another(owned_like.descriptor):
        _give_to_owner(found.descriptor, owned_like.descriptor)
    return found


def rename_exclusively(disk: Disk, source: Directory, name: str, target: Directory, new_name: str) -> None:
    """Rename within one file system, and refuse to replace anything.

    Nothing is synced: the caller syncs the parents once for all of its renames (:func:`sync_all`). The check before the
    rename is safe because only the holder of its lock changes a log dir. The system itself refuses to replace a
    directory that is not empty.

    Raises:
        FileExistsError: the new name is taken.
        OSError: the system's error.
    """
    if target.holds(new_name):
        raise FileExistsError(errno.EEXIST, "the name is taken", target.path_of(new_name))
    disk.rename(source.descriptor, name, target.descriptor, new_name)


def sync_all(disk: Disk, directories: Iterable[Directory]) -> None:
    """Make the entries of several directories durable, in the order given: pass directories that gained entries first.

    Each directory is synced once, even if it is open under two handles.
    """
    seen: set[tuple[int, int]] = set()
    for directory in directories:
        if directory.key not in seen:
            seen.add(directory.key)
            disk.sync(directory.descriptor)


def barrier(disk: Disk, of_file_system: Directory, directories: Iterable[Directory]) -> bool:
    """Make many small files durable at once, by one sync of the file system, or one by one where the system cannot.

    Args:
        disk: the seam.
        of_file_system: any directory on the file system.
        directories: the directories of the new files. They are read only where the system has no such call; then all of
            their files and entries are synced.

    Returns:
        Whether the whole file system was synced.
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
    """Remove a file, unless it is gone already; without ``durable`` it may come back after a crash."""
    with suppress(FileNotFoundError):
        disk.unlink(parent.descriptor, name)
    if durable:
        disk.sync(parent.descriptor)


def remove_tree(disk: Disk, parent: Directory, name: str) -> None:
    """Remove a directory and all below it, a file at a time, along no link and into no other file system.

    One descriptor is open for each level, and there is no recursion, so a tree that was made too deep on purpose gives
    an ordinary error of the system. Not durable by itself: the caller syncs the parent. After an error, the removed
    files stay removed, and the call can be repeated. Use it for trees that need no record; ``purge`` has its own way,
    which keeps one.

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


def _is_of_another(directory: int) -> bool:
    """Whether this is root, and a directory belongs to somebody else."""
    return os.geteuid() == _ROOT and os.fstat(directory).st_uid != _ROOT


def _give_to_owner(descriptor: int, directory: int) -> None:
    """Give what root has made to the owner of a directory; where root may not do that, it stays as it is."""
    owner = os.fstat(directory)
    with suppress(OSError):
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def _checked_name(name: str) -> str:
    """Check that a name is one component of a path. Another name is a bug of the caller, and never reaches the disk."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name!r:.80} is no name of a directory entry")
    return name


def _find_syncfs() -> ctypes._NamedFuncPointer | None:
    """Find Linux's ``syncfs``, which Python does not offer; None elsewhere."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


_SYNCFS = _find_syncfs()
