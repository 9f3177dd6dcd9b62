"""Drills what is promised of staged replicas, beside each history: what was confirmed is so after any crash.

A store of a drilled engine seldom has a ledger that is compacted, that a full disk cuts short, or that is damaged. Here
a ledger by itself (``ledger_game``), or the staging area of one log dir (``area_game``), is changed at random, with a
fault in the middle of many changes. At the end a line is damaged. Source: DESIGN §5; KIP516-6, KIP516-7.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Final

from logstore.fs.crash_disk import MachineDisks
from reconciler.simulator.drills.fault import Fault
from reconciler.simulator.drills.staging.area_game import AreaGame
from reconciler.simulator.drills.staging.ledger_game import LedgerGame

_LONGEST: Final = {"ledger": 9, "staging": 15}
"""Changes of a disk in a long change of each game."""

_STEPS_PER_CHANGE: Final = {"ledger": 5, "staging": 8}
"""Steps of a drill for each change of the game."""


def drill_staging(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill what is staged as a seed says; ``reach`` counts what it comes to.

    Raises:
        BrokenInvariantError: something that was confirmed is not so, or something was lost or kept that should not be.
    """
    random = Random(f"{seed}/staging drill")
    # The moods of a soak change with each seed too, in rounds of an even number.
    kind = ("ledger", "staging")[(seed + seed // 4) % 2]
    fault = Fault(random, _LONGEST[kind], lambda what: reach(f"drill_{kind}_fault {what}"))
    with ExitStack() as stack:
        disks = stack.enter_context(MachineDisks.in_memory(2, seed, fault.passes))
        game = LedgerGame(disks, random, fault) if kind == "ledger" else AreaGame(disks, random, fault)
        stack.callback(game.end)
        for _ in range(steps // _STEPS_PER_CHANGE[kind]):
            reach(f"drill_{kind} {game.play()}")
            fault.disarm()
        if game.damage():
            reach(f"drill_{kind} damaged")
