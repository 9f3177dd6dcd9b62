"""Decide a StopReplica request: which replicas it stops, and which of them it stages (FACTS §4.5; KIP516-7).

A deleted replica is staged with Kafka's delay for deleted replicas. If the request has a topic ID, as only KIP-516's
form of it does, the ID must be the replica's own.
"""

from __future__ import annotations

from layout.topic import TopicPartition
from logstore import DELETE_DELAY, KafkaError
from logstore.store import LogStore
from reconciler.broker.decision import Decision, StaleReplica
from reconciler.broker.memory import BrokerMemory
from reconciler.protocol import StopPartition, StopReplicaRequest

DELETED = "DELETED"
"""The reason in the record of a deleted replica, in place of a verdict."""

_NOT_COMPARED = (-1, -2)
"""Leader epochs for "not given" and for "topic is being deleted": both are accepted."""

_IN_ORDER = (KafkaError.NONE, KafkaError.UNKNOWN_TOPIC_OR_PARTITION, KafkaError.UNKNOWN_TOPIC_ID)
"""Answers of the store's fence for partitions that may be stopped: here under that ID, or not here."""


def decide_stop_replica(store: LogStore, request: StopReplicaRequest, memory: BrokerMemory) -> Decision:
    """Decide what a request changes and answers. Nothing is changed.

    Args:
        store: of the broker; it is only read.
        request: of the controller, checked; its epochs are not stale.
        memory: of earlier requests.
    """
    decision = Decision(request, DELETE_DELAY)
    evidence = f"controller {request.controller_id}, epoch {request.controller_epoch}, sent a StopReplica"
    entries = store.entries()
    for topic in request.topics:
        known = memory.epochs.get(topic.topic, {})
        for state in topic.partitions:
            key = (topic.topic, state.partition)
            fenced = store.fence(TopicPartition(*key), topic.topic_id)
            older = state.leader_epoch not in _NOT_COMPARED and memory.known.is_older(
                key, topic.topic_id, state.leader_epoch
            )
            answer = KafkaError.FENCED_LEADER_EPOCH if older else _answer(state, fenced, known)
            if state.delete and answer is KafkaError.NONE:
                if fenced is KafkaError.NONE:
                    decision.stale[key] = StaleReplica(entries[key], DELETED, evidence)
                    decision.unless_staged[key] = (len(decision.answers), KafkaError.KAFKA_STORAGE_ERROR)
                else:
                    decision.forgotten.append(key)
            decision.answers.append(answer)
    return decision


def _answer(state: StopPartition, fenced: KafkaError, known: dict[int, int]) -> KafkaError:
    if fenced not in _IN_ORDER:
        return fenced
    current = known.get(state.partition)
    if current is not None and state.leader_epoch not in _NOT_COMPARED and state.leader_epoch < current:
        return KafkaError.FENCED_LEADER_EPOCH
    return KafkaError.NONE
