"""Drills changes of many steps over several log dirs: cut short anywhere, each ends wholly done or wholly undone."""

from reconciler.simulator.drills.journals.drill import drill_journals

__all__ = ["drill_journals"]
