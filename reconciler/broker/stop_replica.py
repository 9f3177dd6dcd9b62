"""Handle a StopReplica request: stop serving replicas, and stage the deleted ones (FACTS §4.5; KIP516-7).

A deleted replica is staged with Kafka's delay for deleted replicas. If the request has a topic ID, as only KIP-516's
form of it does, the ID must be the replica's own.
"""

from __future__ import annotations

from layout.topic import TopicPartition
from logstore import DELETE_DELAY, KafkaError
from reconciler.broker import carry_out
from reconciler.broker.judgement import PartitionKey
from reconciler.broker.memory import BrokerMemory
from reconciler.broker.replica_store import ReplicaStore
from reconciler.protocol import PartitionError, StopPartition, StopReplicaRequest, StopReplicaResponse, TopicErrors

DELETED = "DELETED"
"""The reason in the record of a deleted replica, in place of a verdict."""

_NOT_COMPARED = (-1, -2)
"""Leader epochs for "not given" and for "topic is being deleted": both are accepted."""

_IN_ORDER = (KafkaError.NONE, KafkaError.UNKNOWN_TOPIC_OR_PARTITION, KafkaError.UNKNOWN_TOPIC_ID)
"""Answers of the store's fence for partitions that may be stopped: here under that ID, or not here."""


def handle_stop_replica(store: ReplicaStore, request: StopReplicaRequest, memory: BrokerMemory) -> StopReplicaResponse:
    """Handle a checked request whose epochs are not stale.

    Args:
        store: of the broker.
        request: of the controller.
        memory: of earlier requests; deleted partitions are removed.
    """
    epochs = memory.epochs
    answers: dict[PartitionKey, KafkaError] = {}
    deleted: list[PartitionKey] = []
    for topic in request.topics:
        known = epochs.get(topic.topic, {})
        for state in topic.partitions:
            key = (topic.topic, state.partition)
            fenced = store.fence(TopicPartition(*key), topic.topic_id)
            older = state.leader_epoch not in _NOT_COMPARED and memory.known.is_older(
                key, topic.topic_id, state.leader_epoch
            )
            answers[key] = KafkaError.FENCED_LEADER_EPOCH if older else _answer(state, fenced, known)
            if state.delete and answers[key] is KafkaError.NONE:
                if fenced is KafkaError.NONE:
                    deleted.append(key)
                else:
                    known.pop(state.partition, None)
    reason = (DELETED, f"controller {request.controller_id}, epoch {request.controller_epoch}, sent a StopReplica")
    staged = carry_out.stage(store, dict.fromkeys(deleted, reason), store.entries() if deleted else {}, DELETE_DELAY)
    for key in deleted:
        if key in staged:
            epochs.get(key[0], {}).pop(key[1], None)
        else:
            answers[key] = KafkaError.KAFKA_STORAGE_ERROR
    return StopReplicaResponse(
        KafkaError.NONE,
        tuple(
            TopicErrors(
                topic.topic,
                topic.topic_id,
                tuple(
                    PartitionError(each.partition, answers[topic.topic, each.partition]) for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _answer(state: StopPartition, fenced: KafkaError, known: dict[int, int]) -> KafkaError:
    if fenced not in _IN_ORDER:
        return fenced
    current = known.get(state.partition)
    if current is not None and state.leader_epoch not in _NOT_COMPARED and state.leader_epoch < current:
        return KafkaError.FENCED_LEADER_EPOCH
    return KafkaError.NONE
