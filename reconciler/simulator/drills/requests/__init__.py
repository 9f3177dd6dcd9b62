"""Drills requests: those of a controller to a broker and its disks, and those of a person, which gates hold."""

from reconciler.simulator.drills.requests.by_hand import drill_by_hand
from reconciler.simulator.drills.requests.drill import drill_requests
from reconciler.simulator.drills.requests.troubled import drill_troubled

__all__ = ["drill_by_hand", "drill_requests", "drill_troubled"]
