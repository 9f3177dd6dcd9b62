"""The actions of partitions and replicas on the way between their states (Kafka 2.8; CREATE-3).

Partitions get leaders, by one election for each cause. The leader and the in-sync replicas are written first and sent
to the brokers afterwards (CREATE-4). Replicas start and stop, leave in-sync sets, and leave assignments. Nothing is
sent here: the caller sends the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from layout.topic import TopicPartition
from reconciler.simulator.controller.context import NO_LEADER, LeaderAndIsr
from reconciler.simulator.controller.core import ControllerCore
from reconciler.simulator.controller.states import AssignedReplica, PartitionState, ReplicaState
from reconciler.simulator.zookeeper import NoNodeError


class ElectedLeader(NamedTuple):
    """A leader, and the in-sync replicas that go with it, in their order before the election."""

    leader: int
    isr: tuple[int, ...]


def offline_election(
    replicas: Sequence[int], isr: Sequence[int], live: Collection[int], *, unclean: bool = False
) -> ElectedLeader | None:
    """Elect the first live replica in sync, because the leader is gone; None: no replica can lead.

    Like the other elections it is pure, and never leaves an in-sync set empty (CREATE-4).

    Args:
        replicas: of the partition, in order of preference.
        isr: the in-sync replicas, as far as is known.
        live: replicas that can serve.
        unclean: without a live replica in sync, elect the first live one, and lose the records that it lacks.
    """
    leader = next((each for each in replicas if each in live and each in isr), None)
    if leader is not None:
        return ElectedLeader(leader, tuple(each for each in isr if each in live))
    leader = next((each for each in replicas if each in live), None) if unclean else None
    return None if leader is None else ElectedLeader(leader, (leader,))


def reassignment_election(target: Sequence[int], isr: Sequence[int], live: Collection[int]) -> ElectedLeader | None:
    """Elect the first live replica in sync among those that stay; None: no replica can lead."""
    leader = next((each for each in target if each in live and each in isr), None)
    return None if leader is None else ElectedLeader(leader, tuple(isr))


def preferred_election(replicas: Sequence[int], isr: Sequence[int], live: Collection[int]) -> ElectedLeader | None:
    """Elect the first replica if it is live and in sync; None: it cannot lead."""
    first = next(iter(replicas), None)
    return ElectedLeader(first, tuple(isr)) if first is not None and first in live and first in isr else None


def shutdown_election(
    replicas: Sequence[int], isr: Sequence[int], live: Collection[int], leaving: Collection[int]
) -> ElectedLeader | None:
    """Elect the first live replica in sync whose broker stays; replicas on stopping brokers leave the in-sync set.

    ``live`` includes the replicas on brokers that are about to stop.
    """
    leader = next((each for each in replicas if each in live and each in isr and each not in leaving), None)
    return None if leader is None else ElectedLeader(leader, tuple(each for each in isr if each not in leaving))


class Election(Enum):
    """The cause of an election."""

    OFFLINE = "its leader is away"
    REASSIGNMENT = "its leader is not to stay"
    PREFERRED = "its first replica is to lead"
    SHUTDOWN = "its leader is about to stop"


class PartitionMachine:
    """Moves partitions between their states."""

    def __init__(self, core: ControllerCore) -> None:
        """Work on a controller's context."""
        self._core, self._context = core, core.context
        self._states = core.context.partition_states

    def take_over(self) -> None:
        """Enter every partition's state when the controller is elected, by its leader."""
        for partition in sorted(self._context.assignments):
            found = self._context.leadership.get(partition)
            state = PartitionState.NEW
            if found is not None:
                lives = self._context.is_online(AssignedReplica(partition, found.leader), though_leaving=True)
                state = PartitionState.ONLINE if lives else PartitionState.OFFLINE
            self._states.begin(partition, state)

    def to_new(self, partitions: Iterable[TopicPartition]) -> None:
        """Make partitions New: they were assigned to brokers and have no leader yet."""
        self._move(partitions, PartitionState.NEW)

    def to_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Make partitions Offline: they have no live leader, or are to be deleted."""
        self._move(partitions, PartitionState.OFFLINE)

    def to_non_existent(self, partitions: Iterable[TopicPartition]) -> None:
        """Make partitions NonExistent; their replicas may still have to be deleted."""
        self._move(partitions, PartitionState.NON_EXISTENT)

    def to_online(
        self, partitions: Iterable[TopicPartition], election: Election = Election.OFFLINE
    ) -> list[TopicPartition]:
        """Give partitions a leader; a partition that gets none stays in its state.

        Returns:
            The partitions that got a leader.

        Raises:
            IllegalTransitionError: a partition does not exist.
        """
        led = []
        for each in self._states.checked(partitions, PartitionState.ONLINE):
            done = self._begin(each) if self._states.of(each) is PartitionState.NEW else self._elect(each, election)
            if done:
                self._states.move(each, PartitionState.ONLINE)
                led.append(each)
        return led

    def elect_where_needed(self) -> None:
        """Elect a leader for every partition that has none and is not being deleted."""
        waiting = self._states.found_in(PartitionState.OFFLINE, PartitionState.NEW)
        self.to_online(each for each in waiting if not self._context.is_leaving(each))

    def _move(self, partitions: Iterable[TopicPartition], state: PartitionState) -> None:
        for each in self._states.checked(partitions, state):
            self._states.move(each, state)

    def _begin(self, partition: TopicPartition) -> bool:
        """Give a partition its first leader: the first live replica; all live replicas are in sync."""
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
            if not self._context.is_online(AssignedReplica(partition, found.leader)):
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

    def _choose(self, partition: TopicPartition, state: LeaderAndIsr, election: Election) -> ElectedLeader | None:
        assignment, live = self._context.assignments[partition], self._context.online(partition)
        if election is Election.REASSIGNMENT:
            return reassignment_election(assignment.target, state.isr, live)
        if election is Election.PREFERRED:
            return preferred_election(assignment.replicas, state.isr, live)
        if election is Election.SHUTDOWN:
            alive = self._context.online(partition, though_leaving=True)
            return shutdown_election(assignment.replicas, state.isr, alive, self._context.shutting_down)
        unclean = self._core.nodes.config(partition.topic, "unclean.leader.election.enable")
        allowed = self._core.settings.unclean_elections if unclean is None else unclean == "true"
        return offline_election(assignment.replicas, state.isr, live, unclean=allowed)


class ReplicaMachine:
    """Moves replicas between their states."""

    def __init__(self, core: ControllerCore) -> None:
        """Work on a controller's context."""
        self._core, self._context, self._batch = core, core.context, core.batch
        self._states = core.context.replica_states

    def take_over(self) -> None:
        """Enter every replica's state when the controller is elected: online, or on an unavailable broker."""
        for replica in self._context.replicas_of(sorted(self._context.assignments)):
            online = self._context.is_online(replica)
            self._states.begin(replica, ReplicaState.ONLINE if online else ReplicaState.DELETION_INELIGIBLE)

    def to_new(self, replicas: Iterable[AssignedReplica]) -> None:
        """Make replicas New; a partition that has a leader already is sent to the broker at once."""
        for replica in self._states.checked(replicas, ReplicaState.NEW):
            state = self._context.leadership.get(replica.partition)
            if state is not None and state.leader != replica.broker:
                self._batch.leader_and_isr([replica.broker], replica.partition, is_new=True)
            self._states.move(replica, ReplicaState.NEW)

    def to_online(self, replicas: Iterable[AssignedReplica]) -> None:
        """Make replicas Online; a new one has its request already, all others get it now."""
        for replica in self._states.checked(replicas, ReplicaState.ONLINE):
            if self._states.of(replica) is not ReplicaState.NEW and replica.partition in self._context.leadership:
                self._batch.leader_and_isr([replica.broker], replica.partition)
            self._states.move(replica, ReplicaState.ONLINE)

    def to_offline(self, replicas: Iterable[AssignedReplica]) -> None:
        """Make replicas Offline: each leaves the in-sync set, and the other replicas are sent the new state."""
        for replica in self._states.checked(replicas, ReplicaState.OFFLINE):
            partition, leaving = replica.partition, self._context.is_leaving(replica.partition)
            topic_id = self._context.topic_ids.get(partition.topic)
            self._batch.stop_replica(replica, topic_id, delete=False, leaving=leaving)
            if partition in self._context.leadership and not leaving:
                self._out_of_sync(replica)
            self._states.move(replica, ReplicaState.OFFLINE)

    def to_deletion_started(self, replicas: Iterable[AssignedReplica]) -> None:
        """Ask brokers to delete replicas."""
        for replica in self._states.checked(replicas, ReplicaState.DELETION_STARTED):
            partition = replica.partition
            topic_id, leaving = self._context.topic_ids.get(partition.topic), self._context.is_leaving(partition)
            self._batch.stop_replica(replica, topic_id, delete=True, leaving=leaving)
            self._states.move(replica, ReplicaState.DELETION_STARTED)

    def to_deletion_ineligible(self, replicas: Iterable[AssignedReplica]) -> None:
        """Mark replicas that cannot be deleted now."""
        for replica in self._states.checked(replicas, ReplicaState.DELETION_INELIGIBLE):
            self._states.move(replica, ReplicaState.DELETION_INELIGIBLE)

    def to_deletion_successful(self, replicas: Iterable[AssignedReplica]) -> None:
        """Mark replicas that brokers have deleted."""
        for replica in self._states.checked(replicas, ReplicaState.DELETION_SUCCESSFUL):
            self._states.move(replica, ReplicaState.DELETION_SUCCESSFUL)

    def to_non_existent(self, replicas: Iterable[AssignedReplica]) -> None:
        """Make replicas NonExistent: they leave the assignment."""
        for replica in self._states.checked(replicas, ReplicaState.NON_EXISTENT):
            self._states.move(replica, ReplicaState.NON_EXISTENT)
            assignment = self._context.assignments.get(replica.partition)
            if assignment is not None:
                self._context.assignments[replica.partition] = assignment.without(replica.broker)
            self._context.offline.discard(replica)

    def _out_of_sync(self, replica: AssignedReplica) -> None:
        """Remove a replica from the in-sync set, unless it is the last there: the next leader must have its data."""
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
