"""Drills one log dir by itself: its locks, checkpoints and ledger, and what it does where the system refuses."""

from reconciler.simulator.drills.log_dirs.drill import drill_log_dirs

__all__ = ["drill_log_dirs"]
