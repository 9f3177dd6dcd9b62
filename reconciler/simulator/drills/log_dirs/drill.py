"""Drills one log dir by itself beside each history, in short games: what a cluster seldom comes to is drawn here.

The log dirs of a history have sound checkpoints and one user at a time, and their disks fail as a whole. Source:
DESIGN §5; FACTS §1.5, §2.4, §2.7.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from reconciler.simulator.drills.log_dirs.checkpoints import play_checkpoints
from reconciler.simulator.drills.log_dirs.ledger import play_ledger
from reconciler.simulator.drills.log_dirs.locks import play_lock
from reconciler.simulator.drills.log_dirs.places import play_place, play_tier
from reconciler.simulator.drills.log_dirs.records import play_records
from reconciler.simulator.drills.log_dirs.refused import play_refused
from reconciler.simulator.drills.log_dirs.spares import play_half_purged, play_spare

_STEPS_PER_ROUND: Final = 40
"""Steps of a drill for each round of the games."""

_ALWAYS: Final = (play_ledger, play_lock, play_refused)
_IN_TURNS: Final = (play_checkpoints, play_spare, play_tier, play_half_purged, play_records, play_place)
"""Games one of which is played in each round: two of them take long, and they have few cases."""


def drill_log_dirs(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill log dirs as a seed says; ``reach`` counts what it comes to.

    Raises:
        BrokenInvariantError: a promise is broken.
    """
    random = Random(f"{seed}/drill of log dirs")
    for number in range(steps // _STEPS_PER_ROUND):
        for play in (*_ALWAYS, _IN_TURNS[(seed + number) % len(_IN_TURNS)]):
            reach(f"drill_log_dir {play(random)}")
