"""What must hold at every moment of a history, looked at after every event; a promise that is broken ends it.

::

    staging    no replica that is wanted is staged while it is the only one in sync and holds what was acknowledged
    purging    nothing is deleted for ever before its due time, by the clock of its machine (both: ``staging_watch``)
    fencing    no broker answers a request for one topic ID out of a replica of another (``served``)
    identity   nobody ever reads, under one topic ID, a record that was written under another

Whether the disks end as they are meant to is asked when the cluster has come to rest (``rest``).
Source: DESIGN §5; KIP516-5, KIP516-6, KIP516-8.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from layout.topic import TopicPartition
from logstore.purge import Purged
from reconciler.errors import ReconcilerError
from reconciler.simulator.checks.served import wrongly_served
from reconciler.simulator.checks.staging_watch import StagingWatch
from reconciler.simulator.kernel import Record, Request, Response
from reconciler.simulator.machine import AcknowledgedRecord, BelievedPartition

if TYPE_CHECKING:
    from reconciler.simulator.cluster import Cluster, Member


class BrokenPromiseError(ReconcilerError):
    """Something happened that must never happen; the message says what, where and when."""


class Invariants:
    """Watches a cluster.

    Attributes:
        looks: how many events were looked at.
    """

    def __init__(self, cluster: Cluster) -> None:
        """Begin to listen: to events, to the clients, and to what brokers answer and purge."""
        self._cluster = cluster
        self._staging = StagingWatch(cluster.truth, self.acknowledged)
        self._acknowledged: dict[BelievedPartition, dict[int, str]] = {}
        self.looks = 0
        self._broken: list[str] = []
        cluster.happened = self.look
        cluster.producer.told = self._promised
        cluster.consumer.told = self._read
        for member in cluster.members.values():
            member.purged = partial(self._purged, member)
            member.changing = partial(self._changing, member)
            member.network.told = partial(self._served, member)

    def look(self, *, everywhere: bool = False) -> None:
        """Look at what the last event has changed.

        Args:
            everywhere: at all machines, and not at that of the event alone: something was done without one.

        Raises:
            BrokenPromiseError: it broke a promise.
        """
        self.looks += 1
        self._cluster.truth.wanted()  # so that no partition comes and goes between two looks
        trace = self._cluster.world.history.trace
        machine = trace[-1][1] if trace else ""
        for member in self._cluster.members.values():
            if everywhere or not machine or member.name == machine:
                self._look_at(member)
        if self._broken:
            raise BrokenPromiseError("; ".join(self._broken))

    def acknowledged(self, partition: TopicPartition) -> bool:
        """Whether a partition, under the topic ID that it has now, holds a record that was acknowledged."""
        return (partition, self._cluster.truth.topic_id(partition.topic)) in self._acknowledged

    def _look_at(self, member: Member) -> None:
        self._broken += self._staging.look(member, self._cluster.world.clock_of(member.name))

    def _changing(self, member: Member) -> None:
        self._broken += self._staging.look_inside(member, self._cluster.world.clock_of(member.name))

    def _purged(self, member: Member, purged: Purged) -> None:
        self._broken += self._staging.purged(member, purged, self._cluster.world.clock_of(member.name))

    def _served(self, member: Member, request: Request, response: Response) -> None:
        wrong = wrongly_served(member, request, response)
        if wrong is not None:
            self._broken.append(wrong)

    def _promised(self, record: AcknowledgedRecord) -> None:
        known = self._acknowledged.setdefault((record.partition, record.topic_id), {})
        known[record.offset] = record.value

    def _read(self, believed: BelievedPartition, record: Record) -> None:
        partition, topic_id = believed
        if record.topic_id != topic_id:
            self._broken.append(
                f"a reader of {partition} under topic ID {topic_id} was given offset {record.offset}, written under "
                f"{record.topic_id}: {record.value}"
            )
