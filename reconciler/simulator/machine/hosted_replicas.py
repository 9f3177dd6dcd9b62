"""Which partitions a broker has a role for, and what it writes down of them now and then.

A role is taken after the disks did what a LeaderAndIsr request asked for, and lost when the replica is staged, its
topic ID changes, its disk fails, or a StopReplica request names it. What is in memory only, as in Kafka, is everything
but the records and the checkpoints: after a restart the controller says it all again. Source: FACTS §2.4, §4.2, §4.5.
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
    """The partitions that a broker leads or follows, in the order in which it was told of them."""

    def __init__(self, host: Host, store: LogStore) -> None:
        """Begin with none.

        Args:
            host: whose they are.
            store: where they lie.
        """
        self._host, self._store = host, store
        self._partitions: dict[TopicPartition, HostedPartition] = {}
        self._log_dirs = {each.path: each for each in store.log_dirs}
        self.ended: Callable[[HostedPartition], None] = lambda partition: None
        """Told of each partition whose role ends, also where it gets another."""

    def __iter__(self) -> Iterator[HostedPartition]:
        return iter(list(self._partitions.values()))

    def get(self, at: TopicPartition) -> HostedPartition | None:
        """The partition, where the broker has a role for it."""
        return self._partitions.get(at)

    def take_role(self, at: TopicPartition, state: PartitionState) -> HostedPartition | None:
        """Lead or follow a replica that is live here; None: that role is taken already, or a newer one.

        Raises:
            LogStoreError: its records cannot be read.
        """
        partition = self._partitions.get(at)
        replica = self._store.get(at)
        if partition is None:
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
        """Have no role for a partition any more; whoever waits for it is told."""
        partition = self._partitions.pop(at, None)
        if partition is not None:
            partition.drop()
            self.ended(partition)

    def follow_the_store(self) -> None:
        """Drop what is no longer the live replica it was: staged, made anew under another ID, moved, or offline."""
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
        """Make the records of some partitions durable, None: of all; a disk that fails holds up no other."""
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
        """Each log dir by itself, so that one that fails holds up no other."""
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
    """Whether a replica may still be the one that it was: an ID that was written meanwhile is no other."""
    return one is None or text is None or str(one) == text
