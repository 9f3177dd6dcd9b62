"""Names by nodes: what each directory holds, and what one change of names makes of that.

A *node* is a number that stands for one file or one directory and is never used twice, unlike an inode, which is used
again as soon as it is free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

ROOT = 0
"""The node of the directory that holds the whole file system."""


class ChangeKind(Enum):
    """The changes of names, called as the methods of :class:`~logstore.fs.Disk`."""

    CREATE = "create"
    MKDIR = "mkdir"
    LINK = "link"
    RENAME = "rename"
    UNLINK = "unlink"
    RMDIR = "rmdir"


_ADDS = (ChangeKind.CREATE, ChangeKind.MKDIR, ChangeKind.LINK)
_RENAME = ChangeKind.RENAME  # Python 3.11 takes five times as long to find a member by its class


class NameChange(NamedTuple):
    """One change of names; durable once its parent was synced, and for a rename its target too.

    Attributes:
        kind: the kind of change.
        parent: the directory that holds, or held, the name.
        name: the name.
        node: the file or directory that it names.
        target: for a rename, the directory that gains the new name.
        new_name: for a rename.
    """

    kind: ChangeKind
    parent: int
    name: str
    node: int
    target: int = -1
    new_name: str = ""


@dataclass(slots=True)
class Image:
    """The names of a file system: directory → name → node. A node that is no key here is a file."""

    directories: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})

    def copy(self) -> Image:
        """Make an independent copy."""
        return Image({node: dict(held) for node, held in self.directories.items()})

    def apply(self, change: NameChange) -> None:
        """Apply a change; one that makes no sense, because an earlier change was lost, does nothing."""
        kind, parent, name, node, target, new_name = change
        held = self.directories[parent]
        taken_by = held.get(name)
        if kind in _ADDS:
            if taken_by is None or self._gives_way(taken_by, node):
                held[name] = node
        elif taken_by != node:
            return
        elif kind is not _RENAME:
            if not self.directories.get(node):
                del held[name]
        else:
            into = self.directories[target]
            taken_by = into.get(new_name)
            if taken_by == node or not (taken_by is None or self._gives_way(taken_by, node)):
                return  # two names of one file, of which the system's rename leaves both; or the name is taken
            if into is held or not self._is_below(target, node):
                del held[name]
                into[new_name] = node

    def _gives_way(self, taken_by: int, node: int) -> bool:
        """Say whether a name can be replaced: a file by a file, an empty directory by a directory."""
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
        """Yield every name that can be reached, parents first, as (directory, name, node, path)."""
        waiting = [(ROOT, "")]
        for directory, prefix in waiting:
            for name, node in self.directories[directory].items():
                yield directory, name, node, prefix + name
                if node in self.directories:
                    waiting.append((node, f"{prefix}{name}/"))

    def forget_unreachable(self) -> None:
        """Drop directories without a name. Call it only when no pending change could bring one back."""
        reached = {ROOT, *(node for _, _, node, _ in self.walk() if node in self.directories)}
        for node in [node for node in self.directories if node not in reached]:
            del self.directories[node]
