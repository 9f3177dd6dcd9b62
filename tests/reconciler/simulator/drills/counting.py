"""What drills come to, over some seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

Drill = Callable[[int, Callable[[str], None], int], None]


def counted(drill: Drill, seeds: int, steps: int) -> Counter[str]:
    """Play a drill with the first seeds; gives what it came to, and how often."""
    reached = Counter[str]()
    for seed in range(seeds):
        drill(seed, lambda what: reached.update([what]), steps)
    return reached
