"""Reassignments of partitions to other brokers, and elections of preferred leaders.

A reassignment adds replicas, waits until all replicas that stay are in sync, and then drops the others. It is written
into the topic's node, so that the next controller continues it. A replica that is dropped while its broker is away is
left to the FULL request that the broker gets when it returns. Source: Kafka 2.8 (phases A and B); KIP4-1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.controller.context import LeaderAndIsr, ReplicaAssignment
from reconciler.simulator.controller.core import ControllerCore
from reconciler.simulator.controller.deletion import DroppedReplicas
from reconciler.simulator.controller.state_machines import Election, PartitionMachine, ReplicaMachine
from reconciler.simulator.controller.states import AssignedReplica, ReplicaState
from reconciler.simulator.zookeeper import NoNodeError


class Reassignments:
    """Moves partitions between brokers."""

    def __init__(
        self, core: ControllerCore, partitions: PartitionMachine, replicas: ReplicaMachine, dropped: DroppedReplicas
    ) -> None:
        """Start with the reassignments of the context."""
        self._dropped = dropped
        self._core, self._context, self._partitions, self._replicas = core, core.context, partitions, replicas

    def reassign(
        self, assignments: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> dict[TopicPartition, KafkaError]:
        """Begin, change or cancel reassignments, each independently. Sends.

        Each partition has its target brokers, the preferred leader first; None: cancel.

        Returns:
            For each: NONE, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, or NO_REASSIGNMENT_IN_PROGRESS.
        """
        answers = {}
        for partition, target in assignments.items():
            answers[partition] = self._refusal(partition, target)
            if answers[partition] is KafkaError.NONE:
                old = self._context.assignments[partition]
                self._begin(partition, old.reassigned_to(old.origin if target is None else target))
        self._core.batch.send()
        return answers

    def resume(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Continue reassignments where possible; None: of all partitions. Sends."""
        for partition in sorted(self._context.assignments if partitions is None else partitions):
            assignment = self._context.assignments.get(partition)
            if assignment is None or self._context.is_leaving(partition) or not assignment.is_being_reassigned:
                continue
            if self._is_complete(partition):
                self._complete(partition)
            else:
                self._add(partition)
        self._core.batch.send()

    def complete(self, partition: TopicPartition) -> None:
        """Finish a reassignment that waited for a change of the in-sync set. Sends."""
        assignment = self._context.assignments.get(partition)
        waits = assignment is not None and assignment.is_being_reassigned and not self._context.is_leaving(partition)
        if waits and self._is_complete(partition):
            self._complete(partition)
        self._core.batch.send()

    def from_node(self) -> None:
        """Carry out the request of the old tool, and delete its node. Sends."""
        wanted = self._core.nodes.reassignment()
        if wanted is not None:
            for partition, error in self.reassign(wanted).items():
                if error is not KafkaError.NONE:
                    self._core.say(f"{partition} is not reassigned: {error.name}")
            self._core.nodes.end_reassignment()

    def elect_preferred(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, KafkaError]:
        """Make first replicas lead that are live and in sync. Sends.

        Returns:
            For each: NONE, UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, or PREFERRED_LEADER_NOT_AVAILABLE.
        """
        answers = {}
        for partition in partitions:
            assignment, state = self._context.assignments.get(partition), self._context.leadership.get(partition)
            if assignment is None or self._context.is_leaving(partition):
                answers[partition] = KafkaError.UNKNOWN_TOPIC_OR_PARTITION
            elif state is not None and state.leader == assignment.replicas[0]:
                answers[partition] = KafkaError.ELECTION_NOT_NEEDED
            elif self._partitions.to_online([partition], Election.PREFERRED):
                answers[partition] = KafkaError.NONE
            else:
                answers[partition] = KafkaError.PREFERRED_LEADER_NOT_AVAILABLE
        self._core.batch.send()
        return answers

    def _refusal(self, partition: TopicPartition, target: tuple[int, ...] | None) -> KafkaError:
        assignment = self._context.assignments.get(partition)
        if assignment is None or self._context.is_leaving(partition):
            return KafkaError.UNKNOWN_TOPIC_OR_PARTITION
        if target is None and not assignment.is_being_reassigned:
            return KafkaError.NO_REASSIGNMENT_IN_PROGRESS
        if self._loses_all_in_sync(partition, assignment.origin if target is None else target):
            return KafkaError.INVALID_REPLICA_ASSIGNMENT
        if target is None:
            return KafkaError.NONE
        if not target or len(set(target)) < len(target) or min(target) < 0:
            return KafkaError.INVALID_REPLICA_ASSIGNMENT
        added = [each for each in target if each not in assignment.origin]
        dead = any(each not in self._context.brokers for each in added)
        return KafkaError.INVALID_REPLICA_ASSIGNMENT if dead else KafkaError.NONE

    def _loses_all_in_sync(self, partition: TopicPartition, target: tuple[int, ...]) -> bool:
        """Return whether every in-sync replica is dropped at once, and the data with them; Kafka 2.8 allows that."""
        assignment, state = self._context.assignments[partition], self._context.leadership.get(partition)
        kept = assignment.reassigned_to(target).replicas
        return state is not None and bool(state.isr) and not set(state.isr) & set(kept)

    def _begin(self, partition: TopicPartition, wanted: ReplicaAssignment) -> None:
        old = self._context.assignments[partition]
        self._core.say(f"{partition} is reassigned from {old.replicas} to {wanted.target}")
        if not self._write(partition, wanted):
            return
        self._stop(partition, [each for each in old.replicas if each not in wanted.replicas])
        self._context.assignments[partition] = wanted
        if self._is_complete(partition):
            self._complete(partition)
        else:
            self._add(partition)

    def _is_complete(self, partition: TopicPartition) -> bool:
        state = self._context.leadership.get(partition)
        return state is not None and set(self._context.assignments[partition].target) <= set(state.isr)

    def _add(self, partition: TopicPartition) -> None:
        """Do phase A: a new leader epoch with all replicas, and the new replicas begin to follow."""
        if partition in self._context.leadership:
            self._bump(partition)
        adding = [AssignedReplica(partition, each) for each in self._context.assignments[partition].adding]
        states = self._context.replica_states
        self._replicas.to_new(states.among(adding, ReplicaState.NON_EXISTENT))

    def _complete(self, partition: TopicPartition) -> None:
        """Do phase B: all replicas that stay are in sync; make one of them lead, and drop the others."""
        assignment = self._context.assignments[partition]
        staying = [AssignedReplica(partition, each) for each in assignment.target]
        states = self._context.replica_states
        # A cancelled reassignment may get here before a replica has any state.
        self._replicas.to_new(states.among(staying, ReplicaState.NON_EXISTENT))
        self._replicas.to_online(states.among(staying, ReplicaState.NEW))
        if not self._move_leader(partition, assignment):
            return
        self._stop(partition, assignment.removing)
        self._context.assignments[partition] = ReplicaAssignment(assignment.target)
        self._write(partition, ReplicaAssignment(assignment.target))
        self._core.batch.update_metadata([partition])
        self._core.say(f"{partition} is reassigned: it has {assignment.target}")

    def _move_leader(self, partition: TopicPartition, assignment: ReplicaAssignment) -> bool:
        """Make a live replica that stays the leader, and return whether there is one."""
        leader = self._context.leadership[partition].leader
        if leader not in assignment.target or not self._context.is_online(AssignedReplica(partition, leader)):
            return bool(self._partitions.to_online([partition], Election.REASSIGNMENT))
        self._bump(partition)
        return True

    def _bump(self, partition: TopicPartition) -> None:
        """Begin a new leader epoch with the same leader, so that all replicas learn the assignment."""

        def change(state: LeaderAndIsr) -> LeaderAndIsr:
            return state.next(state.leader, state.isr)

        if self._core.change_state(partition, change) is not None:
            self._core.batch.leader_and_isr(self._context.online(partition, though_leaving=True), partition)

    def _stop(self, partition: TopicPartition, brokers: Sequence[int]) -> None:
        """Drop replicas without waiting for their brokers; failed deletions are requested again."""
        known = [AssignedReplica(partition, each) for each in brokers]
        states = self._context.replica_states
        known = [each for each in known if states.of(each) is not ReplicaState.NON_EXISTENT]
        self._replicas.to_offline(known)
        self._replicas.to_deletion_started(known)
        self._dropped.ordered(known)
        self._replicas.to_deletion_successful(known)
        self._replicas.to_non_existent(known)

    def _write(self, partition: TopicPartition, wanted: ReplicaAssignment) -> bool:
        """Write one partition's assignment into its topic's node."""
        topic = partition.topic
        try:
            self._core.nodes.write_topic(topic, self._context.topic_ids[topic], {partition.partition: wanted})
        except NoNodeError:
            self._core.say(f"{partition} is not reassigned: its topic was deleted")
            return False
        return True
