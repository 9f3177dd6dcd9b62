"""Checks what a controller takes for done: reassignments and the deletion of a topic's last partitions.

::

    reassigned   no old replica is dropped before each new one whose broker is up is in sync
    deleted      no partition is forgotten while a broker that is up has its replica, live, or on a disk that failed

Source: KIP694-4; FACTS §8.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.simulator.cluster import Cluster, ExpectedReplica

_Settled: TypeAlias = tuple[TopicId | None, frozenset[int]]
"""The topic ID of a partition, and the brokers of its replicas but those that a reassignment is still adding."""


class ControllerWatch:
    """Watches the nodes of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        """Begin; nothing was seen yet."""
        self._cluster, self._oracle = cluster, cluster.oracle
        self._settled: dict[TopicPartition, _Settled] = {}
        self._going: dict[TopicPartition, tuple[ExpectedReplica, ...]] = {}
        self._read_at = -1

    def look(self) -> Iterator[str]:
        """Yield what was taken for done since the last look and is not."""
        written = self._cluster.zookeeper.nodes.last_transaction
        if written == self._read_at:
            return
        self._read_at = written
        settled, going = self._settled_replicas(), self._oracle.going()
        for partition, now in settled.items():
            if now != self._settled.get(partition, now):
                yield from self._check_reassigned(partition, self._settled[partition], now)
        for partition, replicas in self._going.items():
            if partition not in going and partition not in settled:
                yield from self._check_deleted(partition, replicas)
        self._settled, self._going = settled, going

    def _settled_replicas(self) -> dict[TopicPartition, _Settled]:
        adding = self._oracle.adding()
        return {
            at: (replicas[0].topic_id, frozenset(each.node_id for each in replicas) - adding.get(at, frozenset()))
            for at, replicas in self._oracle.wanted().items()
            if replicas
        }

    def _check_reassigned(self, partition: TopicPartition, before: _Settled, now: _Settled) -> Iterator[str]:
        if before[0] != now[0]:
            return  # another topic has the name
        isr = self._oracle.wanted()[partition][0].isr
        behind = ((now[1] - before[1]) & self._oracle.brokers()) - set(isr)
        if behind:
            yield f"{partition} is reassigned, and {sorted(behind)} of its new replicas are not in sync"

    def _check_deleted(self, partition: TopicPartition, replicas: tuple[ExpectedReplica, ...]) -> Iterator[str]:
        topic_id = replicas[0].topic_id if replicas else None
        if topic_id is None or self._oracle.known().get(partition.topic) != topic_id:
            return  # the whole topic went, whose replicas are collected later (KIP516-10)
        for node_id in sorted({each.node_id for each in replicas} & self._oracle.brokers()):
            member = self._cluster.members[node_id]
            if not member.running or member.broker.broker.broker_epoch != self._oracle.registered(node_id):
                continue  # an operator may have restored it while the broker was down; the FULL request tells it
            entry = member.broker.store.entries().get((partition.topic, partition.partition))
            if entry is None or entry.topic_id != str(topic_id):
                continue
            yield f"{partition} is deleted, and {member.name} has its replica still"
