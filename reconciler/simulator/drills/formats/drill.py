"""Drills the formats beside each history: names, small files, steps, messages, and what ZooKeeper writes.

The files and messages of a history are whole and of a few shapes. Here they are drawn at the edges of what they may be,
and damaged. What is right is said in other words: each game writes and reads by itself, at the level of bytes and
characters. Source: FACTS §1 to §3, §5, §8; KIP516-2, KIP516-4, KIP37-1.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from reconciler.simulator.drills.formats.messages import play_message
from reconciler.simulator.drills.formats.names import play_names
from reconciler.simulator.drills.formats.small_files import play_file
from reconciler.simulator.drills.formats.steps import play_steps
from reconciler.simulator.drills.formats.zookeeper import play_zookeeper

_STEPS_PER_ROUND: Final = 20
"""Steps of a drill for each round of the games."""

_ROUND: Final = (*(4 * (play_names, play_file)), play_steps, play_message)


def drill_formats(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Drill the formats as a seed says; ``reach`` counts what it comes to.

    Raises:
        BrokenInvariantError: something is written, read or refused otherwise than it should be.
    """
    random = Random(f"{seed}/format drill")
    for _ in range(steps // _STEPS_PER_ROUND):
        for play in _ROUND:
            reach(f"drill_format {play(random)}")
    reach(f"drill_format {play_zookeeper(random)}")
