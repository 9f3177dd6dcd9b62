"""Namespaces in ZooKeeper: create, list, delete (KIP37-3, KIP37-4).

A namespace is an empty node below ``/brokers/topics``; its tiers are the nodes above it. Deleting one marks its topics
for deletion, and itself: ``namespace_sweep`` takes its node away when its last topic has gone. KIP-37 refuses a
deletion only where other namespaces lie below, and so does this.
"""

from __future__ import annotations

from layout.topic import NAMESPACE_SEPARATOR, Namespace, namespace_of
from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode
from reconciler.simulator.admin.delete_topics import deletion_marks
from reconciler.simulator.zookeeper import (
    DELETE_NAMESPACES,
    Create,
    Operation,
    check_name,
    read_namespaces,
    read_topics,
    topic_path,
)

REFUSED = KafkaError.INVALID_TOPIC_EXCEPTION
"""Kafka's number nearest to KIP-37's InvalidNamespaceException, which has none."""


def namespace_mark(namespace: str) -> str:
    """Where a namespace is marked for deletion: one flat name, for a tier's mark must not lie above another's."""
    return f"{DELETE_NAMESPACES}/{namespace}"


def create_namespace(node: ControllerNode, namespace: str) -> None:
    """Create a namespace with all its tiers, as one transaction.

    Raises:
        InvalidNameError: it cannot be called so.
        CommandRefusedError: 36, it exists, or a topic has the name of a tier; 17, a tier is being deleted.
    """
    if not Namespace.parse(namespace).tiers:
        raise CommandRefusedError(KafkaError.TOPIC_ALREADY_EXISTS, "the default namespace is always there")
    check_name(f"{namespace}:any")
    missing: list[Operation] = []
    for tier in _with_tiers(namespace):
        found = node.session.find(topic_path(tier))
        if found is None:
            missing.append(Create(topic_path(tier)))
        elif found.data:
            raise CommandRefusedError(KafkaError.TOPIC_ALREADY_EXISTS, f"{tier} is a topic; take another name")
        _check_staying(node, tier)
    if not missing:
        raise CommandRefusedError(KafkaError.TOPIC_ALREADY_EXISTS, f"namespace {namespace} exists already")
    node.commit(missing)


def list_namespaces(node: ControllerNode, below: str = "") -> list[str]:
    """The namespaces below one, sorted; empty: all but the default one.

    Raises:
        CommandRefusedError: 17, it does not exist.
    """
    found = read_namespaces(node.session)
    if below and below not in found:
        raise _unknown(below)
    prefix = f"{below}{NAMESPACE_SEPARATOR}" if below else ""
    return [name for name in found if name.startswith(prefix)]


def delete_namespace(node: ControllerNode, namespace: str, *, recursive: bool = False) -> None:
    """Have a namespace deleted, with its topics; ``recursive``: with the namespaces below it too.

    Raises:
        CommandRefusedError: 17, it does not exist, or has namespaces below it and the deletion is not recursive.
    """
    below = list_namespaces(node, namespace) if namespace else []
    if not namespace:
        raise CommandRefusedError(REFUSED, "the default namespace cannot be deleted; delete its topics")
    if below and not recursive:
        raise CommandRefusedError(
            REFUSED, f"{namespace} has {len(below)} namespaces below it, the first {below[0]}: delete it recursively"
        )
    gone = {namespace, *below}
    topics = [topic for topic in read_topics(node.session) if namespace_of(topic) in gone]
    marks: list[Operation] = [
        Create(namespace_mark(name)) for name in sorted(gone) if node.session.find(namespace_mark(name)) is None
    ]
    node.commit([*marks, *deletion_marks(node, topics)])


def check_usable(node: ControllerNode, namespace: str) -> None:
    """Make sure that a namespace was created, and is not being deleted; the default one always can be used.

    Raises:
        CommandRefusedError: 17, it cannot be used.
    """
    if namespace:
        found = node.session.find(topic_path(namespace))
        if found is None or found.data:
            raise _unknown(namespace)
        for tier in _with_tiers(namespace):
            _check_staying(node, tier)


def _check_staying(node: ControllerNode, tier: str) -> None:
    if node.session.find(namespace_mark(tier)) is not None:
        raise CommandRefusedError(REFUSED, f"namespace {tier} is being deleted; wait until it is gone")


def _with_tiers(namespace: str) -> list[str]:
    """A namespace and those above it, the outermost first."""
    tiers = namespace.split(NAMESPACE_SEPARATOR)
    return [NAMESPACE_SEPARATOR.join(tiers[: count + 1]) for count in range(len(tiers))]


def _unknown(namespace: str) -> CommandRefusedError:
    return CommandRefusedError(REFUSED, f"there is no namespace {namespace!r:.80}; create it first")
