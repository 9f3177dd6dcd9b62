"""The nodes in ZooKeeper that a controller reads and writes; no write is done after a newer controller was elected.

Each write is one transaction with a check of the version of ``/controller_epoch``, as Kafka's own. When the check
fails, the controller is fenced and nothing was changed. Source: FACTS §8; KIP516-11 (topics as version 3); KIP37-4
(paths).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.simulator.controller.context import ControllerContext, LeaderAndIsr, ReplicaAssignment
from reconciler.simulator.controller.settings import ControllerMovedError
from reconciler.simulator.zookeeper import (
    BROKERS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    LOG_DIR_EVENTS,
    REASSIGN_PARTITIONS,
    TOPICS,
    Check,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Operation,
    Session,
    Set,
    SimulatedZooKeeperError,
    config_path,
    delete_path,
    effective_configs,
    partition_path,
    partitions_path,
    read_brokers,
    read_topics,
    state_path,
    topic_path,
    topics_to_delete,
)
from reconciler.sources.zookeeper import (
    TopicNode,
    decode_controller,
    decode_log_dir_event,
    decode_number,
    decode_reassignment,
    decode_state,
    decode_topic,
    encode_controller,
    encode_state,
    encode_topic,
    topic_id_of,
)


class FoundTopic(NamedTuple):
    """A topic's node."""

    birth: int
    """The transaction that created the node."""
    version: int
    topic_id: TopicId | None
    assignments: Mapping[int, ReplicaAssignment]
    problem: str | None
    """The reason why it cannot be read; None: it can."""


def elect(session: Session, node_id: int, now_ms: int) -> tuple[int, int] | None:
    """Try to become the controller: create ``/controller`` and raise ``/controller_epoch``, in one transaction.

    Returns:
        The new epoch, and the version of its node; None: another broker is the controller.

    Raises:
        SessionExpiredError: the session is over.
    """
    if session.find(CONTROLLER) is not None:
        return None
    if session.find(CONTROLLER_EPOCH) is None:
        session.create(CONTROLLER_EPOCH, b"0")
    found = session.get(CONTROLLER_EPOCH)
    epoch = (decode_number(found.data) or 0) + 1
    session.multi(
        [
            Create(CONTROLLER, encode_controller(node_id, now_ms), ephemeral=True),
            Set(CONTROLLER_EPOCH, str(epoch).encode(), found.version),
        ]
    )
    return epoch, found.version + 1


def elected(session: Session) -> int | None:
    """Read the controller's broker ID; None: there is no controller."""
    found = session.find(CONTROLLER)
    return None if found is None else decode_controller(found.data)


class ClusterNodes:
    """The nodes, for one controller from its election to its resignation.

    Every method raises SessionExpiredError once the session is over. Methods that write raise ControllerMovedError when
    another controller has been elected since.
    """

    def __init__(self, session: Session, context: ControllerContext, step: Callable[[str], None]) -> None:
        """Bind to a session and to the epoch in a context; ``step`` is called with the label of a write before it."""
        self._session, self._context, self._step = session, context, step

    def brokers(self) -> dict[int, int]:
        """Read the registered brokers with their epochs, sorted."""
        if self._session.find(BROKERS) is None:
            return {}
        return {node_id: node.epoch for node_id, node in read_brokers(self._session).items()}

    def end_points(self) -> dict[int, tuple[str, int]]:
        """Read where the registered brokers listen: host and port."""
        return {node_id: (node.host, node.port) for node_id, node in read_brokers(self._session).items()}

    def topics(self) -> dict[str, FoundTopic]:
        """Read every topic by full name, sorted."""
        found = {}
        for topic, node in read_topics(self._session).items():
            at = self._session.get(topic_path(topic))
            topic_id = topic_id_of(node)
            found[topic] = FoundTopic(at.czxid, at.version, topic_id, _assignments(node), node.problem)
        return found

    def is_namespace(self, name: str) -> bool:
        """Read whether there is a namespace of a name: an empty node among the topics (KIP37-4)."""
        found = self._session.find(topic_path(name))
        return found is not None and not found.data

    def state(self, partition: TopicPartition) -> LeaderAndIsr | None:
        """Read a partition's leader and in-sync replicas; None: it has no readable state."""
        node = self._session.find(state_path(partition))
        state = None if node is None else decode_state(node.data)
        if node is None or state is None:
            return None
        return LeaderAndIsr(state.leader, state.leader_epoch, state.isr, node.version, state.controller_epoch)

    def restarted(self, partitions: Iterable[TopicPartition], brokers: Mapping[int, int]) -> set[int]:
        """Find brokers that are in sync by a state that was written before they registered.

        The writer of such a state did not know of the restart, in which a broker loses what it had not synced. A
        broker's epoch is a transaction like those that change a node.
        """
        found = set()
        for partition in partitions:
            node = self._session.find(state_path(partition))
            state = None if node is None else decode_state(node.data)
            if node is not None and state is not None:
                found |= {broker for broker in state.isr if brokers.get(broker, -1) > node.mzxid}
        return found

    def config(self, topic: str, name: str) -> str | None:
        """Read a topic's config in force, its own or an inherited one (KIP37-5); None: it is given nowhere."""
        return effective_configs(self._session, topic).get(name)

    def create_state(self, partition: TopicPartition, state: LeaderAndIsr) -> LeaderAndIsr | None:
        """Write the first state of a partition, with the nodes above it; None: it has a state already.

        Raises:
            NoNodeError: the topic was deleted.
        """
        path = state_path(partition)
        above = [partitions_path(partition.topic), partition_path(partition)]
        missing = [Create(each) for each in above if self._session.find(each) is None]
        try:
            same = self._same_topic(partition.topic)
            self._write(f"create state of {partition}", same, *missing, Create(path, self._encoded(state)))
        except NodeExistsError:
            return None
        return state

    def write_state(self, partition: TopicPartition, state: LeaderAndIsr) -> LeaderAndIsr:
        """Replace a partition's state, whose version must be the state's partition epoch.

        Returns:
            The state with its new partition epoch.

        Raises:
            BadVersionError: the node has another version.
            NoNodeError: the topic was deleted, or there is no state.
        """
        path, version = state_path(partition), state.partition_epoch
        same = self._same_topic(partition.topic)
        self._write(f"write state of {partition}", same, Set(path, self._encoded(state), version))
        return LeaderAndIsr(state.leader, state.leader_epoch, state.isr, version + 1, self._context.epoch)

    def write_topic(
        self, topic: str, topic_id: TopicId | None, changes: Mapping[int, ReplicaAssignment | None]
    ) -> None:
        """Change some partitions of a topic's node, and write it as version 3; the other partitions stay.

        A partition whose brokers are None goes, with its state, in the same transaction.

        Raises:
            NoNodeError: the topic was deleted.
        """
        same = self._same_topic(topic)
        node = decode_topic(self._session.get(topic_path(topic)).data)
        found: dict[int, ReplicaAssignment | None] = {**_assignments(node), **changes}
        kept = {number: each for number, each in sorted(found.items()) if each is not None}
        data = encode_topic(
            topic_id,
            {number: each.replicas for number, each in kept.items()},
            {number: each.adding for number, each in kept.items()},
            {number: each.removing for number, each in kept.items()},
        )
        gone = [partition_path(TopicPartition(topic, number)) for number in found.keys() - kept.keys()]
        deleted = [Delete(each) for path in sorted(gone) for each in self._below(path)]
        self._write(f"write topic {topic}", same, Set(topic_path(topic), data), *deleted)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic's node with all nodes below it, and then its configs if it has any.

        Raises:
            NoNodeError: the topic was deleted already, and maybe re-created.
        """
        self._same_topic(topic)
        self._delete(f"delete topic {topic}", topic_path(topic))
        self._delete(f"delete configs of {topic}", config_path(topic))

    def marked(self) -> list[str]:
        """Read the topics marked for deletion, by full name, sorted."""
        return topics_to_delete(self._session)

    def mark(self, topic: str) -> None:
        """Mark a topic for deletion, as before KIP-516, unless it is marked."""
        path = delete_path(topic)
        parts = path.split("/")
        above = ["/".join(parts[:count]) for count in range(2, len(parts))]
        missing = [Create(each) for each in (*above, path) if self._session.find(each) is None]
        if missing:
            self._write(f"mark {topic} for deletion", *missing)

    def unmark(self, topic: str) -> None:
        """Delete a topic's mark, and the tiers above it that become empty."""
        root, path = DELETE_TOPICS, delete_path(topic)
        self._delete(f"unmark {topic}", path)
        path = path.rpartition("/")[0]
        while path != root and self._session.find(path) is not None and not self._session.children(path):
            self._delete(f"unmark {topic}", path)
            path = path.rpartition("/")[0]

    def node(self, path: str) -> bytes | None:
        """Read a node of an extension; None: it does not exist."""
        found = self._session.find(path)
        return None if found is None else found.data

    def names(self, path: str) -> list[str]:
        """Read the names of a node's children, sorted; empty where the node does not exist."""
        return self._session.children(path) if self._session.find(path) is not None else []

    def write_node(self, path: str, data: bytes) -> None:
        """Write a node of an extension; a new one is created below an existing node."""
        exists = self._session.find(path) is not None
        self._write(f"write {path}", Set(path, data) if exists else Create(path, data))

    def delete_node(self, path: str) -> None:
        """Delete a node of an extension, if it exists, and all nodes below it."""
        self._delete(f"delete {path}", path)

    def take_log_dir_events(self) -> list[int]:
        """Read the brokers that reported failed log dirs, sorted, and delete their reports."""
        root, reported = LOG_DIR_EVENTS, set()
        for name in self._session.children(root) if self._session.find(root) is not None else []:
            broker = decode_log_dir_event(self._session.get(f"{root}/{name}").data)
            self._delete(f"take {name}", f"{root}/{name}")
            reported |= {broker} - {None}
        return sorted(each for each in reported if each is not None)

    def reassignment(self) -> dict[TopicPartition, tuple[int, ...]] | None:
        """Read the reassignment that the old tool requests; None: no request."""
        found = self._session.find(REASSIGN_PARTITIONS)
        return None if found is None else decode_reassignment(found.data)

    def end_reassignment(self) -> None:
        """Delete the request of the old tool."""
        self._delete("end reassignment", REASSIGN_PARTITIONS)

    def _encoded(self, state: LeaderAndIsr) -> bytes:
        return encode_state(state.leader, state.leader_epoch, state.isr, self._context.epoch)

    def _same_topic(self, topic: str) -> Check:
        """Return the check that a topic is the one the controller knows, and was not re-created under its name."""
        path = topic_path(topic)
        found = self._session.find(path)
        if found is None or found.czxid != self._context.births.get(topic):
            raise NoNodeError(f"topic {topic} was deleted: look at {TOPICS} again")
        return Check(path, found.version)

    def _delete(self, step: str, path: str) -> None:
        """Delete a node, if it exists, and all nodes below it in one transaction."""
        deleted = [Delete(each) for each in self._below(path)]
        if deleted:
            self._write(step, *deleted)

    def _below(self, path: str) -> list[str]:
        """Return the paths of a node and of all nodes below it, the deepest first; empty where it does not exist."""
        every, todo = [], [path] if self._session.find(path) is not None else []
        while todo:
            every.append(todo.pop())
            todo += [f"{every[-1]}/{name}" for name in self._session.children(every[-1])]
        return every[::-1]

    def _write(self, step: str, *operations: Operation) -> None:
        self._step(step)
        try:
            self._session.multi([Check(CONTROLLER_EPOCH, self._context.epoch_version), *operations])
        except SimulatedZooKeeperError as error:
            found = None if self._session.expired else self._session.find(CONTROLLER_EPOCH)
            if found is not None and found.version != self._context.epoch_version:
                raise ControllerMovedError(
                    f"controller epoch {self._context.epoch} is fenced by {found.data.decode('ascii', 'replace')}: "
                    f"stand for election again ({step})"
                ) from error
            raise


def _assignments(node: TopicNode) -> dict[int, ReplicaAssignment]:
    return {
        number: ReplicaAssignment(replicas, node.adding.get(number, ()), node.removing.get(number, ()))
        for number, replicas in sorted(node.partitions.items())
    }
