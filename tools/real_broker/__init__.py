"""Real Kafka brokers on the loopback interface, from their Maven coordinates: for tests, and to try things by hand.

``releases`` is the table of what there is, ``fetch`` has Maven bring it, ``java`` runs one JVM and sees to its end,
``watchdog`` ends the JVMs of a process that died, ``settings`` writes what Kafka reads at its start. ``servers`` holds
one broker, controller or ZooKeeper, ``cluster`` puts them together, ``client`` makes topics and records, ``reassign``
moves replicas, ``znodes`` takes a topic out of ZooKeeper by hand. ``fixtures`` makes the archives of ``tests/disks``:
``fixtures.story`` is what happens to the cluster, ``planted`` what must be found for it, ``archive``
packs the disks. ``errors`` has one root. ``tools/real-broker`` is the same from a shell.
"""

from tools.real_broker.fetch import why_not
from tools.real_broker.releases import RELEASES

__all__ = [
    "RELEASES",
    "why_not",
]
