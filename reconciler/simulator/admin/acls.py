"""ACLs of topics, namespaces and the cluster: the nodes that hold them, and how they are changed (KIP37-4, KIP37-6)."""

from __future__ import annotations

from collections.abc import Sequence

from layout.topic import NAMESPACE_SEPARATOR
from logstore import KafkaError
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode, check_all_newer
from reconciler.simulator.zookeeper import (
    CLUSTER_ACLS,
    NAMESPACE_ACLS,
    TOPIC_ACLS,
    Create,
    Operation,
    Set,
    path_below,
    topic_path,
)
from reconciler.sources.zookeeper import Acl, decode_acls, encode_acls


def changed_acls(
    node: ControllerNode, scope: str, added: Sequence[Acl], removed: Sequence[Acl] = ()
) -> list[Operation]:
    """Operations that give ACLs to a topic, a namespace or the cluster, and take others away.

    ``scope``: a topic's full name, a namespace with ``:`` at its end, or empty for the cluster. A topic may get its
    ACLs before it is created, as in Kafka; a namespace has to be there.

    Raises:
        CommandRefusedError: 17, there is no such namespace; 35, a broker does not know namespaces; 42, an entry is both
            added and removed.
    """
    both = sorted(set(added) & set(removed))
    if both:
        raise CommandRefusedError(KafkaError.INVALID_REQUEST, f"{both[0]} cannot be added and removed at once")
    namespace = scope.removesuffix(NAMESPACE_SEPARATOR) if scope.endswith(NAMESPACE_SEPARATOR) else ""
    if namespace:
        tier = node.session.find(topic_path(namespace))
        if tier is None or tier.data:
            raise CommandRefusedError(
                KafkaError.INVALID_TOPIC_EXCEPTION, f"there is no namespace {namespace}; create it first"
            )
        check_all_newer(node)
    path = path_below(NAMESPACE_ACLS, namespace) if namespace else path_below(TOPIC_ACLS, scope)
    path = path if scope else CLUSTER_ACLS
    before = node.session.find(path)
    held = decode_acls(before.data) if before is not None else ()
    data = encode_acls({*held, *added} - set(removed))
    return [Set(path, data, before.version)] if before is not None else node.with_parents(Create(path, data))
