"""A controller and brokers in one process: many brokers over real disks, faults from one seed, one history per seed.

::

    messages      what goes between controllers, brokers and clients, as values
    ports         what each part asks of the others: timers, a network, ZooKeeper
    kernel/       time, chance, the network and the faults: the only source of order
    zookeeper/    a small ZooKeeper in memory, what Kafka keeps in it, and its comparison with a real one
    controller/   a controller as in Kafka 2.8: assignment, state machines, failover, deletion, reassignment
    admin/        what an administrator asks for: KIP-4's commands, namespaces, configs, ACLs, fewer partitions
    machine/      a broker's machine: its disks and how they fail, its broker, its replicas' records, its clients
    cluster       what a test starts, breaks and looks at: member (one machine), truth (what is wanted, by the znodes)
    promises      what holds at every moment: staging_watch (comes, goes, is live), served (topic IDs of answers)
    rest          what holds at the end; expected: what the audit must say
    simulation    one history from a seed: workload, faults, the shortest beginning; scenario, playing: written by hand

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
