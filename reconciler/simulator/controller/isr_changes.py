"""AlterIsr: a leader asks for another in-sync set, and the controller writes it.

In this order: a stale broker, an unknown topic, another topic ID, a leader epoch or a partition epoch that is not the
newest, a broker that does not lead, a set that has what it must not have. Source: Kafka 2.8, and 3.x for who may ask.
"""

from __future__ import annotations

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.controller.context import LeaderAndIsr
from reconciler.simulator.controller.core import Core
from reconciler.simulator.controller.replica_states import Replica
from reconciler.simulator.kernel import AlterIsrRequest, AlterIsrResponse


def alter_isr(core: Core, request: AlterIsrRequest) -> AlterIsrResponse:
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


def _asker_error(core: Core, request: AlterIsrRequest) -> KafkaError:
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


def _request_error(core: Core, request: AlterIsrRequest, state: LeaderAndIsr) -> KafkaError:
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


def _may_join(core: Core, partition: TopicPartition, broker: int) -> bool:
    assigned = broker in core.context.assignments[partition].replicas
    return assigned and core.context.is_online(Replica(partition, broker))
