"""What must hold at every moment of a history, looked at after every event; a promise that is broken ends it.

::

    staging    no replica that is wanted is staged while it is the only one in sync and holds what was acknowledged
    purging    nothing is deleted for ever before its due time, by the clock of its machine
    identity   nobody ever reads, under one topic ID, a record that was written under another

Whether the disks end as they are meant to is asked when the cluster has come to rest (``rest``).
Source: DESIGN §5; KIP516-5, KIP516-6, KIP516-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from layout.topic import TopicPartition
from logstore.purge_report import Purged
from logstore.replica_index import Entry
from logstore.store import LogStore
from reconciler.errors import ReconcilerError
from reconciler.simulator.machine.consumer import Believed
from reconciler.simulator.machine.producer import Acknowledged
from reconciler.simulator.messages import Record

if TYPE_CHECKING:
    from reconciler.simulator.cluster import Cluster
    from reconciler.simulator.member import Member


class BrokenPromiseError(ReconcilerError):
    """Something happened that must never happen; the message says what, where and when."""


class Promises:
    """Watches a cluster.

    Attributes:
        looks: how many events were looked at.
    """

    def __init__(self, cluster: Cluster) -> None:
        """Begin to listen to the clients and to the brokers' purges."""
        self._cluster = cluster
        self._live: dict[int, tuple[LogStore, dict[tuple[str, int], Entry]]] = {}
        self._acknowledged: dict[Believed, dict[int, str]] = {}
        self.looks = 0
        self._broken: list[str] = []
        cluster.producer.told = self._promised
        cluster.consumer.told = self._read
        for member in cluster.members.values():
            member.broker.purged = partial(self._purged, member)

    def look(self) -> None:
        """Look at what the last event has changed.

        Raises:
            BrokenPromiseError: it broke a promise.
        """
        self.looks += 1
        trace = self._cluster.world.history.trace
        machine = trace[-1][1] if trace else ""
        for member in self._cluster.members.values():
            if member.name == machine or not machine:
                self._look_at(member)
        if self._broken:
            raise BrokenPromiseError("; ".join(self._broken))

    def acknowledged(self, partition: TopicPartition) -> bool:
        """Whether a partition, under the topic ID that it has now, holds a record that was acknowledged."""
        return (partition, self._cluster.truth.topic_id(partition.topic)) in self._acknowledged

    def _look_at(self, member: Member) -> None:
        if not member.running:
            self._live.pop(member.node_id, None)
            return
        store, entries = member.broker.store, member.broker.store.entries()
        before_store, before = self._live.get(member.node_id, (None, {}))
        self._live[member.node_id] = store, entries
        if store is before_store and len(before) >= len(entries):
            gone = {key: entry for key, entry in before.items() if key not in entries}
            if gone:
                self._staged(member, gone)

    def _staged(self, member: Member, gone: Mapping[tuple[str, int], Entry]) -> None:
        wanted = self._cluster.truth.on(member.node_id)
        for (topic, number), entry in gone.items():
            partition = TopicPartition(topic, number)
            replica = wanted.get(partition)
            if replica is None or entry.topic_id != str(replica.topic_id):
                continue
            if replica.isr == (member.node_id,) and self.acknowledged(partition):
                self._broken.append(
                    f"{member.name} staged {partition}, the only replica in sync, which holds acknowledged records of "
                    f"topic ID {replica.topic_id}"
                )

    def _purged(self, member: Member, purged: Purged) -> None:
        now_ms = self._cluster.world.clock_of(member.name)
        if purged.record is not None and purged.record.due_ms > now_ms:
            self._broken.append(
                f"{member.name} purged {purged.location} at {now_ms}, which was due at {purged.record.due_ms}"
            )

    def _promised(self, record: Acknowledged) -> None:
        known = self._acknowledged.setdefault((record.partition, record.topic_id), {})
        known[record.offset] = record.value

    def _read(self, believed: Believed, record: Record) -> None:
        partition, topic_id = believed
        if record.topic_id != topic_id:
            self._broken.append(
                f"a reader of {partition} under topic ID {topic_id} was given offset {record.offset}, written under "
                f"{record.topic_id}: {record.value}"
            )
