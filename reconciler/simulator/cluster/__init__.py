"""One simulated cluster: its machines, what a test starts, breaks and looks at, and what is wanted by its znodes."""

from reconciler.simulator.cluster.cluster import Cluster
from reconciler.simulator.cluster.member import ClusterSettings, Member
from reconciler.simulator.cluster.truth import Oracle, WantedReplica

__all__ = [
    "Cluster",
    "ClusterSettings",
    "Member",
    "Oracle",
    "WantedReplica",
]
