"""One disk of a machine as folders of a real file system: where it is mounted, and what of it may yet come back.

A file that lost its last name is not gone before that is durable, so it waits in a folder *aside*, outside of the disk
and on the same file system. Everything here works by the primitives of :class:`~logstore.fs.Disk`.

Copies a disk, so that what had the old one open goes on seeing that, and never the one that comes back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from logstore.fs.crash_disk.unsynced import ROOT, Unsynced
from logstore.fs.directory import Directory
from logstore.fs.durable import Disk

PLAIN = Disk()
"""Does what it is asked for, now."""


class Volume:
    """One disk.

    Attributes:
        serial: tells it from every other disk that the machine ever had.
        path: the folder that is its root now; where it is mounted, unless it is offline.
        unsynced: what is durable on it, and what is not.
        inodes: node → inode, of all that lies on it.
        aside: folder of what lost its names.
        kept: file → its names in that folder.
        fails_in: after so many more changes it fails; None: it does not.
        fails_by: what chance takes when it fails.
        is_offline: every call fails with EIO.
        is_full: nothing more fits.
    """

    def __init__(self, serial: int, path: str, aside: str) -> None:
        """Take over two empty folders."""
        self.serial, self.path = serial, path
        self.unsynced = Unsynced()
        self.inodes: dict[int, int] = {ROOT: os.stat(path).st_ino}
        self.aside = Directory.open(aside)
        self.kept: dict[int, list[str]] = {}
        self.fails_in: int | None = None
        self.fails_by: Random | None = None
        self.is_offline = self.is_full = False
        self._nodes = ROOT
        self._kept = 0

    def new_node(self, inode: int) -> int:
        """A node for something new, which has this inode."""
        self._nodes += 1
        self.inodes[self._nodes] = inode
        return self._nodes

    def name_aside(self, node: int) -> str:
        """A new name in the folder aside for what has this node."""
        self._kept += 1
        self.kept.setdefault(node, []).append(name := str(self._kept))
        return name

    def forget_aside(self, node: int, name: str) -> None:
        """Take back what :meth:`name_aside` gave."""
        self.kept[node].remove(name)
        if not self.kept[node]:
            del self.kept[node]

    def empty_aside(self) -> list[int]:
        """Give up what can never come back; tells the inodes of files that are gone for good."""
        gone = []
        for node, names in self.kept.items():
            for name in names:
                status = os.stat(name, dir_fd=self.aside.descriptor, follow_symlinks=False)
                if status.st_nlink == 1:
                    gone.append(status.st_ino)
                    self.inodes.pop(node, None)
                PLAIN.unlink(self.aside.descriptor, name)
        self.kept.clear()
        return gone

    def close(self) -> None:
        """Give the descriptor back."""
        self.aside.close()


@contextmanager
def parent_of(root: str, path: str) -> Iterator[tuple[int, str]]:
    """Open the directory that holds a path below a root; gives it with the last part of the path."""
    folder, _, name = path.rpartition("/")
    with Directory.open(f"{root}/{folder}") as parent:
        yield parent.descriptor, name


def read(path: str) -> bytes:
    """All bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


def rewrite(root: str, path: str, present: bytes, wanted: bytes) -> None:
    """Let a file hold other bytes; one that only got shorter is cut off."""
    if present == wanted:
        return
    with parent_of(root, path) as (parent, name):
        descriptor = PLAIN.open_to_change(parent, name)
    try:
        keeps = present.startswith(wanted)
        PLAIN.truncate(descriptor, len(wanted) if keeps else 0)
        if not keeps:
            PLAIN.write(descriptor, wanted)
    finally:
        os.close(descriptor)


def copy_volume(volume: Volume, source: str, target: str) -> None:
    """Copy all that lies on a disk now, synced or not; from then on the copy is the disk.

    Files that wait aside are not copied: nobody has them open by a name.

    Args:
        volume: its path and its inodes are set to the copy's.
        source: where it lies.
        target: a folder that is made for it.
    """
    with parent_of(os.path.dirname(target), os.path.basename(target)) as (parent, name):
        PLAIN.mkdir(parent, name)
    inodes = {ROOT: os.stat(target).st_ino}
    present, places = volume.unsynced.present, dict[int, str]()
    for _, _, node, path in present.walk():
        with parent_of(target, path) as (parent, name):
            if node in present.directories:
                PLAIN.mkdir(parent, name)
            elif node in places:
                with parent_of(target, places[node]) as (first, other):
                    PLAIN.link(first, other, parent, name)
            else:
                _copy_file(f"{source}/{path}", parent, name)
            places.setdefault(node, path)
            inodes[node] = os.stat(name, dir_fd=parent).st_ino
    kept = {node: inode for node, inode in volume.inodes.items() if node in volume.kept}
    volume.path, volume.inodes = target, kept | inodes


def inodes_below(path: str) -> set[int]:
    """The inodes of a folder and of all below it."""
    found = {os.stat(path).st_ino}
    for folder, directories, files in os.walk(path):
        found |= {os.lstat(f"{folder}/{name}").st_ino for name in [*directories, *files]}
    return found


def _copy_file(source: str, parent: int, name: str) -> None:
    descriptor = PLAIN.create(parent, name)
    try:
        PLAIN.write(descriptor, read(source))
    finally:
        os.close(descriptor)
