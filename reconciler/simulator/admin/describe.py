"""Describing, listing and subscribing to topics, as a broker's clients know them.

Every command is asynchronous, and its end is seen here (KIP4-1): a topic is created when all its partitions have
leaders, and deleted when it is unknown; a reassignment is over when the replicas are the ones that were asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from layout.topic import INTERNAL_TOPICS
from logstore import KafkaError
from reconciler.errors import UsageError
from reconciler.simulator.admin.commands import TopicDescription
from reconciler.simulator.admin.configs import own_configs
from reconciler.simulator.kernel import DURING_DELETE, MetadataRequest, MetadataResponse, TopicMetadata
from reconciler.simulator.zookeeper import Session

Metadata = Callable[[MetadataRequest], MetadataResponse]
"""Answers as the broker answers its clients."""


def describe(session: Session, metadata: Metadata, topics: Sequence[str], principal: str) -> list[TopicDescription]:
    """Describe topics by full name, in the order given; without names, all known topics, sorted.

    A broker whose session is over still answers from its metadata cache, without configs.
    """
    answer = metadata(MetadataRequest(tuple(topics), principal))
    known = {topic.topic: topic for topic in answer.topics}
    return [_described(session, name, known.get(name)) for name in (topics or sorted(known))]


def list_topics(metadata: Metadata, principal: str) -> list[str]:
    """The full names of all known topics, sorted."""
    return sorted(topic.topic for topic in metadata(MetadataRequest((), principal)).topics)


def is_created(description: TopicDescription, partitions: int) -> bool:
    """Whether a topic has that many partitions, each with a leader."""
    leaders = [partition.leader for partition in description.partitions]
    return len(leaders) == partitions and all(leader >= 0 for leader in leaders)


def _described(session: Session, name: str, found: TopicMetadata | None) -> TopicDescription:
    if found is None or all(partition.leader == DURING_DELETE for partition in found.partitions):
        return TopicDescription(name, KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    configs = {} if session.expired else own_configs(session, name)
    partitions = tuple(sorted(found.partitions, key=lambda each: each.partition))
    return TopicDescription(name, KafkaError.NONE, found.topic_id, partitions, configs)


def subscribed_topics(pattern: str, topics: Iterable[str]) -> list[str]:
    """The topics whose whole full name a regular expression matches, sorted (KIP37-7).

    ``.*`` matches the topics of all namespaces, and ``bla.*`` also the topics of a namespace ``bla``: KIP-37 says so,
    and warns of it. Topics that brokers create for themselves are left out, as Kafka's consumers leave them out.

    Raises:
        UsageError: the pattern is no regular expression.
    """
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern!r:.80} is no regular expression: {error}; topics are matched whole") from error
    return sorted(topic for topic in set(topics) - INTERNAL_TOPICS if expression.fullmatch(topic))
