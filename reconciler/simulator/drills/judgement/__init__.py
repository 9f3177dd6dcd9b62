"""A drill of verdicts and of the gates of a plan: drawn metadata and rows, and oracles in other words."""

from reconciler.simulator.drills.judgement.drill import drill_judgement

__all__ = ["drill_judgement"]
