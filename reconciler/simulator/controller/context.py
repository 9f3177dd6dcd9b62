"""What a controller knows of its cluster, in memory only; the truth is in ZooKeeper and is read at each failover.

Values and questions about them; nothing here writes, sends, or decides. Everything that is given back in numbers is in
a fixed order. Source: Kafka 2.8's controller context; KIP694-1 for the modes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.simulator.controller.states import PartitionStates, Replica, ReplicaStates
from reconciler.simulator.kernel import PartitionMode

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """The brokers of one partition, in order of preference; those being added and removed are among them."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        """What is left when the reassignment is complete."""
        return tuple(each for each in self.replicas if each not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """What there was before the reassignment."""
        return tuple(each for each in self.replicas if each not in self.adding)

    @property
    def is_being_reassigned(self) -> bool:
        """Whether replicas are being added or removed."""
        return bool(self.adding or self.removing)

    def reassigned_to(self, target: tuple[int, ...]) -> ReplicaAssignment:
        """The assignment on the way to a target: the target first, then what is to go."""
        origin = self.origin
        every = target + tuple(each for each in origin if each not in target)
        return ReplicaAssignment(
            every,
            tuple(each for each in every if each not in origin),
            tuple(each for each in every if each not in target),
        )

    def without(self, broker: int) -> ReplicaAssignment:
        """The assignment after a replica is gone."""
        left, adding, removing = (
            tuple(each for each in brokers if each != broker) for brokers in (self.replicas, self.adding, self.removing)
        )
        return ReplicaAssignment(left, adding, removing)


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """Who leads, and who is in sync, as it stands in the partition's state node."""

    leader: int
    """-1: none."""
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    """The version of the state node."""
    controller_epoch: int
    """Of the controller that wrote it."""

    def next(self, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        """The same partition one leader epoch later; the partition epoch is that of the node it replaces."""
        return replace(self, leader=leader, leader_epoch=self.leader_epoch + 1, isr=isr)


class ControllerContext:
    """The cluster, as far as the controller was told.

    Attributes:
        epoch: of this controller; each has a greater one than all before it.
        epoch_version: of the node ``/controller_epoch``, on which every write depends.
        brokers: those that live, with their broker epochs.
        shutting_down: those of them that asked to stop.
        births: topic → the transaction that created its node, by which a re-created topic is told from the old one.
        topic_ids: topic → its ID; None while it has none.
        assignments: partition → its brokers.
        leadership: partition → leader and in-sync replicas; a partition that never had a leader is not there.
        partition_states: of every partition that lives or is being deleted as before.
        replica_states: of their replicas.
        offline: replicas on log dirs that failed, though their brokers live.
        modes: partitions that not everybody may use (KIP694-1); all others are read and written.
        leaving_topics: being deleted as before KIP-516: their names are taken until all replicas are gone.
        leaving_partitions: being deleted though their topics stay (KIP694-3).
        unreadable: topics whose nodes cannot be read: what is assigned to a broker is not known in full.
    """

    def __init__(self, epoch: int = 0, epoch_version: int = 0) -> None:
        """Know nothing but its own epoch."""
        self.epoch, self.epoch_version = epoch, epoch_version
        self.brokers: dict[int, int] = {}
        self.shutting_down: set[int] = set()
        self.births: dict[str, int] = {}
        self.topic_ids: dict[str, TopicId | None] = {}
        self.assignments: dict[TopicPartition, ReplicaAssignment] = {}
        self.leadership: dict[TopicPartition, LeaderAndIsr] = {}
        self.partition_states = PartitionStates()
        self.replica_states = ReplicaStates()
        self.offline: set[Replica] = set()
        self.modes: dict[TopicPartition, PartitionMode] = {}
        self.leaving_topics: set[str] = set()
        self.leaving_partitions: set[TopicPartition] = set()
        self.unreadable: set[str] = set()

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic, sorted."""
        return sorted(partition for partition in self.assignments if partition.topic == topic)

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        """The replicas of some partitions, in their order."""
        return [Replica(each, broker) for each in partitions for broker in self.assignments[each].replicas]

    def replicas_on(self, brokers: Collection[int]) -> list[Replica]:
        """Every replica on some brokers, sorted."""
        return sorted(
            Replica(partition, broker)
            for partition, assignment in self.assignments.items()
            for broker in assignment.replicas
            if broker in brokers
        )

    def is_online(self, replica: Replica, *, though_leaving: bool = False) -> bool:
        """Whether a replica can serve: its broker lives, and its log dir has not failed.

        Args:
            replica: to be asked about.
            though_leaving: a broker that is about to stop counts too.
        """
        lives = replica.broker in self.brokers and (though_leaving or replica.broker not in self.shutting_down)
        return lives and replica not in self.offline

    def online(self, partition: TopicPartition, *, though_leaving: bool = False) -> tuple[int, ...]:
        """The brokers of a partition whose replicas can serve, in order of preference."""
        return tuple(
            broker
            for broker in self.assignments[partition].replicas
            if self.is_online(Replica(partition, broker), though_leaving=though_leaving)
        )

    def without_leader(self) -> list[TopicPartition]:
        """Partitions whose leader cannot serve, sorted; not those that are being deleted."""
        return sorted(
            partition
            for partition, found in self.leadership.items()
            if not self.is_leaving(partition)
            and not self.is_online(Replica(partition, found.leader), though_leaving=True)
        )

    def is_leaving(self, partition: TopicPartition) -> bool:
        """Whether a partition is being deleted, by itself or with its topic."""
        return partition in self.leaving_partitions or partition.topic in self.leaving_topics

    def mode_of(self, partition: TopicPartition) -> PartitionMode:
        """Who may use a partition (KIP694-1)."""
        return self.modes.get(partition, PartitionMode.READ_WRITE)

    def forget_partition(self, partition: TopicPartition) -> None:
        """A partition is gone: nothing is known of it any more, except the states, which end by transitions."""
        assignment = self.assignments.pop(partition, None)
        for broker in assignment.replicas if assignment else ():
            self.offline.discard(Replica(partition, broker))
        self.leadership.pop(partition, None)
        self.modes.pop(partition, None)
        self.leaving_partitions.discard(partition)

    def forget_topic(self, topic: str) -> None:
        """A topic is gone, with all its partitions."""
        for partition in self.partitions_of(topic):
            self.forget_partition(partition)
        self.births.pop(topic, None)
        self.topic_ids.pop(topic, None)
        self.leaving_topics.discard(topic)
