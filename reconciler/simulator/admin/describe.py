"""Describing, listing and subscribing to topics, as a broker's clients know them.

Every command is asynchronous, and its end is seen here (KIP4-1): a topic is created when all its partitions have
leaders, and deleted when it is unknown; a reassignment is over when the replicas are the ones that were asked for, and
on its way while the new ones lag. Only a partition's leader knows how far its replicas are behind, so that a client who
wants all lags asks every leader; :func:`with_lags` puts the answers together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from layout.errors import LayoutError
from layout.topic import INTERNAL_TOPICS, TopicPartition
from logstore import KafkaError
from reconciler.errors import UsageError
from reconciler.simulator.admin.commands import (
    CommandRefusedError,
    GivenTopic,
    PartitionDescription,
    TopicDescription,
    TopicKey,
    key_of,
    name_of,
)
from reconciler.simulator.kernel import (
    DURING_DELETE,
    LiveBroker,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from reconciler.simulator.zookeeper import Session, check_name, own_configs

Metadata = Callable[[MetadataRequest], MetadataResponse]
"""Answers as the broker answers its clients."""

Lags = Callable[[TopicPartition], Mapping[int, int]]
"""How many records each replica lacks of a partition that this broker leads; of another partition, nothing."""


def describe(
    session: Session, metadata: Metadata, lags: Lags, topics: Sequence[GivenTopic], principal: str
) -> list[TopicDescription]:
    """Describe topics, in the order given; empty: all known topics, sorted by name.

    A topic that is given by its ID is answered with 100 where the broker knows no such topic, with 103 where its name
    does not fit, and with 42 where nothing is given. A broker whose session is over still answers from its metadata
    cache, without configs.
    """
    keys = [key_of(each) for each in topics]
    by_name = all(each.topic_id is None for each in keys)
    answer = metadata(MetadataRequest(tuple(each.topic for each in keys) if by_name else (), principal))
    known = {topic.topic: topic for topic in answer.topics if _is_known(topic)}
    ids = {name: topic.topic_id for name, topic in known.items()}
    alive = {each.node_id for each in answer.live_brokers}
    found = []
    for key in keys or [TopicKey(name) for name in sorted(known)]:
        try:
            name = name_of(key, lambda: ids)
        except CommandRefusedError as refused:
            found.append(TopicDescription(key.topic, refused.error, key.topic_id, message=str(refused)))
        else:
            found.append(_described(session, known[name], alive, lags) if name in known else _unknown(name))
    return found


def describe_brokers(metadata: Metadata, principal: str) -> list[LiveBroker]:
    """The brokers that a broker regards as alive, with host and port, sorted."""
    return sorted(metadata(MetadataRequest((), principal)).live_brokers)


def list_topics(metadata: Metadata, principal: str) -> list[str]:
    """The full names of all known topics, sorted."""
    return sorted(topic.topic for topic in metadata(MetadataRequest((), principal)).topics)


def is_created(description: TopicDescription | TopicMetadata, partitions: int) -> bool:
    """Whether a topic has that many partitions, each with a leader."""
    leaders = [partition.leader for partition in description.partitions]
    return len(leaders) == partitions and all(leader >= 0 for leader in leaders)


def with_lags(description: TopicDescription, ask: Callable[[int, str], TopicDescription | None]) -> TopicDescription:
    """Complete a topic's description with the lags that the leaders of its partitions know.

    ``ask`` gives a broker's own description of the topic; None: the broker does not answer.
    """
    leaders = {each.leader for each in description.partitions if each.leader >= 0}
    answers = {leader: ask(leader, description.topic) for leader in sorted(leaders)}
    lags = {
        (leader, partition.partition): partition.lags
        for leader, answer in answers.items()
        if answer is not None and answer.topic_id == description.topic_id
        for partition in answer.partitions
    }
    partitions = [
        replace(each, lags=lags.get((each.leader, each.partition), each.lags)) for each in description.partitions
    ]
    return replace(description, partitions=tuple(partitions))


def _is_known(found: TopicMetadata) -> bool:
    return any(partition.leader != DURING_DELETE for partition in found.partitions)


def _unknown(name: str) -> TopicDescription:
    """A topic that is not known, or cannot exist; as in Kafka, its name tells whether it is internal."""
    error, message = KafkaError.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r:.80}"
    try:
        check_name(name)
    except LayoutError as why:
        error, message = KafkaError.INVALID_TOPIC_EXCEPTION, str(why)
    return TopicDescription(name, error, is_internal=name in INTERNAL_TOPICS, message=message)


def _described(session: Session, found: TopicMetadata, alive: set[int], lags: Lags) -> TopicDescription:
    configs = {} if session.expired else own_configs(session, found.topic)
    partitions = tuple(
        _partition(each, alive, lags(TopicPartition(found.topic, each.partition)))
        for each in sorted(found.partitions, key=lambda each: each.partition)
    )
    is_internal = found.topic in INTERNAL_TOPICS
    return TopicDescription(found.topic, KafkaError.NONE, found.topic_id, partitions, configs, is_internal)


def _partition(found: PartitionMetadata, alive: set[int], lags: Mapping[int, int]) -> PartitionDescription:
    described = PartitionDescription(**asdict(found), lags=lags)
    if found.leader in alive:
        return described
    return replace(described, leader=-1, error=KafkaError.LEADER_NOT_AVAILABLE)


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
