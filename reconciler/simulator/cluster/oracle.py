"""The wanted state of a simulated cluster, by its znodes alone: what brokers, disks and audits are checked against.

Independent of the code of the controller and of the metadata sources, so that it does not share their bugs.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.simulator.controller import FewerPartitionsRequest, decode_fewer_partitions
from reconciler.simulator.kernel import PartitionMode
from reconciler.simulator.zookeeper import (
    BROKERS,
    CLUSTER_CONFIG,
    CONFIGS,
    DELETE_PARTITIONS,
    ZooKeeper,
    delete_partitions_path,
    read_brokers,
    read_namespaces,
    read_topics,
    state_path,
    topic_path,
    topics_to_delete,
)
from reconciler.sources.zookeeper import decode_config, decode_state, topic_id_of

PartitionIdentity: TypeAlias = tuple[TopicId | str, int]
"""A partition by its topic's ID, or, where the topic has none, by its name."""


class ExpectedReplica(NamedTuple):
    """A replica that a broker should have."""

    topic_id: TopicId | None
    node_id: int
    leader: int
    isr: tuple[int, ...]
    moving: bool
    """Whether it is being added or removed by a reassignment, or its partition is to be deleted (KIP-694)."""


class Oracle:
    """Says which replicas are wanted where, from the znodes; reads them again when something was written.

    Attributes:
        left: partitions that were wanted under a topic ID, whatever its name, and then no longer. If they are wanted
            again, because a topic first got fewer partitions and then more, their former records may be gone
            (KIP694-4).
    """

    def __init__(self, zookeeper: ZooKeeper) -> None:
        """Read this server."""
        self._zookeeper, self._session = zookeeper, zookeeper.session("observer")
        self._topics: dict[str, TopicId | None] = {}
        self._known: dict[str, TopicId | None] = {}
        self._wanted: dict[TopicPartition, tuple[ExpectedReplica, ...]] = {}
        self._leaving: dict[TopicPartition, tuple[ExpectedReplica, ...]] = {}
        self._adding: dict[TopicPartition, frozenset[int]] = {}
        self.left: set[PartitionIdentity] = set()
        self._steady: dict[tuple[TopicId, int, int], str] = {}
        self._unsteady: set[tuple[TopicId, int, int]] = set()
        self._led_since: dict[tuple[TopicId, int], int] = {}
        self._read_at = -1
        self._brokers: tuple[int, frozenset[int]] = (-1, frozenset())

    def config_nodes(self) -> dict[str, bytes]:
        """The contents of every node of configs, by path."""
        nodes = self._zookeeper.nodes
        below = (path for root in (CONFIGS, CLUSTER_CONFIG) if root in nodes for path in nodes.below(root))
        return {path: nodes.get(path).data for path in below}

    def config(self, topic: str, name: str) -> str | None:
        """A topic's config in force, the nearest of its own, its tiers' and the cluster's; None: given nowhere."""
        path = f"{CONFIGS}/{topic.replace(':', '/')}"
        while path != CONFIGS:
            value = self._config_at(path).get(name)
            if value is not None:
                return value
            path = path.rpartition("/")[0]
        return self._config_at(CLUSTER_CONFIG).get(name)

    def number(self, topic: str, name: str) -> int | None:
        """The same as a number."""
        found = self.config(topic, name)
        return None if found is None else int(found)

    def state_version(self, partition: TopicPartition) -> int | None:
        """How often the state of a partition was changed; None: it has none."""
        found = self._session.find(state_path(partition))
        return None if found is None else found.version

    def _config_at(self, path: str) -> dict[str, str]:
        found = self._session.find(path)
        return {} if found is None else decode_config(found.data)

    def brokers(self) -> set[int]:
        """The brokers that are registered."""
        written = self._zookeeper.nodes.last_transaction
        if self._brokers[0] != written:
            self._brokers = written, frozenset(read_brokers(self._session))
        return set(self._brokers[1])

    def registered(self, node_id: int) -> int:
        """The number of the transaction that registered a broker; -1: it is not registered."""
        found = self._session.find(f"{BROKERS}/{node_id}")
        return -1 if found is None else found.czxid

    def topics(self) -> dict[str, TopicId | None]:
        """Full name → topic ID, of every topic that is not being deleted."""
        self._read()
        return dict(self._topics)

    def known(self) -> dict[str, TopicId | None]:
        """Full name → topic ID, of every topic in the metadata, with the ones that are being deleted."""
        self._read()
        return dict(self._known)

    def fewer_partitions(self) -> dict[str, FewerPartitionsRequest]:
        """Full name → the request by which a topic is to have fewer partitions, where there is one that can be read."""
        found = {topic: self._request(topic) for topic in self._session.children(DELETE_PARTITIONS)}
        return {topic: request for topic, request in sorted(found.items()) if request is not None}

    def leaving(self) -> list[str]:
        """Topics that are marked for deletion, or are to have fewer partitions, by full name, sorted."""
        fewer = self._session.children(DELETE_PARTITIONS)
        return sorted({*topics_to_delete(self._session), *fewer})

    def is_there(self, topic: str) -> bool:
        """Whether the name is taken, perhaps by a topic that is being deleted."""
        return self._session.find(topic_path(topic)) is not None

    def is_namespace(self, name: str) -> bool:
        """Whether there is a namespace of this name: an empty node."""
        found = self._session.find(topic_path(name))
        return found is not None and not found.data

    def has_namespaces(self) -> bool:
        """Whether there is any namespace but the default one."""
        return bool(read_namespaces(self._session))

    def topic_id(self, topic: str) -> TopicId | None:
        """The ID of a topic; None: there is no such topic, or it has no ID."""
        self._read()
        return self._topics.get(topic)

    def wanted(self) -> dict[TopicPartition, tuple[ExpectedReplica, ...]]:
        """Every partition with its wanted replicas."""
        self._read()
        return self._wanted

    def on(self, node_id: int) -> dict[TopicPartition, ExpectedReplica]:
        """The replicas that one broker should have."""
        return _replicas_on(self.wanted(), node_id)

    def assigned(self, node_id: int) -> dict[TopicPartition, ExpectedReplica]:
        """The replicas of one broker in the metadata: the wanted ones, and the ones that it may delete from now on.

        The znodes of topics still name the latter, so readers of the metadata have to go by them (KIP694-3).
        """
        self._read()
        return _replicas_on({**self._wanted, **self._leaving}, node_id)

    def is_steady(self, topic_id: TopicId, number: int, node_id: int) -> bool:
        """Whether a broker's replica of a partition, by its topic ID, is wanted, and was since it was wanted first.

        One whose topic was moved to another name is not: to brokers it is a new one.
        """
        self._read()
        return (topic_id, number, node_id) in self._steady and (topic_id, number, node_id) not in self._unsteady

    def was_led(self, topic_id: TopicId, number: int, before: int) -> bool:
        """Whether a partition, by its topic ID, had its first leader before the transaction of this number."""
        self._read()
        return self._led_since.get((topic_id, number), before) < before

    def adding(self) -> dict[TopicPartition, frozenset[int]]:
        """Partition → the brokers that a reassignment adds, where one is under way."""
        self._read()
        return self._adding

    def going(self) -> dict[TopicPartition, tuple[ExpectedReplica, ...]]:
        """Every partition that brokers may delete from now on, with its replicas."""
        self._read()
        return self._leaving

    def _read(self) -> None:
        written = self._zookeeper.nodes.last_transaction
        if written == self._read_at:
            return
        leaving = set(topics_to_delete(self._session))
        nodes = read_topics(self._session)
        ids = {topic: topic_id_of(node) for topic, node in nodes.items()}
        self._known = ids
        self._topics = {topic: topic_id for topic, topic_id in ids.items() if topic not in leaving}
        before = _identities(self._wanted)
        self._wanted, self._leaving, self._adding = {}, {}, {}
        for topic, node in nodes.items():
            fewer = self._fewer(topic)
            for number, brokers in sorted(node.partitions.items()):
                may_go = topic in leaving or (fewer is not None and number >= fewer)
                partition = TopicPartition(topic, number)
                found = self._session.find(state_path(partition))
                state = None if found is None else decode_state(found.data)
                if node.adding.get(number):
                    self._adding[partition] = frozenset(node.adding[number])
                moving = {*node.adding.get(number, ()), *node.removing.get(number, ())}
                if self._leaves(topic, ids[topic], number):
                    moving |= set(brokers)
                leader, isr = (-1, ()) if state is None else (state.leader, state.isr)
                (self._leaving if may_go else self._wanted)[partition] = tuple(
                    ExpectedReplica(ids[topic], broker, leader, isr, broker in moving) for broker in brokers
                )
        self.left |= before - _identities(self._wanted)
        self._follow_replicas(written)
        self._read_at = written

    def _follow_replicas(self, written: int) -> None:
        """Note which replicas were not wanted for a moment, or are on their way, and which partitions are led."""
        every = [(at, each) for at, replicas in self._wanted.items() for each in replicas if each.topic_id is not None]
        now = {(each.topic_id, at.partition, each.node_id): at.topic for at, each in every if each.topic_id is not None}
        self._unsteady |= {key for key, topic in self._steady.items() if now.get(key) != topic}
        self._unsteady |= {
            (each.topic_id, at.partition, each.node_id)
            for at, each in every
            if each.moving and each.topic_id is not None
        }
        self._steady = now
        for at, each in every:
            if each.isr and each.topic_id is not None:
                self._led_since.setdefault((each.topic_id, at.partition), written)

    def _fewer(self, topic: str) -> int | None:
        """A topic's new number of partitions, once the others may be deleted (KIP694-3); None: no such request."""
        request = self._request(topic)
        if request is None or request.mode is not PartitionMode.NONE:
            return None
        topic_id = self._topics.get(topic)
        return request.total if request.topic_id in (None, None if topic_id is None else str(topic_id)) else None

    def _leaves(self, topic: str, topic_id: TopicId | None, number: int) -> bool:
        """Whether a partition is among those that a topic is to lose, from the request on."""
        request = self._request(topic)
        known = None if topic_id is None else str(topic_id)
        return request is not None and request.topic_id in (None, known) and number >= request.total

    def _request(self, topic: str) -> FewerPartitionsRequest | None:
        node = self._session.find(delete_partitions_path(topic))
        return None if node is None else decode_fewer_partitions(node.data)


def identity_of(partition: TopicPartition, topic_id: TopicId | None) -> PartitionIdentity:
    """What a partition is known by when its topic is moved to another name: its ID, if it has one."""
    return (partition.topic if topic_id is None else topic_id), partition.partition


def _identities(wanted: dict[TopicPartition, tuple[ExpectedReplica, ...]]) -> set[PartitionIdentity]:
    return {identity_of(at, replicas[0].topic_id) for at, replicas in wanted.items() if replicas}


def _replicas_on(
    partitions: dict[TopicPartition, tuple[ExpectedReplica, ...]], node_id: int
) -> dict[TopicPartition, ExpectedReplica]:
    return {
        partition: replica
        for partition, replicas in partitions.items()
        for replica in replicas
        if replica.node_id == node_id
    }
