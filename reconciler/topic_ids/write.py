"""Write topic IDs to a live ZooKeeper, through kazoo: read all topics, then write one node after the other.

A write is a transaction of two parts: a check that ``/controller_epoch`` has not changed since the topics were read,
and a write of the topic's node at the version that was read. So a newly elected controller wins, and so does any other
writer of the node; a topic that was changed meanwhile is reported and left. Only nodes below ``/brokers/topics`` are
ever written. Source: KIP516-11; FACTS §8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from layout.ids import TopicId
from reconciler.errors import MetadataError, RefusedError, UsageError
from reconciler.sources.zookeeper import (
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    MARKED,
    MIGRATION,
    TOPICS,
    decode_cluster_id,
    migrated_to,
    node_at,
    session,
    split_address,
    topic_of,
)
from reconciler.topic_ids.migrate import TopicFound, find_topics, with_topic_id


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """The topics of a cluster, as read from its ZooKeeper.

    Attributes:
        cluster_id: of the cluster; None: ZooKeeper has none.
        controller: data of ``/controller``, as text; None: no controller is elected.
        epoch_version: version of the node ``/controller_epoch``; None: no such node, so there never was a controller.
        topics: by name.
        nodes: path below ``/brokers/topics`` → data and version of the topic's node.
    """

    cluster_id: str | None
    controller: str | None
    epoch_version: int | None
    topics: tuple[TopicFound, ...]
    nodes: Mapping[str, tuple[bytes, int]] = field(repr=False)


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Connect a client whose root is the chroot of the address; see :func:`reconciler.sources.zookeeper.session`.

    Raises:
        UsageError: no such address.
        MetadataError: there is no such chroot, no server answers, the connection fails, or kazoo is not installed.
    """
    split_address(address)
    with ExitStack() as opened:
        try:
            client = opened.enter_context(session(address, then="what was written so far stands. Run it again"))
        except UsageError as error:
            # The address is one: what is missing is missing at the other end, or on this machine.
            raise MetadataError(str(error)) from error
        yield client


def read_cluster(client: Any, address: str) -> ClusterSeen:
    """Read the node of every topic, and the controller.

    Raises:
        MetadataError: there is no ``/brokers/topics``.
        RefusedError: the cluster has migrated to KRaft, whose controller keeps the topic IDs.
    """
    from kazoo.exceptions import NoNodeError

    kraft = node_at(client, MIGRATION)
    if kraft is not None and migrated_to(kraft[0]) is not None:
        raise RefusedError(
            f"{address}: the KRaft controller {migrated_to(kraft[0])} has taken this cluster over, and what ZooKeeper "
            "says of its topics counts no more"
        )
    # Before the topics: a controller that is elected from here on changes the version, and every write notices.
    epoch, controller, cluster = (node_at(client, path) for path in (CONTROLLER_EPOCH, CONTROLLER, CLUSTER_ID))
    try:
        nodes = dict(_below(client, ""))
    except NoNodeError as error:
        raise MetadataError(f"{address}: there is no {TOPICS}, so no Kafka uses this place") from error
    deleted = {topic_of(path) for path in _names_below(client, MARKED)}
    topics = tuple(find_topics({path: data for path, (data, _) in nodes.items()}, deleted))
    return ClusterSeen(
        None if cluster is None else decode_cluster_id(cluster[0]),
        None if controller is None else controller[0].decode("utf-8", "replace"),
        None if epoch is None else epoch[1].version,
        topics,
        nodes,
    )


def assign_topic_id(client: Any, seen: ClusterSeen, topic: TopicFound, topic_id: TopicId) -> str | None:
    """Write a topic's node with its ID, unless the node or the controller has changed since it was read.

    ``client`` is from :func:`connect`, ``seen`` from :func:`read_cluster`, and ``topic`` one of its topics, without an
    ID.

    Returns:
        None after a write, or else the reason against it, as a clause.
    """
    from kazoo.exceptions import BadVersionError, KazooException, NoNodeError

    data, version = seen.nodes[topic.path]
    transaction = client.transaction()
    if seen.epoch_version is not None:
        transaction.check(CONTROLLER_EPOCH, seen.epoch_version)
    transaction.set_data(f"{TOPICS}/{topic.path}", with_topic_id(data, topic_id), version)
    failed = [each for each in transaction.commit() if isinstance(each, Exception)]
    if not failed:
        return None
    if any(isinstance(each, BadVersionError) for each in failed):
        return "its node was written, or a controller took office, after it was read: run it again"
    if any(isinstance(each, NoNodeError) for each in failed):
        return "its node is gone"
    named = ", ".join(sorted({type(each).__name__ for each in failed if isinstance(each, KazooException)}))
    return f"ZooKeeper refused to write it ({named})"


def _below(client: Any, prefix: str) -> Iterator[tuple[str, tuple[bytes, int]]]:
    """Yield every topic and namespace below a namespace; partitions and their states are skipped."""
    from kazoo.exceptions import NoNodeError

    for name in client.get_children(f"{TOPICS}/{prefix}".rstrip("/")):
        path = f"{prefix}{name}"
        try:
            data, status = client.get(f"{TOPICS}/{path}")
        except NoNodeError:
            continue  # it was deleted between two readings
        yield path, (data, status.version)
        children: Collection[str] = client.get_children(f"{TOPICS}/{path}") if status.numChildren else ()
        if any(child != "partitions" for child in children):
            yield from _below(client, f"{path}/")


def _names_below(client: Any, root: str, prefix: str = "") -> Iterator[str]:
    """Yield the paths of all nodes below a node, recursively."""
    from kazoo.exceptions import NoNodeError

    try:
        names = client.get_children(f"{root}/{prefix}".rstrip("/"))
    except NoNodeError:
        return
    for name in names:
        yield f"{prefix}{name}"
        yield from _names_below(client, root, f"{prefix}{name}/")
