"""One disk of a machine as folders of a real file system: its mount point, and its orphans.

An *orphan* is a file that lost its last name in a way that is not durable yet, so that a crash may bring it back. It
waits in a folder outside of the disk and on the same file system. All changes here go by the primitives of
:class:`~logstore.fs.Disk`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from logstore.fs.crash_disk.image import ROOT
from logstore.fs.crash_disk.unsynced import Unsynced
from logstore.fs.directory import Directory
from logstore.fs.durable import Disk

PLAIN = Disk()
"""A disk without any model, which makes each change at once."""


class Volume:
    """One disk.

    Attributes:
        serial: a number that no other disk of the machine ever had.
        path: the folder that is its root now: its mount point, unless it is offline.
        unsynced: its changes, durable or not.
        inodes: node → inode, of everything on it.
        orphans: the open folder of its orphans.
        orphan_names: file → its names in that folder.
        fails_in: number of changes after which it fails; None: it does not fail.
        fails_by: decides what is lost when it fails.
        changes: how often it was changed, or mounted, so far.
        is_offline: every call fails with EIO.
        is_full: every call that needs space fails with ENOSPC.
    """

    def __init__(self, serial: int, path: str, orphans: str) -> None:
        """Take over two empty folders, of the disk and of its orphans."""
        self.serial, self.path = serial, path
        self.unsynced = Unsynced()
        self.inodes: dict[int, int] = {ROOT: os.stat(path).st_ino}
        self.orphans = Directory.open(orphans)
        self.orphan_names: dict[int, list[str]] = {}
        self.fails_in: int | None = None
        self.fails_by: Random | None = None
        self.is_offline = self.is_full = False
        self.changes = 0
        self._nodes = ROOT
        self._orphans_made = 0

    def new_node(self, inode: int) -> int:
        """Make a node for a new file or directory with this inode."""
        self._nodes += 1
        self.inodes[self._nodes] = inode
        return self._nodes

    def new_orphan(self, node: int) -> str:
        """Reserve a name in the folder of orphans for a node."""
        self._orphans_made += 1
        self.orphan_names.setdefault(node, []).append(name := str(self._orphans_made))
        return name

    def forget_orphan(self, node: int, name: str) -> None:
        """Give back a name of :meth:`new_orphan`."""
        self.orphan_names[node].remove(name)
        if not self.orphan_names[node]:
            del self.orphan_names[node]

    def drop_orphans(self) -> list[int]:
        """Remove all orphans, which can never come back now; return the inodes of files that are gone for good."""
        gone = []
        for node, names in self.orphan_names.items():
            for name in names:
                status = os.stat(name, dir_fd=self.orphans.descriptor, follow_symlinks=False)
                if status.st_nlink == 1:
                    gone.append(status.st_ino)
                    self.inodes.pop(node, None)
                PLAIN.unlink(self.orphans.descriptor, name)
        self.orphan_names.clear()
        return gone

    def close(self) -> None:
        """Close the folder of orphans."""
        self.orphans.close()


@contextmanager
def parent_of(root: str, path: str) -> Iterator[tuple[int, str]]:
    """Open the directory that holds a path below a root; yield its descriptor and the last part of the path."""
    folder, _, name = path.rpartition("/")
    with Directory.open(f"{root}/{folder}") as parent:
        yield parent.descriptor, name


def read(path: str) -> bytes:
    """Read all bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


def rewrite(root: str, path: str, present: bytes, wanted: bytes) -> None:
    """Change the bytes of a file; where it only gets shorter, cut it off."""
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
    """Copy everything on a disk, synced or not; from then on the copy is the disk.

    A process that has a file of the old folder open goes on with the old file, and never sees the copy. Orphans are not
    copied, because no name leads to them.

    The target must not exist yet.
    """
    with parent_of(os.path.dirname(target), os.path.basename(target)) as (parent, name):
        PLAIN.mkdir(parent, name)
    inodes = {ROOT: os.stat(target).st_ino}
    present, paths = volume.unsynced.present, dict[int, str]()
    for _, _, node, path in present.walk():
        with parent_of(target, path) as (parent, name):
            if node in present.directories:
                PLAIN.mkdir(parent, name)
            elif node in paths:
                with parent_of(target, paths[node]) as (first, other):
                    PLAIN.link(first, other, parent, name)
            else:
                _copy_file(f"{source}/{path}", parent, name)
            paths.setdefault(node, path)
            inodes[node] = os.stat(name, dir_fd=parent).st_ino
    kept = {node: inode for node, inode in volume.inodes.items() if node in volume.orphan_names}
    volume.path, volume.inodes = target, kept | inodes


def inodes_below(path: str) -> set[int]:
    """Collect the inodes of a folder and of everything below it."""
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
