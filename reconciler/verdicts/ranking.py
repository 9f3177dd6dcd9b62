"""Rank several live copies of one replica, or say why the better one cannot be determined (DESIGN §3).

The order is the audit's (``reconciler/audit/findings.py``): the wanted topic ID, then the later leader epoch, then the
higher end offset, then the log dir that the metadata assigns. An audit numbers the copies in any case. A repair acts
only where the first difference is between two known values, and never breaks a tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Of = TypeVar("Of")


@dataclass(frozen=True, slots=True)
class Copy(Generic[Of]):
    """One live copy.

    Attributes:
        of: the caller's own reference to it.
        topic_id: on the disk; empty: none.
        epoch: last leader epoch; -1: none; None: unknown.
        offset: recovery point, a lower bound of the end offset; -1: none; None: unknown.
        assigned: the metadata assigns its log dir.
    """

    of: Of
    topic_id: str
    epoch: int | None
    offset: int | None
    assigned: bool


@dataclass(frozen=True, slots=True)
class Ranking(Generic[Of]):
    """The best copy, and the reason why each other copy is worse."""

    best: Copy[Of]
    worse: tuple[tuple[Copy[Of], str], ...]


def rank_copies(copies: Sequence[Copy[Of]], wanted_topic_id: str) -> Ranking[Of] | str:
    """Rank the copies of one replica, or return the reason, a clause, why that cannot be done.

    Args:
        copies: at least two.
        wanted_topic_id: the replica's ID by the metadata; empty: no metadata knows it.
    """

    def place(copy: Copy[Of]) -> tuple[Any, ...]:
        matches = bool(wanted_topic_id) and copy.topic_id == wanted_topic_id
        return matches, _number(copy.epoch), _number(copy.offset), copy.assigned

    best = max(copies, key=place)
    worse = []
    for other in copies:
        if other is not best:
            reason, decided = _difference(best, other, wanted_topic_id)
            if not decided:
                return reason
            worse.append((other, reason))
    return Ranking(best, tuple(worse))


def _number(value: int | None) -> int:
    return -1 if value is None else value


def _difference(best: Copy[Of], other: Copy[Of], wanted: str) -> tuple[str, bool]:
    """The first thing in which two copies differ, as a clause; and whether it decides."""
    if best.topic_id != other.topic_id:
        if wanted and best.topic_id == wanted:
            return f"the other copy holds the wanted topic ID {wanted}, and this one {other.topic_id or 'none'}", True
        which = f"neither is the wanted {wanted}" if wanted else "no metadata says which is wanted"
        return f"they hold topic IDs {best.topic_id or 'none'} and {other.topic_id or 'none'}, and {which}", False
    for what, mine, its in (
        ("last leader epoch", best.epoch, other.epoch),
        ("recovery point", best.offset, other.offset),
    ):
        if mine is None or its is None:
            return f"the {what} of a copy cannot be read", False
        if mine != its:
            return f"its {what} is {_shown(its)}, and the other copy's is {_shown(mine)}", True
    if best.assigned != other.assigned:
        return "the two are alike, and the metadata assigns the log dir of the other copy", True
    return "they are alike in topic ID, leader epoch and recovery point: compare their segments", False


def _shown(value: int) -> str:
    return "none" if value < 0 else str(value)
