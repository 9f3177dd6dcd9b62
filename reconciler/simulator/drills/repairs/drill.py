"""Drills repairs beside each history: of the files of a log dir, cut short and undone, whatever became of them.

The repairs of a history are seldom undone, and never after somebody else changed a file. Source: DESIGN §6.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from reconciler.simulator.drills.repairs.repair_game import play_repair


def drill_repairs(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill repairs as a seed says; ``reach`` counts what they come to; its length does not hang on ``steps``.

    Raises:
        BrokenInvariantError: a promise is broken.
    """
    play_repair(Random(f"{seed}/drill of repairs"), reach)
