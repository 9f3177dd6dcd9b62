"""Make a desired state of the nodes that Kafka keeps in ZooKeeper, from a snapshot file or a live server alike.

Source: FACTS §8; KIP516-11; KIP37-4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.sources.zookeeper import znodes
from reconciler.sources.zookeeper.jute import Znode
from reconciler.text import count, listed


def assemble(nodes: Mapping[str, Znode], identity: MetadataIdentity, limits: Sequence[str] = ()) -> DesiredState:
    """Make a state of the nodes of one cluster; unreadable nodes become problems.

    Args:
        nodes: the nodes that ``znodes.keep`` selects, by path below the cluster's root.
        identity: everything but the cluster's ID and the controller epoch, which the nodes give; its problems come
            first.
        limits: sentences about what the nodes do not cover, which come last.
    """
    builder = DesiredBuilder()
    unread: list[str] = []
    topics = _add_topics(builder, nodes, unread)
    problems = [*identity.problems, *unread, *topics, *_add_brokers(builder, nodes), *_remarks(nodes)]
    cluster, epoch = nodes.get(znodes.CLUSTER_ID), nodes.get(znodes.CONTROLLER_EPOCH)
    return builder.build(
        replace(
            identity,
            cluster_id=znodes.decode_cluster_id(cluster.data) if cluster else None,
            epoch=znodes.decode_number(epoch.data) if epoch else None,
            problems=(*problems, *limits),
            ends_early=(*identity.ends_early, *unread),
        )
    )


def _below(nodes: Mapping[str, Znode], prefix: str) -> dict[str, Znode]:
    prefix += "/"
    return {path.removeprefix(prefix): node for path, node in nodes.items() if path.startswith(prefix)}


def _add_topics(builder: DesiredBuilder, nodes: Mapping[str, Znode], lost: list[str]) -> list[str]:
    """Add every topic and partition to the builder; return the problems, and add to ``lost`` what cannot be read."""
    below = _below(nodes, znodes.TOPICS)
    topics, homes = znodes.split_topics({path: node.data for path, node in below.items()})
    lost += [f"topic {name}: its node {topic.problem}" for name, topic in topics.items() if topic.problem]
    going, problems = _leaving_partitions(nodes)
    unread = []
    owners: dict[str, str] = {}
    for name, topic in topics.items():
        topic_id = topic.topic_id
        if topic_id is not None and owners.setdefault(topic_id, name) != name:
            problems.append(
                f"topic {name}: its topic ID {topic_id} is that of {owners[topic_id]}, so it counts as none"
            )
            topic_id = None
        builder.topic(name, topic_id)
        for partition, replicas in sorted(topic.partitions.items()):
            home = homes.get((name, partition))
            goes = name in going and going[name][0] in (None, topic.topic_id) and partition >= going[name][1]
            state = znodes.decode_state(below[home].data) if home else None
            if home and state is None:
                unread.append(f"{name}-{partition}")
            builder.partition(
                name,
                topic_id,
                partition,
                replicas,
                isr=state.isr if state else (),
                adding=topic.adding.get(partition, ()),
                removing=replicas if goes else topic.removing.get(partition, ()),
                leader=state.leader if state else -1,
                leader_epoch=state.leader_epoch if state else None,
                partition_epoch=below[home].version if home else None,
            )
    if not topics and nodes:
        problems.append(f"{znodes.TOPICS} has no topics")
    if unread:
        problems.append(
            f"the state of {count(len(unread), 'partition')} cannot be read, so leader and ISR are not known: "
            f"{listed(unread)}"
        )
    return problems


def _leaving_partitions(nodes: Mapping[str, Znode]) -> tuple[dict[str, tuple[str | None, int]], list[str]]:
    """Read the requests for fewer partitions, by topic, and the problems with them (KIP694-3).

    What leaves is being removed from all its brokers. A request of an earlier topic of the name has another topic ID.
    """
    found, unread = {}, []
    for name, node in sorted(_below(nodes, znodes.FEWER_PARTITIONS).items()):
        request = znodes.decode_fewer_partitions(node.data)
        if request is None:
            unread.append(name)
        else:
            found[name] = request
    they = f"the request for fewer partitions of {count(len(unread), 'topic')} cannot be read, so all of theirs count"
    return found, [f"{they} as wanted: {listed(unread)}"] if unread else []


def _add_brokers(builder: DesiredBuilder, nodes: Mapping[str, Znode]) -> list[str]:
    """Add the registered brokers; a broker's epoch is the zxid that created its node."""
    found = _below(nodes, znodes.BROKERS)
    brokers = [
        (number, node.czxid) for name, node in found.items() if (number := znodes.decode_number(name)) is not None
    ]
    for node_id, broker_epoch in sorted(brokers):
        builder.broker(node_id, broker_epoch, False, ())
    strangers = len(brokers) < len(found)
    return [f"{znodes.BROKERS} has names that are no broker ids; they are passed over"] if strangers else []


def _remarks(nodes: Mapping[str, Znode]) -> list[str]:
    """The problems that other nodes reveal: topics marked for deletion, and a migration to KRaft."""
    remarks = []
    marked = sorted(map(znodes.topic_of, _below(nodes, znodes.MARKED)))
    if marked:
        remarks.append(marked_for_deletion(marked))
    migration = nodes.get(znodes.MIGRATION)
    controller = znodes.migrated_to(migration.data) if migration else None
    if controller is not None:
        remarks.append(
            f"KRaft controller {controller} has taken this cluster over: what ZooKeeper says may be out of date"
        )
    return remarks


def marked_for_deletion(topics: Sequence[str]) -> str:
    """Say which topics the cluster is about to delete."""
    they_are = "are marked for deletion and count as wanted until they go"
    if len(topics) == 1:
        they_are = "is marked for deletion and counts as wanted until it goes"
    return f"{count(len(topics), 'topic')} {they_are}: {listed(topics)}"
