"""What may lie on a disk after a power cut: every combination, up to a bound, of what was not synced yet.

What may be lost, and how, is said by :mod:`logstore.fs.crash_disk`, the model that the simulator draws from. Here all
of it is tried. No result is given twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from logstore.fs.crash_disk import ChangeKind, DataChange, NameChange, PendingName, Unsynced
from tests.crash.images import Link, Snapshot, Tree, digest
from tests.crash.steps import Done, Step, Sync

BOUND = 256
"""Combinations at one moment up to which all are tried; of more, only those that :func:`selections` gives."""


@dataclass(frozen=True, slots=True)
class CrashState:
    """One state that a disk may be in.

    Attributes:
        steps: how many were taken before the crash.
        lost: step → how it was lost, in words.
        tree: what lies on the disk.
        digest: of the tree.
        image: the same, with what is one file under several names.
        done: what the history had counted on by then.
    """

    steps: int
    lost: dict[int, str]
    tree: Tree
    digest: bytes
    image: Snapshot
    done: tuple[str, ...]

    @property
    def key(self) -> tuple[bytes, tuple[str, ...]]:
        """The same for states that are the same."""
        return self.digest, self.done


@dataclass(slots=True)
class _Disk:
    """The names of a disk in the model, and the bytes of its files, after some steps."""

    unsynced: Unsynced
    contents: dict[int, bytes | Link]
    changes: list[int] = field(default_factory=list)
    """The steps that changed something."""
    done: tuple[str, ...] = ()

    @classmethod
    def at_first(cls, start: Snapshot) -> _Disk:
        return cls(Unsynced(start.names.copy(), start.names.copy()), dict(start.contents))

    def take(self, number: int, step: Step) -> None:
        if isinstance(step, Done):
            self.done = (*self.done, step.text)
        elif isinstance(step, Sync):
            self.unsynced.sync(step.nodes)
        else:
            self.changes.append(number)
            self.unsynced.take(step)
            if isinstance(step, DataChange):
                self.contents[step.node] = step.redo(self._bytes(step.node))
            elif isinstance(step, NameChange) and step.kind is ChangeKind.CREATE:
                self.contents[step.node] = b""

    def _bytes(self, node: int) -> bytes:
        content = self.contents[node]
        assert isinstance(content, bytes)
        return content

    def states(self, steps: int, bound: int) -> Iterator[CrashState]:
        """Everything that a crash may leave now, what lost least first."""
        pending = self.unsynced.pending()
        names, choices = [(b"", ""), (b"", "")], []
        for each in pending:
            choices.append(names if isinstance(each, PendingName) else each.contents(self._bytes(each.node)))
        for selected in selections([len(options) for options in choices], bound):
            lost: dict[int, str] = {}
            contents = dict(self.contents)
            for each, options, option in zip(pending, choices, selected, strict=True):
                content, how = options[option]
                if not isinstance(each, PendingName):
                    contents[each.node] = content
                if option:
                    lost[each.number] = how
            image = Snapshot(self.unsynced.names_without(lost), contents)
            missing = {self.changes[number]: how for number, how in lost.items()}
            tree = image.tree()
            yield CrashState(steps, missing, tree, digest(tree), image, self.done)


def selections(options: Sequence[int], bound: int = BOUND) -> list[tuple[int, ...]]:
    """Which option is taken of each pending change; 0 keeps it whole, every other is a way to lose it.

    All combinations, if there are no more than the bound. Else: all kept; all lost, in each way; each one alone lost,
    in each way; each one alone kept; each beginning of the order kept; and as many pairs lost as the bound has room
    for.

    Args:
        options: how many there are of each change.
        bound: the most combinations.
    """
    if math.prod(options) <= bound:
        return sorted(product(*map(range, options)), key=lambda selected: sum(map(bool, selected)))
    count = len(options)
    found = dict.fromkeys([(0,) * count])
    for place, ways in enumerate(options):
        found.update(dict.fromkeys(_replaced((0,) * count, {place: way}) for way in range(1, ways)))
    for way in range(1, max(options)):
        found[tuple(min(way, ways - 1) for ways in options)] = None
    all_lost = tuple(min(1, ways - 1) for ways in options)
    for place in range(count):
        found[_replaced(all_lost, {place: 0})] = None
        found[(0,) * place + all_lost[place:]] = None
    for pair in combinations(range(count), 2):
        if len(found) >= bound:
            break
        found[_replaced((0,) * count, {place: all_lost[place] for place in pair})] = None
    return list(found)


def crash_states(start: Snapshot, log: Sequence[Step], bound: int = BOUND, *, first: int = 0) -> Iterator[CrashState]:
    """Every distinct state that a crash at any moment may leave, the moments in their order.

    Args:
        start: what lay on the disk, durably, before the first step.
        log: all steps.
        bound: as in :func:`selections`.
        first: the first moment that counts; those before it are known, from another log that begins the same.
    """
    disk = _Disk.at_first(start)
    seen: set[tuple[bytes, tuple[str, ...]]] = set()
    for steps in range(len(log) + 1):
        if steps:
            disk.take(steps - 1, log[steps - 1])
        if steps < first:
            continue
        for state in disk.states(steps, bound):
            if state.key not in seen:
                seen.add(state.key)
                yield state


def final_tree(start: Snapshot, log: Sequence[Step]) -> Tree:
    """What lies there after all steps and no crash."""
    disk = _Disk.at_first(start)
    for number, step in enumerate(log):
        disk.take(number, step)
    return Snapshot(disk.unsynced.present, disk.contents).tree()


def _replaced(selected: tuple[int, ...], options: dict[int, int]) -> tuple[int, ...]:
    return tuple(options.get(place, option) for place, option in enumerate(selected))
