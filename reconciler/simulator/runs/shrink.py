"""Shrinks a history that breaks a promise to what it needs for that: its steps, its features, faults and actions.

First comes the shortest beginning that still fails. Then features and kinds of faults are left out, and single actions,
many at a time and ever fewer (delta debugging: Zeller, Hildebrandt, *Simplifying and Isolating Failure-Inducing Input*,
2002), as long as the same promise breaks. What is left out changes nothing of what the rest draws
(:class:`~reconciler.simulator.runs.swarm.LeftOut`), so the result plays again from the seed and the list of what is
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from reconciler.simulator.cluster import ClusterSettings
from reconciler.simulator.kernel import FAULT_KINDS, FaultRates
from reconciler.simulator.runs.simulation import RunOutcome, simulate
from reconciler.simulator.runs.swarm import FEATURES, LeftOut

_Part = TypeVar("_Part", str, int)

_BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What a wrong engine may raise when less is played: another failure than the one that is shrunk."""


def shortest_failure(failed: RunOutcome, settings: ClusterSettings | None = None) -> RunOutcome:
    """Find the least of a failed history that still fails, and play it to its end.

    With one step less than the result, every invariant holds.
    """
    shrinking = _Shrinking(shortest_beginning(failed, settings), settings)
    shrinking.leave_out_features()
    shrinking.leave_out_actions()
    return shortest_beginning(shrinking.best, settings)


def shortest_beginning(failed: RunOutcome, settings: ClusterSettings | None = None) -> RunOutcome:
    """Find the shortest beginning of a failed history that still fails, and play it to its end.

    The number of steps is halved as long as it still fails; with one step less than the result, every invariant holds.
    A history that broke off in its middle may fail at rest after fewer steps, so it is halved as well.
    """
    least, most, best = 0, failed.steps, failed
    while least < most:
        middle = (least + most) // 2
        tried = simulate(failed.seed, middle, settings, left_out=failed.left_out)
        if tried.broken is None:
            least = middle + 1
        else:
            most, best = tried.steps, tried
    return best


class _Shrinking:
    """The least history so far."""

    def __init__(self, failed: RunOutcome, settings: ClusterSettings | None) -> None:
        self.best, self._settings = failed, settings

    def leave_out_features(self) -> None:
        """Leave out what administrators, operators and faults do, by their kinds."""
        rates = FaultRates.default() if self._settings is None else self._settings.rates
        there = [*FEATURES, *(kind for kind in FAULT_KINDS if rates.of(kind))]
        self._leave_out([each for each in there if each not in self.best.left_out.features], self._without_features)

    def leave_out_actions(self) -> None:
        """Leave out single actions, the last ones first, because the others go on as they were."""
        there = [each for each in range(self.best.actions) if each not in self.best.left_out.actions]
        self._leave_out(there[::-1], self._without_actions)

    def _without_features(self, names: Sequence[str]) -> LeftOut:
        left_out = self.best.left_out
        return replace(left_out, features=left_out.features | set(names))

    def _without_actions(self, numbers: Sequence[int]) -> LeftOut:
        left_out = self.best.left_out
        return replace(left_out, actions=left_out.actions | set(numbers))

    def _leave_out(self, parts: list[_Part], without: Callable[[Sequence[_Part]], LeftOut]) -> None:
        size = len(parts)
        while size:
            start = 0
            while start < len(parts):
                if self._still_fails(without(parts[start : start + size])):
                    del parts[start : start + size]
                else:
                    start += size
            size //= 2

    def _still_fails(self, left_out: LeftOut) -> bool:
        """Play what would be left, and keep it where the same promise breaks."""
        try:
            tried = simulate(self.best.seed, self.best.steps, self._settings, left_out=left_out)
        except _BUGS:
            return False
        if tried.broken is None or tried.promise != self.best.promise:
            return False
        self.best = tried
        return True
