"""Short games beside a history, each with one part of the engine alone, whose rare cases a cluster seldom comes to."""

from reconciler.simulator.drills.engine import drill_engine

__all__ = ["drill_engine"]
