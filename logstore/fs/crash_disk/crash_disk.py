"""The disks of one machine as its engine changes them: a crash takes what was not synced, a dead disk gives EIO.

What the engine does is done at once on a real file system, and remembered until it is synced; so a crash can take it
back. Nothing is synced in truth: what survives a cut of the real power is of no interest here, and this is what makes
it fast. Each disk is a file system of its own, so that no rename or link leads from one to another. One thread works
with it at a time.

What the engine *reads* does not come this way. A disk that failed is replaced at its mount point by an empty one that
gives EIO as soon as its lock is asked for, so that opening it, or reading it by a path, fails; what was opened before
may still be read, as a system may still have it in memory, until the first change fails. :meth:`CrashDisk.check` is for
those who read by themselves. What was made there in any other way is a mistake of the program, and a RuntimeError.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from random import Random

from logstore.fs.crash_disk.settle import settle
from logstore.fs.crash_disk.unsynced import Change, NameChange, Overwritten
from logstore.fs.crash_disk.volume import Volume
from logstore.fs.durable import Disk


class CrashDisk(Disk):
    """Changes of all disks of one machine.

    Attributes:
        fail: what makes a disk fail whose time has come; set by ``disks``.
        names: where the digits of unique names are drawn from, so that one seed gives one history.
    """

    is_shared = False

    def __init__(self, passes: Callable[[], None] = lambda: None) -> None:
        """No disk yet.

        Args:
            passes: called before each change; may raise, as for a machine that loses its power now.
        """
        self._passes = passes
        self._places: dict[int, tuple[Volume, int]] = {}
        self._dead: set[int] = set()
        self.fail: Callable[[Volume], None] = lambda volume: None
        self.names = Random(0)

    def unique(self) -> str:
        """As the engine knows it."""
        return f"{self.names.getrandbits(128):032x}"

    def mounted(self, volume: Volume) -> None:
        """Take changes for what lies on a disk now, whatever was there before under the same inodes."""
        for inode in [inode for inode, (found, _) in self._places.items() if found is volume]:
            del self._places[inode]
        self._places.update({inode: (volume, node) for node, inode in volume.inodes.items()})
        self._dead.difference_update(volume.inodes.values())

    def died(self, inodes: set[int]) -> None:
        """Answer with EIO from now on whatever is done there."""
        for inode in sorted(inodes):
            self._places.pop(inode, None)
        self._dead |= inodes

    def settle(self, volume: Volume, random: Random) -> None:
        """Let a crash take of one disk what it may."""
        settle(volume, random)
        self.mounted(volume)

    def check(self, descriptor: int) -> None:
        """Raise OSError, EIO, when what is open there lies on a disk that failed."""
        self._at(descriptor)

    def create(self, parent: int, name: str) -> int:
        """As the engine knows it."""
        volume, directory = self._change(parent, takes_space=True)
        descriptor = super().create(parent, name)
        self._added(volume, directory, name, os.fstat(descriptor).st_ino)
        return descriptor

    def open_to_change(self, parent: int, name: str) -> int:
        """As the engine knows it."""
        self._at(parent)
        return super().open_to_change(parent, name)

    def write(self, descriptor: int, data: bytes) -> None:
        """As the engine knows it; on a full disk half of it is written before there is no room."""
        volume, node = self._change(descriptor)
        written = data[: len(data) // 2] if volume.is_full else data
        offset, size = os.lseek(descriptor, 0, os.SEEK_CUR), os.fstat(descriptor).st_size
        old = _read(descriptor, offset, min(len(written), size - offset)) if offset < size else b""
        super().write(descriptor, written)
        volume.unsynced.overwrite(node, Overwritten(offset, len(written), size, old))
        if len(written) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def truncate(self, descriptor: int, length: int) -> None:
        """As the engine knows it."""
        volume, node = self._change(descriptor)
        size = os.fstat(descriptor).st_size
        old = _read(descriptor, length, size - length) if length < size else b""
        super().truncate(descriptor, length)
        volume.unsynced.overwrite(node, Overwritten(length, -1, size, old))

    def set_modified(self, descriptor: int, nanoseconds: int) -> None:
        """As the engine knows it; no crash takes it back, for nobody goes by it here."""
        self._at(descriptor)
        super().set_modified(descriptor, nanoseconds)

    def sync(self, descriptor: int) -> None:
        """From here on no crash takes back what was done to this file, or to the names in this directory."""
        volume, node = self._change(descriptor)
        volume.unsynced.sync(node)
        self._let_go(volume)

    def sync_file_system(self, descriptor: int) -> bool:
        """The same for all that lies on this disk."""
        volume, _ = self._change(descriptor)
        volume.unsynced.sync_all()
        self._let_go(volume)
        return True

    def mkdir(self, parent: int, name: str) -> None:
        """As the engine knows it."""
        volume, directory = self._change(parent, takes_space=True)
        super().mkdir(parent, name)
        self._added(volume, directory, name, os.stat(name, dir_fd=parent).st_ino, is_directory=True)

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        """As the engine knows it; a file that loses its last name to another is kept aside."""
        volume, directory, into = self._two(source, target)
        held = volume.unsynced.present.directories
        node, replaced = held[directory].get(name), held[into].get(new_name)
        kept = None
        if replaced is not None and replaced != node and replaced not in held and _is_last_name(target, new_name):
            kept = volume.name_aside(replaced)
            super().link(target, new_name, volume.aside.descriptor, kept)
        try:
            super().rename(source, name, target, new_name)
        except OSError:
            if kept is not None and replaced is not None:
                super().unlink(volume.aside.descriptor, kept)
                volume.forget_aside(replaced, kept)
            raise
        change = NameChange(Change.RENAME, directory, name, _known(node, name), into, new_name)
        volume.unsynced.change(change)

    def link(self, source: int, name: str, target: int, new_name: str) -> None:
        """As the engine knows it."""
        volume, directory, into = self._two(source, target)
        _check_space(volume)
        super().link(source, name, target, new_name)
        node = _known(volume.unsynced.present.directories[directory].get(name), name)
        volume.unsynced.change(NameChange(Change.ADD, into, new_name, node))

    def unlink(self, parent: int, name: str) -> None:
        """As the engine knows it; a file that loses its last name is kept aside until this is durable."""
        volume, directory = self._change(parent)
        held = volume.unsynced.present.directories
        node = held[directory].get(name)
        if node is None or node in held:
            super().unlink(parent, name)  # gives the error of the system: it is not there, or is a directory
        node = _known(node, name)
        if _is_last_name(parent, name):
            super().rename(parent, name, volume.aside.descriptor, volume.name_aside(node))
        else:
            super().unlink(parent, name)
        volume.unsynced.change(NameChange(Change.REMOVE, directory, name, node))

    def rmdir(self, parent: int, name: str) -> None:
        """As the engine knows it."""
        volume, directory = self._change(parent)
        super().rmdir(parent, name)
        node = _known(volume.unsynced.present.directories[directory].get(name), name)
        volume.unsynced.change(NameChange(Change.REMOVE, directory, name, node))

    def _added(self, volume: Volume, directory: int, name: str, inode: int, *, is_directory: bool = False) -> None:
        node = volume.new_node(inode)
        self._places[inode] = (volume, node)
        self._dead.discard(inode)
        volume.unsynced.change(NameChange(Change.ADD, directory, name, node), directory=is_directory)

    def _let_go(self, volume: Volume) -> None:
        if volume.kept and not volume.unsynced.names:
            for inode in volume.empty_aside():
                self._places.pop(inode, None)

    def _two(self, source: int, target: int) -> tuple[Volume, int, int]:
        volume, directory = self._change(source)
        other, into = self._at(target)
        if other is not volume:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return volume, directory, into

    def _change(self, descriptor: int, *, takes_space: bool = False) -> tuple[Volume, int]:
        """Where a change is about to be made, unless the power, the disk or the room on it fails now."""
        self._passes()
        volume, node = self._at(descriptor)
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
    """Read what is about to be written over; the descriptor itself may be for writing only."""
    again = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(again, length, offset)
    finally:
        os.close(again)
