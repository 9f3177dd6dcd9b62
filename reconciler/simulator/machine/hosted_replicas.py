"""The partitions that a broker leads or follows, and the checkpoints that it writes of them.

A broker takes a role after the disks did what a LeaderAndIsr request asked for. It loses the role when the replica is
staged, its topic ID changes, its disk fails, or a StopReplica request names it. As in Kafka, only the records and the
checkpoints are on disk: after a restart the controller sends everything else again. Source: FACTS §2.4, §4.2, §4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from layout.checkpoint import HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import LogStoreError
from logstore.store import LogStore
from reconciler.protocol import PartitionState
from reconciler.simulator.machine.host import Host
from reconciler.simulator.machine.partition import HostedPartition
from reconciler.simulator.machine.replica_log import ReplicaLog


class HostedReplicas:
    """The partitions that a broker leads or follows, in the order in which it got their roles."""

    def __init__(self, host: Host, store: LogStore) -> None:
        """Begin with none; the replicas lie in the store."""
        self._host, self._store = host, store
        self._partitions: dict[TopicPartition, HostedPartition] = {}
        self._log_dirs = {each.path: each for each in store.log_dirs}
        self.ended: Callable[[HostedPartition], None] = lambda partition: None
        """Called with each partition whose role ends, also when it gets another role."""
        self.came: Callable[[str], None] = lambda topic: None
        """Called with the topic of each partition that gets its first role here."""

    def __iter__(self) -> Iterator[HostedPartition]:
        return iter(list(self._partitions.values()))

    def get(self, at: TopicPartition) -> HostedPartition | None:
        """The partition, where the broker has a role for it."""
        return self._partitions.get(at)

    def take_role(self, at: TopicPartition, state: PartitionState) -> HostedPartition | None:
        """Lead or follow a replica that is live here; None: the broker has this role already, or a newer one.

        Raises:
            LogStoreError: its records cannot be read.
        """
        partition = self._partitions.get(at)
        replica = self._store.get(at)
        if partition is None:
            self.came(at.topic)
            log = ReplicaLog(self._log_dirs[replica.log_dir], replica)
            if log.torn:
                self._host.say(f"{at}: {log.torn} bytes of torn records are cut off; it ends at {log.end}")
            partition = self._partitions[at] = HostedPartition(at, replica.topic_id, log, log.checkpointed)
        elif partition.leader_epoch >= state.leader_epoch:
            partition.topic_id = replica.topic_id
            return None
        else:
            self.ended(partition)
        partition.topic_id = replica.topic_id
        partition.take_role(state, self._host.node_id, self._host.timers.now_ms())
        return partition

    def drop(self, at: TopicPartition) -> None:
        """End the role for a partition; requests that wait for it are answered."""
        partition = self._partitions.pop(at, None)
        if partition is not None:
            partition.drop()
            self.ended(partition)

    def moved(self, at: TopicPartition) -> None:
        """Go on with the records of a replica at its new place, in the role that it has.

        Raises:
            LogStoreError: they cannot be read there; the role ends.
        """
        partition, replica = self._partitions.get(at), self._store.get(at)
        if partition is not None and partition.log.replica.log_dir != replica.log_dir:
            try:
                partition.log = ReplicaLog(self._log_dirs[replica.log_dir], replica)
            except LogStoreError:
                self.drop(at)
                raise

    def follow_the_store(self) -> None:
        """Drop each partition whose replica was staged, made anew under another ID, moved, or is offline."""
        entries, offline = self._store.entries(), self._store.offline
        for at, partition in list(self._partitions.items()):
            entry, was = entries.get((at.topic, at.partition)), partition.log.replica
            same = entry is not None and (entry.log_dir, entry.path) == (was.log_dir, was.path)
            if (
                not same
                or was.log_dir in offline
                or entry is None
                or not _is_same_id(partition.topic_id, entry.topic_id)
            ):
                self.drop(at)

    def flush(self, which: Iterable[HostedPartition] | None = None) -> None:
        """Flush the records of some partitions, None: of all; a disk that fails does not stop the others."""
        for partition in self if which is None else which:
            try:
                partition.log.flush()
            except LogStoreError as error:
                self._host.say(f"{partition.at} is not flushed: {error}")

    def write_recovery_points(self) -> None:
        """Write how far each log is known to be on its disk (FACTS §2.4)."""
        self._write(RECOVERY_POINT_CHECKPOINT, {each.at: each.log.recovery_point for each in self})

    def write_high_watermarks(self) -> None:
        """Write the high watermarks that rose since they were written (FACTS §2.4)."""
        risen = {each.at: each.high_watermark for each in self if each.high_watermark != each.log.checkpointed}
        if self._write(HIGH_WATERMARK_CHECKPOINT, risen):
            for partition in self:
                partition.log.checkpointed = partition.high_watermark

    def _write(self, file: str, offsets: dict[TopicPartition, int]) -> bool:
        """Write each log dir's file by itself, so that a disk that fails does not stop the others."""
        of_log_dir: dict[str, dict[TopicPartition, int]] = {}
        for at, offset in offsets.items():
            of_log_dir.setdefault(self._partitions[at].log.log_dir, {})[at] = offset
        well = True
        for batch in of_log_dir.values():
            try:
                self._store.write_offsets(file, batch)
            except LogStoreError as error:
                well = False
                self._host.say(f"{file}: {error}")
        return well


def _is_same_id(one: TopicId | None, text: str | None) -> bool:
    """Whether a replica may still be the same: an ID that was written meanwhile does not make it another."""
    return one is None or text is None or str(one) == text
