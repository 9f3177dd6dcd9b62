"""StopReplica: replicas that a broker is to serve no longer, and those of them that go (FACTS §4.5; KIP516-7).

What goes is staged like everything that goes, with the delay that Kafka has for deleted replicas. A topic ID, which
only KIP-516's form of the request carries, must be the replica's own.
"""

from __future__ import annotations

from layout.topic import TopicPartition
from logstore import DELETE_DELAY, KafkaError
from reconciler.broker import carry_out as changing
from reconciler.broker.judgement import PartitionKey
from reconciler.broker.replica_store import ReplicaStore
from reconciler.protocol import PartitionError, StopPartition, StopReplicaRequest, StopReplicaResponse, TopicErrors

DELETED = "DELETED"
"""What the record of a replica gives as the reason, in the place of a verdict."""

_NOT_COMPARED = (-1, -2)
"""Leader epochs that say that none is given, or that the topic is being deleted: either passes."""

_IN_ORDER = (KafkaError.NONE, KafkaError.UNKNOWN_TOPIC_OR_PARTITION, KafkaError.UNKNOWN_TOPIC_ID)
"""What the store's fence says of a partition that may be stopped: it is here under that ID, or it is not here."""


def handle_stop_replica(
    store: ReplicaStore, request: StopReplicaRequest, epochs: dict[str, dict[int, int]]
) -> StopReplicaResponse:
    """Handle a good request whose epochs are not stale.

    Args:
        store: of the broker.
        request: what is to be stopped.
        epochs: topic → partition → leader epoch, of what the broker hosts; what is deleted is taken out.
    """
    answers: dict[PartitionKey, KafkaError] = {}
    going: list[PartitionKey] = []
    for topic in request.topics:
        known = epochs.get(topic.topic, {})
        for state in topic.partitions:
            key = (topic.topic, state.partition)
            fenced = store.fence(TopicPartition(*key), topic.topic_id)
            answers[key] = _answer(state, fenced, known)
            if state.delete and answers[key] is KafkaError.NONE:
                if fenced is KafkaError.NONE:
                    going.append(key)
                else:
                    known.pop(state.partition, None)
    reason = (DELETED, f"controller {request.controller_id}, epoch {request.controller_epoch}, sent a StopReplica")
    staged = changing.stage(store, dict.fromkeys(going, reason), store.entries() if going else {}, DELETE_DELAY)
    for key in going:
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
