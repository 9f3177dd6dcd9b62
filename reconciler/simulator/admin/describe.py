"""Describing and listing topics: what a broker's clients are told, and the topics' configs (KIP4-1).

Every command is asynchronous, and this is how its end is seen: a topic is there when all its partitions have leaders,
and gone when it is unknown; a reassignment is over when the replicas are those that were asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from logstore import KafkaError
from reconciler.simulator.admin.commands import TopicDescription
from reconciler.simulator.admin.configs import own_configs
from reconciler.simulator.kernel import DURING_DELETE, MetadataRequest, MetadataResponse, TopicMetadata
from reconciler.simulator.zookeeper import Session

Metadata = Callable[[MetadataRequest], MetadataResponse]
"""Answers as the broker answers its clients."""


def describe(session: Session, metadata: Metadata, topics: Sequence[str], principal: str) -> list[TopicDescription]:
    """Describe topics by full name, in the order of the question; no names: all that are known, sorted.

    A broker whose session is over still says what it was told last, without configs.
    """
    answer = metadata(MetadataRequest(tuple(topics), principal))
    known = {topic.topic: topic for topic in answer.topics}
    return [_described(session, name, known.get(name)) for name in (topics or sorted(known))]


def list_topics(metadata: Metadata, principal: str) -> list[str]:
    """The full names of all topics that are known, sorted."""
    return sorted(topic.topic for topic in metadata(MetadataRequest((), principal)).topics)


def is_created(description: TopicDescription, partitions: int) -> bool:
    """Whether a topic has that many partitions, each with a leader."""
    leaders = [partition.leader for partition in description.partitions]
    return len(leaders) == partitions and all(leader >= 0 for leader in leaders)


def is_deleted(description: TopicDescription) -> bool:
    """Whether a topic is gone, for the clients."""
    return description.error is KafkaError.UNKNOWN_TOPIC_OR_PARTITION


def is_reassigned(description: TopicDescription, wanted: Mapping[int, Sequence[int]]) -> bool:
    """Whether partitions have the replicas that were asked for, and all of them are in sync."""
    found = {partition.partition: partition for partition in description.partitions}
    return all(
        number in found and found[number].replicas == tuple(replicas) and sorted(found[number].isr) == sorted(replicas)
        for number, replicas in wanted.items()
    )


def is_preferred(description: TopicDescription) -> bool:
    """Whether the first replica of every partition leads."""
    return all(partition.leader == partition.replicas[0] for partition in description.partitions)


def _described(session: Session, name: str, found: TopicMetadata | None) -> TopicDescription:
    if found is None or all(partition.leader == DURING_DELETE for partition in found.partitions):
        return TopicDescription(name, KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    configs = {} if session.expired else own_configs(session, name)
    partitions = tuple(sorted(found.partitions, key=lambda each: each.partition))
    return TopicDescription(name, KafkaError.NONE, found.topic_id, partitions, configs)
