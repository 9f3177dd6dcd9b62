"""What may lie on a disk after a power cut: every combination, up to a bound, of what was not synced yet.

The model promises as little as ``logstore.fs.durable`` says that a file system promises. At a crash each of these is
lost or kept, apart from all others, removals included:

- a name that was created, renamed or removed, until the directory that holds it was synced. A rename from one directory
  to another is one change, kept or lost as a whole, and durable only when *both* were synced;
- the bytes of a file, until it was synced: all kept, none kept, cut short in the last write, or as many zeros.

What was synced into a directory whose own name was lost is lost with it. What was removed from a directory that is
itself durably gone does not come back. A change that makes no sense without one that was lost does not happen. No
result is given twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from tests.crash.images import Image, Tree, digest, with_data
from tests.crash.steps import (
    DataStep,
    Done,
    EntryStep,
    RemoveDirectory,
    Step,
    Sync,
    SyncFileSystem,
    Truncate,
    Write,
    holders,
)

BOUND = 256
"""Combinations at one moment up to which all are tried; of more, only those that :func:`selections` gives."""


@dataclass(frozen=True, slots=True)
class CrashState:
    """One state that a disk may be in.

    Attributes:
        steps: how many were taken before the crash.
        lost: step → how it was lost, in words.
        tree: what lies on the disk.
        image: the same, with what is one file under several names.
        done: what the history had counted on by then.
    """

    steps: int
    lost: dict[int, str]
    tree: Tree
    image: Image
    done: tuple[str, ...]

    @property
    def key(self) -> tuple[bytes, tuple[str, ...]]:
        """The same for states that are the same."""
        return digest(self.tree), self.done


@dataclass(slots=True)
class _Entry:
    """A change of a directory's entries that is not folded into the base yet; durable when nothing is awaited."""

    number: int
    step: EntryStep
    awaited: set[int]


@dataclass(slots=True)
class _Data:
    """What was written to one file since it was synced last."""

    number: int
    steps: list[DataStep] = field(default_factory=list)


@dataclass(slots=True)
class _Disk:
    """What is durable, and what is not, after some steps."""

    base: Image
    entries: list[_Entry] = field(default_factory=list)
    data: dict[int, _Data] = field(default_factory=dict)
    done: tuple[str, ...] = ()

    def take(self, number: int, step: Step) -> None:
        if isinstance(step, Write | Truncate):
            self.data.setdefault(step.node, _Data(number)).steps.append(step)
        elif isinstance(step, Sync):
            self._sync({step.node})
        elif isinstance(step, SyncFileSystem):
            self._sync(step.nodes)
        elif isinstance(step, Done):
            self.done = (*self.done, step.text)
        else:
            self.base.add(step)
            self.entries.append(_Entry(number, step, holders(step)))

    def _sync(self, nodes: set[int] | frozenset[int]) -> None:
        """What was done in a directory that is durably gone is not awaited any more; so this goes round."""
        for node in nodes & self.data.keys():
            self.base.files[node] = with_data(self.base.files[node], self.data.pop(node).steps)
        while nodes:
            for entry in self.entries:
                entry.awaited -= nodes
            gone = {
                each.step.node for each in self.entries if isinstance(each.step, RemoveDirectory) and not each.awaited
            }
            nodes = gone & {node for each in self.entries for node in each.awaited}
        while self.entries and not self.entries[0].awaited:
            self.base.apply(self.entries.pop(0).step)

    def states(self, steps: int, bound: int) -> Iterator[CrashState]:
        """Everything that a crash may leave now, what lost least first."""
        pending: list[tuple[int, _Entry | int]] = [(entry.number, entry) for entry in self.entries if entry.awaited]
        pending += [(data.number, node) for node, data in self.data.items()]
        pending.sort(key=lambda each: each[0])
        choices = [
            [(None, "")] if isinstance(what, _Entry) else _contents(self.base.files[what], self.data[what].steps)
            for _, what in pending
        ]
        for selected in selections([1 + len(lost) for lost in choices], bound):
            image = self.base.copy()
            missing: dict[int, str] = {}
            for (number, what), lost, option in zip(pending, choices, selected, strict=True):
                content, how = lost[option - 1] if option else (None, "")
                if option:
                    missing[number] = how
                if not isinstance(what, _Entry):
                    whole = with_data(self.base.files[what], self.data[what].steps)
                    image.files[what] = whole if content is None else content
            for entry in self.entries:
                if entry.number not in missing:
                    image.apply(entry.step)
            yield CrashState(steps, missing, image.tree(), image, self.done)


def _contents(base: bytes, steps: list[DataStep]) -> list[tuple[bytes | None, str]]:
    """What a file may hold instead of all that was written, each with its words."""
    whole, last = with_data(base, steps), steps[-1]
    contents: list[tuple[bytes | None, str]] = [(base, "nothing of it")]
    if isinstance(last, Write):
        half = Write(last.node, last.offset, last.data[: len(last.data) // 2])
        contents.append((with_data(base, [*steps[:-1], half]), "cut short"))
    if len(whole) > len(base):
        contents.append((base + bytes(len(whole) - len(base)), "zeros"))
    return [each for each in contents if each[0] != whole]


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


def crash_states(start: Image, log: Sequence[Step], bound: int = BOUND) -> Iterator[CrashState]:
    """Every distinct state that a crash at any moment may leave, the moments in their order.

    Args:
        start: what lay on the disk, durably, before the first step.
        log: all steps.
        bound: as in :func:`selections`.
    """
    disk = _Disk(start.copy())
    seen: set[tuple[bytes, tuple[str, ...]]] = set()
    for steps in range(len(log) + 1):
        if steps:
            disk.take(steps - 1, log[steps - 1])
        for state in disk.states(steps, bound):
            if state.key not in seen:
                seen.add(state.key)
                yield state


def final_tree(start: Image, log: Sequence[Step]) -> Tree:
    """What lies there after all steps and no crash."""
    image = start.copy()
    for step in log:
        if isinstance(step, Write | Truncate):
            image.files[step.node] = with_data(image.files[step.node], [step])
        elif not isinstance(step, Sync | SyncFileSystem | Done):
            image.add(step)
            image.apply(step)
    return image.tree()


def _replaced(selected: tuple[int, ...], options: dict[int, int]) -> tuple[int, ...]:
    return tuple(options.get(place, option) for place, option in enumerate(selected))
