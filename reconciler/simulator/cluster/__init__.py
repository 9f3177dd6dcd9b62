"""A whole simulated cluster that a test starts, breaks and inspects, and what its disks should hold."""

from reconciler.simulator.cluster.cluster import AnsweredError, Cluster
from reconciler.simulator.cluster.member import ClusterSettings, Member
from reconciler.simulator.cluster.oracle import ExpectedReplica, Oracle, identity_of

__all__ = [
    "AnsweredError",
    "Cluster",
    "ClusterSettings",
    "ExpectedReplica",
    "Member",
    "Oracle",
    "identity_of",
]
