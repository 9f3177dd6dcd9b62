"""Encode and decode what Kafka keeps in ZooKeeper's nodes: topics, partition states, configs, the cluster's ID.

The decoder of a topic ignores the version number and reads the keys that exist, as Kafka's does. Unreadable content
gives an empty value and a sentence, never an exception. Paths are relative to the cluster's root.
Source: FACTS §8; KIP516-11 (the key ``id``), KIP37-4 (namespace directories).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from layout.errors import InvalidIdError
from layout.ids import TopicId
from layout.json_text import is_int
from layout.topic import TopicPartition

TOPICS, BROKERS, MARKED = "/brokers/topics", "/brokers/ids", "/admin/delete_topics"
FEWER_PARTITIONS = "/admin/delete_topic_partitions"
CLUSTER_ID, CONTROLLER, CONTROLLER_EPOCH = "/cluster/id", "/controller", "/controller_epoch"
MIGRATION, CONFIGS, CLUSTER_CONFIG = "/migration", "/config/topics", "/config/brokers/<default>"
CONFIG_CHANGES = "/config/changes"
"""Paths below the cluster's root; a topic that is to go is marked below :data:`MARKED`.

One that is to have fewer partitions has a request in a node of its full name below :data:`FEWER_PARTITIONS` (KIP-694).
"""

KEPT = re.compile(
    r"(?:/.*)?/(?:brokers/topics(?:/.+)?|brokers/ids/[^/]+|cluster/id|controller_epoch|admin/delete_topics/.+"
    r"|admin/delete_topic_partitions/[^/]+|migration)",
    re.DOTALL,
)
"""Matches the whole paths of the nodes to read, below any chroot."""

_LEADS_TO_STATES = re.compile(r"/partitions(?:/[0-9]+)?\Z")
"""Matches the end of the nodes below a topic that only lead to the states of its partitions."""

_STATE_NODE = re.compile(r"(.+)/partitions/([0-9]{1,10})/state", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_INT32_MAX = 2**31 - 1

NAMESPACES_FEATURE = "namespaces"
"""The feature in the registration of a broker that knows namespaces (KIP-37); no release of Kafka has it."""

TOPIC_VERSION = 3
"""Version of a topic's node that can hold a topic ID (Kafka 2.8 and later)."""

BrokersByPartition = Mapping[int, Sequence[int]]
"""Broker IDs, the preferred leader first, by partition."""


@dataclass(frozen=True, slots=True)
class TopicNode:
    """A topic's node: broker ids by partition, those being added and removed, and the topic ID if it has one."""

    partitions: Mapping[int, tuple[int, ...]]
    adding: Mapping[int, tuple[int, ...]]
    removing: Mapping[int, tuple[int, ...]]
    topic_id: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class StateNode:
    """A partition's state: leader (-1: none), its epoch, the in-sync replicas, and the epoch of the controller.

    A node that does not say which controller wrote it has the controller epoch -1.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int = -1


def keep(path: str) -> bool:
    """Whether a node matters to what brokers should hold."""
    if KEPT.fullmatch(path) is None:
        return False
    end = _LEADS_TO_STATES.search(path)
    below = path.find(f"{TOPICS}/")
    return end is None or below < 0 or below + len(TOPICS) + 1 >= end.start()


def topic_of(path: str) -> str:
    """Return the full name of the topic whose node has a path below :data:`TOPICS` or :data:`MARKED` (KIP37-4)."""
    return path.replace("/", ":")


def path_of(topic: str) -> str:
    """Return the path of a topic's node below :data:`TOPICS`, by its full name; the inverse of :func:`topic_of`."""
    return topic.replace(":", "/")


def chroots(paths: Iterable[str]) -> list[str]:
    """Find the prefixes of ``/brokers/topics`` among the paths: ``""`` is the root of the tree."""
    found = (path.removesuffix(TOPICS) for path in paths if path.endswith(TOPICS))
    return sorted(prefix for prefix in found if not f"{prefix}/".count(f"{TOPICS}/"))


def split_topics(below: Mapping[str, bytes]) -> tuple[dict[str, TopicNode], dict[tuple[str, int], str]]:
    """Separate topics, namespaces and partition states.

    A namespace is a node without partitions of its own and with children other than ``partitions`` (KIP37-4); the full
    name of a topic below it is ``namespace:…:topic``.

    Args:
        below: data of every kept node below ``/brokers/topics``, by its path there without a leading slash.

    Returns:
        The topics by full name, and the path of the state node of each (full name, partition).
    """
    states = {path: match for path in below if (match := _STATE_NODE.fullmatch(path))}
    others = sorted(path for path in below if path not in states)
    parents = {path.rpartition("/")[0] for path in others}
    namespaces = {""}
    topics: dict[str, TopicNode] = {}
    for path in others:
        if path.rpartition("/")[0] not in namespaces:
            continue
        node = decode_topic(below[path])
        if path in parents and not node.partitions:
            namespaces.add(path)
        else:
            topics[topic_of(path)] = node
    homes = {(topic_of(match[1]), int(match[2])): path for path, match in states.items()}
    return topics, homes


def encode_topic(
    topic_id: TopicId | None,
    partitions: BrokersByPartition,
    adding: BrokersByPartition | None = None,
    removing: BrokersByPartition | None = None,
    *,
    version: int = TOPIC_VERSION,
) -> bytes:
    """Encode a topic's node: all its replicas, those being added and removed, and its ID if it has one."""
    node: dict[str, Any] = {"version": version}
    if topic_id is not None:
        node["topic_id"] = str(topic_id)
    return orjson.dumps(
        node
        | {
            "partitions": _by_partition(partitions),
            "adding_replicas": _by_partition(adding or {}, but_empty=True),
            "removing_replicas": _by_partition(removing or {}, but_empty=True),
        }
    )


def decode_topic(data: bytes) -> TopicNode:
    """Read a topic's node, versions 1 to 3 and KIP-516's own form; unreadable parts are empty, with a problem."""
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return TopicNode({}, {}, {}, None, "is no JSON" if data else "is empty")
    if not isinstance(found, dict):
        return TopicNode({}, {}, {}, None, "is no JSON object")
    problems: list[str] = []
    maps = [
        _brokers_by_partition(found, key, problems) for key in ("partitions", "adding_replicas", "removing_replicas")
    ]
    topic_id = _topic_id(found, problems)
    return TopicNode(maps[0], maps[1], maps[2], topic_id, "; ".join(problems) or None)


def topic_id_of(node: TopicNode) -> TopicId | None:
    """Return the topic ID in a node; None: the topic has no ID."""
    return TopicId.parse(node.topic_id) if node.topic_id is not None else None


def encode_state(leader: int, leader_epoch: int, isr: Sequence[int], controller_epoch: int) -> bytes:
    """Encode a partition's state; leader -1: none."""
    node = {"controller_epoch": controller_epoch, "leader": leader, "version": 1, "leader_epoch": leader_epoch}
    return orjson.dumps(node | {"isr": list(isr)})


def decode_state(data: bytes) -> StateNode | None:
    """Read a partition's state; None when it cannot be read."""
    found = _object(data)
    leader, epoch, isr = found.get("leader"), found.get("leader_epoch"), _broker_ids(found.get("isr"))
    if not is_int(leader, 32) or not is_int(epoch, 32) or isr is None:
        return None
    controller = found.get("controller_epoch")
    return StateNode(leader, epoch, isr, controller if is_int(controller, 32) else -1)


def encode_cluster_id(cluster_id: str) -> bytes:
    """Encode the cluster's ID; its version is a text."""
    return orjson.dumps({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str | None:
    """Read ``/cluster/id``; None when it names no ID."""
    found = _object(data).get("id")
    return found if isinstance(found, str) and found else None


def decode_number(text: bytes | str) -> int | None:
    """Read an unsigned decimal int32, as in ``/controller_epoch`` and the names below ``/brokers/ids``; else None."""
    plain = text.decode("ascii", "replace") if isinstance(text, bytes) else text
    number = int(plain) if _NUMBER.fullmatch(plain) else -1
    return number if 0 <= number <= _INT32_MAX else None


def migrated_to(data: bytes) -> int | None:
    """Read from ``/migration`` which KRaft controller took the cluster over; None when none did."""
    found = _object(data).get("kraft_controller_id")
    return found if is_int(found, 32) and found >= 0 else None


def encode_registration(
    host: str, port: int, *, rack: str | None = None, timestamp_ms: int = 0, features: Sequence[str] = ()
) -> bytes:
    """Encode a broker's registration, version 5, with one end point; of each feature it supports version 1."""
    node: dict[str, Any] = {"listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}, "jmx_port": -1}
    node |= {"endpoints": [f"PLAINTEXT://{host}:{port}"], "host": host, "port": port}
    supported = {feature: {"min_version": 1, "max_version": 1} for feature in features}
    node |= {"features": supported, "timestamp": str(timestamp_ms), "version": 5}
    return orjson.dumps(node if rack is None else node | {"rack": rack})


def decode_rack(data: bytes) -> str | None:
    """Decode the rack in a broker's registration; None: it has none."""
    rack = _object(data).get("rack")
    return rack if isinstance(rack, str) else None


def decode_end_point(data: bytes) -> tuple[str, int]:
    """Decode the host and port in a broker's registration; an empty host and -1 when they cannot be read."""
    node = _object(data)
    host, port = node.get("host"), node.get("port")
    return (host, port) if isinstance(host, str) and type(port) is int else ("", -1)


def decode_features(data: bytes) -> frozenset[str]:
    """Decode the names of the features in a broker's registration; none when it cannot be read, or is older."""
    features = _object(data).get("features")
    return frozenset(features) if isinstance(features, dict) else frozenset()


def decode_fewer_partitions(data: bytes) -> tuple[str | None, int] | None:
    """Read a request for fewer partitions: the topic's ID, if it had one, and how many partitions stay (KIP694-3).

    The proposal names the node and draws no form for it; this reads the simulator's. None when it cannot be read.
    """
    found = _object(data)
    topic_id, total = found.get("topic_id"), found.get("delete_partitions")
    if (topic_id is None or isinstance(topic_id, str)) and is_int(total, 32) and total > 0:
        return topic_id, total
    return None


def encode_controller(node_id: int, timestamp_ms: int = 0) -> bytes:
    """Encode the controller's node, version 1, as 2.8 writes it."""
    return orjson.dumps({"version": 1, "brokerid": node_id, "timestamp": str(timestamp_ms)})


def decode_controller(data: bytes) -> int | None:
    """Decode the controller's broker ID; None when it cannot be read."""
    found = _object(data).get("brokerid")
    return found if type(found) is int else None


def encode_config(config: Mapping[str, str]) -> bytes:
    """Encode the configs of a topic or a namespace."""
    return orjson.dumps({"version": 1, "config": dict(sorted(config.items()))})


def decode_config(data: bytes) -> dict[str, str]:
    """Decode the configs of a topic or a namespace, sorted; empty when they cannot be read."""
    config = _object(data).get("config")
    found = sorted(config.items()) if isinstance(config, dict) else ()
    return {key: value for key, value in found if isinstance(value, str)}


def encode_config_change(entity_path: str) -> bytes:
    """Encode the notice that configs have changed; ``entity_path`` is theirs below ``/config``: ``topics/orders``."""
    return orjson.dumps({"version": 2, "entity_path": entity_path})


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


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _brokers_by_partition(found: dict[str, Any], key: str, problems: list[str]) -> dict[int, tuple[int, ...]]:
    entries = found.get(key)
    if entries is None:
        return {}
    result = {}
    for name, value in entries.items() if isinstance(entries, dict) else [("", None)]:
        partition, brokers = decode_number(name), _broker_ids(value)
        if partition is None or brokers is None:
            problems.append(f"its {key!r} is no map of partitions to broker ids")
            return {}
        result[partition] = brokers
    return result


def _broker_ids(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(is_int(each, 32) and each >= 0 for each in value):
        return None
    return tuple(value)


def _topic_id(found: dict[str, Any], problems: list[str]) -> str | None:
    """Read the topic ID under Kafka's key, else KIP-516's, as canonical text; None if it is zero or malformed."""
    text = found.get("topic_id", found.get("id"))
    if text is None:
        return None
    try:
        topic_id = TopicId.parse(text) if isinstance(text, str) else TopicId.ZERO
    except InvalidIdError:
        topic_id = TopicId.ZERO
    if topic_id.is_zero:
        problems.append(f"its topic ID {text!r:.40} is none")
        return None
    return str(topic_id)


def _named(partition: TopicPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def _by_partition(brokers: BrokersByPartition, *, but_empty: bool = False) -> dict[str, list[int]]:
    return {str(partition): list(found) for partition, found in sorted(brokers.items()) if found or not but_empty}
