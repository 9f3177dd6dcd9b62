"""Chooses the drill beside a history: each seed has one of them, so that none costs every history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reconciler.simulator.drills.engine import drill_engine
from reconciler.simulator.drills.requests import drill_requests

_DRILLS: Final = (drill_engine, drill_requests)


def drill(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Play the drill of a seed; ``reach`` counts what it comes to.

    Raises:
        BrokenInvariantError: something is not as it should be.
    """
    # The moods of a soak change with each seed too, in rounds of an even number.
    _DRILLS[(seed + seed // 8) % len(_DRILLS)](seed, reach, steps)
