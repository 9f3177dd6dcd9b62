"""Chooses the drills beside a history: one on disks and one of data in turns, and short ones besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reconciler.simulator.drills.controller import drill_controller
from reconciler.simulator.drills.engine import drill_engine
from reconciler.simulator.drills.files import drill_files
from reconciler.simulator.drills.formats import drill_formats
from reconciler.simulator.drills.journals import drill_journals
from reconciler.simulator.drills.judgement import drill_judgement
from reconciler.simulator.drills.log_dirs import drill_log_dirs
from reconciler.simulator.drills.metadata import drill_metadata
from reconciler.simulator.drills.plans import drill_plans
from reconciler.simulator.drills.purging import drill_purging
from reconciler.simulator.drills.repairs import drill_repairs
from reconciler.simulator.drills.requests import drill_by_hand, drill_requests, drill_troubled
from reconciler.simulator.drills.scenes import drill_scenes
from reconciler.simulator.drills.staging import drill_staging

_ON_DISKS: Final = (drill_engine, drill_requests)
_OF_DATA: Final = (drill_judgement, drill_metadata)
_SEEDS_PER_LONG_ONE: Final = 3
"""Of so many seeds one plays the drill of plans, the others that of a broker in trouble; both open log dirs often."""


def drill(seed: int, reach: Callable[[str], None], steps: int) -> None:
    """Play the drills of a seed; ``reach`` counts what they come to.

    Raises:
        BrokenInvariantError: something is not as it should be.
    """
    # The moods of a soak change with each seed too, in rounds of an even number.
    _ON_DISKS[(seed + seed // 8) % len(_ON_DISKS)](seed, reach, steps)
    _OF_DATA[(seed + seed // 2) % len(_OF_DATA)](seed, reach, steps)
    drill_staging(seed, reach, steps)
    drill_purging(seed, reach, steps)
    drill_files(seed, reach, steps)
    drill_log_dirs(seed, reach, steps)
    drill_journals(seed, reach, steps)
    drill_formats(seed, reach, steps)
    drill_repairs(seed, reach, steps)
    drill_by_hand(seed, reach, steps)
    if seed % _SEEDS_PER_LONG_ONE == 0:
        drill_plans(seed, reach, steps)
    else:
        drill_troubled(seed, reach, steps)
    drill_scenes(seed, reach, steps)
    drill_controller(seed, reach, steps)
