"""Add a topic ID to a topic's node in ZooKeeper: a node of version 1 or 2 becomes a node of version 3. Pure.

A controller of Kafka 2.8 does the same to every topic when it is elected, and KIP-516 asks for it: an ID is given once,
in one place, and brokers write the ID that they get in a request. A node is encoded anew from its decoded fields, as
Kafka's own encoder does: unknown keys are dropped, empty lists of adding and removing replicas are left out, and both
maps are always there. A node that cannot be read whole, or that has an ID already, is left as it is, because a second
ID makes every replica of the topic stale. ``write`` talks to ZooKeeper.
Source: KIP516-11; FACTS §8, §3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.topic import check_full_topic_name
from reconciler.errors import RefusedError
from reconciler.sources.zookeeper import TopicNode, decode_topic, encode_topic, path_of, split_topics


class TopicIdState(StrEnum):
    """Whether a topic's node needs a topic ID."""

    HAS_ID = "has_id"
    WITHOUT_ID = "without_id"
    LEFT_ALONE = "left_alone"


@dataclass(frozen=True, slots=True)
class TopicFound:
    """One topic, as read from its node.

    Attributes:
        topic: full name.
        path: of its node below ``/brokers/topics``.
        state: whether the node needs a topic ID.
        topic_id: text of its topic ID; None: it has none.
        reason: why it is left alone, as a clause; empty for other states.
    """

    topic: str
    path: str
    state: TopicIdState
    topic_id: str | None
    reason: str = ""


def with_topic_id(data: bytes, topic_id: TopicId) -> bytes:
    """Return the node of version 3 with the contents of a node of version 1 or 2, and the topic ID.

    Raises:
        RefusedError: the node cannot be read whole or has an ID already, or the ID is reserved.
    """
    node = decode_topic(data)
    problem = _problem(node)
    if problem or node.topic_id is not None:
        raise RefusedError(f"{problem or f'it has topic ID {node.topic_id}'}: nothing is written over that")
    if topic_id in (TopicId.ZERO, TopicId.METADATA):
        raise RefusedError(f"topic ID {topic_id} is reserved, and no topic may have it")
    return encode_topic(topic_id, node.partitions, node.adding, node.removing)


def find_topics(below: Mapping[str, bytes], deleted: Collection[str] = ()) -> Iterator[TopicFound]:
    """Yield every topic, by name, with its state; namespace nodes are no topics.

    Args:
        below: data of every node below ``/brokers/topics``, by its path there without a leading slash.
        deleted: full names of topics that are marked for deletion.
    """
    topics, _ = split_topics(below)
    for name, node in sorted(topics.items()):
        path = path_of(name)
        if node.topic_id is not None:
            yield TopicFound(name, path, TopicIdState.HAS_ID, node.topic_id)
            continue
        reason = _problem(node) or _name_problem(name) or ("it is marked for deletion" if name in deleted else "")
        yield TopicFound(name, path, TopicIdState.LEFT_ALONE if reason else TopicIdState.WITHOUT_ID, None, reason)


def new_ids(random_bytes: Callable[[int], bytes], taken: Collection[str]) -> Iterator[TopicId]:
    """Yield unused topic IDs, each once, as Kafka itself could have drawn them.

    Args:
        random_bytes: returns that many random bytes: ``os.urandom``, or a seeded generator's ``randbytes``.
        taken: text of the IDs that are in use.
    """
    used = set(taken)
    while True:
        drawn = TopicId.random(random_bytes)
        if str(drawn) not in used:
            used.add(str(drawn))
            yield drawn


def _problem(node: TopicNode) -> str:
    """Return why a node cannot be rewritten, as a clause; empty: it can."""
    if node.problem:
        return f"its node {node.problem}" if node.problem.startswith("is ") else node.problem
    return "" if node.partitions else "its node names no partition"


def _name_problem(name: str) -> str:
    try:
        check_full_topic_name(name)
    except InvalidNameError as error:
        return str(error)
    return ""
