"""Drills purges, beside each history: of many ways in which one may be cut short or have to pass over something.

A history purges what is due and seldom more than a few directories, so half a purge is rare there. Here all that is
staged in one log dir is purged again and again, each time with one obstacle (:mod:`~.game`). Source: DESIGN §5;
KIP516-7.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Final

from logstore.fs.crash_disk import MachineDisks
from reconciler.simulator.drills.fault import Fault
from reconciler.simulator.drills.purging.game import PurgeGame
from reconciler.simulator.drills.purging.one_shot import OneShot

_LONGEST: Final = 25
"""Changes of a disk in a long purge."""

_STEPS_PER_PURGE: Final = 20
"""Steps of a drill for each purge and what is staged for it."""


def drill_purging(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill purges as a seed says; ``reach`` counts what it comes to.

    Raises:
        BrokenInvariantError: something went that should stay, or came back, or is said to be what it is not.
    """
    random = Random(f"{seed}/purge drill")
    fault = Fault(random, _LONGEST, lambda what: reach(f"drill_purge_fault {what}"))
    one_shot = OneShot(fault.passes)
    with ExitStack() as stack:
        disks = stack.enter_context(MachineDisks.in_memory(1, seed, one_shot.passes))
        game = PurgeGame(disks, random, fault, one_shot)
        stack.callback(game.end)
        for number in range(max(1, steps // _STEPS_PER_PURGE)):
            reach(f"drill_purge {game.play(number)}")
