"""Drills repairs beside each history, cut short and undone, and what a scan says before anything is repaired.

The repairs of a history are seldom undone, and never after somebody else changed a file. Its log dirs seldom have
copies, or files that contradict their directories. Source: DESIGN §3, §6.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from reconciler.simulator.drills.repairs.repair_game import play_repair
from reconciler.simulator.drills.repairs.scan_game import play_scan

_SEEDS_PER_SCAN: Final = 4
"""Of so many seeds one plays a scan, and the others a repair."""


def drill_repairs(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill repairs and scans as a seed says; ``reach`` counts what they come to; ``steps`` change nothing.

    Raises:
        BrokenInvariantError: a promise is broken.
    """
    random = Random(f"{seed}/drill of repairs")
    # The moods of a soak change with each seed too, in rounds of an even number.
    play = play_scan if (seed + seed // 8) % _SEEDS_PER_SCAN == 0 else play_repair
    play(random, reach)
