"""The invariants of a history, checked after every event; a broken invariant ends the history.

::

    staging    no wanted replica is staged while it is the only one in sync and holds acknowledged records
    purging    nothing is deleted for ever before its due time, by its machine's clock (both: ``staging_watch``)
    fencing    no broker answers a request for one topic ID from a replica of another, and none obeys a request of an
               earlier controller, or to an earlier registration of itself (``response_check``)
    identity   no client reads, under one topic ID, a record that was written under another
    fewer      no record is acknowledged in a partition that is read-only, and none goes before the delay is over
               (``fewer_partitions_watch``)
    configs    no unclean election, acknowledgement or deletion that the configs in force forbid (``config_watch``)
    controller nothing is taken for done that is not: reassigned, deleted (``controller_watch``)
    names      no partition and no namespace have one directory, and no two topics one ID, whatever is moved (KIP37-2,
               KIP37-3)

``convergence`` checks the disks at the end, when the cluster has come to rest.
Source: DESIGN §5; KIP37-2, KIP37-5; KIP516-5, KIP516-6, KIP516-8; KIP694-1, KIP694-3.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.purge import Purged
from reconciler.errors import ReconcilerError
from reconciler.simulator.checks.config_watch import ConfigWatch
from reconciler.simulator.checks.controller_watch import ControllerWatch
from reconciler.simulator.checks.fewer_partitions_watch import FewerPartitionsWatch
from reconciler.simulator.checks.response_check import EpochCheck, count_errors, wrongly_served
from reconciler.simulator.checks.staging_watch import StagingWatch
from reconciler.simulator.cluster import Cluster, Member, identity_of
from reconciler.simulator.kernel import Record, Request, Response
from reconciler.simulator.machine import AcknowledgedRecord, BelievedPartition


class BrokenInvariantError(ReconcilerError):
    """An invariant does not hold; the message says what happened, where and when."""


class Invariants:
    """Checks the invariants of a cluster.

    Attributes:
        looks: how many events were checked.
    """

    def __init__(self, cluster: Cluster) -> None:
        """Register for the cluster's events, its brokers' answers and purges, and its clients' records."""
        self._cluster = cluster
        self._staging = StagingWatch(cluster.oracle, self.acknowledged)
        self._fewer = FewerPartitionsWatch(cluster)
        self._configs = ConfigWatch(cluster)
        self._controller, self._epochs = ControllerWatch(cluster), EpochCheck()
        self._acknowledged: set[tuple[TopicId | str, int]] = set()
        self.looks, self._names_at = 0, -1
        self._broken: list[str] = []
        cluster.happened = self.look
        cluster.producer.on_acknowledged = self._written
        cluster.consumer.on_record = self._read
        for member in cluster.members.values():
            member.purged = partial(self._purged, member)
            member.changing = partial(self._changing, member)
            member.network.on_answer = partial(self._served, member)

    def look(self, *, everywhere: bool = False) -> None:
        """Check what the last event changed; ``everywhere``: all machines, because something changed without an event.

        Raises:
            BrokenInvariantError: an invariant does not hold.
        """
        self.looks += 1
        self._cluster.oracle.wanted()  # so that no partition comes and goes between two looks
        self._broken += self._fewer.look()
        trace = self._cluster.world.history.trace
        machine = trace[-1][1] if trace else ""
        for member in self._cluster.members.values():
            if everywhere or not machine or member.name == machine:
                self._look_at(member, everywhere=everywhere or not machine)
        self._broken += [*self._configs.look(), *self._controller.look(), *self._names()]
        if self._broken:
            raise BrokenInvariantError("; ".join(self._broken))

    def acknowledged(self, partition: TopicPartition) -> bool:
        """Whether a partition, under its present topic ID, holds an acknowledged record."""
        return identity_of(partition, self._cluster.oracle.topic_id(partition.topic)) in self._acknowledged

    def _look_at(self, member: Member, *, everywhere: bool) -> None:
        now_ms = self._cluster.world.clock_of(member.name)
        self._broken += self._staging.look(member, now_ms, everywhere=everywhere)
        self._broken += self._configs.look_at(member)

    def _names(self) -> Iterator[str]:
        """What two things have in common that only one may have, when something was written."""
        oracle, written = self._cluster.oracle, self._cluster.zookeeper.nodes.last_transaction
        if written == self._names_at:
            return
        self._names_at = written
        for partition in oracle.wanted():
            if oracle.is_namespace(str(partition)):
                yield f"{partition} is a partition and a namespace: both have one directory"
        names: dict[TopicId, str] = {}
        for topic, topic_id in oracle.known().items():
            if topic_id is not None and names.setdefault(topic_id, topic) != topic:
                yield f"{topic} and {names[topic_id]} have one topic ID, {topic_id}"

    def _changing(self, member: Member) -> None:
        self._broken += self._staging.look_inside(member, self._cluster.world.clock_of(member.name))

    def _purged(self, member: Member, purged: Purged) -> None:
        self._broken += self._staging.purged(member, purged, self._cluster.world.clock_of(member.name))

    def _served(self, member: Member, request: Request, response: Response) -> None:
        count_errors(response, self._cluster.world.history)
        registered = self._cluster.oracle.registered(member.node_id)
        obeyed = self._epochs.wrongly_obeyed(member, request, response, registered)
        wrong = wrongly_served(member, request, response) or obeyed
        if wrong is not None:
            self._broken.append(wrong)
        self._broken += self._fewer.answered(member, request, response)
        self._broken += self._configs.served(member, request, response)

    def _written(self, record: AcknowledgedRecord) -> None:
        self._acknowledged.add(identity_of(record.partition, record.topic_id))

    def _read(self, believed: BelievedPartition, record: Record) -> None:
        partition, topic_id = believed
        if record.topic_id != topic_id:
            self._broken.append(
                f"a reader of {partition} under topic ID {topic_id} was given offset {record.offset}, written under "
                f"{record.topic_id}: {record.value}"
            )
