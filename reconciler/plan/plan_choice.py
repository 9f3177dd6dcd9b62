"""What the operator picks out of everything that a plan could do. Pure.

Topics are picked by shell patterns, verdicts by name. ``need`` asks for the cheapest safe set that gives back so many
bytes once it is purged: first what has other copies in sync, then what a broker itself set aside, then what belongs to
a topic that was re-created, and last what nobody knows any more; of each the largest first, because few replicas are
looked through sooner than many. Source: DESIGN §6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from reconciler.plan.plan import STAGING_ACTIONS, Action, ActionKind
from reconciler.plan.policy import Policy
from reconciler.verdicts import Verdict

SAFEST_FIRST = (Verdict.NOT_ASSIGNED, Verdict.STRAY, Verdict.STALE_ID, Verdict.UNKNOWN_TOPIC)
"""Verdicts of what may be staged, those that risk least first."""


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """What is asked of a plan.

    Attributes:
        policy: the gates.
        delay_ms: how long what is staged stays so at least.
        topics: shell patterns of full names; empty: all.
        verdicts: empty: all.
        need: bytes that are to be given back; None: whatever is unwanted is staged.
        strays: give a due time to what a broker set aside and nobody wants.
        sightings: runs that must have seen a replica unwanted, this one included, before it is staged.
    """

    policy: Policy = field(default_factory=Policy.cautious)
    delay_ms: int = 7 * 86_400_000
    topics: tuple[str, ...] = ()
    verdicts: frozenset[Verdict] = frozenset()
    need: int | None = None
    strays: bool = False
    sightings: int = 1

    def has(self, action: Action) -> bool:
        """Whether an action is picked, by its topic and verdict."""
        by_topic = not self.topics or any(fnmatchcase(action.topic, pattern) for pattern in self.topics)
        return by_topic and (not self.verdicts or action.verdict in self.verdicts)


def cheapest(actions: Sequence[Action], need: int, unsafe: Collection[Action]) -> list[Action]:
    """The actions that give back so many bytes at the least risk, and what is created in place of one of them.

    Args:
        actions: all that could be done.
        need: bytes; where there are fewer to be had, all of them are taken.
        unsafe: actions that a gate would stop; they are never among the cheapest.
    """
    candidates = [each for each in actions if each.kind in STAGING_ACTIONS and each.frees and each not in unsafe]
    candidates.sort(key=lambda each: (_rank(each), -each.frees, each.log_dir, each.name))
    taken: list[Action] = []
    total = 0
    for each in candidates:
        if total >= need:
            break
        taken.append(each)
        total += each.frees
    # The last one may be so large that some before it are not needed; the riskiest of these are spared first.
    for each in reversed(taken[:-1]):
        if total - each.frees >= need:
            taken.remove(each)
            total -= each.frees
    kept = set(taken)
    replicas = {each.replica for each in taken if each.kind is ActionKind.STAGE}
    return [each for each in actions if each in kept or (each.kind is ActionKind.CREATE and each.replica in replicas)]


def _rank(action: Action) -> int:
    verdicts = [verdict.value for verdict in SAFEST_FIRST]
    return verdicts.index(action.verdict) if action.verdict in verdicts else len(verdicts)
