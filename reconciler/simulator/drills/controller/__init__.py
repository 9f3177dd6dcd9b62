"""Drills a controller before scripted brokers, which note what they are sent and answer well, late, or not at all."""

from reconciler.simulator.drills.controller.drill import drill_controller

__all__ = ["drill_controller"]
