"""A cluster of dictionaries behind the methods of an AdminClient, with the types of confluent-kafka itself."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Node, TopicPartitionInfo, Uuid
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    BrokerMetadata,
    ClusterMetadata,
    ConfigEntry,
    PartitionMetadata,
    TopicDescription,
    TopicMetadata,
)

CLUSTER = "XB4QhweWTe-kZwMNW25y1A"


def node(number: int) -> Node:
    return Node(number, "host", 9092)


class Client:
    """Answers as brokers would. ``before`` is called with the name of each question.

    Attributes:
        topics: topic -> (halves of its ID or None, partition -> replicas); the first replica leads, all are in sync.
        authorizers: the authorizer in each broker's configuration; None: it does not tell, and a number: an error.
        topic_errors, partition_errors: what a listing says beside a topic, or a partition ``t-0``.
    """

    def __init__(self, topics: dict[str, tuple[tuple[int, int] | None, dict[int, list[int]]]]) -> None:
        self.topics = topics
        self.cluster_id: str | None = CLUSTER
        self.authorizers: dict[int, str | int | None] = {1: "", 2: ""}
        self.topic_errors: dict[str, int] = {}
        self.partition_errors: dict[str, int] = {}
        self.leaderless: set[str] = set()
        self.asked: list[str] = []
        self.before: Callable[[str], object] = lambda _: None

    def list_topics(self, timeout: float) -> ClusterMetadata:
        self._ask("list", timeout)
        found = ClusterMetadata()
        found.cluster_id = self.cluster_id
        found.brokers = {number: BrokerMetadata() for number in (2, 1)}
        for name, (_, partitions) in reversed(self.topics.items()):
            topic = found.topics[name] = TopicMetadata()
            topic.topic, topic.error = name, _error(self.topic_errors.get(name))
            for number, replicas in reversed(partitions.items()):
                partition = topic.partitions[number] = PartitionMetadata()
                partition.id, partition.replicas, partition.isrs = number, list(replicas), list(replicas)
                has_leader = replicas and f"{name}-{number}" not in self.leaderless
                partition.leader = replicas[0] if has_leader else -1
                partition.error = _error(self.partition_errors.get(f"{name}-{number}"))
        return found

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[TopicDescription]]:
        self._ask("describe", request_timeout)
        futures = {}
        for name in topics.topic_names:
            future: Future[TopicDescription] = Future()
            if name in self.topics:
                halves, partitions = self.topics[name]
                infos = [
                    TopicPartitionInfo(number, node(replicas[0]), [*map(node, replicas)], [*map(node, replicas)])
                    for number, replicas in partitions.items()
                ]
                future.set_result(TopicDescription(name, Uuid(*(halves or (0, 0))), False, infos))
            else:
                future.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
            futures[name] = future
        return futures

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        self._ask("rights", request_timeout)
        (resource,) = resources
        future: Future[Any] = Future()
        authorizer = self.authorizers[int(resource.name)]
        if isinstance(authorizer, int):
            future.set_exception(KafkaException(KafkaError(authorizer)))
        else:
            name = "authorizer.class.name"
            future.set_result({} if authorizer is None else {name: ConfigEntry(name, authorizer)})
        return {resource: future}

    def _ask(self, question: str, timeout: float) -> None:
        assert timeout > 0, "a wait without an end"
        self.asked.append(question)
        self.before(question)


def _error(code: int | None) -> KafkaError | None:
    return None if code is None else KafkaError(code)
