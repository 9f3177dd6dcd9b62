"""The changes of one disk that a crash may take back, and one random choice of what it does take.

The model promises what ``logstore.fs.durable`` expects of a file system, and no more. A crash loses or keeps each of
these independently, removals included:

- a name that was made, renamed or removed, until its directory is synced; for a rename, until both directories are;
- the bytes of a file since its last sync: all kept, none kept, cut short in the last write, or replaced by as many
zeros.

An entry that was removed from a directory which is durably gone itself does not come back.

A *node* is a number that stands for one file or one directory and is never used twice, unlike an inode. Bytes stay on
the disk; only overwritten bytes are kept here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum
from random import Random

ROOT = 0
"""The node of the directory that holds the whole file system."""


class ChangeKind(Enum):
    """The kinds of change to a name."""

    ADD = "add"
    """A file or directory was made, or a file got one more name."""
    RENAME = "rename"
    REMOVE = "remove"


@dataclass(slots=True)
class NameChange:
    """One change of names that is not durable yet.

    Attributes:
        change: the kind of change.
        parent: the directory that holds, or held, the name.
        name: the name.
        node: the file or directory that it names.
        target: for a rename, the directory that gains the new name.
        new_name: for a rename.
        awaited: the directories that must still be synced before it is durable.
    """

    change: ChangeKind
    parent: int
    name: str
    node: int
    target: int = -1
    new_name: str = ""
    awaited: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Image:
    """The names of a file system: directory → name → node. A node that is no key here is a file."""

    directories: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})

    def copy(self) -> Image:
        """Make an independent copy."""
        return Image({node: dict(held) for node, held in self.directories.items()})

    def apply(self, change: NameChange) -> None:
        """Apply a change; one that makes no sense, because an earlier change was lost, does nothing."""
        held = self.directories[change.parent]
        if change.change is ChangeKind.ADD:
            if self._gives_way(held.get(change.name), change.node):
                held[change.name] = change.node
        elif held.get(change.name) != change.node:
            return
        elif change.change is ChangeKind.REMOVE:
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
        """Say whether a name can be replaced: a file by a file, an empty directory by a directory."""
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


@dataclass(frozen=True, slots=True)
class Overwrite:
    """The bytes that a write or a truncation removed.

    Attributes:
        offset: of the write; of a truncation, the new length.
        length: the number of bytes written; -1: it was a truncation.
        size: of the file before.
        old: the bytes from the offset on that were overwritten or cut off.
    """

    offset: int
    length: int
    size: int
    old: bytes


@dataclass(slots=True)
class Unsynced:
    """One disk: its durable state, its present state, and the changes between them.

    Attributes:
        durable: the names that no crash can take back.
        present: the present names.
        names: changes of names, in order; the first one is not durable yet.
        bytes: file → the writes and truncations since its last sync.
    """

    durable: Image = field(default_factory=Image)
    present: Image = field(default_factory=Image)
    names: list[NameChange] = field(default_factory=list)
    bytes: dict[int, list[Overwrite]] = field(default_factory=dict)
    _removed: bool = False
    """Whether a directory was removed since the last :meth:`_tidy`."""

    def change(self, change: NameChange, *, directory: bool = False) -> None:
        """Record a change of names; ``directory``: it adds a new directory."""
        if directory:
            self.durable.directories[change.node] = {}
            self.present.directories[change.node] = {}
        change.awaited = {change.parent, change.target} - {-1}
        self._removed |= change.change is ChangeKind.REMOVE and change.node in self.present.directories
        self.present.apply(change)
        self.names.append(change)

    def overwrite(self, node: int, what: Overwrite) -> None:
        """Record a write or a truncation."""
        self.bytes.setdefault(node, []).append(what)

    def sync(self, node: int) -> None:
        """Record the sync of a file or a directory."""
        self.bytes.pop(node, None)
        if self.names:
            self._sync_names({node})

    def sync_all(self) -> None:
        """Record a sync of everything."""
        self.bytes.clear()
        for change in self.names:
            self.durable.apply(change)
        self.names.clear()
        self._tidy()

    @property
    def is_all_durable(self) -> bool:
        """Whether a crash would lose nothing."""
        return not self.names and not self.bytes

    def _sync_names(self, nodes: set[int]) -> None:
        """Make changes durable; repeat, because a directory that is durably gone need not be synced any more."""
        while nodes:
            for each in self.names:
                each.awaited -= nodes
            gone = {
                each.node
                for each in self.names
                if each.change is ChangeKind.REMOVE and not each.awaited and each.node in self.present.directories
            }
            nodes = gone & {node for each in self.names for node in each.awaited}
        durable = 0
        while durable < len(self.names) and not self.names[durable].awaited:
            self.durable.apply(self.names[durable])
            durable += 1
        del self.names[:durable]
        if durable and not self.names:
            self._tidy()

    def _tidy(self) -> None:
        if self._removed:
            self.durable.forget_unreachable()
            self.present.forget_unreachable()
            self._removed = False

    def become(self, image: Image) -> None:
        """Start again from the names of an image, all of them durable."""
        image.forget_unreachable()
        self.durable, self.present = image, image.copy()
        self.names.clear()
        self.bytes.clear()
        self._removed = False

    def draw(self, random: Random) -> Image:
        """Draw the names after a crash from all possible states."""
        lost = random.choice((0.0, 0.5, 0.5, 0.5, 0.9, 1.0))
        found = self.durable.copy()
        for change in self.names:
            if not change.awaited or random.random() >= lost:
                found.apply(change)
        return found


def possible_contents(present: bytes, done: Collection[Overwrite]) -> list[bytes]:
    """List all possible contents of a file after a crash, the present one first.

    Args:
        present: its bytes now.
        done: the writes and truncations since its last sync, in order.
    """
    *_, last = done
    before, durable = _undone(present, [last]), _undone(present, done)
    found = [present, durable]
    if last.length >= 0:
        half = present[last.offset : last.offset + last.length // 2]
        end = last.offset + len(half)
        found.append(before[: last.offset].ljust(last.offset, b"\0") + half + before[end:])
    if len(present) > len(durable):
        found.append(durable + bytes(len(present) - len(durable)))
    return list(dict.fromkeys(found))


def _undone(present: bytes, done: Collection[Overwrite]) -> bytes:
    for each in reversed(list(done)):
        present = (present[: each.offset] + each.old + present[each.offset + len(each.old) :])[: each.size]
    return present
