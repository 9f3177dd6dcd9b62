"""What a file system holds, by nodes: the names in each directory, and the changes of names that may yet be lost.

A *node* is a number that is never used twice, for one file or one directory; inodes are used again. Only names are held
here. Bytes stay on the disk, and what a write covered is kept by ``crash_disk_unsynced``. Source:
``logstore.fs.durable``.

What of one disk a crash may take back: names and bytes that were not synced; and one draw of what it does take.

The promises are those of ``logstore.fs.durable``, and no more. At a crash each of these is lost or kept, apart from all
others, removals included: a name that was made, renamed or removed, until its directory was synced, for a rename both
directories; and the bytes of a file since it was synced: all kept, none kept, cut short in the last write, or as many
zeros. What was removed from a directory that is durably gone itself does not come back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum
from random import Random

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


@dataclass(frozen=True, slots=True)
class Overwritten:
    """What a write, or a truncation, did away with.

    Attributes:
        offset: of the write; of a truncation, the new length.
        length: how many bytes were written; -1: it was a truncation.
        size: of the file before.
        old: the bytes from the offset that were there before, as far as they were written over or cut off.
    """

    offset: int
    length: int
    size: int
    old: bytes


@dataclass(slots=True)
class Unsynced:
    """One disk: what is durable, what is there, and the difference.

    Attributes:
        durable: the names that no crash can take back.
        present: the names as they are.
        names: changes of names, in order; the first one is not durable yet.
        bytes: file → what was done to its bytes since it was synced.
    """

    durable: Image = field(default_factory=Image)
    present: Image = field(default_factory=Image)
    names: list[NameChange] = field(default_factory=list)
    bytes: dict[int, list[Overwritten]] = field(default_factory=dict)
    _removed: bool = False
    """Whether a directory was removed since the images were tidied last."""

    def change(self, change: NameChange, *, directory: bool = False) -> None:
        """Enter a change that was made; ``directory``: what it adds is a new directory."""
        if directory:
            self.durable.directories[change.node] = {}
            self.present.directories[change.node] = {}
        change.awaited = {change.parent, change.target} - {-1}
        self._removed |= change.change is Change.REMOVE and change.node in self.present.directories
        self.present.apply(change)
        self.names.append(change)

    def overwrite(self, node: int, what: Overwritten) -> None:
        """Enter a write or a truncation."""
        self.bytes.setdefault(node, []).append(what)

    def sync(self, node: int) -> None:
        """Enter that a file or a directory was synced."""
        self.bytes.pop(node, None)
        if self.names:
            self._sync_names({node})

    def sync_all(self) -> None:
        """Enter that everything was synced."""
        self.bytes.clear()
        for change in self.names:
            self.durable.apply(change)
        self.names.clear()
        self._tidy()

    @property
    def is_all_durable(self) -> bool:
        """Whether a crash would take nothing."""
        return not self.names and not self.bytes

    def _sync_names(self, nodes: set[int]) -> None:
        """What was done in a directory that is durably gone is not awaited any more; so this goes round."""
        while nodes:
            for each in self.names:
                each.awaited -= nodes
            gone = {
                each.node
                for each in self.names
                if each.change is Change.REMOVE and not each.awaited and each.node in self.present.directories
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
        """Start again from these names, all of them durable."""
        image.forget_unreachable()
        self.durable, self.present = image, image.copy()
        self.names.clear()
        self.bytes.clear()
        self._removed = False

    def draw(self, random: Random) -> Image:
        """The names after a crash: one of all the states that there may be."""
        lost = random.choice((0.0, 0.5, 0.5, 0.5, 0.9, 1.0))
        found = self.durable.copy()
        for change in self.names:
            if not change.awaited or random.random() >= lost:
                found.apply(change)
        return found


def contents(present: bytes, done: Collection[Overwritten]) -> list[bytes]:
    """Everything that a file may hold after a crash, what it holds now first.

    Args:
        present: its bytes now.
        done: what was done to them since it was synced, in order.
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


def _undone(present: bytes, done: Collection[Overwritten]) -> bytes:
    for each in reversed(list(done)):
        present = (present[: each.offset] + each.old + present[each.offset + len(each.old) :])[: each.size]
    return present
