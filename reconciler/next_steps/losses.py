"""What the next start makes anew, what comes back before it, and the records that it would lose."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.next_steps.command import Step
from reconciler.next_steps.disks import on_replaced
from reconciler.next_steps.moves import brought_back, last_copies
from reconciler.next_steps.situation import FoundVerdict, Situation
from reconciler.text import count
from reconciler.verdicts import Verdict

RETURNABLE = (Verdict.STAGED, Verdict.STAGED_DUE, Verdict.STRAY)
"""Verdicts of what a plan can bring back."""


def made_at_start(known: Situation) -> int:
    """Count the replicas that are on no disk, and that the next start makes anew."""
    return known.number(Verdict.MISSING) + on_replaced(known)


def come_back(known: Situation) -> int:
    """Count the missing replicas that come back by the steps before a start."""
    return known.wanted(*RETURNABLE) + brought_back(known) + last_copies(known)


def _may_lose(known: Situation) -> Iterator[tuple[Verdict, FoundVerdict]]:
    """Yield what a start makes anew, with replicas among it of which no other copy is in sync."""
    verdicts = (Verdict.MISSING, *((Verdict.ABSENT,) if on_replaced(known) else ()))
    yield from ((each, known.found[each]) for each in verdicts if each in known.found and known.found[each].sole)


def loses(known: Situation) -> bool:
    """Whether a start makes a replica anew of which no other copy is in sync, so that its records are gone."""
    return sum(found.sole for _, found in _may_lose(known)) > come_back(known)


def lost(known: Situation) -> Iterator[Step]:
    """Have the records brought back before the start that would lose them."""
    for verdict, found in _may_lose(known):
        of_disk = f"{count(found.sole, 'replica')} of {count(found.number)} on the disk that is not here"
        of_missing = f"{count(found.sole)} of {count(found.number, 'missing replica')}"
        them, their, many = ("it", "its", "directory") if found.sole == 1 else ("them", "their", "directories")
        yield Step(
            f"{of_missing if verdict is Verdict.MISSING else of_disk} had the only copy in sync, and a start makes "
            f"{them} anew without {their} records: bring {their} {many} back first, from another disk, from "
            "what is staged, or from a backup; only if the records may be lost, start the broker",
            known.call.audit(verdict=verdict.value),
        )
