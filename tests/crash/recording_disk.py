"""A disk that does what it is asked for, and keeps the log of it that ``crash_states`` works on."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection

from logstore.fs import Disk
from logstore.fs.crash_disk import ChangeKind, NameChange, truncate_change, write_change
from tests.crash.crash_states import final_tree
from tests.crash.images import Tree, difference, read_image, read_tree
from tests.crash.steps import Done, Step, Sync


class RecordingDisk(Disk):
    """Works below one directory, on what lies there when it is made and on what it makes itself.

    Attributes:
        start: what lay there at first.
        log: the steps that were taken since; a step that failed was not taken.
    """

    def __init__(self, root: str, disks: Collection[str] = ()) -> None:
        """Look at what lies there.

        Args:
            root: the directory.
            disks: which of the directories in it stand for a file system of their own, so that no rename leads out of
                them and no other's barrier reaches into them.
        """
        self.root = root
        self.start, self._nodes = read_image(root)
        tops = {node: path.partition("/")[0] for node, path in self.start.paths().items()}
        self._disk_of = {node: top if top in disks else "" for node, top in tops.items()}
        self.log: list[Step] = []

    def done(self, text: str) -> None:
        """From here on the history counts on what it has done so far: it says so to somebody."""
        self.log.append(Done(text))

    def create(self, parent: int, name: str) -> int:
        descriptor = super().create(parent, name)
        self._named(ChangeKind.CREATE, parent, name, self._new(parent, os.fstat(descriptor)))
        return descriptor

    def write(self, descriptor: int, data: bytes) -> None:
        change = write_change(self._node(descriptor), descriptor, data)
        super().write(descriptor, data)
        self.log.append(change)

    def truncate(self, descriptor: int, length: int) -> None:
        change = truncate_change(self._node(descriptor), descriptor, length)
        super().truncate(descriptor, length)
        self.log.append(change)

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        self.log.append(Sync(frozenset([self._node(descriptor)])))

    def sync_file_system(self, descriptor: int) -> bool:
        supported = super().sync_file_system(descriptor)
        if supported:
            disk = self._disk_of[self._node(descriptor)]
            nodes = frozenset(node for node, on in self._disk_of.items() if on == disk)
            self.log.append(Sync(nodes, is_barrier=True))
        return supported

    def mkdir(self, parent: int, name: str) -> None:
        super().mkdir(parent, name)
        self._named(ChangeKind.MKDIR, parent, name, self._new(parent, _status(parent, name)))

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        moved = self._known(_status(source, name))
        self._check_one_disk(source, target)
        super().rename(source, name, target, new_name)
        self.log.append(NameChange(ChangeKind.RENAME, self._node(source), name, moved, self._node(target), new_name))

    def link(self, source: int, name: str, target: int, new_name: str) -> None:
        linked = self._known(_status(source, name))
        self._check_one_disk(source, target)
        super().link(source, name, target, new_name)
        self._named(ChangeKind.LINK, target, new_name, linked)

    def unlink(self, parent: int, name: str) -> None:
        gone = self._known(_status(parent, name))
        super().unlink(parent, name)
        self._named(ChangeKind.UNLINK, parent, name, gone)

    def rmdir(self, parent: int, name: str) -> None:
        gone = self._known(_status(parent, name))
        super().rmdir(parent, name)
        self._named(ChangeKind.RMDIR, parent, name, gone)

    def _named(self, kind: ChangeKind, parent: int, name: str, node: int) -> None:
        self.log.append(NameChange(kind, self._node(parent), name, node))

    def assert_nothing_else_changed(self) -> Tree:
        """Hold the log against what really lies there now, which it gives, so that no change passes by the disk."""
        found = read_tree(self.root)
        passed_by = difference(final_tree(self.start, self.log), found)
        assert not passed_by, "\n".join(["changed without the disk, or modelled wrongly:", *passed_by])
        return found

    def _check_one_disk(self, source: int, target: int) -> None:
        if self._disk_of[self._node(source)] != self._disk_of[self._node(target)]:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    def _new(self, parent: int, status: os.stat_result) -> int:
        node = len(self._disk_of)
        self._disk_of[node] = self._disk_of[self._node(parent)]
        self._nodes[status.st_dev, status.st_ino] = node
        return node

    def _node(self, descriptor: int) -> int:
        return self._known(os.fstat(descriptor))

    def _known(self, status: os.stat_result) -> int:
        node = self._nodes.get((status.st_dev, status.st_ino))
        assert node is not None, f"inode {status.st_ino} lies outside {self.root}, or was made without the disk"
        return node


def _status(parent: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=parent, follow_symlinks=False)
