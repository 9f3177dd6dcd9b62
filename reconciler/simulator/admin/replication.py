"""Reassignments of partitions to other replicas, and elections of their preferred leaders (KIP4-1).

A reassignment goes to the controller, which writes it into the topic's node. An election of preferred leaders is noted
in ``/admin/preferred_replica_election`` and carried out by a later event. The note is an ephemeral node of the
controller's session, so that a crash cannot leave an election running for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode, find_topic
from reconciler.simulator.kernel import Timers
from reconciler.simulator.zookeeper import (
    PREFERRED_ELECTION,
    Create,
    Delete,
    delete_partitions_path,
    delete_path,
    read_brokers,
    read_topics,
    state_path,
)
from reconciler.sources.zookeeper import decode_partitions, decode_state, encode_partitions
from reconciler.text import listed


def check_reassigned(node: ControllerNode, partition: TopicPartition, replicas: Sequence[int] | None) -> None:
    """Check the new replicas of a partition by Kafka's rules; None: its reassignment is to be cancelled.

    Raises:
        CommandRefusedError: 3, there is no such partition; 17, its topic is being deleted; 39 for the replicas; 60, it
            is already under change; 85, there is nothing to cancel.
    """
    topic = find_topic(node, partition.topic).node
    if partition.partition not in topic.partitions:
        raise CommandRefusedError(KafkaError.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}")
    if node.session.find(delete_path(partition.topic)) is not None:
        raise CommandRefusedError(KafkaError.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is being deleted")
    moving = partition.partition in topic.adding or partition.partition in topic.removing
    if replicas is None:
        if not moving:
            raise CommandRefusedError(KafkaError.NO_REASSIGNMENT_IN_PROGRESS, f"{partition} is not being reassigned")
        return
    if moving:
        added, removed = (list(each.get(partition.partition, ())) for each in (topic.adding, topic.removing))
        raise CommandRefusedError(
            KafkaError.REASSIGNMENT_IN_PROGRESS,
            f"{partition} is being reassigned already: it gets {added} and loses {removed}; wait, or cancel that first",
        )
    if node.session.find(delete_partitions_path(partition.topic)) is not None:
        raise CommandRefusedError(
            KafkaError.REASSIGNMENT_IN_PROGRESS, f"the last partitions of {partition.topic} are being deleted; wait"
        )
    unknown = sorted(set(replicas) - set(read_brokers(node.session)))
    if not replicas or len(set(replicas)) < len(replicas) or unknown:
        why = f"brokers {unknown} are not there" if unknown else "name at least one broker, and none of them twice"
        raise CommandRefusedError(
            KafkaError.INVALID_REPLICA_ASSIGNMENT, f"{partition} cannot have the replicas {list(replicas)}: {why}"
        )


def reassign(node: ControllerNode, wanted: Mapping[TopicPartition, tuple[int, ...] | None]) -> None:
    """Have the controller begin or cancel reassignments, all of them checked first.

    Raises:
        CommandRefusedError: as :func:`check_reassigned`; or the controller refuses, after it has begun others.
    """
    for partition, replicas in wanted.items():
        check_reassigned(node, partition, replicas)
    node.check_active()
    for partition, error in node.controller.reassign(wanted).items():
        if error is not KafkaError.NONE:
            raise CommandRefusedError(
                error,
                f"the controller refuses {list(replicas or ())} for {partition}: {error.name}; "
                "describe shows its replicas, and which of them are in sync",
            )


class PreferredElections:
    """Elections of preferred leaders, one at a time."""

    def __init__(self, node: ControllerNode, timers: Timers) -> None:
        """Take the controller, and the timers that carry out elections later."""
        self._node = node
        self._timers = timers

    def check(self, partition: TopicPartition) -> None:
        """Check that a partition's first replica could lead and does not.

        Raises:
            CommandRefusedError: 3, there is no such partition; 84, the replica leads; 80, it is away or not in sync.
        """
        topic = find_topic(self._node, partition.topic).node
        replicas = topic.partitions.get(partition.partition)
        if not replicas:
            raise CommandRefusedError(KafkaError.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}")
        found = self._node.session.find(state_path(partition))
        state = decode_state(found.data) if found is not None else None
        if state is not None and state.leader == replicas[0]:
            raise CommandRefusedError(KafkaError.ELECTION_NOT_NEEDED, f"{partition}: broker {replicas[0]} leads it")
        if state is None or replicas[0] not in state.isr or replicas[0] not in read_brokers(self._node.session):
            raise CommandRefusedError(
                KafkaError.PREFERRED_LEADER_NOT_AVAILABLE, f"{partition}: broker {replicas[0]} is away or not in sync"
            )

    def check_idle(self) -> None:
        """Check that no election is running.

        Raises:
            CommandRefusedError: 42, an election is running.
        """
        running = self._node.session.find(PREFERRED_ELECTION)
        if running is not None:
            names = sorted(map(str, decode_partitions(running.data)))
            raise CommandRefusedError(
                KafkaError.INVALID_REQUEST, f"an election of preferred leaders is running for {listed(names)}; wait"
            )

    def every_partition(self) -> list[TopicPartition]:
        """All partitions of all topics."""
        topics = read_topics(self._node.session)
        return [TopicPartition(topic, partition) for topic, node in topics.items() for partition in node.partitions]

    def start(self, partitions: Sequence[TopicPartition]) -> None:
        """Note an election; it is carried out by a later event."""
        self._node.commit([Create(PREFERRED_ELECTION, encode_partitions(partitions), ephemeral=True)])
        self._timers.after(0, "preferred leader election", self._carry_out)

    def _carry_out(self) -> None:
        try:
            noted = self._node.session.find(PREFERRED_ELECTION)
            if noted is not None:
                self._node.commit([Delete(PREFERRED_ELECTION, noted.version)])
                self._node.controller.elect_preferred(decode_partitions(noted.data))
        except CommandRefusedError:
            # Another controller was elected; this one's note is deleted with its session.
            return
