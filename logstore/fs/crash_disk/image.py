"""What a file system holds, by nodes: the names in each directory, and the changes of names that may yet be lost.

A *node* is a number that is never used twice, for one file or one directory; inodes are used again. Only names are held
here. Bytes stay on the disk, and what a write covered is kept by ``crash_disk_unsynced``. Source:
``logstore.fs.durable``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

ROOT = 0
"""The node of the directory that holds the whole file system."""


class Change(Enum):
    """What was done to a name."""

    ADD = "add"
    """A file or directory was made, or a file got one more name."""
    RENAME = "rename"
    REMOVE = "remove"


@dataclass(slots=True)
class NameChange:
    """One change of names that is not durable yet.

    Attributes:
        change: what was done.
        parent: the directory that holds, or held, the name.
        name: the name.
        node: what it stands for.
        target: for a rename, the directory that gains the new name.
        new_name: for a rename.
        awaited: the directories that must be synced before it is durable; none: it is.
    """

    change: Change
    parent: int
    name: str
    node: int
    target: int = -1
    new_name: str = ""
    awaited: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Image:
    """Directory → its names → node; what is no key here is a file."""

    directories: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})

    def copy(self) -> Image:
        """Another one that holds the same."""
        return Image({node: dict(held) for node, held in self.directories.items()})

    def apply(self, change: NameChange) -> None:
        """Make a change; where it makes no sense, because an earlier one was lost, nothing happens."""
        held = self.directories[change.parent]
        if change.change is Change.ADD:
            if self._gives_way(held.get(change.name), change.node):
                held[change.name] = change.node
        elif held.get(change.name) != change.node:
            return
        elif change.change is Change.REMOVE:
            if not self.directories.get(change.node):
                del held[change.name]
        else:
            self._rename(held, change)

    def _rename(self, held: dict[str, int], change: NameChange) -> None:
        into, node = self.directories[change.target], change.node
        taken_by = into.get(change.new_name)
        # Two names of one file: the system's rename leaves both.
        if taken_by != node and self._gives_way(taken_by, node) and not self._is_below(change.target, node):
            del held[change.name]
            into[change.new_name] = node

    def _gives_way(self, taken_by: int | None, node: int) -> bool:
        """Whether what has a name gives way: a file to a file, an empty directory to a directory."""
        if taken_by is None:
            return True
        if node in self.directories:
            return taken_by in self.directories and not self.directories[taken_by]
        return taken_by not in self.directories

    def _is_below(self, node: int, above: int) -> bool:
        waiting = [above] if above in self.directories else []
        for each in waiting:
            if each == node:
                return True
            waiting += [held for held in self.directories[each].values() if held in self.directories]
        return False

    def walk(self) -> Iterator[tuple[int, str, int, str]]:
        """Every name that can be reached, parents first: its directory, the name, its node, and its path."""
        waiting = [(ROOT, "")]
        for directory, prefix in waiting:
            for name, node in self.directories[directory].items():
                yield directory, name, node, prefix + name
                if node in self.directories:
                    waiting.append((node, f"{prefix}{name}/"))

    def forget_unreachable(self) -> None:
        """Drop directories that no name leads to; only when nothing is pending that could bring one back."""
        reached = {ROOT, *(node for _, _, node, _ in self.walk() if node in self.directories)}
        for node in [node for node in self.directories if node not in reached]:
            del self.directories[node]
