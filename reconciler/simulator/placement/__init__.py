"""Which brokers get the replicas of new partitions: the placement of a controller with ZooKeeper, and KRaft's."""

from reconciler.simulator.placement.assignment import Assignment, AssignmentError, KnownBroker
from reconciler.simulator.placement.placements import PLACEMENTS, Placement, ReplicaPlacement
from reconciler.simulator.placement.zookeeper import assign

__all__ = [
    "PLACEMENTS",
    "Assignment",
    "AssignmentError",
    "KnownBroker",
    "Placement",
    "ReplicaPlacement",
    "assign",
]
