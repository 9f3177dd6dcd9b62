"""A broker's admin on a ZooKeeper in memory, with timers cranked by hand and a controller that only listens."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin import Admin
from reconciler.simulator.admin.commands import TopicDescription
from reconciler.simulator.kernel import LiveBroker, MetadataRequest, MetadataResponse, PartitionMetadata, TopicMetadata
from reconciler.simulator.zookeeper import (
    CLUSTER_ACLS,
    NAMESPACE_ACLS,
    TOPIC_ACLS,
    Authorizer,
    Session,
    ZooKeeper,
    kafka_nodes,
    kafka_paths,
    path_below,
)
from reconciler.sources.zookeeper import Acl, TopicNode, encode_acls, znodes


class Crank:
    """Timers whose events happen when they are asked to."""

    def __init__(self) -> None:
        self.due: deque[Callable[[], None]] = deque()
        self.now = 1_000

    def now_ms(self) -> int:
        return self.now

    def after(self, delay_ms: int, label: str, act: Callable[[], None]) -> Crank:
        self.due.append(act)
        return self

    def cancel(self) -> None:
        raise AssertionError("nothing here cancels a timer")

    def run(self) -> None:
        while self.due:
            self.due.popleft()()


class ListeningController:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.active = True
        self.epoch = 1
        self.reassigned: list[Mapping[TopicPartition, tuple[int, ...] | None]] = []
        self.elected: list[list[TopicPartition]] = []
        self.refusal = KafkaError.NONE

    def reassign(
        self, assignments: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Mapping[TopicPartition, KafkaError]:
        self.reassigned.append(assignments)
        return dict.fromkeys(assignments, self.refusal)

    def catch_up(self) -> None:
        """There is nothing to catch up with."""

    def elect_preferred(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, KafkaError]:
        self.elected.append(list(partitions))
        return dict.fromkeys(partitions, KafkaError.NONE)


class AdminBench:
    """Three brokers 0, 1, 2, of which 0 is the controller."""

    def __init__(self, racks: Mapping[int, str] | None = None) -> None:
        self.timers = Crank()
        self.zookeeper = ZooKeeper(self.timers)
        self.session = self.zookeeper.session("broker-0")
        self.others = self.zookeeper.session("the others")
        kafka_paths.make_base(self.session)
        self.session.create(kafka_paths.CONTROLLER_EPOCH, b"1")
        for node_id in (0, 1, 2):
            self.join(node_id, (racks or {}).get(node_id))
        self.controller = ListeningController()
        self.live = tuple(LiveBroker(each, f"broker-{each}", 9092) for each in (0, 1, 2))
        self.lags: dict[TopicPartition, dict[int, int]] = {}
        self.admin = Admin(
            self.controller,
            lambda: self.session,
            self.metadata,
            self.timers,
            random=Random(7),
            lags=lambda at: self.lags.get(at, {}),
        )

    def authorize(self, authorizer: Authorizer) -> None:
        self.admin = Admin(
            self.controller,
            lambda: self.session,
            self.metadata,
            self.timers,
            random=Random(7),
            authorizer=lambda: authorizer,
        )

    def join(self, node_id: int, rack: str | None = None, *, knows_namespaces: bool = True) -> None:
        data = kafka_nodes.encode_broker(node_id, rack=rack, knows_namespaces=knows_namespaces)
        self.others.create(kafka_paths.broker_path(node_id), data, ephemeral=True)

    def topic(self, name: str) -> TopicNode:
        return kafka_nodes.read_topics(self.session)[name]

    def lead(self, partition: TopicPartition, leader: int, isr: Sequence[int], epoch: int = 0) -> None:
        """Write a partition's state, as the controller would."""
        path = kafka_paths.state_path(partition)
        data = znodes.encode_state(leader, epoch, isr, 1)
        if self.session.find(path) is None:
            self.session.create(path, data, parents=True)
        else:
            self.session.set(path, data)

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        """What a broker would answer that knows everything, at once."""
        topics = kafka_nodes.read_topics(self.session)
        wanted = [name for name in (request.topics or topics) if name in topics]
        found = [
            TopicMetadata(
                name,
                znodes.topic_id_of(topics[name]),
                tuple(self.partition(TopicPartition(name, number), topics[name]) for number in topics[name].partitions),
            )
            for name in wanted
        ]
        return MetadataResponse(
            tuple(found), self.live, 0, tuple(each for each in request.topics if each not in topics)
        )

    def partition(self, partition: TopicPartition, node: TopicNode) -> PartitionMetadata:
        found = self.session.find(kafka_paths.state_path(partition))
        state = znodes.decode_state(found.data) if found is not None else None
        replicas = node.partitions[partition.partition]
        if state is None:
            return PartitionMetadata(partition.partition, -1, -1, (), replicas)
        return PartitionMetadata(partition.partition, state.leader, state.leader_epoch, state.isr, replicas)


def take_away(bench: AdminBench) -> None:
    """Delete what is marked, as a controller would."""
    for topic in kafka_paths.topics_to_delete(bench.session):
        bench.session.delete(kafka_paths.topic_path(topic), recursive=True)
        bench.session.delete(kafka_paths.config_path(topic))
        remove_below(bench.session, kafka_paths.DELETE_TOPICS, topic)
    bench.timers.run()


def is_deleted(description: TopicDescription) -> bool:
    """Whether a topic is unknown to clients."""
    return description.error is KafkaError.UNKNOWN_TOPIC_OR_PARTITION


def is_reassigned(description: TopicDescription, wanted: Mapping[int, Sequence[int]]) -> bool:
    """Whether partitions have the replicas that were asked for, all of them in sync."""
    found = {partition.partition: partition for partition in description.partitions}
    return all(
        number in found and found[number].replicas == tuple(replicas) and sorted(found[number].isr) == sorted(replicas)
        for number, replicas in wanted.items()
    )


def is_preferred(description: TopicDescription) -> bool:
    """Whether the first replica of every partition leads."""
    return all(partition.leader == partition.replicas[0] for partition in description.partitions)


def set_acls(
    session: Session, acls: Iterable[Acl], *, topic: str = "", namespace: str = "", cluster: bool = False
) -> None:
    """Give a topic or a namespace, by full name, or the cluster, exactly these ACLs."""
    path = path_below(TOPIC_ACLS, topic) if topic else path_below(NAMESPACE_ACLS, namespace)
    path = CLUSTER_ACLS if cluster else path
    data = encode_acls(acls)
    if session.find(path) is None:
        session.create(path, data, parents=True)
    else:
        session.set(path, data)


def remove_below(session: Session, root: str, name: str) -> None:
    """Delete the node of a topic below one of the roots above, and the tiers above it that become empty."""
    path = path_below(root, name)
    while path != root and session.find(path) is not None and not session.children(path):
        session.delete(path)
        path = path.rpartition("/")[0]
