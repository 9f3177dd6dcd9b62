"""Brokers that come, go, and come back before anybody saw them go; and log dirs that fail.

A broker whose registration has another epoch was restarted: for the controller it goes and comes, for what it had not
synced is lost, and it leads nothing until it is told to. Source: Kafka 2.8; KIP516-5 for the FULL request to each.

A broker that is about to stop: others lead what it leads, and it goes out of sync where it follows.

Source: Kafka 2.8's controlled shutdown.

AlterIsr: a leader asks for another in-sync set, and the controller writes it.

In this order: a stale broker, an unknown topic, another topic ID, a leader epoch or a partition epoch that is not the
newest, a broker that does not lead, a set that has what it must not have. Source: Kafka 2.8, and 3.x for who may ask.
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
from reconciler.simulator.controller.states import Replica, ReplicaState
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
        """Begin with the brokers of the context."""
        self._core, self._context = core, core.context
        self._partitions, self._replicas = partitions, replicas
        self._deletions, self._garbage, self._reassignments = deletions, garbage, reassignments

    def look(self) -> None:
        """Read which brokers are registered, and see to each that changed. Sends."""
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
        """At the election: see to the brokers that went or were restarted while there was no controller. Sends."""
        lives, context = self._context.brokers, self._context
        absent = {each.broker for each in context.replicas_of(context.assignments) if each.broker not in lives}
        if absent:
            self._replicas_went(context.replicas_on(absent))
        else:
            self._partitions.elect_where_needed()
            self._core.batch.send()
        self.look()

    def log_dirs_failed(self) -> None:
        """Brokers told of log dirs that failed: ask each about every replica; what lies there it answers 56. Sends."""
        brokers = [broker for broker in self._core.nodes.take_log_dir_events() if broker in self._context.brokers]
        for replica in self._serving(brokers):
            if replica.partition in self._context.leadership:
                self._core.batch.leader_and_isr([replica.broker], replica.partition)
        self._core.batch.send()

    def answered(self, broker: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> None:
        """Take a broker's answer: 56 means that the replica's log dir has failed, 0 that it has not. Sends."""
        if response.error != KafkaError.NONE or request.broker_epoch != self._context.brokers.get(broker):
            return
        failed, back = [], []
        for partition, error in _partition_errors(request, response):
            replica = Replica(partition, broker)
            assignment = self._context.assignments.get(partition)
            if assignment is None or broker not in assignment.replicas:
                continue
            if error == KafkaError.KAFKA_STORAGE_ERROR:
                if replica not in self._context.offline:
                    failed.append(replica)
            elif error == KafkaError.NONE:
                back += [replica] if replica in self._context.offline else []
            elif error != KafkaError.STALE_CONTROLLER_EPOCH:
                self._core.say(f"broker {broker} refuses {partition} with error {error}")
        if failed:
            self._core.say(f"on broker {broker} these are offline: {', '.join(str(each.partition) for each in failed)}")
            self._context.offline.update(failed)
            self._replicas_went(failed)
        if back:
            self._context.offline.difference_update(back)
            self._replicas.to_online(each for each in back if not self._context.is_leaving(each.partition))
            self._partitions.elect_where_needed()
            self._core.batch.send()

    def _register(self, brokers: dict[int, int]) -> None:
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
        """Each new broker gets all metadata and a FULL request; then leaders are elected where there was none."""
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

    def _replicas_went(self, replicas: Sequence[Replica]) -> None:
        """Other leaders for what they led, and out of sync with them."""
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

    def _serving(self, brokers: Sequence[int]) -> list[Replica]:
        """Replicas on some brokers that are there and are not being deleted."""
        states = self._context.replica_states
        return [
            each
            for each in self._context.replicas_on(brokers)
            if not self._context.is_leaving(each.partition) and states.of(each) is not ReplicaState.NON_EXISTENT
        ]


def _partition_errors(request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> list[tuple[TopicPartition, int]]:
    """The answer for each partition of a request; it names topics by their IDs alone, or by their names.

    Topics without an ID share one group there, in the order of the request.
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
    """Take a broker that lives out of service; it may ask again until nothing is left. Sends.

    Returns:
        The partitions that it still leads, sorted; a partition with one replica is not among them, for nobody else can
        lead it.
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
    replicas.to_offline(Replica(each, broker) for each in affected if each not in led)
    core.batch.send()
    return [each for each in affected if context.leadership[each].leader == broker]


def alter_isr(core: ControllerCore, request: AlterIsrRequest) -> AlterIsrResponse:
    """Handle a request to the active controller; gathers what brokers are to be told, and sends nothing."""
    context, partition = core.context, request.partition
    state = context.leadership.get(partition)
    error = (
        _asker_error(core, request)
        if state is None
        else _asker_error(core, request) or _request_error(core, request, state)
    )
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
    """What is wrong with the asker or with the topic it means."""
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
    """What is wrong with what is asked for."""
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
    return assigned and core.context.is_online(Replica(partition, broker))
