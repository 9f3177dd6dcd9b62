"""Brokers that come, go, restart unseen, or stop in order; their failed log dirs; and their AlterIsr requests.

A broker whose registration has another epoch was restarted: for the controller it goes and comes, for data that it had
not synced is lost, and it leads nothing until a request makes it the leader. Source: Kafka 2.8, with its controlled
shutdown; KIP516-5 for the FULL request to each broker that comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, LeaderAndIsrResponse
from reconciler.simulator.controller.context import LeaderAndIsr
from reconciler.simulator.controller.core import ControllerCore
from reconciler.simulator.controller.deletion import Deletions
from reconciler.simulator.controller.reassignment import Reassignments
from reconciler.simulator.controller.state_machines import Election, PartitionMachine, ReplicaMachine
from reconciler.simulator.controller.states import AssignedReplica, ReplicaState
from reconciler.simulator.controller.topics import DeletedTopics
from reconciler.simulator.kernel import AlterIsrRequest, AlterIsrResponse


class BrokerChanges:
    """Keeps the context in step with the brokers that are registered."""

    def __init__(
        self,
        core: ControllerCore,
        partitions: PartitionMachine,
        replicas: ReplicaMachine,
        *,
        deletions: Deletions,
        garbage: DeletedTopics,
        reassignments: Reassignments,
    ) -> None:
        """Start with the brokers of the context."""
        self._core, self._context = core, core.context
        self._partitions, self._replicas = partitions, replicas
        self._deletions, self._garbage, self._reassignments = deletions, garbage, reassignments

    def look(self) -> None:
        """Read the registered brokers, and handle each change. Sends."""
        found, known = self._core.nodes.brokers(), dict(self._context.brokers)
        new = [broker for broker in found if broker not in known]
        bounced = [broker for broker in found if known.get(broker, found[broker]) != found[broker]]
        dead = [broker for broker in known if broker not in found]
        if new:
            self._register({broker: found[broker] for broker in new})
            self._came(new)
        if bounced:
            self._remove(bounced)
            self._went(bounced)
            self._register({broker: found[broker] for broker in bounced})
            self._came(bounced)
        if dead:
            self._remove(dead)
            self._went(dead)

    def begin(self) -> None:
        """Handle, at the election, brokers that went or were restarted while there was no controller. Sends."""
        lives, context = self._context.brokers, self._context
        absent = {each.broker for each in context.replicas_of(context.assignments) if each.broker not in lives}
        if absent:
            self._replicas_went(context.replicas_on(absent))
        else:
            self._partitions.elect_where_needed()
            self._core.batch.send()
        self.look()

    def log_dirs_failed(self) -> None:
        """Ask brokers that reported failed log dirs about every replica; they answer 56 for the failed ones. Sends."""
        brokers = [broker for broker in self._core.nodes.take_log_dir_events() if broker in self._context.brokers]
        for replica in self._serving(brokers):
            if replica.partition in self._context.leadership:
                self._core.batch.leader_and_isr([replica.broker], replica.partition)
        self._core.batch.send()

    def configs_changed(self) -> None:
        """Elect leaders where there is none: unclean elections may be allowed now (KIP37-5). Sends."""
        self._partitions.elect_where_needed()
        self._core.batch.send()

    def answered(self, broker: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> None:
        """Handle a broker's answer: 56 means that the replica's log dir has failed, 0 that it has not. Sends."""
        if response.error != KafkaError.NONE or request.broker_epoch != self._context.brokers.get(broker):
            return
        failed, back = [], []
        for partition, error in _partition_errors(request, response):
            replica = AssignedReplica(partition, broker)
            assignment = self._context.assignments.get(partition)
            if assignment is None or broker not in assignment.replicas:
                continue
            if error == KafkaError.KAFKA_STORAGE_ERROR:
                # A later request may find room on a disk that was full; to stop the replica after that, for what the
                # answer to the earlier one says, would leave it without a role.
                if replica not in self._context.offline and not self._core.channels.asks(broker, partition):
                    failed.append(replica)
            elif error == KafkaError.NONE:
                back += [replica] if replica in self._context.offline else []
            elif error != KafkaError.STALE_CONTROLLER_EPOCH:
                self._refused(replica, error)
        if failed:
            self._core.say(f"on broker {broker} these are offline: {', '.join(str(each.partition) for each in failed)}")
            self._context.offline.update(failed)
            self._replicas_went(failed)
        if back:
            self._context.offline.difference_update(back)
            self._replicas.to_online(each for each in back if not self._context.is_leaving(each.partition))
            self._partitions.elect_where_needed()
            self._core.batch.send()

    def _refused(self, replica: AssignedReplica, error: int) -> None:
        """Note a refusal, and send a replica again after a while whose name or namespace the broker could not have.

        A replica of a deleted topic may still have the name, or the namespace's directory; the request that deletes it
        is on its way (KIP37-2).
        """
        self._core.say(f"broker {replica.broker} refuses {replica.partition} with error {int(error)}")
        if error not in (KafkaError.INVALID_TOPIC_EXCEPTION, KafkaError.INCONSISTENT_TOPIC_ID):
            return

        def ask() -> None:
            if replica in self._serving([replica.broker]) and replica.partition in self._context.leadership:
                self._core.batch.leader_and_isr([replica.broker], replica.partition)
                self._core.batch.send()

        delay_ms = self._core.settings.most_deletion_retry_ms
        self._core.later(delay_ms, f"send {replica.partition} to {replica.broker} again", ask)

    def _register(self, brokers: dict[int, int]) -> None:
        self._context.end_points |= self._core.nodes.end_points()
        for broker, epoch in brokers.items():
            self._context.brokers[broker] = epoch
            self._core.channels.open(broker, epoch)
            self._core.say(f"broker {broker} is here with epoch {epoch}")
        self._context.brokers = dict(sorted(self._context.brokers.items()))

    def _remove(self, brokers: Iterable[int]) -> None:
        for broker in brokers:
            self._context.brokers.pop(broker)
            self._context.shutting_down.discard(broker)
            self._core.channels.close(broker)
            self._core.say(f"broker {broker} is gone")

    def _came(self, brokers: Sequence[int]) -> None:
        """Send new brokers all metadata and a FULL request; then elect leaders where there was none."""
        context, batch = self._context, self._core.batch
        context.offline = {replica for replica in context.offline if replica.broker not in brokers}
        batch.update_metadata()
        batch.update_metadata(context.leadership, brokers)
        batch.full(brokers)
        self._replicas.to_online(self._serving(brokers))
        batch.send()
        self._partitions.elect_where_needed()
        batch.send()
        waits = [
            partition for partition, each in context.assignments.items() if any(new in each.target for new in brokers)
        ]
        self._reassignments.resume(waits)
        self._deletions.resume(retry=True)

    def _went(self, brokers: Sequence[int]) -> None:
        context = self._context
        context.offline = {replica for replica in context.offline if replica.broker not in brokers}
        self._garbage.brokers_went(brokers)
        self._replicas_went(context.replicas_on(brokers))

    def _replicas_went(self, replicas: Sequence[AssignedReplica]) -> None:
        """Elect other leaders for the partitions that lost replicas lead, and take the replicas out of sync."""
        context = self._context
        leaving = [each for each in replicas if context.is_leaving(each.partition)]
        without_leader = context.without_leader()
        self._partitions.to_offline(without_leader)
        self._partitions.elect_where_needed()
        states = context.replica_states
        self._replicas.to_offline(
            each for each in replicas if each not in leaving and states.of(each) is not ReplicaState.NON_EXISTENT
        )
        self._deletions.replicas_went(leaving)
        self._core.batch.update_metadata()
        self._core.batch.send()
        self._deletions.resume()

    def _serving(self, brokers: Sequence[int]) -> list[AssignedReplica]:
        """Return the existing replicas on some brokers that are not being deleted."""
        states = self._context.replica_states
        return [
            each
            for each in self._context.replicas_on(brokers)
            if not self._context.is_leaving(each.partition) and states.of(each) is not ReplicaState.NON_EXISTENT
        ]


def _partition_errors(request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> list[tuple[TopicPartition, int]]:
    """Return the error of each partition of a request; a response names topics by their IDs alone, or by their names.

    Topics without an ID share one group in the response, in the order of the request.
    """
    names = {topic.topic_id: topic.topic for topic in request.topics if topic.topic_id is not None}
    nameless = iter([topic.topic for topic in request.topics if topic.topic_id is None for _ in topic.partitions])
    found = []
    for topic in response.topics:
        for partition, error in topic.partitions:
            name = topic.topic or (names.get(topic.topic_id) if topic.topic_id is not None else next(nameless, None))
            if name:
                found.append((TopicPartition(name, partition), error))
    return found


def prepare_shutdown(
    core: ControllerCore, partitions: PartitionMachine, replicas: ReplicaMachine, broker: int
) -> list[TopicPartition]:
    """Take a live broker out of service before it stops; it may ask again until it leads nothing. Sends.

    Other brokers lead its partitions, and its followers leave their in-sync sets.

    Returns:
        The partitions that the broker still leads, sorted, without those of one replica, which nobody else can lead.
    """
    context = core.context
    context.shutting_down.add(broker)
    affected = [
        replica.partition
        for replica in context.replicas_on({broker})
        if len(context.assignments[replica.partition].replicas) > 1
        and replica.partition in context.leadership
        and not context.is_leaving(replica.partition)
    ]
    led = [each for each in affected if context.leadership[each].leader == broker]
    partitions.to_online(led, Election.SHUTDOWN)
    core.batch.send()
    replicas.to_offline(AssignedReplica(each, broker) for each in affected if each not in led)
    core.batch.send()
    return [each for each in affected if context.leadership[each].leader == broker]


def alter_isr(core: ControllerCore, request: AlterIsrRequest) -> AlterIsrResponse:
    """Answer a leader that asks for another in-sync set; gathers requests to brokers, and sends nothing.

    Refused, in this order: a stale broker, an unknown topic, another topic ID, a leader epoch or a partition epoch that
    is not the newest, a broker that does not lead, an illegal in-sync set. Source: Kafka 2.8, and 3.x for who may ask.
    """
    context, partition = core.context, request.partition
    state = context.leadership.get(partition)
    error = _asker_error(core, request) or (KafkaError.NONE if state is None else _request_error(core, request, state))
    if error is not KafkaError.NONE or state is None:
        return AlterIsrResponse(error if error is not KafkaError.NONE else KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    if request.isr == state.isr:
        return _answer(state)

    def change(found: LeaderAndIsr) -> LeaderAndIsr | None:
        if found.partition_epoch != request.partition_epoch or found.leader_epoch != request.leader_epoch:
            return None
        return LeaderAndIsr(found.leader, found.leader_epoch, request.isr, found.partition_epoch, context.epoch)

    written = core.change_state(partition, change)
    if written is None:
        return AlterIsrResponse(KafkaError.INVALID_UPDATE_VERSION)
    core.batch.update_metadata([partition])
    return _answer(written)


def _answer(state: LeaderAndIsr) -> AlterIsrResponse:
    return AlterIsrResponse(KafkaError.NONE, state.leader_epoch, state.isr, state.partition_epoch)


def _asker_error(core: ControllerCore, request: AlterIsrRequest) -> KafkaError:
    """Return the error in the requesting broker or in its topic."""
    context, topic = core.context, request.partition.topic
    if context.brokers.get(request.broker_id) != request.broker_epoch:
        return KafkaError.STALE_BROKER_EPOCH
    if request.partition not in context.assignments or context.is_leaving(request.partition):
        return KafkaError.UNKNOWN_TOPIC_OR_PARTITION
    known = context.topic_ids.get(topic)
    if request.topic_id is not None and known is not None and request.topic_id != known:
        return KafkaError.INCONSISTENT_TOPIC_ID
    return KafkaError.NONE


def _request_error(core: ControllerCore, request: AlterIsrRequest, state: LeaderAndIsr) -> KafkaError:
    """Return the error in the requested in-sync set and its epochs."""
    if request.leader_epoch < state.leader_epoch:
        return KafkaError.FENCED_LEADER_EPOCH
    if request.leader_epoch > state.leader_epoch:
        return KafkaError.UNKNOWN_LEADER_EPOCH
    if request.broker_id != state.leader:
        return KafkaError.INVALID_REQUEST
    if request.isr == state.isr:
        return KafkaError.NONE
    if request.partition_epoch != state.partition_epoch:
        return KafkaError.INVALID_UPDATE_VERSION
    added = [each for each in request.isr if each not in state.isr]
    ready = all(_may_join(core, request.partition, each) for each in added)
    distinct = len(set(request.isr)) == len(request.isr)
    return KafkaError.NONE if ready and distinct and state.leader in request.isr else KafkaError.INVALID_REQUEST


def _may_join(core: ControllerCore, partition: TopicPartition, broker: int) -> bool:
    assigned = broker in core.context.assignments[partition].replicas
    return assigned and core.context.is_online(AssignedReplica(partition, broker))
