"""A topic that a command is about: found, and not on its way out."""

from __future__ import annotations

from dataclasses import dataclass

from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode
from reconciler.simulator.zookeeper import decode_topic, delete_partitions_path, delete_path, topic_path
from reconciler.sources.zookeeper import TopicNode


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic's node as it was read, and the version that a write has to find."""

    topic: str
    node: TopicNode
    version: int


def find_topic(node: ControllerNode, topic: str) -> KnownTopic:
    """Read a topic.

    Raises:
        CommandRefusedError: 3, there is none.
    """
    found = node.session.find(topic_path(topic)) if topic and "/" not in topic else None
    if found is None or not found.data:
        raise CommandRefusedError(KafkaError.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r:.80}")
    return KnownTopic(topic, decode_topic(found.data), found.version)


def find_steady(node: ControllerNode, topic: str) -> KnownTopic:
    """Read a topic whose partitions are to be changed.

    Raises:
        CommandRefusedError: 3, there is none; 17, it is being deleted; 60, it is already under change.
    """
    found = find_topic(node, topic)
    if node.session.find(delete_path(topic)) is not None:
        raise CommandRefusedError(KafkaError.INVALID_TOPIC_EXCEPTION, f"{topic} is being deleted")
    moving = sorted({*found.node.adding, *found.node.removing})
    if moving:
        raise _under_change(topic, f"partitions {moving} are being given other replicas")
    if node.session.find(delete_partitions_path(topic)) is not None:
        raise _under_change(topic, "its last partitions are being deleted")
    return found


def _under_change(topic: str, why: str) -> CommandRefusedError:
    return CommandRefusedError(
        KafkaError.REASSIGNMENT_IN_PROGRESS, f"{topic} is already under change: {why}; describe shows when it is done"
    )
