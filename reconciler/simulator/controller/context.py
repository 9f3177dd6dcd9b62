"""A controller's knowledge of its cluster, in memory only; the truth is in ZooKeeper and is read at each failover.

Only values and questions about them: nothing here writes, sends, or decides. All collections that are returned have a
fixed order. Source: Kafka 2.8's controller context; KIP694-1 for the modes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.protocol import UpdateMetadataBroker, UpdateMetadataEndpoint
from reconciler.simulator.controller.states import AssignedReplica, PartitionStates, ReplicaStates
from reconciler.simulator.kernel import PartitionMode

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """The brokers of one partition, in order of preference, including those being added and removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        """The brokers after the reassignment."""
        return tuple(each for each in self.replicas if each not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The brokers before the reassignment."""
        return tuple(each for each in self.replicas if each not in self.adding)

    @property
    def is_being_reassigned(self) -> bool:
        """Whether replicas are being added or removed."""
        return bool(self.adding or self.removing)

    def reassigned_to(self, target: tuple[int, ...]) -> ReplicaAssignment:
        """Return the assignment on the way to a target: the target first, then the brokers to be removed."""
        origin = self.origin
        every = target + tuple(each for each in origin if each not in target)
        return ReplicaAssignment(
            every,
            tuple(each for each in every if each not in origin),
            tuple(each for each in every if each not in target),
        )

    def without(self, broker: int) -> ReplicaAssignment:
        """Return the assignment without one replica."""
        left, adding, removing = (
            tuple(each for each in brokers if each != broker) for brokers in (self.replicas, self.adding, self.removing)
        )
        return ReplicaAssignment(left, adding, removing)


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """The leader and the in-sync replicas, as in the partition's state node."""

    leader: int
    """-1: none."""
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    """The version of the state node."""
    controller_epoch: int
    """The epoch of the controller that wrote the state."""

    def next(self, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        """Return the state one leader epoch later; the partition epoch is that of the node it replaces."""
        return replace(self, leader=leader, leader_epoch=self.leader_epoch + 1, isr=isr)


class ControllerContext:
    """The cluster, as far as the controller knows it.

    Attributes:
        epoch: of this controller; greater than that of every earlier one.
        epoch_version: of the node ``/controller_epoch``, which every write checks.
        brokers: the live brokers, with their broker epochs.
        end_points: host and port of every broker that was registered in this controller's time.
        shutting_down: live brokers that asked to stop.
        births: topic → the transaction that created its node, which differs for a re-created topic.
        topic_ids: topic → its ID; None while it has none.
        assignments: partition → its brokers.
        leadership: partition → leader and in-sync replicas; without partitions that never had a leader.
        partition_states: of every partition that lives or is being deleted the old way.
        replica_states: of their replicas.
        offline: replicas on failed log dirs of live brokers.
        modes: of restricted partitions (KIP694-1); all others are read and written.
        leaving_topics: being deleted the old way, as before KIP-516: their names are taken until all replicas are gone.
        leaving_partitions: being deleted while their topics stay (KIP694-3).
        unreadable: topics whose nodes cannot be read, so that no broker's assigned replicas are fully known.
    """

    def __init__(self, epoch: int = 0, epoch_version: int = 0) -> None:
        """Start with the controller's own epoch only."""
        self.epoch, self.epoch_version = epoch, epoch_version
        self.brokers: dict[int, int] = {}
        self.end_points: dict[int, tuple[str, int]] = {}
        self.shutting_down: set[int] = set()
        self.births: dict[str, int] = {}
        self.topic_ids: dict[str, TopicId | None] = {}
        self.assignments: dict[TopicPartition, ReplicaAssignment] = {}
        self.leadership: dict[TopicPartition, LeaderAndIsr] = {}
        self.partition_states = PartitionStates()
        self.replica_states = ReplicaStates()
        self.offline: set[AssignedReplica] = set()
        self.modes: dict[TopicPartition, PartitionMode] = {}
        self.leaving_topics: set[str] = set()
        self.leaving_partitions: set[TopicPartition] = set()
        self.unreadable: set[str] = set()

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic, sorted."""
        return sorted(partition for partition in self.assignments if partition.topic == topic)

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[AssignedReplica]:
        """Return the replicas of some partitions, in their order."""
        return [AssignedReplica(each, broker) for each in partitions for broker in self.assignments[each].replicas]

    def replicas_on(self, brokers: Collection[int]) -> list[AssignedReplica]:
        """Return every replica on some brokers, sorted."""
        return sorted(
            AssignedReplica(partition, broker)
            for partition, assignment in self.assignments.items()
            for broker in assignment.replicas
            if broker in brokers
        )

    def is_online(self, replica: AssignedReplica, *, though_leaving: bool = False) -> bool:
        """Return whether a replica can serve: its broker lives, and its log dir has not failed.

        ``though_leaving``: a broker that is about to stop counts too.
        """
        lives = replica.broker in self.brokers and (though_leaving or replica.broker not in self.shutting_down)
        return lives and replica not in self.offline

    def online(self, partition: TopicPartition, *, though_leaving: bool = False) -> tuple[int, ...]:
        """Return the brokers of a partition whose replicas can serve, in order of preference."""
        return tuple(
            broker
            for broker in self.assignments[partition].replicas
            if self.is_online(AssignedReplica(partition, broker), though_leaving=though_leaving)
        )

    def without_leader(self) -> list[TopicPartition]:
        """Return the partitions whose leader cannot serve, sorted, without those being deleted."""
        return sorted(
            partition
            for partition, found in self.leadership.items()
            if not self.is_leaving(partition)
            and not self.is_online(AssignedReplica(partition, found.leader), though_leaving=True)
        )

    def live_brokers(self) -> tuple[UpdateMetadataBroker, ...]:
        """Return the live brokers with their end points, sorted."""
        found = ((each, *self.end_points[each]) for each in sorted(self.brokers))
        return tuple(
            UpdateMetadataBroker(each, (UpdateMetadataEndpoint(port, host, "PLAINTEXT", 0),))
            for each, host, port in found
        )

    def is_leaving(self, partition: TopicPartition) -> bool:
        """Return whether a partition is being deleted, alone or with its topic."""
        return partition in self.leaving_partitions or partition.topic in self.leaving_topics

    def mode_of(self, partition: TopicPartition) -> PartitionMode:
        """Return who may use a partition (KIP694-1)."""
        return self.modes.get(partition, PartitionMode.READ_WRITE)

    def forget_partition(self, partition: TopicPartition) -> None:
        """Forget a deleted partition, except the states, which end by transitions."""
        assignment = self.assignments.pop(partition, None)
        for broker in assignment.replicas if assignment else ():
            self.offline.discard(AssignedReplica(partition, broker))
        self.leadership.pop(partition, None)
        self.modes.pop(partition, None)
        self.leaving_partitions.discard(partition)

    def forget_topic(self, topic: str) -> None:
        """Forget a deleted topic, with all its partitions."""
        for partition in self.partitions_of(topic):
            self.forget_partition(partition)
        self.births.pop(topic, None)
        self.topic_ids.pop(topic, None)
        self.leaving_topics.discard(topic)
