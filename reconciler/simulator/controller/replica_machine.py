"""What happens when replicas change their states: brokers are told, in-sync sets shrink, assignments end.

Nothing is sent here: whoever calls sends the batch. Source: Kafka 2.8's replica state machine; CREATE-3.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.simulator.controller.context import NO_LEADER, LeaderAndIsr
from reconciler.simulator.controller.core import Core
from reconciler.simulator.controller.replica_states import Replica, ReplicaState


class ReplicaMachine:
    """Moves replicas between their states."""

    def __init__(self, core: Core) -> None:
        """Work on a controller's context."""
        self._core, self._context, self._batch = core, core.context, core.batch
        self._states = core.context.replica_states

    def take_over(self) -> None:
        """Say where every replica stands when the controller is elected: online, or on a broker that is away."""
        for replica in self._context.replicas_of(sorted(self._context.assignments)):
            online = self._context.is_online(replica)
            self._states.begin(replica, ReplicaState.ONLINE if online else ReplicaState.DELETION_INELIGIBLE)

    def to_new(self, replicas: Iterable[Replica]) -> None:
        """Replicas were assigned; where the partition has a leader already, the broker is told at once."""
        for replica in self._checked(replicas, ReplicaState.NEW):
            state = self._context.leadership.get(replica.partition)
            if state is not None and state.leader != replica.broker:
                self._batch.leader_and_isr([replica.broker], replica.partition, is_new=True)
            self._states.move(replica, ReplicaState.NEW)

    def to_online(self, replicas: Iterable[Replica]) -> None:
        """Replicas serve: a new one was told before, any other is told now."""
        for replica in self._checked(replicas, ReplicaState.ONLINE):
            if self._states.of(replica) is not ReplicaState.NEW and replica.partition in self._context.leadership:
                self._batch.leader_and_isr([replica.broker], replica.partition)
            self._states.move(replica, ReplicaState.ONLINE)

    def to_offline(self, replicas: Iterable[Replica]) -> None:
        """Replicas stop serving: each goes out of sync, and the others are told."""
        for replica in self._checked(replicas, ReplicaState.OFFLINE):
            partition, leaving = replica.partition, self._context.is_leaving(replica.partition)
            topic_id = self._context.topic_ids.get(partition.topic)
            self._batch.stop_replica(replica, topic_id, delete=False, leaving=leaving)
            if partition in self._context.leadership and not leaving:
                self._out_of_sync(replica)
            self._states.move(replica, ReplicaState.OFFLINE)

    def to_deletion_started(self, replicas: Iterable[Replica]) -> None:
        """Brokers are told to delete replicas."""
        for replica in self._checked(replicas, ReplicaState.DELETION_STARTED):
            partition = replica.partition
            topic_id, leaving = self._context.topic_ids.get(partition.topic), self._context.is_leaving(partition)
            self._batch.stop_replica(replica, topic_id, delete=True, leaving=leaving)
            self._states.move(replica, ReplicaState.DELETION_STARTED)

    def to_deletion_ineligible(self, replicas: Iterable[Replica]) -> None:
        """Replicas cannot be deleted now."""
        for replica in self._checked(replicas, ReplicaState.DELETION_INELIGIBLE):
            self._states.move(replica, ReplicaState.DELETION_INELIGIBLE)

    def to_deletion_successful(self, replicas: Iterable[Replica]) -> None:
        """Brokers have deleted replicas."""
        for replica in self._checked(replicas, ReplicaState.DELETION_SUCCESSFUL):
            self._states.move(replica, ReplicaState.DELETION_SUCCESSFUL)

    def to_non_existent(self, replicas: Iterable[Replica]) -> None:
        """Replicas are no more: they leave the assignment."""
        for replica in self._checked(replicas, ReplicaState.NON_EXISTENT):
            self._states.move(replica, ReplicaState.NON_EXISTENT)
            assignment = self._context.assignments.get(replica.partition)
            if assignment is not None:
                self._context.assignments[replica.partition] = assignment.without(replica.broker)
            self._context.offline.discard(replica)

    def _checked(self, replicas: Iterable[Replica], state: ReplicaState) -> list[Replica]:
        """All of them, or an error before any is moved."""
        wanted = list(replicas)
        for each in wanted:
            self._states.check(each, state)
        return wanted

    def _out_of_sync(self, replica: Replica) -> None:
        """Take a replica out of the in-sync set, unless it is the last there: whoever leads next must have its data."""
        partition, broker = replica

        def change(state: LeaderAndIsr) -> LeaderAndIsr | None:
            if broker not in state.isr:
                return None
            left = tuple(each for each in state.isr if each != broker)
            leader = NO_LEADER if state.leader == broker else state.leader
            return state.next(leader, left or state.isr) if left or leader != state.leader else None

        self._batch.update_metadata([partition])
        if self._core.change_state(partition, change) is not None:
            others = [each for each in self._context.online(partition, though_leaving=True) if each != broker]
            self._batch.leader_and_isr(others, partition)
