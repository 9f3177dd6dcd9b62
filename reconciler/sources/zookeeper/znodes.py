"""Decode what Kafka keeps in ZooKeeper's nodes: topics, partition states, brokers, the cluster's ID.

The decoder of a topic ignores the version number and reads the keys that exist, as Kafka's does. Unreadable content
gives an empty value and a sentence, never an exception. Paths are relative to the cluster's root.
Source: FACTS §8; KIP516-11 (the key ``id``), KIP37-4 (namespace directories).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from layout.errors import InvalidIdError
from layout.ids import TopicId
from layout.json_text import is_int

KEPT = re.compile(
    r"(?:/.*)?/(?:brokers/topics(?:/.+)?|brokers/ids/[^/]+|cluster/id|controller_epoch|admin/delete_topics/.+|migration)",
    re.DOTALL,
)
"""Matches the whole paths of the nodes to read, below any chroot."""

_LEADS_TO_STATES = re.compile(r"/partitions(?:/[0-9]+)?\Z")
"""Matches the end of the nodes below a topic that only lead to the states of its partitions."""

_STATE_NODE = re.compile(r"(.+)/partitions/([0-9]{1,10})/state", re.DOTALL)
_TOPICS = "/brokers/topics"
_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)
_INT32_MAX = 2**31 - 1


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
    """A partition's state: leader (-1: none), its epoch, and the in-sync replicas."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


def keep(path: str) -> bool:
    """Whether a node matters to what brokers should hold."""
    if KEPT.fullmatch(path) is None:
        return False
    end = _LEADS_TO_STATES.search(path)
    below = path.find(f"{_TOPICS}/")
    return end is None or below < 0 or below + len(_TOPICS) + 1 >= end.start()


def chroots(paths: Iterable[str]) -> list[str]:
    """Find the prefixes of ``/brokers/topics`` among the paths: ``""`` is the root of the tree."""
    found = (path.removesuffix(_TOPICS) for path in paths if path.endswith(_TOPICS))
    return sorted(prefix for prefix in found if not f"{prefix}/".count(f"{_TOPICS}/"))


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
            topics[path.replace("/", ":")] = node
    homes = {(match[1].replace("/", ":"), int(match[2])): path for path, match in states.items()}
    return topics, homes


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


def decode_state(data: bytes) -> StateNode | None:
    """Read a partition's state; None when it cannot be read."""
    found = _object(data)
    leader, epoch, isr = found.get("leader"), found.get("leader_epoch"), _broker_ids(found.get("isr"))
    if not is_int(leader, 32) or not is_int(epoch, 32) or isr is None:
        return None
    return StateNode(leader, epoch, isr)


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
