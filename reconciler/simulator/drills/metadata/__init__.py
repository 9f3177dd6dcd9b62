"""A drill of the reader of KRaft metadata: drawn logs and snapshots, whole and damaged."""

from reconciler.simulator.drills.metadata.drill import drill_metadata

__all__ = ["drill_metadata"]
