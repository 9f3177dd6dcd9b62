"""The contents of Kafka's nodes, encoded and decoded; ``kafka_paths`` has their paths (FACTS §8).

Topics are written as version 3, with a topic ID. Nodes are read by ``reconciler.sources.zookeeper`` where it can, so
that a file of a real ZooKeeper and the one in memory cannot be understood differently. Data that cannot be read gives
an empty value, as in Kafka, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.simulator.zookeeper.kafka_paths import BROKERS, PARTITIONS, TOPICS, broker_path, name_at
from reconciler.simulator.zookeeper.server import Session
from reconciler.sources.zookeeper import TopicNode, decode_number
from reconciler.sources.zookeeper import decode_state as read_state
from reconciler.sources.zookeeper import decode_topic as read_topic

BrokersByPartition = Mapping[int, Sequence[int]]
"""Broker IDs, the preferred leader first, by partition."""


@dataclass(frozen=True, slots=True)
class PartitionStateNode:
    """A partition's state, and the epoch of the controller that wrote it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A registered broker: its rack, if it has one, and its epoch."""

    node_id: int
    rack: str | None
    epoch: int


def encode_topic(
    topic_id: TopicId | None,
    partitions: BrokersByPartition,
    adding: BrokersByPartition | None = None,
    removing: BrokersByPartition | None = None,
) -> bytes:
    """Encode a topic's node, version 3: its ID and all replicas, and the replicas being added and removed."""
    node: dict[str, Any] = {"partitions": _by_partition(partitions)}
    if topic_id is not None:
        node["topic_id"] = str(topic_id)
    node |= {"adding_replicas": _by_partition(adding or {}), "removing_replicas": _by_partition(removing or {})}
    return orjson.dumps(node | {"version": 3})


def decode_topic(data: bytes) -> TopicNode:
    """Decode a topic's node of any version."""
    return read_topic(data)


def topic_id_of(node: TopicNode) -> TopicId | None:
    """Return the topic ID in a node; None: the topic has no ID."""
    return TopicId.parse(node.topic_id) if node.topic_id is not None else None


def read_topics(session: Session) -> dict[str, TopicNode]:
    """Read every topic by full name, sorted. An empty node is a tier of a namespace (KIP37-4)."""
    found, _ = _walk(session)
    return dict(sorted(found.items()))


def read_namespaces(session: Session) -> list[str]:
    """Read every namespace but the default one, tiers joined by ``:``, sorted."""
    return sorted(_walk(session)[1])


def encode_state(leader: int, leader_epoch: int, isr: Sequence[int], controller_epoch: int) -> bytes:
    """Encode a partition's state; leader -1: none."""
    node = {"controller_epoch": controller_epoch, "leader": leader, "version": 1, "leader_epoch": leader_epoch}
    return orjson.dumps(node | {"isr": list(isr)})


def decode_state(data: bytes) -> PartitionStateNode | None:
    """Decode a partition's state; None when it cannot be read. A missing controller epoch is -1."""
    state = read_state(data)
    if state is None:
        return None
    epoch = _object(data).get("controller_epoch", -1)
    return PartitionStateNode(state.leader, state.leader_epoch, state.isr, epoch if type(epoch) is int else -1)


def encode_broker(node_id: int, *, rack: str | None = None, timestamp_ms: int = 0) -> bytes:
    """Encode a broker's registration, version 5, with the end points of the simulator's network."""
    node: dict[str, Any] = {"listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}, "jmx_port": -1}
    node |= {"endpoints": [f"PLAINTEXT://broker-{node_id}:9092"], "host": f"broker-{node_id}", "port": 9092}
    node |= {"features": {}, "timestamp": str(timestamp_ms), "version": 5}
    return orjson.dumps(node if rack is None else node | {"rack": rack})


def read_brokers(session: Session) -> dict[int, BrokerNode]:
    """Read the registered brokers by ID, sorted."""
    found = {}
    for name in session.children(BROKERS):
        node_id = decode_number(name)
        if node_id is not None:
            node = session.get(broker_path(node_id))
            rack = _object(node.data).get("rack")
            found[node_id] = BrokerNode(node_id, rack if isinstance(rack, str) else None, node.czxid)
    return dict(sorted(found.items()))


def encode_controller(node_id: int, timestamp_ms: int = 0) -> bytes:
    """Encode the controller's node, version 1, as 2.8 writes it."""
    return orjson.dumps({"version": 1, "brokerid": node_id, "timestamp": str(timestamp_ms)})


def decode_controller(data: bytes) -> int | None:
    """Decode the controller's broker ID; None when it cannot be read."""
    found = _object(data).get("brokerid")
    return found if type(found) is int else None


def encode_cluster_id(cluster_id: str) -> bytes:
    """Encode the cluster's ID; its version is a text."""
    return orjson.dumps({"version": "1", "id": cluster_id})


def encode_config(config: Mapping[str, str]) -> bytes:
    """Encode the configs of a topic or a namespace."""
    return orjson.dumps({"version": 1, "config": dict(sorted(config.items()))})


def decode_config(data: bytes) -> dict[str, str]:
    """Decode the configs of a topic or a namespace, sorted; empty when they cannot be read."""
    config = _object(data).get("config")
    return _sorted_texts(config) if isinstance(config, dict) else {}


def encode_log_dir_event(node_id: int) -> bytes:
    """Encode a broker's notice to the controller that one of its log dirs failed."""
    return orjson.dumps({"version": 1, "broker": node_id, "event": 1})


def decode_log_dir_event(data: bytes) -> int | None:
    """Decode the ID of the broker that has a failed log dir; None when it cannot be read."""
    found = _object(data).get("broker")
    return found if type(found) is int else None


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode a list of partitions: of changed in-sync sets, or of requested preferred leaders."""
    return orjson.dumps({"version": 1, "partitions": [_named(each) for each in partitions]})


def decode_partitions(data: bytes) -> list[TopicPartition]:
    """Decode a list of partitions, without the entries that cannot be read."""
    entries = _object(data).get("partitions")
    found = []
    for entry in entries if isinstance(entries, list) else []:
        match entry:
            case {"topic": str(topic), "partition": int(partition)}:
                found.append(TopicPartition(topic, partition))
    return found


def encode_reassignment(assignments: Mapping[TopicPartition, Sequence[int]]) -> bytes:
    """Encode a reassignment, as the old tool writes it."""
    wanted = [_named(partition) | {"replicas": list(replicas)} for partition, replicas in assignments.items()]
    return orjson.dumps({"version": 1, "partitions": wanted})


def decode_reassignment(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Decode a reassignment, without the entries that cannot be read."""
    found = {}
    entries = _object(data).get("partitions")
    for entry in entries if isinstance(entries, list) else []:
        match entry:
            case {"topic": str(topic), "partition": int(partition), "replicas": [*replicas]} if all(
                type(each) is int for each in replicas
            ):
                found[TopicPartition(topic, partition)] = tuple(replicas)
    return found


def _walk(session: Session) -> tuple[dict[str, TopicNode], list[str]]:
    topics: dict[str, TopicNode] = {}
    tiers: list[str] = []
    todo = [f"{TOPICS}/{name}" for name in session.children(TOPICS)] if session.find(TOPICS) else []
    while todo:
        path = todo.pop()
        data, name = session.get(path).data, name_at(TOPICS, path) or ""
        if data:
            topics[name] = decode_topic(data)
        else:
            tiers.append(name)
            todo.extend(f"{path}/{child}" for child in session.children(path) if child != PARTITIONS)
    return topics, tiers


def _named(partition: TopicPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def _by_partition(assignment: BrokersByPartition) -> dict[str, list[int]]:
    return {str(partition): list(brokers) for partition, brokers in sorted(assignment.items()) if brokers}


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _sorted_texts(found: dict[Any, Any]) -> dict[str, str]:
    return {key: value for key, value in sorted(found.items()) if isinstance(value, str)}
