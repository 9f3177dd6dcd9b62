"""The paths of Kafka's nodes in ZooKeeper, with a namespace's tiers as nodes above its topics (FACTS §8; KIP37-4).

::

    /brokers/topics/orders                               a topic of the default namespace
    /brokers/topics/org/apache/orders                    org:apache:orders; its tiers, org and org/apache, are empty
    /brokers/topics/org/apache/orders/partitions/0/state
    /config/topics/org/apache/orders                     its configs; the tier's own node has the namespace's
    /config/changes/config_change_0000000000             tells brokers that configs have changed
    /admin/delete_topics/org/apache/orders               marked for deletion
    /admin/delete_topic_partitions/org:apache:orders     fewer partitions: the request and its progress (KIP694-3)
    /admin/delete_namespaces/org:apache                  a namespace to be deleted with its last topic (KIP37-3)
    /kafka-acl/Topic/org/apache/orders                   its ACLs; /kafka-acl/Namespace/org/apache: a namespace's
    /kafka-acl/Cluster/kafka-cluster                     those of the cluster itself

KIP-37 draws configs twice, as ``/configs/topics/<namespace>/<topic>`` and as ``/configs/<namespace>/topics/<topic>``.
The simulator takes the first, for configs and ACLs alike: with the second, nothing would distinguish a tier called
``topics`` from Kafka's own node. The first parts of the paths are Kafka's, so the default namespace keeps its paths.
"""

from __future__ import annotations

from layout.errors import InvalidNameError
from layout.scheme import check_namespace_depth
from layout.topic import NAMESPACE_SEPARATOR, Namespace, TopicPartition, check_full_topic_name, namespace_of
from reconciler.simulator.zookeeper.server import Session
from reconciler.sources import zookeeper

TOPICS, DELETE_TOPICS, CLUSTER_ID = zookeeper.TOPICS, zookeeper.MARKED, zookeeper.CLUSTER_ID
CONTROLLER, CONTROLLER_EPOCH = zookeeper.CONTROLLER, zookeeper.CONTROLLER_EPOCH
BROKERS = zookeeper.BROKERS
DELETE_PARTITIONS = zookeeper.FEWER_PARTITIONS
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
DELETE_NAMESPACES = "/admin/delete_namespaces"
CONFIGS, CLUSTER_CONFIG, CONFIG_CHANGES = zookeeper.CONFIGS, zookeeper.CLUSTER_CONFIG, zookeeper.CONFIG_CHANGES
TOPIC_ACLS, NAMESPACE_ACLS, CLUSTER_ACLS = zookeeper.TOPIC_ACLS, zookeeper.NAMESPACE_ACLS, zookeeper.CLUSTER_ACLS
LOG_DIR_EVENTS = "/log_dir_event_notification"
ISR_CHANGES = "/isr_change_notification"

PARTITIONS = "partitions"
"""The child of a topic's node that holds its partitions' states."""

_ALWAYS = (
    *("/consumers", CONFIG_CHANGES, "/brokers/seqid", "/latest_producer_id_block"),
    *(TOPICS, BROKERS, DELETE_TOPICS, DELETE_PARTITIONS, DELETE_NAMESPACES, LOG_DIR_EVENTS, ISR_CHANGES),
    *(CONFIGS, "/config/clients", "/config/users", "/config/brokers", TOPIC_ACLS, NAMESPACE_ACLS),
)


def make_base(session: Session) -> None:
    """Create the nodes that every broker ensures when it starts; existing nodes stay."""
    for path in _ALWAYS:
        if session.find(path) is None:
            session.create(path, parents=True)


def path_below(root: str, name: str) -> str:
    """Return the path of a topic or namespace below one of the roots above; the empty name gives the root."""
    return f"{root}/{zookeeper.path_of(name)}" if name else root


def name_at(root: str, path: str) -> str | None:
    """Return the full name at a path below one of the roots above; None: the path is not below the root."""
    return zookeeper.topic_of(path[len(root) + 1 :]) if path.startswith(f"{root}/") else None


def topic_path(topic: str) -> str:
    """Return the path of a topic's node, by full name; a namespace's too."""
    return path_below(TOPICS, topic)


def partitions_path(topic: str) -> str:
    """Return the path above the states of a topic's partitions."""
    return f"{topic_path(topic)}/{PARTITIONS}"


def partition_path(partition: TopicPartition) -> str:
    """Return the path above the state of one partition."""
    return f"{partitions_path(partition.topic)}/{partition.partition}"


def state_path(partition: TopicPartition) -> str:
    """Return the path of a partition's state; the node's version is the partition epoch."""
    return f"{partition_path(partition)}/state"


def config_path(name: str) -> str:
    """Return the path of the configs of a topic or a namespace, by full name."""
    return path_below(CONFIGS, name)


def delete_path(topic: str) -> str:
    """Return the path of the mark of a topic that is to be deleted."""
    return path_below(DELETE_TOPICS, topic)


def delete_partitions_path(topic: str) -> str:
    """Return the path of the request to delete a topic's last partitions: one flat name for each topic."""
    return f"{DELETE_PARTITIONS}/{topic}"


def broker_path(node_id: int) -> str:
    """Return the path of a broker's registration; the transaction that created the node is the broker's epoch."""
    return f"{BROKERS}/{node_id}"


def check_name(topic: str) -> None:
    """Check a topic's full name against the rules of Kafka, of namespaces, of their disks and of ZooKeeper's paths.

    Raises:
        InvalidNameError: the name breaks a rule.
    """
    check_full_topic_name(topic)
    check_namespace_depth(Namespace.parse(namespace_of(topic)))
    *tiers, local = topic.split(NAMESPACE_SEPARATOR)
    if tiers and PARTITIONS in (*tiers, local):
        raise InvalidNameError(
            f"{topic!r:.80} has the part {PARTITIONS!r}, where ZooKeeper keeps a topic's partitions; take another name"
        )


def leaves(session: Session, root: str) -> list[str]:
    """Return the full names at the nodes without children below one of the roots above, sorted."""
    found: list[str] = []
    todo = [root]
    while todo:
        path = todo.pop()
        children = session.children(path) if session.find(path) else []
        if path != root and not children:
            found.append(name_at(root, path) or "")
        todo.extend(f"{path}/{name}" for name in children)
    return sorted(found)


def topics_to_delete(session: Session) -> list[str]:
    """Read the topics that are marked for deletion, by full name, sorted."""
    return leaves(session, DELETE_TOPICS)
