"""What happens when partitions change their states: leaders are elected, persisted, and told to brokers.

The leader and the in-sync replicas are written first and told afterwards (CREATE-4). Nothing is sent here: whoever
calls sends the batch. Source: Kafka 2.8's partition state machine; CREATE-3.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from layout.topic import TopicPartition
from reconciler.simulator.controller import elections
from reconciler.simulator.controller.context import LeaderAndIsr
from reconciler.simulator.controller.core import Core
from reconciler.simulator.controller.elections import Elected
from reconciler.simulator.controller.partition_states import PartitionState
from reconciler.simulator.controller.replica_states import Replica
from reconciler.simulator.zookeeper import NoNodeError


class Election(Enum):
    """Why a leader is elected."""

    OFFLINE = "its leader is away"
    REASSIGNMENT = "its leader is not to stay"
    PREFERRED = "its first replica is to lead"
    SHUTDOWN = "its leader is about to stop"


class PartitionMachine:
    """Moves partitions between their states."""

    def __init__(self, core: Core) -> None:
        """Work on a controller's context."""
        self._core, self._context = core, core.context
        self._states = core.context.partition_states

    def take_over(self) -> None:
        """Say where every partition stands when the controller is elected, by its leader."""
        for partition in sorted(self._context.assignments):
            found = self._context.leadership.get(partition)
            state = PartitionState.NEW
            if found is not None:
                lives = self._context.is_online(Replica(partition, found.leader), though_leaving=True)
                state = PartitionState.ONLINE if lives else PartitionState.OFFLINE
            self._states.begin(partition, state)

    def to_new(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions were assigned to brokers; they have no leader yet."""
        self._move(partitions, PartitionState.NEW)

    def to_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions have no leader that lives, or are to be deleted."""
        self._move(partitions, PartitionState.OFFLINE)

    def to_non_existent(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions are no more; their replicas may still have to be deleted."""
        self._move(partitions, PartitionState.NON_EXISTENT)

    def to_online(
        self, partitions: Iterable[TopicPartition], election: Election = Election.OFFLINE
    ) -> list[TopicPartition]:
        """Give partitions a leader; one for which there is none stays in its state.

        Returns:
            Those that were given one.

        Raises:
            IllegalTransitionError: a partition does not exist.
        """
        wanted = list(partitions)
        for each in wanted:
            self._states.check(each, PartitionState.ONLINE)
        led = []
        for each in wanted:
            done = self._begin(each) if self._states.of(each) is PartitionState.NEW else self._elect(each, election)
            if done:
                self._states.move(each, PartitionState.ONLINE)
                led.append(each)
        return led

    def elect_where_needed(self) -> None:
        """Try every partition that has no leader and is not being deleted."""
        waiting = self._states.found_in(PartitionState.OFFLINE, PartitionState.NEW)
        self.to_online(each for each in waiting if not self._context.is_leaving(each))

    def _move(self, partitions: Iterable[TopicPartition], state: PartitionState) -> None:
        wanted = list(partitions)
        for each in wanted:
            self._states.check(each, state)
        for each in wanted:
            self._states.move(each, state)

    def _begin(self, partition: TopicPartition) -> bool:
        """The first leader of a partition: the first replica that lives; all that live are in sync."""
        live = self._context.online(partition)
        if not live:
            self._core.say(f"{partition} has no leader: none of {self._context.assignments[partition].replicas} lives")
            return False
        try:
            created = self._core.nodes.create_state(partition, LeaderAndIsr(live[0], 0, live, 0, self._context.epoch))
        except NoNodeError:
            self._core.say(f"{partition} gets no leader: its topic was deleted")
            return False
        if created is None:
            found = self._core.nodes.state(partition)
            if found is None:
                self._core.say(f"{partition} gets no leader: its state node cannot be read")
                return False
            self._context.leadership[partition] = found
            if not self._context.is_online(Replica(partition, found.leader)):
                return self._elect(partition, Election.OFFLINE)
            self._core.batch.leader_and_isr(live, partition)
            return True
        self._context.leadership[partition] = created
        self._core.batch.leader_and_isr(live, partition, is_new=True)
        return True

    def _elect(self, partition: TopicPartition, election: Election) -> bool:
        def change(state: LeaderAndIsr) -> LeaderAndIsr | None:
            elected = self._choose(partition, state, election)
            return None if elected is None else state.next(elected.leader, elected.isr)

        if self._core.change_state(partition, change) is None:
            self._core.say(f"{partition} gets no other leader, though {election.value}")
            return False
        receivers = self._context.online(partition, though_leaving=election is Election.SHUTDOWN)
        self._core.batch.leader_and_isr(receivers, partition)
        return True

    def _choose(self, partition: TopicPartition, state: LeaderAndIsr, election: Election) -> Elected | None:
        assignment, live = self._context.assignments[partition], self._context.online(partition)
        if election is Election.REASSIGNMENT:
            return elections.reassignment_election(assignment.target, state.isr, live)
        if election is Election.PREFERRED:
            return elections.preferred_election(assignment.replicas, state.isr, live)
        if election is Election.SHUTDOWN:
            alive = self._context.online(partition, though_leaving=True)
            return elections.shutdown_election(assignment.replicas, state.isr, alive, self._context.shutting_down)
        return elections.offline_election(
            assignment.replicas, state.isr, live, unclean=self._core.settings.unclean_elections
        )
