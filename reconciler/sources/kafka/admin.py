"""A live cluster as a metadata source: ``kafka:HOST:PORT[,HOST:PORT…][?config=FILE]``, through confluent-kafka.

``FILE`` has properties as librdkafka names them (``security.protocol``, ``sasl.mechanism``, ``sasl.username``,
``sasl.password``, ``ssl.ca.location``), one ``name=value`` to a line; those of Java's clients differ for SASL and TLS.

Two requests are needed: one lists all topics with replicas, leaders and errors, the other gives their IDs. Different
brokers may answer them, each with its own view. So both answers must name the same replicas, and the list is requested
again at the end. An incomplete answer is refused, because a shorter list would make replicas look unwanted. Brokers
give no leader epochs and no reassignments: a replica that is being added or removed is among the replicas, and so it is
wanted, until the reassignment is done.

Brokers that check rights leave out topics silently. Only where every broker's configuration has no authorizer is it
certain that no topic is missing. (The user's rights on the cluster say nothing of topics, and an answer about ACLs
looks the same to this client where there are none and where there is no authorizer.) Otherwise a topic that ``kafka:``
does not mention counts as not mentioned, never as unwanted; with ``kafka-all:`` the user vouches for the right to
describe every topic. Source: DESIGN §7; LIBRARIES §2.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any

import orjson

from layout import java_properties
from layout.errors import DamagedFileError
from layout.ids import TopicId
from logstore.parallel import paused_gc
from reconciler.desired import Completeness, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, UsageError
from reconciler.sources.files import read_file
from reconciler.text import count, listed

ANSWER_TIMEOUT_S = 15.0
"""Seconds to wait for one answer of the cluster; there is no option for it."""

ATTEMPTS = 5
"""How often everything is read before a cluster that keeps changing is refused."""

_ADDRESS = re.compile(r"([^?]+)(?:\?config=(.+))?", re.DOTALL)
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})", re.ASCII)
_SERVERS = "bootstrap.servers"


_AT_ONCE = 1000
"""Topics in one request."""

_AUTHORIZER = "authorizer.class.name"
"""The property that is empty in the configuration of a broker that checks no rights."""


@dataclass(frozen=True, slots=True)
class LivePartition:
    """One partition by a broker's answer; ``leader`` is -1 for none."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """A cluster by the answers of its brokers.

    Attributes:
        cluster_id: as the brokers name it.
        brokers: the ids of the live brokers.
        topics: the partitions of each topic, by number; both in order.
        topic_ids: canonical text; a topic from before Kafka 2.8 has None.
        is_whole: it is certain that no topic was left out for lack of rights.
    """

    cluster_id: str
    brokers: tuple[int, ...]
    topics: Mapping[str, Mapping[int, LivePartition]]
    topic_ids: Mapping[str, str | None]
    is_whole: bool


def load(address: str, *, is_vouched: bool = False) -> DesiredState:
    """Read the desired state from a live cluster; its age is the time of the reading.

    Args:
        address: ``HOST:PORT[,HOST:PORT…][?config=FILE]``.
        is_vouched: the user may describe every topic, so a topic that is not mentioned is not wanted.

    Raises:
        UsageError: no such address or file, a property that librdkafka does not take, or confluent-kafka is missing.
        MetadataError: no broker answers, an answer is not whole, or the cluster kept changing.
    """
    servers, config = split_address(address)
    properties = {} if config is None else _properties(config)
    now_ms = time.time_ns() // 1_000_000
    with paused_gc():
        return state_of(_read_cluster(servers, properties, address), address, now_ms, is_vouched=is_vouched)


def split_address(address: str) -> tuple[str, str | None]:
    """Split an address into the servers, separated by commas, and the file of properties.

    Raises:
        UsageError: it does not have the form ``HOST:PORT[,HOST:PORT…][?config=FILE]``.
    """
    match = _ADDRESS.fullmatch(address)
    hosts = [_HOST.fullmatch(host) for host in match[1].split(",")] if match else [None]
    if match is None or not all(host and 0 < int(host[1]) < 1 << 16 for host in hosts):
        raise UsageError(
            f"{address!r:.200} is no address of brokers: kafka:HOST:PORT[,HOST:PORT…][?config=FILE] is expected"
        )
    return match[1], match[2]


def state_of(cluster: LiveCluster, address: str, now_ms: int, *, is_vouched: bool) -> DesiredState:
    """Make the desired state of the brokers' answers at a time in ms since 1970; pure."""
    builder = DesiredBuilder()
    for name, partitions in cluster.topics.items():
        topic_id = cluster.topic_ids[name]
        for number, each in partitions.items():
            builder.partition(name, topic_id, number, each.replicas, isr=each.isr, leader=each.leader)
    for node_id in cluster.brokers:
        builder.broker(node_id, None, False, ())
    problems = [
        "brokers tell no leader epochs and no reassignments, and each its own view, which may lag behind for a moment"
    ]
    unled = [f"{name}-{number}" for name, found in cluster.topics.items() for number in found if not found[number].isr]
    if unled:
        problems.append(
            f"no replica is in sync of {count(len(unled), 'partition')}: {listed(unled)}; which replicas may lead them "
            "all the same, kafka-topics --describe tells"
        )
    is_full = cluster.is_whole or is_vouched
    if not is_full:
        problems.append(
            "brokers may check rights, so whether the user sees all topics is not known: topics that are not there are"
            " not judged; kafka-all: vouches that the user sees all"
        )
    return builder.build(
        MetadataIdentity(
            "kafka",
            address,
            cluster_id=cluster.cluster_id,
            completeness=Completeness.FULL if is_full else Completeness.INCREMENTAL,
            timestamp_ms=now_ms,
            digest=_digest(cluster),
            problems=tuple(problems),
        )
    )


def _digest(cluster: LiveCluster) -> str:
    """SHA-256, hex, over cluster, brokers and topics as JSON, all in order."""
    topics = [
        [name, cluster.topic_ids[name], [[each.replicas, each.isr, each.leader] for each in partitions.values()]]
        for name, partitions in cluster.topics.items()
    ]
    return hashlib.sha256(orjson.dumps([cluster.cluster_id, cluster.brokers, topics])).hexdigest()


def _properties(file: str) -> dict[str, str]:
    try:
        found = java_properties.parse(read_file(file), file)
    except DamagedFileError as error:
        raise UsageError(f"{file} is no file of properties: {error}") from error
    # The brokers on the command line count, not those that a file may name.
    found.pop(_SERVERS, None)
    return found


def _read_cluster(servers: str, properties: Mapping[str, str], address: str) -> LiveCluster:
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError as error:
        raise UsageError(
            "a live cluster is read through confluent-kafka, which is not installed:"
            " pip install 'confluent-kafka>=2.10'"
        ) from error
    errors: list[Any] = []
    silent = logging.Logger("reconciler.kafka")
    silent.addHandler(logging.NullHandler())
    config: dict[str, Any] = {**properties, _SERVERS: servers, "error_cb": errors.append}
    try:
        client = AdminClient(config, logger=silent)
    except KafkaException as error:
        raise UsageError(f"kafka:{address}: {error.args[0].str()}: properties are named as librdkafka does") from error
    try:
        return read(client, address)
    except (KafkaException, FutureTimeoutError) as error:
        client.poll(0)
        said = error.args[0].str() if isinstance(error, KafkaException) else "no answer in time"
        words = "; ".join(dict.fromkeys([said, *(each.str() for each in errors[-2:])]))
        raise MetadataError(
            f"{address}: the brokers did not answer everything that was asked: {words}. Check host and port, that"
            " brokers listen there, and security.protocol and the user's rights in ?config=FILE"
        ) from error


class _ChangedError(Exception):
    """The cluster changed during the reading; the text says where."""


def read(client: Any, location: str) -> LiveCluster:
    """Read the cluster.

    ``client``: a ``confluent_kafka.admin.AdminClient``; ``location`` names the cluster in messages.

    Raises:
        MetadataError: an answer is incomplete, or the cluster changed during every attempt.
        confluent_kafka.KafkaException, concurrent.futures.TimeoutError: there was no answer.
    """
    moved = ""
    for _ in range(ATTEMPTS):
        try:
            return _read_once(client, location)
        except _ChangedError as error:
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
    topic_ids = _described_ids(client, topics, location)
    is_whole = _sees_everything(client, first.brokers)
    again = client.list_topics(timeout=ANSWER_TIMEOUT_S)
    if again.cluster_id != first.cluster_id:
        raise MetadataError(
            f"{location}: brokers of two clusters answer, {first.cluster_id} and {again.cluster_id}: name those of one"
        )
    if _placement(_topics(again, location)) != _placement(topics):
        raise _ChangedError("in its list of topics and replicas")
    return LiveCluster(first.cluster_id, tuple(sorted(first.brokers)), topics, topic_ids, is_whole)


def _topics(listing: Any, location: str) -> dict[str, dict[int, LivePartition]]:
    """Read every topic of a listing.

    Raises:
        MetadataError: names the topics that carry an error or lack replicas or partitions.
    """
    wrong = [text for name, topic in sorted(listing.topics.items()) for text in _topic_faults(name, topic)]
    if wrong:
        raise MetadataError(
            f"{location}: the answer is not whole, and what it lacks would look unwanted: {listed(wrong)}. Try again"
            " when the cluster is at rest, or as a user who may describe every topic"
        )
    return {
        name: {
            number: LivePartition(tuple(found.replicas), tuple(found.isrs), found.leader)
            for number, found in sorted(topic.partitions.items())
        }
        for name, topic in sorted(listing.topics.items())
    }


def _topic_faults(name: str, topic: Any) -> Iterator[str]:
    from confluent_kafka import KafkaError

    # Both errors concern the leader alone; with REPLICA_NOT_AVAILABLE, replicas that are down are missing.
    without_leader = (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.LISTENER_NOT_FOUND)
    if topic.error is not None:
        yield f"topic {name}: {topic.error.str()}"
    elif not topic.partitions or sorted(topic.partitions) != list(range(len(topic.partitions))):
        yield f"topic {name} has partitions {listed([str(number) for number in sorted(topic.partitions)]) or 'none'}"
    else:
        for number, partition in sorted(topic.partitions.items()):
            if partition.error is not None and partition.error.code() not in without_leader:
                yield f"{name}-{number}: {partition.error.str()}"
            elif not partition.replicas:
                yield f"{name}-{number} has no replicas"


def _described_ids(
    client: Any, topics: Mapping[str, Mapping[int, LivePartition]], location: str
) -> dict[str, str | None]:
    """Read the ID of each topic, from descriptions that must name the same replicas."""
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
                    raise _ChangedError(f"at topic {name}") from error
                raise
            described = {each.id: sorted(node.id for node in each.replicas) for each in found.partitions}
            if described != {number: sorted(each.replicas) for number, each in topics[name].items()}:
                raise _ChangedError(f"at topic {name}")
            ids[name] = _id_text(found.topic_id)
    _check_distinct(ids, location)
    return ids


def _id_text(found: Any) -> str | None:
    """The canonical text of an ID; the client's own text uses another base64 alphabet."""
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
    """Whether no broker checks rights, by its own configuration; a broker that does not answer may check them."""
    from confluent_kafka import KafkaException

    # By name, because the package does not export it in its types.
    resource: Any = import_module("confluent_kafka.admin").ConfigResource
    asked = [resource(resource.Type.BROKER, str(number)) for number in brokers]
    # One broker to a request, because each answers for its own configuration only.
    futures = [client.describe_configs([each], request_timeout=ANSWER_TIMEOUT_S)[each] for each in asked]
    try:
        found = [each.result(timeout=2 * ANSWER_TIMEOUT_S).get(_AUTHORIZER) for each in futures]
    except (KafkaException, FutureTimeoutError):
        return False
    return bool(found) and all(entry is not None and entry.value == "" for entry in found)


def _placement(topics: Mapping[str, Mapping[int, LivePartition]]) -> dict[str, Sequence[tuple[int, ...]]]:
    return {name: [tuple(sorted(each.replicas)) for each in partitions.values()] for name, partitions in topics.items()}
