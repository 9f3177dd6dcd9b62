"""Deleting a topic: a mark for the controller, by name or by topic ID; the answer comes at once (KIP4-1, KIP516-10)."""

from __future__ import annotations

from layout.ids import TopicId
from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode
from reconciler.simulator.admin.known_topic import find_topic
from reconciler.simulator.zookeeper import Create, Operation, delete_path, read_topics


def name_of(node: ControllerNode, topic: str | TopicId) -> str:
    """The full name of a topic that is given by name or by ID.

    Raises:
        CommandRefusedError: 100, no topic has the ID.
    """
    if isinstance(topic, str):
        return topic
    for name, found in read_topics(node.session).items():
        if found.topic_id == str(topic):
            return name
    raise CommandRefusedError(KafkaError.UNKNOWN_TOPIC_ID, f"no topic has the ID {topic}")


def mark_for_deletion(node: ControllerNode, topic: str) -> None:
    """Have a topic deleted; one that is on its way out already stays so.

    Raises:
        CommandRefusedError: 3, there is no such topic.
    """
    find_topic(node, topic)
    node.commit(deletion_marks(node, [topic]))


def deletion_marks(node: ControllerNode, topics: list[str]) -> list[Operation]:
    """Operations that mark topics for deletion, those that are not marked yet, with the tiers above the marks."""
    made: dict[str, Operation] = {}
    for topic in topics:
        if node.session.find(delete_path(topic)) is None:
            made |= {each.path: each for each in node.with_parents(Create(delete_path(topic)))}
    return list(made.values())
