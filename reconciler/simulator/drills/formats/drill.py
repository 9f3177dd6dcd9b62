"""Drills the formats beside each history: names, small files, steps, messages, and what ZooKeeper writes.

The files and messages of a history are whole and of a few shapes. Here they are drawn at the edges of what they may be,
and damaged. What is right is said in other words: each game writes and reads by itself, at the level of bytes and
characters. Source: FACTS §1 to §3, §5, §8; KIP516-2, KIP516-4, KIP37-1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from reconciler.simulator.drills.formats.messages import MESSAGES
from reconciler.simulator.drills.formats.names import NAMES
from reconciler.simulator.drills.formats.small_files import FILES
from reconciler.simulator.drills.formats.steps import play_steps
from reconciler.simulator.drills.formats.zookeeper import play_zookeeper

_STEPS_PER_ROUND: Final = 20
"""Steps of a drill for each round of the games."""


def _one_of(games: Sequence[tuple[str, Callable[[Random], None]]]) -> Callable[[Random], str]:
    """Make a game that plays one of several, and gives which."""

    def play(random: Random) -> str:
        name, act = random.choice(games)
        act(random)
        return name

    return play


_ROUND: Final = (*(4 * (_one_of(NAMES), _one_of(FILES))), play_steps, _one_of(MESSAGES))


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
