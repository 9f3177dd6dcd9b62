"""Write topic IDs to a live ZooKeeper, through kazoo: read all topics, then write one node after the other.

A write is a transaction of two parts: a check that ``/controller_epoch`` has not changed since the topics were read,
and a write of the topic's node at the version that was read. So a newly elected controller wins, and so does any other
writer of the node; a topic that was changed meanwhile is reported and left. Only nodes below ``/brokers/topics`` are
ever written. Source: KIP516-11; FACTS §8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from layout.ids import TopicId
from reconciler.errors import EngineUnavailableError, MetadataError, RefusedError
from reconciler.sources.zookeeper import decode_cluster_id, migrated_to, split_address
from reconciler.topic_ids.migrate import TopicFound, find_topics, with_topic_id

_TOPICS = "/brokers/topics"
_EPOCH = "/controller_epoch"
_SECONDS = 15.0


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
    """Connect a client whose root is the chroot of the address, and always close it.

    Args:
        address: ``HOST[:PORT][,HOST[:PORT]…][/chroot]``.

    Raises:
        UsageError: the address is malformed.
        EngineUnavailableError: kazoo is not installed.
        MetadataError: no server answers, there is no such chroot, or the connection breaks.
    """
    hosts, chroot = split_address(address)
    try:
        from kazoo.client import KazooClient
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError
    except ImportError as error:
        raise EngineUnavailableError(
            "ZooKeeper is reached through kazoo, which is not installed: pip install 'kazoo>=2.10'"
        ) from error
    client = KazooClient(hosts=hosts, timeout=_SECONDS, logger=_quiet())
    try:
        client.start(_SECONDS)
        if chroot:
            if client.exists(chroot) is None:
                raise MetadataError(f"{address}: ZooKeeper has no node {chroot}: name the chroot of zookeeper.connect")
            client.chroot = chroot
        yield client
    except KazooTimeoutError as error:
        raise MetadataError(f"{address}: no ZooKeeper answered within {_SECONDS:.0f} s: check host and port") from error
    except KazooException as error:
        raise MetadataError(
            f"{address}: ZooKeeper failed ({type(error).__name__}); what was written so far stands. Run it again"
        ) from error
    finally:
        client.stop()
        client.close()


def read_cluster(client: Any, address: str) -> ClusterSeen:
    """Read the node of every topic, and the controller.

    Raises:
        MetadataError: there is no ``/brokers/topics``.
        RefusedError: the cluster has migrated to KRaft, whose controller keeps the topic IDs.
    """
    from kazoo.exceptions import NoNodeError

    kraft = _get(client, "/migration")
    if kraft is not None and migrated_to(kraft[0]) is not None:
        raise RefusedError(
            f"{address}: the KRaft controller {migrated_to(kraft[0])} has taken this cluster over, and what ZooKeeper "
            "says of its topics counts no more"
        )
    # Before the topics: a controller that is elected from here on changes the version, and every write notices.
    epoch, controller, cluster = (_get(client, path) for path in (_EPOCH, "/controller", "/cluster/id"))
    try:
        nodes = dict(_below(client, ""))
    except NoNodeError as error:
        raise MetadataError(f"{address}: there is no {_TOPICS}, so no Kafka uses this place") from error
    deleted = {path.replace("/", ":") for path in _names_below(client, "/admin/delete_topics")}
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

    Args:
        client: from :func:`connect`.
        seen: from :func:`read_cluster`.
        topic: one of its topics, without an ID.
        topic_id: of the topic from now on.

    Returns:
        None after a write, or else the reason against it, as a clause.
    """
    from kazoo.exceptions import BadVersionError, KazooException, NoNodeError

    data, version = seen.nodes[topic.path]
    transaction = client.transaction()
    if seen.epoch_version is not None:
        transaction.check(_EPOCH, seen.epoch_version)
    transaction.set_data(f"{_TOPICS}/{topic.path}", with_topic_id(data, topic_id), version)
    failed = [each for each in transaction.commit() if isinstance(each, Exception)]
    if not failed:
        return None
    if any(isinstance(each, BadVersionError) for each in failed):
        return "its node was written, or a controller took office, after it was read: run it again"
    if any(isinstance(each, NoNodeError) for each in failed):
        return "its node is gone"
    named = ", ".join(sorted({type(each).__name__ for each in failed if isinstance(each, KazooException)}))
    return f"ZooKeeper refused to write it ({named})"


def _get(client: Any, path: str) -> Any:
    """Return data and status of a node; None: there is no such node."""
    from kazoo.exceptions import NoNodeError

    try:
        return client.get(path)
    except NoNodeError:
        return None


def _below(client: Any, prefix: str) -> Iterator[tuple[str, tuple[bytes, int]]]:
    """Yield every topic and namespace below a namespace; partitions and their states are skipped."""
    from kazoo.exceptions import NoNodeError

    for name in client.get_children(f"{_TOPICS}/{prefix}".rstrip("/")):
        path = f"{prefix}{name}"
        try:
            data, status = client.get(f"{_TOPICS}/{path}")
        except NoNodeError:
            continue  # it was deleted between two readings
        yield path, (data, status.version)
        children: Collection[str] = client.get_children(f"{_TOPICS}/{path}") if status.numChildren else ()
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


def _quiet() -> Any:
    """Return a logger that keeps the client's warnings off standard error; the error that follows says the same."""
    import logging

    logger = logging.Logger("reconciler.topic_ids.write")
    logger.addHandler(logging.NullHandler())
    return logger
