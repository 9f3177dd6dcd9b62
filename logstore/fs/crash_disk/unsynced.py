"""What a crash may take back from a disk: every change of it that is not durable yet.

The model promises what ``logstore.fs.durable`` expects of a file system, and no more. A crash loses or keeps each of
these independently, removals included:

- a name that was made, renamed or removed, until its directory is synced; a rename from one directory to another is one
  change, lost or kept as a whole, and durable only when both are synced;
- the bytes of a file since its last sync: all kept, none kept, cut short in the last write, or replaced by as many
  zeros.

What was synced into a directory whose own name is lost is lost with it. An entry that was removed from a directory
which is durably gone itself does not come back. A change that makes no sense without one that was lost does not happen.

A simulation draws one of the possible states (:meth:`Unsynced.draw`); the tests of crashes try all of them, from
:meth:`Unsynced.pending` and :meth:`Unsynced.names_without`.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, TypeAlias

from logstore.fs.crash_disk.image import ChangeKind, Image, NameChange


class DataChange(NamedTuple):
    """A write to a file or a truncation of it, which can be done again and undone.

    Attributes:
        node: the file.
        offset: of the write; of a truncation, the new length.
        data: the bytes written; None: it was a truncation.
        size: of the file before.
        old: the bytes from the offset on that were overwritten or cut off.
    """

    node: int
    offset: int
    data: bytes | None
    size: int
    old: bytes

    def redo(self, content: bytes) -> bytes:
        """Give the content of the file after the change; what lies between its end and the offset is zeros."""
        until = content[: self.offset].ljust(self.offset, b"\0")
        return until if self.data is None else until + self.data + content[self.offset + len(self.data) :]

    def undo(self, content: bytes) -> bytes:
        """Give the content of the file before the change."""
        return (content[: self.offset] + self.old + content[self.offset + len(self.old) :])[: self.size]


Change: TypeAlias = NameChange | DataChange

# Python 3.11 takes five times as long to find a member by its class as by a name.
_MKDIR, _RENAME, _RMDIR = ChangeKind.MKDIR, ChangeKind.RENAME, ChangeKind.RMDIR


@dataclass(slots=True)
class PendingName:
    """A change of names, and the directories that must still be synced before it is durable; with none, it is.

    Attributes:
        number: its place among all changes of the disk.
    """

    number: int
    change: NameChange
    awaited: set[int]


@dataclass(slots=True)
class PendingData:
    """The writes to one file, and the truncations of it, since its last sync.

    Attributes:
        number: the place of the first among all changes of the disk.
    """

    number: int
    node: int
    changes: list[DataChange] = field(default_factory=list)

    def contents(self, present: bytes) -> list[tuple[bytes, str]]:
        """List all possible contents of the file after a crash, each with what was lost in words.

        Args:
            present: the bytes of the file now. That it keeps them is the first possibility.
        """
        last, durable = self.changes[-1], present
        for change in reversed(self.changes):
            durable = change.undo(durable)
        found = [(present, ""), (durable, "nothing of it")]
        if last.data is not None:
            half = last._replace(data=last.data[: len(last.data) // 2])
            found.append((half.redo(last.undo(present)), "cut short"))
        if len(present) > len(durable):
            found.append((durable + bytes(len(present) - len(durable)), "zeros"))
        return [each for number, each in enumerate(found) if each[0] not in [other for other, _ in found[:number]]]


@dataclass(slots=True)
class Unsynced:
    """One disk: its durable names, its present names, and the changes that are not durable yet.

    The bytes of files stay on the disk; here are only those that were written or overwritten since the last sync.

    Attributes:
        durable: the names that no crash can take back.
        present: the present names.
        names: changes of names, in order; the first one is not durable yet.
        data: file → what was written to it since its last sync.
    """

    durable: Image = field(default_factory=Image)
    present: Image = field(default_factory=Image)
    names: list[PendingName] = field(default_factory=list)
    data: dict[int, PendingData] = field(default_factory=dict)
    _taken: int = 0
    _removed: bool = False
    """Whether a directory was removed since the last :meth:`_tidy`."""

    def take(self, change: Change) -> None:
        """Record a change."""
        number, self._taken = self._taken, self._taken + 1
        if isinstance(change, DataChange):
            pending = self.data.get(change.node)
            if pending is None:
                pending = self.data[change.node] = PendingData(number, change.node)
            pending.changes.append(change)
            return
        kind = change.kind
        if kind is _MKDIR:
            self.durable.directories[change.node] = {}
            self.present.directories[change.node] = {}
        elif kind is _RMDIR:
            self._removed = True
        self.present.apply(change)
        awaited = {change.parent}
        if kind is _RENAME:
            awaited.add(change.target)
        self.names.append(PendingName(number, change, awaited))

    def sync(self, nodes: Collection[int]) -> None:
        """Record the sync of files and directories.

        A directory that is durably gone need not be synced any more, so each sync may make further ones unnecessary.
        """
        for node in self.data.keys() & nodes:
            del self.data[node]
        done = set(nodes) if self.names else set()
        while done:
            for each in self.names:
                each.awaited -= done
            if not self._removed:
                break
            gone = {each.change.node for each in self.names if _is_gone(each)}
            done = gone & {node for each in self.names for node in each.awaited}
        durable = 0
        for each in self.names:
            if each.awaited:
                break
            durable += 1
        self._fold(durable)

    def sync_all(self) -> None:
        """Record a sync of everything."""
        self.data.clear()
        self._fold(len(self.names))

    def _fold(self, count: int) -> None:
        """Take the first changes of names, which are durable, into the durable names."""
        for each in self.names[:count]:
            self.durable.apply(each.change)
        del self.names[:count]
        if self._removed and not self.names:
            self.durable.forget_unreachable()
            self.present.forget_unreachable()
            self._removed = False

    @property
    def is_all_durable(self) -> bool:
        """Whether a crash would lose nothing."""
        return not self.names and not self.data

    def become(self, image: Image) -> None:
        """Start again from the names of an image, all of them durable."""
        image.forget_unreachable()
        self.durable, self.present = image, image.copy()
        self.names.clear()
        self.data.clear()
        self._removed = False

    def pending(self) -> list[PendingName | PendingData]:
        """List what a crash may lose, each apart from the others, in the order in which it was done."""
        names = [each for each in self.names if each.awaited]
        return sorted([*names, *self.data.values()], key=lambda each: each.number)

    def names_without(self, lost: Container[int]) -> Image:
        """Give the names after a crash that loses the changes of names with these numbers."""
        found = self.durable.copy()
        for each in self.names:
            if each.number not in lost:
                found.apply(each.change)
        return found

    def draw(self, random: Random) -> Image:
        """Draw the names after a crash from all possible states."""
        chance = random.choice((0.0, 0.5, 0.5, 0.5, 0.9, 1.0))
        return self.names_without({each.number for each in self.names if each.awaited and random.random() < chance})


def _is_gone(pending: PendingName) -> bool:
    return pending.change.kind is _RMDIR and not pending.awaited
