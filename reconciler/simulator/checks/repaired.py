"""Checks what a repair does to a file that was damaged, and what its undo brings back.

::

    proposed   every damage has its repair in the plan
    repaired   a file has its bytes of before; a checkpoint, its entries of the replicas that lie there
    undone     every file that the repair changed has its bytes of before the repair, and the backup is gone

Files are read here as bytes. Source: DESIGN §6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from layout.checkpoint import OFFSET_CHECKPOINTS, parse_offsets
from layout.errors import LayoutError
from logstore.repair import RepairStatus, UndoOutcome
from reconciler.plan import ApplyOutcome


class Damage(StrEnum):
    """What happens to a file."""

    LOST_ID = "lost_id"
    """A partition.metadata is gone."""
    TORN_ID = "torn_id"
    """A partition.metadata ends in its middle."""
    STRANGE_LINE = "strange_line"
    """A checkpoint has a line that is no entry."""
    ORPHAN_ENTRY = "orphan_entry"
    """A checkpoint has an entry of a partition that has no directory there."""
    LEFTOVER = "leftover"
    """A file is left over from a write that was cut short."""


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A file that is damaged.

    Attributes:
        log_dir: its path.
        name: of the file, below the log dir.
        damage: what happens to it.
        before: its bytes; None: there was no such file.
        since: its bytes with the damage; None: there is no such file any more.
        held: topic and partition of the replicas in the log dir.
    """

    log_dir: str
    name: str
    damage: Damage
    before: bytes | None
    since: bytes | None
    held: frozenset[tuple[str, int]] = frozenset()

    @property
    def path(self) -> str:
        """Of the file."""
        return f"{self.log_dir}/{self.name}"

    @property
    def is_right(self) -> bool:
        """Whether the file is as it should be."""
        now = bytes_of(self.path)
        if self.name not in OFFSET_CHECKPOINTS:
            return now == self.before
        try:
            found, known = (parse_offsets(each or b"", self.name) for each in (now, self.before))
        except LayoutError:
            return False
        return found.items() <= known.items() and not self.held & (known.keys() - found.keys())


def bytes_of(path: str) -> bytes | None:
    """Read a file; None: there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def wrongly_repaired(damaged: DamagedFile, outcome: ApplyOutcome) -> Iterator[str]:
    """Yield what is wrong with a damaged file after a plan of repairs was applied."""
    results = {(each.action.log_dir, each.action.name): each for each in outcome.results}
    found = results.get((damaged.log_dir, damaged.name))
    if found is None:
        yield f"no repair is proposed of {damaged.path}, which has a {damaged.damage}"
    elif found.status not in (RepairStatus.DONE, RepairStatus.ALREADY):
        yield f"the repair of {damaged.path}, which has a {damaged.damage}, is {found.status}: {found.detail}"
    elif not damaged.is_right:
        yield f"{damaged.path} is repaired, and holds {bytes_of(damaged.path)!r}, and not {damaged.before!r}"


def wrongly_undone(before: Mapping[str, bytes | None], undone: UndoOutcome) -> Iterator[str]:
    """Yield what is wrong with an undo; ``before``: the bytes of the files by path, before the repair."""
    if not undone.backup_removed:
        left = ", ".join(f"{each.path} is {each.status}: {each.detail}" for each in undone.results)
        yield f"the undo of a repair in {undone.log_dir} leaves its backup there: {left}"
    for path in (f"{undone.log_dir}/{each.path}" for each in undone.results):
        if bytes_of(path) != before.get(path):
            yield f"the undo of a repair leaves {bytes_of(path)!r} in {path}, which held {before.get(path)!r}"
