"""Drills what is staged: a ledger by itself, and the staging area of one log dir, by what was confirmed of them."""

from reconciler.simulator.drills.staging.drill import drill_staging

__all__ = ["drill_staging"]
