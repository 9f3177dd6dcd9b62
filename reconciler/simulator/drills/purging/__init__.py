"""The drill of purges: what is due goes, whatever cuts it short, and nothing else does."""

from reconciler.simulator.drills.purging.drill import drill_purging
from reconciler.simulator.drills.purging.game import Obstacle

__all__ = ["Obstacle", "drill_purging"]
