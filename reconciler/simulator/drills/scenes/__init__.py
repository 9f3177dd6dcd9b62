"""Drills a store in short scenes, each of which comes to something that a game of random changes seldom meets."""

from reconciler.simulator.drills.scenes.drill import drill_scenes

__all__ = ["drill_scenes"]
