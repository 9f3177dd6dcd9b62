"""Moving a topic to another namespace: its nodes go along, and its ID stays, so that no data has to move (KIP37-3).

All of it is one transaction: the topic's node, its partitions' states with their leaders and epochs, its configs and
its ACLs. The states' versions begin anew. To the controller it is a known topic ID under another name (KIP516-13).
"""

from __future__ import annotations

from layout.topic import NAMESPACE_SEPARATOR, Namespace
from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode
from reconciler.simulator.admin.known_topic import find_steady
from reconciler.simulator.admin.zookeeper_namespaces import check_usable
from reconciler.simulator.zookeeper import (
    CONFIGS,
    TOPIC_ACLS,
    TOPICS,
    Create,
    Delete,
    Operation,
    check_name,
    path_below,
    topic_path,
)


def move_topic(node: ControllerNode, topic: str, namespace: str) -> str:
    """Move a topic, and return its new full name.

    Args:
        node: where to write.
        topic: its full name.
        namespace: where it shall be; empty: the default namespace.

    Raises:
        InvalidNameError: a name breaks the rules.
        CommandRefusedError: 3, there is no such topic; 17, it is being deleted, or there is no such namespace; 36,
            there is a topic of that name, or it is there already; 60, it is under change.
    """
    find_steady(node, topic)
    Namespace.parse(namespace)
    check_usable(node, namespace)
    local = topic.rpartition(NAMESPACE_SEPARATOR)[2]
    wanted = f"{namespace}{NAMESPACE_SEPARATOR}{local}" if namespace else local
    check_name(wanted)
    if node.session.find(topic_path(wanted)) is not None:
        raise CommandRefusedError(KafkaError.TOPIC_ALREADY_EXISTS, f"{wanted} exists already")
    node.commit([step for root in (TOPICS, CONFIGS, TOPIC_ACLS) for step in _moved(node, root, topic, wanted)])
    return wanted


def _moved(node: ControllerNode, root: str, topic: str, wanted: str) -> list[Operation]:
    """Operations that move what a topic has below one root."""
    session = node.session
    source, target = path_below(root, topic), path_below(root, wanted)
    if session.find(source) is None:
        return []
    paths = [source]
    for path in paths:
        paths.extend(f"{path}/{name}" for name in session.children(path))
    created = [Create(target + path[len(source) :], session.get(path).data) for path in paths]
    parents = node.with_parents(created[0])
    return [*parents, *created[1:], *(Delete(path, session.get(path).version) for path in reversed(paths))]
