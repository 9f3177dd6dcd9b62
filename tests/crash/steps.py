"""The steps of a history: what was asked of a disk, in order, each thing named by a number that is never used twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from logstore.fs.crash_disk import ROOT, Change, ChangeKind, NameChange


@dataclass(frozen=True, slots=True)
class Sync:
    """A sync of one file or directory, or a barrier over all that lies on a file system."""

    nodes: frozenset[int]
    is_barrier: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """No change: from here on the history counts on what it has done so far."""

    text: str


Step: TypeAlias = Change | Sync | Done


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
        if isinstance(step, NameChange):
            return self._described_name(step)
        if isinstance(step, Done):
            return f"-- done: {step.text} --"
        if isinstance(step, Sync):
            return "sync the file system" if step.is_barrier else f"sync {self.at(*step.nodes)}"
        if step.data is None:
            return f"truncate {self.at(step.node)} to {step.offset} bytes"
        return f"write {len(step.data)} bytes at {step.offset} of {self.at(step.node)}"

    def _described_name(self, step: NameChange) -> str:
        where = self.under(step.parent, step.name)
        if step.kind is ChangeKind.LINK:
            return f"link {self.at(step.node)} as {where}"
        if step.kind is ChangeKind.RENAME:
            self.places[step.node] = (step.target, step.new_name)
            return f"rename {where} -> {self.at(step.node)}"
        if step.kind in (ChangeKind.CREATE, ChangeKind.MKDIR):
            self.places[step.node] = (step.parent, step.name)
        return f"{step.kind.value} {where}"
