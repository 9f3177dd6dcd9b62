"""A game with the file of a change of many steps: it is read as it was written, and undone it leaves nothing behind.

The steps are carried out here on a tree of plain names, each only where it is possible, as on a disk. So an order in
which they cannot be undone shows. Source: DESIGN §5; KIP37-3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from layout.errors import DamagedFileError
from layout.ours import (
    Intent,
    IntentStep,
    MakeDirectory,
    RemoveDirectory,
    Rename,
    RenameEntries,
    Rewrite,
    Stage,
    Unstage,
    encode_intent,
    inverse_steps,
    parse_intent,
    step_bytes,
    step_text,
)
from reconciler.simulator.checks import BrokenInvariantError

_MOST_STEPS: Final = 12
_NAMES: Final = ("org", "net", "a-1", "ä")


@dataclass(slots=True)
class _Tree:
    """One log dir: paths of its directories → the bytes in each; topics with entries; paths that are staged."""

    files: dict[str, bytes] = field(default_factory=dict)
    entries: set[str] = field(default_factory=lambda: {"orders"})
    staged: set[str] = field(default_factory=set)

    def carry_out(self, step: IntentStep) -> bool:
        """Do a step; False: it is not possible, and nothing was done."""
        match step:
            case MakeDirectory(_, path, _):
                return self._put(path, b"")
            case RemoveDirectory(_, path, _):
                inside = {each for each in self.files if each.startswith(f"{path}/")}
                if self.files.get(path) != b"" or inside or path in self.staged:
                    return False
                del self.files[path]
            case Rename(_, path, new_path):
                return path in self.files and not new_path.startswith(path) and self._moved(path, new_path)
            case Rewrite(_, path, old, new):
                if self.files.get(path) != old.encode("utf-8", "surrogateescape"):
                    return False
                self.files[path] = new.encode("utf-8", "surrogateescape")
            case RenameEntries() | Stage() | Unstage():
                return self._carry_out_beside(step)
        return True

    def _carry_out_beside(self, step: RenameEntries | Stage | Unstage) -> bool:
        """Do a step that changes no directory."""
        match step:
            case RenameEntries(_, topic, new_topic):
                if topic not in self.entries or new_topic in self.entries:
                    return False
                self.entries = self.entries - {topic} | {new_topic}
            case Stage(_, path):
                if path not in self.files or path in self.staged:
                    return False
                self.staged.add(path)
            case Unstage(_, path):
                if path not in self.staged:
                    return False
                self.staged.remove(path)
        return True

    def _put(self, path: str, content: bytes) -> bool:
        above = path.rpartition("/")[0]
        if path in self.files or (above and above not in self.files):
            return False
        self.files[path] = content
        return True

    def _moved(self, path: str, new_path: str) -> bool:
        inside = {each for each in self.files if each == path or each.startswith(f"{path}/")}
        if self.staged & inside or not self._put(new_path, b""):
            return False
        for each in inside:
            self.files[new_path + each[len(path) :]] = self.files.pop(each)
        return True


def play_steps(random: Random) -> str:
    """Draw a change, write and read it, and carry it out and undo it; gives ``steps``.

    Raises:
        BrokenInvariantError: it is read as another one, or not undone.
    """
    tree, steps = _Tree(), list[IntentStep]()
    for _ in range(_MOST_STEPS):
        step = _drawn(random, tree)
        if tree.carry_out(step):
            steps.append(step)
    _round_trip(random, steps)
    for step in inverse_steps(steps):
        if not tree.carry_out(step):
            raise BrokenInvariantError(f"the step {step} does not undo what it should, of {steps}")
    if tree != _Tree():
        raise BrokenInvariantError(f"{tree} is left when {steps} are undone")
    return "steps"


def _drawn(random: Random, tree: _Tree) -> IntentStep:
    """Draw a step that is possible, or not."""
    there = ["", *(f"{each}/" for each in tree.files if each not in tree.staged)]
    new, old = random.choice(there) + random.choice(_NAMES), random.choice(there)[:-1] or "org"
    topic = f"{random.choice(_NAMES)}:orders"
    record = ("orders", 0, "", "STALE_ID", "a drill", 5, 9)
    return random.choice(
        (
            MakeDirectory(0, new, random.random() < 0.5),
            MakeDirectory(0, new, random.random() < 0.5),
            RemoveDirectory(0, old, random.random() < 0.5),
            Rename(0, old, new),
            Rewrite(0, old, step_text(tree.files.get(old, b"")), step_text(random.randbytes(random.choice((0, 3))))),
            RenameEntries(0, random.choice(sorted(tree.entries)), topic),
            Stage(0, old, *record),
            Unstage(0, old, *record),
        )
    )


def _round_trip(random: Random, steps: Iterable[IntentStep]) -> None:
    intent = Intent("0c" * 16, "move", "move it", ("d1", "d2"), tuple(steps), random.random() < 0.3)
    data = encode_intent(intent)
    if parse_intent(data) != intent:
        raise BrokenInvariantError(f"{intent} is read as {parse_intent(data)}")
    raw = random.randbytes(5)
    if step_bytes(step_text(raw)) != raw:
        raise BrokenInvariantError(f"{raw!r} is given back as {step_bytes(step_text(raw))!r}")
    cut = data[: random.randrange(len(data) - 1)]  # only the line end may be missing
    try:
        found = parse_intent(cut)
    except DamagedFileError:
        return
    raise BrokenInvariantError(f"{cut!r} is cut short, and read as {found}")
