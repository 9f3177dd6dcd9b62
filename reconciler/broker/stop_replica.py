"""Decide a StopReplica request: which replicas it stops, and which of them it stages (FACTS §4.5; KIP516-7). Pure.

A deleted replica is staged with Kafka's delay for deleted replicas. If the request has a topic ID, as only KIP-516's
form of it does, the ID must be the replica's own, and must not lie here under another topic name.
"""

from __future__ import annotations

from logstore import DELETE_DELAY, KafkaError
from reconciler.broker.decision import DecidedAction, Decision, action_on
from reconciler.broker.memory import BrokerMemory
from reconciler.broker.snapshot import DiskSnapshot
from reconciler.plan import ActionKind
from reconciler.protocol import StopPartition, StopReplicaRequest

DELETED = "DELETED"
"""The reason in the record of a deleted replica, in place of a verdict."""

_NOT_COMPARED = (-1, -2)
"""Leader epochs for "not given" and for "topic is being deleted": both are accepted."""

_IN_ORDER = (KafkaError.NONE, KafkaError.UNKNOWN_TOPIC_OR_PARTITION, KafkaError.UNKNOWN_TOPIC_ID)
"""Answers for partitions that may be stopped: here under that ID, or not here."""


def decide_stop_replica(request: StopReplicaRequest, present: DiskSnapshot, memory: BrokerMemory) -> Decision:
    """Decide what a request changes and answers.

    Otherwise as :func:`decide_leader_and_isr`.
    """
    decision = Decision(request, DELETE_DELAY)
    duplicates = {(each.partition.topic, each.partition.partition) for each in present.duplicates}
    reason = (DELETED, f"controller {request.controller_id}, epoch {request.controller_epoch}, sent a StopReplica")
    for topic in request.topics:
        known = memory.epochs.get(topic.topic, {})
        for state in topic.partitions:
            key = (topic.topic, state.partition)
            fenced = present.fences[key]
            older = state.leader_epoch not in _NOT_COMPARED and memory.known.is_older(
                key, topic.topic_id, state.leader_epoch
            )
            answer = KafkaError.FENCED_LEADER_EPOCH if older else _answer(state, fenced, known)
            if state.delete and answer is KafkaError.NONE:
                if key in duplicates:
                    decision.remarks.append(
                        f"{topic.topic}-{state.partition} is live in two log dirs: repair that first"
                    )
                    answer = KafkaError.KAFKA_STORAGE_ERROR
                elif fenced is KafkaError.NONE:
                    action = action_on(ActionKind.STAGE, key, present.entries[key], None, reason)
                    decision.actions.append(DecidedAction(action, len(decision.answers)))
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
