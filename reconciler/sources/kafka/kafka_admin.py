"""A live cluster as a metadata source: ``kafka:HOST:PORT[,HOST:PORT…][?config=FILE]``, through confluent-kafka.

``FILE`` has properties as librdkafka names them (``security.protocol``, ``sasl.mechanism``, ``sasl.username``,
``sasl.password``, ``ssl.ca.location``), one ``name=value`` to a line; those of Java's clients differ for SASL and TLS.
Brokers that check rights leave out topics without a word. Unless every broker's configuration tells that it has no
authorizer, what ``kafka:`` does not mention counts as not mentioned and never as unwanted; who says ``kafka-all:``
vouches that the user may describe every topic. Brokers tell no leader epochs and no reassignments: a replica that is
being added or removed is among the replicas, and so it is wanted, until that is done. Owns addresses, configuration,
the connection and the state; ``kafka_admin_reading`` asks the questions. Source: DESIGN §7; LIBRARIES §2.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

import orjson

from layout import java_properties
from layout.errors import DamagedFileError
from logstore.parallel import paused_gc
from reconciler.desired import Completeness, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.errors import MetadataError, UsageError
from reconciler.sources.kafka.kafka_admin_reading import LiveCluster, read
from reconciler.sources.request_files import read_file

_ADDRESS = re.compile(r"([^?]+)(?:\?config=(.+))?", re.DOTALL)
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})", re.ASCII)
_SERVERS = "bootstrap.servers"


def load(address: str, *, is_vouched: bool = False) -> DesiredState:
    """Read the desired state from a live cluster; its age is the time of the reading.

    Args:
        address: ``HOST:PORT[,HOST:PORT…][?config=FILE]``.
        is_vouched: the user may describe every topic, so what is not there is not wanted.

    Raises:
        UsageError: no such address or file, a property that librdkafka does not take, or confluent-kafka is missing.
        MetadataError: no broker answers, an answer is not whole, or the cluster kept changing.
    """
    servers, config = split_address(address)
    properties = {} if config is None else _properties(config)
    now_ms = time.time_ns() // 1_000_000
    with paused_gc():
        return state_of(_read(servers, properties, address), address, now_ms, is_vouched=is_vouched)


def split_address(address: str) -> tuple[str, str | None]:
    """The servers, with commas between, and the file of properties.

    Raises:
        UsageError: it has not the form ``HOST:PORT[,HOST:PORT…][?config=FILE]``.
    """
    match = _ADDRESS.fullmatch(address)
    hosts = [_HOST.fullmatch(host) for host in match[1].split(",")] if match else [None]
    if match is None or not all(host and 0 < int(host[1]) < 1 << 16 for host in hosts):
        raise UsageError(
            f"{address!r:.200} is no address of brokers: kafka:HOST:PORT[,HOST:PORT…][?config=FILE] is expected"
        )
    return match[1], match[2]


def state_of(cluster: LiveCluster, address: str, now_ms: int, *, is_vouched: bool) -> DesiredState:
    """The desired state of what brokers said at a time in ms since 1970; pure."""
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
    # The brokers that were named on the command line count, not those that a file may bring along.
    found.pop(_SERVERS, None)
    return found


def _read(servers: str, properties: Mapping[str, str], address: str) -> LiveCluster:
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError as error:
        raise UsageError(
            "a live cluster is read through confluent-kafka, which is not installed:"
            " pip install 'kafka-logstore[admin]'"
        ) from error
    heard: list[Any] = []
    silent = logging.Logger("reconciler.kafka")
    silent.addHandler(logging.NullHandler())
    config: dict[str, Any] = {**properties, _SERVERS: servers, "error_cb": heard.append}
    try:
        client = AdminClient(config, logger=silent)
    except KafkaException as error:
        raise UsageError(f"kafka:{address}: {error.args[0].str()}: properties are named as librdkafka does") from error
    try:
        return read(client, address)
    except (KafkaException, FutureTimeoutError) as error:
        client.poll(0)
        said = error.args[0].str() if isinstance(error, KafkaException) else "no answer in time"
        words = "; ".join(dict.fromkeys([said, *(each.str() for each in heard[-2:])]))
        raise MetadataError(
            f"{address}: the brokers did not answer everything that was asked: {words}. Check host and port, that"
            " brokers listen there, and security.protocol and the user's rights in ?config=FILE"
        ) from error
