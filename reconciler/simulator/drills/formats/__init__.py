"""Drills of formats: names, small files, messages and ZooKeeper's files, by readers and writers of their own."""

from reconciler.simulator.drills.formats.drill import drill_formats

__all__ = ["drill_formats"]
