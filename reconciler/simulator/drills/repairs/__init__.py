"""Drills repairs of one log dir and their undo, and what a scan says of log dirs that are not all well."""

from reconciler.simulator.drills.repairs.drill import drill_repairs

__all__ = ["drill_repairs"]
