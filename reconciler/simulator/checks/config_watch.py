"""Checks what the configs of topics and namespaces forbid, after every event: elections, acknowledgements, deletions.

::

    elections   a replica that was not in sync leads only where unclean elections are allowed
    records     none is acknowledged while fewer replicas than ``min.insync.replicas`` are in sync
    retention   a record that no other broker has deleted is deleted only if it is older than ``retention.ms``, by the
                clock of its broker

What is in force is read from ZooKeeper, anew and by the oracle's own code. A broker may go by what was in force before
while a change is on its way to it, so a breach counts only if nothing was changed in the last seconds, and only of a
broker whose session is alive. Source: KIP37-5.
"""

from __future__ import annotations

from collections.abc import Iterator

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.cluster import Cluster, ExpectedReplica, Member
from reconciler.simulator.kernel import ProduceRequest, ProduceResponse, Record, Request, Response

_ON_ITS_WAY_MS = 10_000
"""The longest time, by far, that a notification takes."""

_Log = tuple[object, int, tuple[Record, ...]]
"""A replica's log, its first offset, and its records."""


class ConfigWatch:
    """Watches one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        """Begin; nothing was seen yet."""
        self._cluster, self._oracle = cluster, cluster.oracle
        self._led: dict[TopicPartition, tuple[ExpectedReplica, int]] = {}
        self._logs: dict[int, dict[TopicPartition, _Log]] = {}
        self._deleted: dict[tuple[TopicPartition, TopicId | None], int] = {}
        self._read_at = -1
        self._in_force: dict[str, bytes] = {}
        self._changed_ms = 0

    def look(self) -> Iterator[str]:
        """Yield each election since the last look that was unclean and not allowed."""
        written = self._cluster.zookeeper.nodes.last_transaction
        if written == self._read_at:
            return
        self._read_at = written
        in_force = self._oracle.config_nodes()
        if in_force != self._in_force:
            self._in_force, self._changed_ms = in_force, self._cluster.world.now_ms
        led: dict[TopicPartition, tuple[ExpectedReplica, int]] = {}
        for partition, replicas in self._oracle.wanted().items():
            version = self._oracle.state_version(partition)
            if replicas and version is not None:
                led[partition] = replicas[0], version
                yield from self._check_election(partition, *led[partition])
        self._led = led

    def look_at(self, member: Member) -> Iterator[str]:
        """Yield each record that a broker deleted since the last look and that was not old enough."""
        if not member.running:
            self._logs.pop(member.node_id, None)
            return
        before, found = self._logs.get(member.node_id, {}), dict[TopicPartition, _Log]()
        for partition in member.broker.replicas:
            at, log = partition.at, partition.log
            known = before.get(at)
            if known is None or known[0] is not log:
                known = (log, log.start, log.read(log.start, log.end))
            elif (known[1], known[1] + len(known[2])) != (log.start, log.end):
                yield from self._check_deleted(member, partition.at, partition.topic_id, known, log.start)
                known = (log, log.start, log.read(log.start, log.end))
            found[at] = known
        self._logs[member.node_id] = found

    def served(self, member: Member, request: Request, response: Response) -> Iterator[str]:
        """Yield what is wrong with an acknowledgement."""
        if not isinstance(request, ProduceRequest) or not isinstance(response, ProduceResponse):
            return
        hosted = member.broker.replicas.get(request.partition)
        if response.error is not KafkaError.NONE or hosted is None or not self._is_settled(member):
            return
        least = self._oracle.number(request.partition.topic, "min.insync.replicas")
        least = member.broker.settings.min_insync_replicas if least is None else least
        if len(hosted.isr) < least:
            yield f"{member.name} acknowledged {request.value!r} with {list(hosted.isr)} in sync, of {least} demanded"

    def _check_election(self, partition: TopicPartition, now: ExpectedReplica, version: int) -> Iterator[str]:
        before = self._led.get(partition)
        if before is None or before[0].topic_id != now.topic_id or before[1] != version - 1:
            return  # a new partition, or one with several changes at once, of which only the last is known
        if now.leader in (-1, before[0].leader, *before[0].isr):
            return
        allowed = self._oracle.config(partition.topic, "unclean.leader.election.enable")
        default = self._cluster.settings.controller.unclean_elections
        if not (default if allowed is None else allowed == "true"):
            yield f"{now.leader} leads {partition}, though only {list(before[0].isr)} were in sync: an unclean election"

    def _check_deleted(
        self, member: Member, at: TopicPartition, topic_id: TopicId | None, known: _Log, start: int
    ) -> Iterator[str]:
        """Check the records before a log's new start, unless another broker deleted them first: followers follow."""
        deleted = self._deleted.get((at, topic_id), 0)
        self._deleted[at, topic_id] = max(deleted, start)
        now_ms, settings = self._cluster.world.clock_of(member.name), member.broker.settings
        given = self._oracle.number(at.topic, "retention.ms")
        kept_ms = settings.retention_ms if given is None else given
        for record in known[2][: max(0, start - known[1])]:
            age_ms = now_ms - record.timestamp_ms
            if record.offset >= deleted and not 0 <= kept_ms < age_ms and self._is_settled(member):
                yield f"{member.name} deleted offset {record.offset} of {at} after {age_ms} of {kept_ms} ms"
                return

    def _is_settled(self, member: Member) -> bool:
        session = member.broker.session
        lives = session is not None and not session.expired
        return lives and self._cluster.world.now_ms - self._changed_ms > _ON_ITS_WAY_MS
