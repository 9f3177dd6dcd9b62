"""The disks of one machine as the engine changes them: a crash takes back unsynced changes, a dead disk gives EIO.

Each change is made at once on a real file system, and remembered until it is synced, so that a crash can take it back.
Nothing is really synced: a cut of the machine's real power does not matter here, and syncs would be slow. Each disk is
a file system of its own, so no rename or link leads from one to another. One thread works with it at a time.

Reads do not pass through here. A disk that failed is replaced at its mount point by an empty one that gives EIO as soon
as its lock is asked for, so opening it, or reading it by a path, fails. Files opened before may still be read, as a
system may still have them in memory, until the first change fails. A caller that reads by itself calls
:meth:`CrashDisk.check`. A file or directory that was made in any other way is a mistake of the program, and a
RuntimeError.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from random import Random

from logstore.fs.crash_disk.image import ChangeKind, NameChange
from logstore.fs.crash_disk.settle import settle
from logstore.fs.crash_disk.unsynced import DataChange
from logstore.fs.crash_disk.volume import Volume
from logstore.fs.durable import Disk


class CrashDisk(Disk):
    """All disks of one machine.

    Attributes:
        fail: called to make a disk fail when its ``fails_in`` has run out; set by the owner of the disks.
        names: source of the digits of unique names, so that one seed gives one history.
    """

    is_shared = False

    def __init__(self, passes: Callable[[], None] = lambda: None) -> None:
        """Start without any disk.

        Args:
            passes: called before each change; may raise, as for a machine that loses its power now.
        """
        self._passes = passes
        self._places: dict[int, tuple[Volume, int]] = {}
        self._dead: set[int] = set()
        self.fail: Callable[[Volume], None] = lambda volume: None
        self.names = Random(0)

    def unique(self) -> str:
        """Draw 32 hex digits from ``names``."""
        return self.names.getrandbits(128).to_bytes(16, "big").hex()

    def mounted(self, volume: Volume) -> None:
        """Accept changes for everything on a disk now, and forget its former inodes."""
        volume.changes += 1
        for inode in [inode for inode, (found, _) in self._places.items() if found is volume]:
            del self._places[inode]
        self._places.update({inode: (volume, node) for node, inode in volume.inodes.items()})
        self._dead.difference_update(volume.inodes.values())

    def died(self, inodes: set[int]) -> None:
        """Answer every change to these inodes with EIO from now on."""
        for inode in sorted(inodes):
            self._places.pop(inode, None)
        self._dead |= inodes

    def settle(self, volume: Volume, random: Random) -> None:
        """Let a crash take back unsynced changes of one disk."""
        settle(volume, random)
        self.mounted(volume)

    def check(self, descriptor: int) -> None:
        """Raise OSError with EIO when the descriptor belongs to a disk that failed."""
        self._at(descriptor)

    def create(self, parent: int, name: str) -> int:
        """Create a file, which a crash may take back."""
        volume, directory = self._change(parent, takes_space=True)
        descriptor = super().create(parent, name)
        self._added(volume, ChangeKind.CREATE, directory, name, os.fstat(descriptor).st_ino)
        return descriptor

    def open_to_change(self, parent: int, name: str) -> int:
        """Open a file, unless the disk failed."""
        self._at(parent)
        return super().open_to_change(parent, name)

    def write(self, descriptor: int, data: bytes) -> None:
        """Write; on a full disk half of the bytes are written before the error."""
        volume, node = self._change(descriptor)
        written = data[: len(data) // 2] if volume.is_full else data
        change = write_change(node, descriptor, written)
        super().write(descriptor, written)
        volume.unsynced.take(change)
        if len(written) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def truncate(self, descriptor: int, length: int) -> None:
        """Truncate, and keep the old bytes."""
        volume, node = self._change(descriptor)
        change = truncate_change(node, descriptor, length)
        super().truncate(descriptor, length)
        volume.unsynced.take(change)

    def set_modified(self, descriptor: int, nanoseconds: int) -> None:
        """Set the time; no crash takes that back, because nothing depends on it here."""
        volume, _ = self._at(descriptor)
        volume.changes += 1
        super().set_modified(descriptor, nanoseconds)

    def sync(self, descriptor: int) -> None:
        """Record that no crash takes back changes to this file, or to the names in this directory, any more."""
        volume, node = self._change(descriptor)
        volume.unsynced.sync((node,))
        self._drop_durable_orphans(volume)

    def sync_file_system(self, descriptor: int) -> bool:
        """Record the same for everything on this disk."""
        volume, _ = self._change(descriptor)
        volume.unsynced.sync_all()
        self._drop_durable_orphans(volume)
        return True

    def mkdir(self, parent: int, name: str) -> None:
        """Make a directory, which a crash may take back."""
        volume, directory = self._change(parent, takes_space=True)
        super().mkdir(parent, name)
        self._added(volume, ChangeKind.MKDIR, directory, name, os.stat(name, dir_fd=parent).st_ino)

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        """Rename; a replaced file that loses its last name becomes an orphan."""
        volume, directory, into = self._change_two(source, target)
        held = volume.unsynced.present.directories
        node, replaced = held[directory].get(name), held[into].get(new_name)
        kept = None
        if replaced is not None and replaced != node and replaced not in held and _is_last_name(target, new_name):
            kept = volume.new_orphan(replaced)
            super().link(target, new_name, volume.orphans.descriptor, kept)
        try:
            super().rename(source, name, target, new_name)
        except OSError:
            if kept is not None and replaced is not None:
                super().unlink(volume.orphans.descriptor, kept)
                volume.forget_orphan(replaced, kept)
            raise
        change = NameChange(ChangeKind.RENAME, directory, name, _known(node, name), into, new_name)
        volume.unsynced.take(change)

    def link(self, source: int, name: str, target: int, new_name: str) -> None:
        """Link; a crash may take the new name back."""
        volume, directory, into = self._change_two(source, target)
        _check_space(volume)
        super().link(source, name, target, new_name)
        node = _known(volume.unsynced.present.directories[directory].get(name), name)
        volume.unsynced.take(NameChange(ChangeKind.LINK, into, new_name, node))

    def unlink(self, parent: int, name: str) -> None:
        """Unlink; a file that loses its last name becomes an orphan until this is durable."""
        volume, directory = self._change(parent)
        held = volume.unsynced.present.directories
        node = held[directory].get(name)
        if node is None or node in held:
            super().unlink(parent, name)  # raises the system's error: there is no such entry, or it is a directory
        node = _known(node, name)
        if _is_last_name(parent, name):
            super().rename(parent, name, volume.orphans.descriptor, volume.new_orphan(node))
        else:
            super().unlink(parent, name)
        volume.unsynced.take(NameChange(ChangeKind.UNLINK, directory, name, node))

    def rmdir(self, parent: int, name: str) -> None:
        """Remove a directory, which a crash may bring back."""
        volume, directory = self._change(parent)
        super().rmdir(parent, name)
        node = _known(volume.unsynced.present.directories[directory].get(name), name)
        volume.unsynced.take(NameChange(ChangeKind.RMDIR, directory, name, node))

    def _added(self, volume: Volume, kind: ChangeKind, directory: int, name: str, inode: int) -> None:
        node = volume.new_node(inode)
        self._places[inode] = (volume, node)
        self._dead.discard(inode)
        volume.unsynced.take(NameChange(kind, directory, name, node))

    def _drop_durable_orphans(self, volume: Volume) -> None:
        if volume.orphan_names and not volume.unsynced.names:
            for inode in volume.drop_orphans():
                self._places.pop(inode, None)

    def _change_two(self, source: int, target: int) -> tuple[Volume, int, int]:
        volume, directory = self._change(source)
        if target == source:
            return volume, directory, directory
        other, into = self._at(target)
        if other is not volume:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return volume, directory, into

    def _change(self, descriptor: int, *, takes_space: bool = False) -> tuple[Volume, int]:
        """Find the place of a change; raise when the power, the disk or its space fails now."""
        self._passes()
        volume, node = self._at(descriptor)
        volume.changes += 1
        if volume.fails_in is not None:
            if volume.fails_in <= 0:
                self.fail(volume)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            volume.fails_in -= 1
        if takes_space:
            _check_space(volume)
        return volume, node

    def _at(self, descriptor: int) -> tuple[Volume, int]:
        inode = os.fstat(descriptor).st_ino
        found = self._places.get(inode)
        if found is not None and not found[0].is_offline:
            return found
        if found is None and inode not in self._dead:
            raise RuntimeError(
                f"{os.readlink(f'/proc/self/fd/{descriptor}')} was made without the disks of this machine, or lies on "
                "none of them: change it through them alone"
            )
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def write_change(node: int, descriptor: int, data: bytes) -> DataChange:
    """Describe a write at the descriptor's position to a file, before it is done."""
    # To move the position and back takes less than to ask for the status.
    offset, size = os.lseek(descriptor, 0, os.SEEK_CUR), os.lseek(descriptor, 0, os.SEEK_END)
    if offset != size:
        os.lseek(descriptor, offset, os.SEEK_SET)
    old = _read(descriptor, offset, min(len(data), size - offset)) if offset < size else b""
    return DataChange(node, offset, bytes(data), size, old)


def truncate_change(node: int, descriptor: int, length: int) -> DataChange:
    """Describe a truncation of a file to a length, before it is done."""
    size = os.fstat(descriptor).st_size
    return DataChange(node, length, None, size, _read(descriptor, length, size - length))


def _check_space(volume: Volume) -> None:
    if volume.is_full:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _is_last_name(parent: int, name: str) -> bool:
    return os.stat(name, dir_fd=parent, follow_symlinks=False).st_nlink == 1


def _known(node: int | None, name: str) -> int:
    if node is None:
        raise RuntimeError(f"{name!r:.60} was made without the disks of this machine: change it through them alone")
    return node


def _read(descriptor: int, offset: int, length: int) -> bytes:
    """Read the bytes that are about to be overwritten; the descriptor itself may be for writing only."""
    if length <= 0:
        return b""
    again = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(again, length, offset)
    finally:
        os.close(again)
