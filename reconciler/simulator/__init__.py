"""A controller and brokers in one process: many brokers over real disks, faults from one seed, one history per seed.

Nothing here reads the machine's clock, draws a number of its own, or starts a thread: every event is taken from the
kernel's queue, so that a seed gives one history, byte for byte. A part never calls another part of another machine
directly; it sends a message through the network, which may lose, delay, double or reorder it.
"""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.simulator.cluster import Cluster, ClusterSettings
    from reconciler.simulator.runs import Scenario, simulate
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "cluster": ("Cluster", "ClusterSettings"),
            "runs": ("Scenario", "simulate"),
        },
    )

__all__ = [
    "Cluster",
    "ClusterSettings",
    "Scenario",
    "simulate",
]
