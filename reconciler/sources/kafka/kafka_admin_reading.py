"""One reading of a live cluster through an AdminClient of confluent-kafka: every topic with its ID and replicas.

Two requests tell what is needed: one lists all topics with replicas, leaders and errors, the other gives their IDs.
They may be answered by different brokers, each with its own view, so both must name the same replicas, and the list is
asked for again at the end. An answer that lacks something is refused, because a shorter list would make replicas look
unwanted. Brokers leave out topics that a user may not describe, without a word; that this did not happen is certain
only where no broker has an authorizer. (What a user may do with the cluster says nothing of topics, and an answer about
ACLs looks the same to this client where there are none and where there is no authorizer.) Addresses, configuration and
the connection belong to ``kafka_admin``.
Source: DESIGN §7; LIBRARIES §2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any

from layout.ids import TopicId
from reconciler.errors import MetadataError
from reconciler.sources.zookeeper import first_few

ANSWER_TIMEOUT_S = 15.0
"""Seconds to wait for one answer of the cluster; there is no option for it."""

ATTEMPTS = 5
"""How often everything is read before a cluster that keeps changing is refused."""

_AT_ONCE = 1000
"""Topics in one request."""

_AUTHORIZER = "authorizer.class.name"
"""Empty in the configuration of a broker that checks no rights."""


@dataclass(frozen=True, slots=True)
class LivePartition:
    """What a broker says of one partition; ``leader`` is -1 for none."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """What the brokers say.

    Attributes:
        cluster_id: as the brokers name it.
        brokers: those that are alive.
        topics: the partitions of each topic, by number; both in order.
        topic_ids: canonical text; a topic from before Kafka 2.8 has None.
        is_whole: it is certain that no topic was left out for lack of rights.
    """

    cluster_id: str
    brokers: tuple[int, ...]
    topics: Mapping[str, Mapping[int, LivePartition]]
    topic_ids: Mapping[str, str | None]
    is_whole: bool


class _MovedError(Exception):
    """The cluster changed during the reading; the text says what did."""


def read(client: Any, location: str) -> LiveCluster:
    """Read the cluster.

    Args:
        client: a ``confluent_kafka.admin.AdminClient``.
        location: names the cluster in messages.

    Raises:
        MetadataError: an answer is not whole, or the cluster changed during every attempt.
        confluent_kafka.KafkaException, concurrent.futures.TimeoutError: there was no answer.
    """
    moved = ""
    for _ in range(ATTEMPTS):
        try:
            return _read_once(client, location)
        except _MovedError as error:
            moved = str(error)
    raise MetadataError(
        f"{location}: the cluster changed while it was read, {ATTEMPTS} times running, last {moved}: try again when"
        " fewer topics come, go or move"
    )


def _read_once(client: Any, location: str) -> LiveCluster:
    first = client.list_topics(timeout=ANSWER_TIMEOUT_S)
    if not first.cluster_id:
        raise MetadataError(f"{location}: the brokers name no cluster ID, so nothing tells whose metadata this is")
    topics = _topics(first, location)
    topic_ids = _described(client, topics, location)
    is_whole = _sees_everything(client, first.brokers)
    again = client.list_topics(timeout=ANSWER_TIMEOUT_S)
    if again.cluster_id != first.cluster_id:
        raise MetadataError(
            f"{location}: brokers of two clusters answer, {first.cluster_id} and {again.cluster_id}: name those of one"
        )
    if _placement(_topics(again, location)) != _placement(topics):
        raise _MovedError("in its list of topics and replicas")
    return LiveCluster(first.cluster_id, tuple(sorted(first.brokers)), topics, topic_ids, is_whole)


def _topics(listing: Any, location: str) -> dict[str, dict[int, LivePartition]]:
    """Every topic of a listing, whole.

    Raises:
        MetadataError: with the topics that carry an error or lack replicas or partitions.
    """
    wrong = [text for name, topic in sorted(listing.topics.items()) for text in _wrong(name, topic)]
    if wrong:
        raise MetadataError(
            f"{location}: the answer is not whole, and what it lacks would look unwanted: {first_few(wrong)}. Try again"
            " when the cluster is at rest, or as a user who may describe every topic"
        )
    return {
        name: {
            number: LivePartition(tuple(found.replicas), tuple(found.isrs), found.leader)
            for number, found in sorted(topic.partitions.items())
        }
        for name, topic in sorted(listing.topics.items())
    }


def _wrong(name: str, topic: Any) -> Iterator[str]:
    from confluent_kafka import KafkaError

    # Both are about the leader alone; with REPLICA_NOT_AVAILABLE the replicas that are down are left out.
    without_leader = (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.LISTENER_NOT_FOUND)
    if topic.error is not None:
        yield f"topic {name}: {topic.error.str()}"
    elif not topic.partitions or sorted(topic.partitions) != list(range(len(topic.partitions))):
        yield f"topic {name} has partitions {first_few([str(number) for number in sorted(topic.partitions)]) or 'none'}"
    else:
        for number, partition in sorted(topic.partitions.items()):
            if partition.error is not None and partition.error.code() not in without_leader:
                yield f"{name}-{number}: {partition.error.str()}"
            elif not partition.replicas:
                yield f"{name}-{number} has no replicas"


def _described(client: Any, topics: Mapping[str, Mapping[int, LivePartition]], location: str) -> dict[str, str | None]:
    """The ID of each topic, from descriptions that name the same replicas."""
    from confluent_kafka import KafkaError, KafkaException, TopicCollection

    ids: dict[str, str | None] = {}
    rest = iter(topics)
    while names := list(islice(rest, _AT_ONCE)):
        futures = client.describe_topics(TopicCollection(names), request_timeout=ANSWER_TIMEOUT_S)
        for name in names:
            try:
                found = futures[name].result(timeout=2 * ANSWER_TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise _MovedError(f"at topic {name}") from error
                raise
            described = {each.id: sorted(node.id for node in each.replicas) for each in found.partitions}
            if described != {number: sorted(each.replicas) for number, each in topics[name].items()}:
                raise _MovedError(f"at topic {name}")
            ids[name] = _id_text(found.topic_id)
    _check_distinct(ids, location)
    return ids


def _id_text(found: Any) -> str | None:
    """Canonical text; the client's own has the letters of another base64."""
    if found is None:
        return None
    topic_id = TopicId.from_halves(found.get_most_significant_bits(), found.get_least_significant_bits())
    return None if topic_id.is_zero else str(topic_id)


def _check_distinct(ids: Mapping[str, str | None], location: str) -> None:
    owners: dict[str, str] = {}
    for name, topic_id in ids.items():
        if topic_id is not None and owners.setdefault(topic_id, name) != name:
            raise MetadataError(
                f"{location}: topics {owners[topic_id]} and {name} both have the ID {topic_id}, which no cluster gives"
                " twice: try again"
            )


def _sees_everything(client: Any, brokers: Iterable[int]) -> bool:
    """Whether no broker checks rights, by its own configuration; one that does not tell may check them."""
    from confluent_kafka import KafkaException

    # By name, because the package does not declare it as its own.
    resource: Any = import_module("confluent_kafka.admin").ConfigResource
    asked = [resource(resource.Type.BROKER, str(number)) for number in brokers]
    # One broker to a request: each is asked for its own configuration.
    futures = [client.describe_configs([each], request_timeout=ANSWER_TIMEOUT_S)[each] for each in asked]
    try:
        found = [each.result(timeout=2 * ANSWER_TIMEOUT_S).get(_AUTHORIZER) for each in futures]
    except (KafkaException, FutureTimeoutError):
        return False
    return bool(found) and all(entry is not None and entry.value == "" for entry in found)


def _placement(topics: Mapping[str, Mapping[int, LivePartition]]) -> dict[str, Sequence[tuple[int, ...]]]:
    return {name: [tuple(sorted(each.replicas)) for each in partitions.values()] for name, partitions in topics.items()}
