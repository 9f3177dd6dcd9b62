"""Read the topics, namespaces and brokers of a cluster from its nodes; ``kafka_paths`` has their paths (FACTS §8).

``reconciler.sources.zookeeper`` encodes and decodes the nodes, so that a real ZooKeeper and the one in memory cannot be
understood differently. Data that cannot be read gives an empty value, as in Kafka, never an exception.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.simulator.zookeeper.kafka_paths import BROKERS, PARTITIONS, TOPICS, broker_path, name_at
from reconciler.simulator.zookeeper.server import Session
from reconciler.sources.zookeeper import (
    NAMESPACES_FEATURE,
    TopicNode,
    decode_end_point,
    decode_features,
    decode_number,
    decode_rack,
    decode_topic,
    encode_registration,
)


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A registered broker: its rack, if it has one, its epoch, where it listens, and whether it knows namespaces."""

    node_id: int
    rack: str | None
    epoch: int
    host: str
    port: int
    knows_namespaces: bool = True


def read_topics(session: Session) -> dict[str, TopicNode]:
    """Read every topic by full name, sorted. An empty node is a tier of a namespace (KIP37-4)."""
    found, _ = _walk(session)
    return dict(sorted(found.items()))


def read_namespaces(session: Session) -> list[str]:
    """Read every namespace but the default one, tiers joined by ``:``, sorted."""
    return sorted(_walk(session)[1])


def encode_broker(
    node_id: int, *, rack: str | None = None, timestamp_ms: int = 0, knows_namespaces: bool = True
) -> bytes:
    """Encode a broker's registration with the end points of the simulator's network.

    ``knows_namespaces``: False for a broker of an older release (KIP-37).
    """
    features = (NAMESPACES_FEATURE,) if knows_namespaces else ()
    return encode_registration(f"broker-{node_id}", 9092, rack=rack, timestamp_ms=timestamp_ms, features=features)


def read_brokers(session: Session) -> dict[int, BrokerNode]:
    """Read the registered brokers by ID, sorted."""
    found = {}
    for name in session.children(BROKERS):
        node_id = decode_number(name)
        if node_id is not None:
            node = session.get(broker_path(node_id))
            knows = NAMESPACES_FEATURE in decode_features(node.data)
            host, port = decode_end_point(node.data)
            found[node_id] = BrokerNode(node_id, decode_rack(node.data), node.czxid, host, port, knows)
    return dict(sorted(found.items()))


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
