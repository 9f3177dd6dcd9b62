"""Topic IDs for topics that have none: a topic's node in ZooKeeper, of version 1 or 2, becomes one of version 3. Pure.

That is what a controller of Kafka 2.8 does to every topic when it takes office, and what KIP-516 asks for: an ID is
given once, in one place, and brokers write it down when they are told. A node is rewritten from what was read of it, as
Kafka's own encoder does: keys that Kafka does not know go, empty lists of adding and removing replicas are left out,
and both maps are always there. A node that cannot be read whole, or that has an ID already, is left as it is: one
that is guessed over another makes every replica of the topic stale. What talks to ZooKeeper is ``znode_writing``.
Source: KIP516-11; FACTS §8, §3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import orjson

from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.topic import check_full_topic_name
from reconciler.errors import RefusedError
from reconciler.sources.zookeeper import TopicNode, decode_topic, split_topics

VERSION = 3
"""Of a topic's node with a topic ID (Kafka 2.8 and later)."""


class TopicState(StrEnum):
    """What is to be done about a topic's node."""

    HAS_ID = "has_id"
    WITHOUT_ID = "without_id"
    LEFT_ALONE = "left_alone"


@dataclass(frozen=True, slots=True)
class TopicFound:
    """One topic as its node tells of it.

    Attributes:
        topic: full name.
        path: of its node below ``/brokers/topics``.
        state: what is to be done about it.
        topic_id: text of the ID that it has; None: it has none.
        reason: why it is left alone, a clause; empty for the others.
    """

    topic: str
    path: str
    state: TopicState
    topic_id: str | None
    reason: str = ""


def with_topic_id(data: bytes, topic_id: TopicId) -> bytes:
    """The node of version 3 that says what a node of version 1 or 2 says, and the topic ID besides.

    Args:
        data: of the node as it is.
        topic_id: that the topic gets.

    Raises:
        RefusedError: the node cannot be read whole or has an ID already, or the ID is reserved; nothing may be written.
    """
    node = decode_topic(data)
    problem = _problem(node)
    if problem or node.topic_id is not None:
        raise RefusedError(f"{problem or f'it has topic ID {node.topic_id}'}: nothing is written over that")
    if topic_id in (TopicId.ZERO, TopicId.METADATA):
        raise RefusedError(f"topic ID {topic_id} is reserved, and no topic may have it")
    return orjson.dumps(
        {
            "version": VERSION,
            "topic_id": str(topic_id),
            "partitions": _by_text(node.partitions),
            "adding_replicas": _by_text(node.adding, but_empty=True),
            "removing_replicas": _by_text(node.removing, but_empty=True),
        }
    )


def find_topics(below: Mapping[str, bytes], deleted: Collection[str] = ()) -> Iterator[TopicFound]:
    """Every topic, by name, and what is to be done about it; tiers of namespaces are no topics.

    Args:
        below: data of every node below ``/brokers/topics``, by its path there without a leading slash.
        deleted: full names of topics that are marked for deletion.
    """
    topics, _ = split_topics(below)
    for name, node in sorted(topics.items()):
        path = name.replace(":", "/")
        if node.topic_id is not None:
            yield TopicFound(name, path, TopicState.HAS_ID, node.topic_id)
            continue
        reason = _problem(node) or _name_problem(name) or ("it is marked for deletion" if name in deleted else "")
        yield TopicFound(name, path, TopicState.LEFT_ALONE if reason else TopicState.WITHOUT_ID, None, reason)


def new_ids(random_bytes: Callable[[int], bytes], taken: Collection[str]) -> Iterator[TopicId]:
    """Topic IDs that no topic has, each different from those before, as Kafka itself could have drawn them.

    Args:
        random_bytes: gives that many random bytes: ``os.urandom``, or a seeded generator's ``randbytes``.
        taken: text of the IDs that are in use.
    """
    used = set(taken)
    while True:
        drawn = TopicId.random(random_bytes)
        if str(drawn) not in used:
            used.add(str(drawn))
            yield drawn


def _problem(node: TopicNode) -> str:
    """Why a node cannot be rewritten, as a clause; empty: it can."""
    if node.problem:
        return f"its node {node.problem}" if node.problem.startswith("is ") else node.problem
    return "" if node.partitions else "its node names no partition"


def _name_problem(name: str) -> str:
    try:
        check_full_topic_name(name)
    except InvalidNameError as error:
        return str(error)
    return ""


def _by_text(replicas: Mapping[int, tuple[int, ...]], *, but_empty: bool = False) -> dict[str, tuple[int, ...]]:
    return {str(partition): brokers for partition, brokers in replicas.items() if brokers or not but_empty}
