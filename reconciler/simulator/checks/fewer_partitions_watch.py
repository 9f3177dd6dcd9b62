"""Checks what becomes of the partitions that a topic is to have no longer (KIP694-1, KIP694-3, KIP694-4).

Two things are promised about acknowledged records. Once a partition's leader heard that nobody may write to it, no
record is acknowledged in it, by that leader or by a later one. And what was acknowledged before stays until the request
says otherwise: nobody may read the partition, and no broker is asked to delete it, before the delay is over.

What a leader heard is taken from the controllers' requests, not from the brokers' metadata, and the requests for fewer
partitions from their nodes. A leader of an earlier epoch may still acknowledge what all replicas had in time: the later
leader has these records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import (
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from reconciler.simulator.cluster import Cluster, Member
from reconciler.simulator.kernel import (
    Numbered,
    PartitionMode,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
)
from reconciler.text import moment

_DURING_DELETE = -2
"""The leader epoch in a StopReplica request for a partition that is being deleted for good (FACTS §8)."""


class _SentMode(NamedTuple):
    """What a controller sent a leader about its partition; the greatest is the newest."""

    controller_epoch: int
    number: int
    leader_epoch: int
    mode: PartitionMode


class FewerPartitionsWatch:
    """Watches the requests for fewer partitions, what leaders were sent, and what brokers answered."""

    def __init__(self, cluster: Cluster) -> None:
        """Begin; no leader was sent a mode yet."""
        self._cluster = cluster
        self._sent: dict[tuple[TopicPartition, TopicId | None], _SentMode] = {}
        self._modes: dict[str, PartitionMode] = {}
        self._active: Member | None = None
        self._read_at = -1

    def look(self) -> Iterator[str]:
        """Check after an event that no partition became unreadable before its delay was over, and yield what is wrong.

        The time is that of the controller's machine, which is the only one that writes the modes.
        """
        self._active = self._cluster.active or self._active
        written = self._cluster.zookeeper.nodes.last_transaction
        if written == self._read_at or self._active is None:
            return
        self._read_at = written
        requests = self._cluster.oracle.fewer_partitions()
        now_ms = self._cluster.world.clock_of(self._active.name)
        for topic, request in requests.items():
            early_ms = request.due_ms - now_ms
            ended = request.mode is PartitionMode.NONE and self._modes.get(topic) is not PartitionMode.NONE
            if ended and request.delay_ms and early_ms > 0:
                yield (
                    f"{self._active.name} ended the last partitions of {topic}, {early_ms} ms too early: "
                    f"they can be read until {moment(request.due_ms)}"
                )
        self._modes = {topic: request.mode for topic, request in requests.items()}

    def answered(self, member: Member, request: Request, response: Response) -> Iterator[str]:
        """Note what a broker was sent when it answers, check what it acknowledges, and yield what is wrong."""
        plain, number = (request.request, request.number) if isinstance(request, Numbered) else (request, -1)
        match plain, response:
            case UpdateMetadataRequest(), UpdateMetadataResponse(KafkaError.NONE):
                self._note(member, plain, number)
            case ProduceRequest(), ProduceResponse(KafkaError.NONE, offset):
                yield from self._check_write(member, plain, offset)
            case StopReplicaRequest(), StopReplicaResponse(KafkaError.NONE):
                yield from self._check_deletion(member, plain)

    def _note(self, member: Member, request: UpdateMetadataRequest, number: int) -> None:
        for topic in request.topics:
            for each in topic.partitions:
                if each.leader == member.node_id:
                    key = TopicPartition(topic.topic, each.partition), topic.topic_id
                    sent = _SentMode(request.controller_epoch, number, each.leader_epoch, PartitionMode(each.mode))
                    self._sent[key] = max(sent, self._sent.get(key, sent))

    def _check_write(self, member: Member, request: ProduceRequest, offset: int) -> Iterator[str]:
        hosted = member.broker.replicas.get(request.partition)
        sent = None if hosted is None else self._sent.get((request.partition, hosted.topic_id))
        if hosted is None or sent is None or sent.mode is PartitionMode.READ_WRITE:
            return
        if hosted.leader_epoch >= sent.leader_epoch:
            yield (
                f"{member.name} acknowledged {request.value!r} at offset {offset} of {request.partition}, in "
                f"leader epoch {hosted.leader_epoch}, after it was made {sent.mode.name} "
                f"in leader epoch {sent.leader_epoch}"
            )

    def _check_deletion(self, member: Member, request: StopReplicaRequest) -> Iterator[str]:
        for topic in request.topics:
            for each in topic.partitions:
                wanted = self._cluster.oracle.wanted().get(TopicPartition(topic.topic, each.partition), ())
                is_final = each.delete and each.leader_epoch == _DURING_DELETE
                if is_final and wanted and wanted[0].topic_id == topic.topic_id:
                    yield f"{member.name} was asked to delete {topic.topic}-{each.partition}, which can still be read"
