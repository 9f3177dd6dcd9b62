"""The steps of a history: what was asked of a disk, in order, each thing named by a number that is never used twice.

Inodes are used again as soon as they are free, so a log of inodes would confuse a file with the one that came after
it. Here every file and directory has a *node*: a number that is new for each create and mkdir.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

ROOT = 0
"""The node of the directory that the history works in."""


@dataclass(frozen=True, slots=True)
class Create:
    parent: int
    name: str
    node: int


@dataclass(frozen=True, slots=True)
class HardLink:
    """One more name, ``parent`` and ``name``, for a file that has one."""

    parent: int
    name: str
    node: int


@dataclass(frozen=True, slots=True)
class MakeDirectory:
    parent: int
    name: str
    node: int


@dataclass(frozen=True, slots=True)
class Rename:
    parent: int
    name: str
    node: int
    target: int
    new_name: str


@dataclass(frozen=True, slots=True)
class Unlink:
    parent: int
    name: str
    node: int


@dataclass(frozen=True, slots=True)
class RemoveDirectory:
    parent: int
    name: str
    node: int


@dataclass(frozen=True, slots=True)
class Write:
    node: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    node: int
    length: int


@dataclass(frozen=True, slots=True)
class Sync:
    node: int


@dataclass(frozen=True, slots=True)
class SyncFileSystem:
    nodes: frozenset[int]
    """All that lies on that file system."""


@dataclass(frozen=True, slots=True)
class Done:
    """No change: from here on the history counts on what it has done so far."""

    text: str


EntryStep: TypeAlias = Create | HardLink | MakeDirectory | Rename | Unlink | RemoveDirectory
"""Changes to what a directory holds; durable once that directory was synced."""

DataStep: TypeAlias = Write | Truncate
"""Changes to what a file holds; durable once the file was synced."""

Step: TypeAlias = EntryStep | DataStep | Sync | SyncFileSystem | Done


def holders(step: EntryStep) -> set[int]:
    """The directories that all have to be synced before the step is durable: both, for a move between two."""
    return {step.parent, step.target} if isinstance(step, Rename) else {step.parent}


def describe(log: Sequence[Step], start: dict[int, str]) -> list[str]:
    """The steps in words, with the paths that things had when the step was taken.

    Args:
        log: all steps.
        start: the paths before the first, by node.
    """
    paths = _Paths(start)
    return [paths.described(step) for step in log]


class _Paths:
    """Where everything lies, kept up to date from step to step."""

    def __init__(self, start: dict[int, str]) -> None:
        up = {path: node for node, path in start.items()}
        self.places = {
            node: (up[path.rpartition("/")[0] or "."], path.rpartition("/")[2])
            for node, path in start.items()
            if node != ROOT
        }

    def at(self, node: int) -> str:
        return self.under(*self.places[node]) if node != ROOT else "."

    def under(self, parent: int, name: str) -> str:
        return name if parent == ROOT else f"{self.at(parent)}/{name}"

    def described(self, step: Step) -> str:
        """Take the step, and tell it."""
        if isinstance(step, Rename):
            old = self.under(step.parent, step.name)
            self.places[step.node] = (step.target, step.new_name)
            return f"rename {old} -> {self.at(step.node)}"
        if isinstance(step, HardLink):
            return f"link {self.at(step.node)} as {self.under(step.parent, step.name)}"
        if isinstance(step, Create | MakeDirectory):
            self.places[step.node] = (step.parent, step.name)
            return f"{'create' if isinstance(step, Create) else 'mkdir'} {self.at(step.node)}"
        if isinstance(step, Unlink | RemoveDirectory):
            return f"{'unlink' if isinstance(step, Unlink) else 'rmdir'} {self.under(step.parent, step.name)}"
        if isinstance(step, Done):
            return f"-- done: {step.text} --"
        return self._described_content(step)

    def _described_content(self, step: DataStep | Sync | SyncFileSystem) -> str:
        if isinstance(step, SyncFileSystem):
            return "sync the file system"
        where = self.at(step.node)
        if isinstance(step, Write):
            return f"write {len(step.data)} bytes at {step.offset} of {where}"
        return f"sync {where}" if isinstance(step, Sync) else f"truncate {where} to {step.length} bytes"
