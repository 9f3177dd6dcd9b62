"""An active controller, from its election to its resignation: its parts, its takeover, its watches, its extensions.

The takeover comes first: the controller reads everything, sends it to all brokers, elects leaders, and continues its
predecessor's work. It takes over nothing but the contents of ZooKeeper. Every broker gets a FULL request, so replicas
that the predecessor had deleted and not collected are deleted by the brokers that still have them (KIP516-5,
KIP516-10). Source: Kafka 2.8.

In one thing this goes beyond Kafka: a broker that went, or was restarted, while there was no controller goes out of
sync as under a controller, for a restart loses data that was not synced. Kafka leaves it in sync, and it may lead.

To resign is to forget the active controller. An extension is made at each election and forgotten at the resignation;
its lasting data is in ZooKeeper, below the paths that it names. Fewer partitions (KIP694-3) are an extension.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import StopReplicaRequest, StopReplicaResponse
from reconciler.simulator.controller.brokers import BrokerChanges
from reconciler.simulator.controller.context import ControllerContext
from reconciler.simulator.controller.core import ControllerCore
from reconciler.simulator.controller.deletion import Deletions, DroppedReplicas
from reconciler.simulator.controller.reassignment import Reassignments
from reconciler.simulator.controller.requests import Channels, Later, RequestBatch
from reconciler.simulator.controller.settings import ControllerSettings
from reconciler.simulator.controller.state_machines import PartitionMachine, ReplicaMachine
from reconciler.simulator.controller.states import ReplicaState
from reconciler.simulator.controller.store import ClusterNodes
from reconciler.simulator.controller.topics import DeletedTopics, TopicChanges
from reconciler.simulator.kernel import PartitionMode
from reconciler.simulator.zookeeper import (
    BROKERS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    LOG_DIR_EVENTS,
    REASSIGN_PARTITIONS,
    TOPICS,
    Session,
)


class ActiveController:
    """The parts of an active controller.

    Attributes:
        garbage: topics deleted at once, whose replicas are being collected.
        deletions: topics and partitions being deleted the old way.
        dropped: replicas that reassignments dropped, until they are deleted.
    """

    def __init__(
        self,
        node_id: int,
        settings: ControllerSettings,
        context: ControllerContext,
        *,
        nodes: ClusterNodes,
        channels: Channels,
        say: Callable[[str], None],
        later: Later,
        extensions: Iterable[Callable[[ActiveController], Extension]] = (),
    ) -> None:
        """Put the parts together; nothing is read or sent yet."""
        batch = RequestBatch(node_id, context, channels, settings)
        self.core = ControllerCore(node_id, settings, context, nodes, channels, batch, say, later)
        self.partitions, self.replicas = PartitionMachine(self.core), ReplicaMachine(self.core)
        self.garbage = DeletedTopics(self.core, self.partitions)
        self.deletions = Deletions(self.core, self.partitions, self.replicas)
        self.dropped = DroppedReplicas(self.core)
        self.reassignments = Reassignments(self.core, self.partitions, self.replicas, self.dropped)
        self.topics = TopicChanges(
            self.core, self.partitions, self.replicas, deletions=self.deletions, garbage=self.garbage
        )
        self.brokers = BrokerChanges(
            self.core,
            self.partitions,
            self.replicas,
            deletions=self.deletions,
            garbage=self.garbage,
            reassignments=self.reassignments,
        )
        self.extensions: list[Extension] = [make(self) for make in extensions]
        self.deletions.on_partitions_deleted = self._notify_extensions
        batch.on_leader_and_isr = self.brokers.answered
        batch.on_stop_replica = self._stopped

    def set_modes(self, partitions: Iterable[TopicPartition], mode: PartitionMode) -> None:
        """Set who may use some partitions, and send that to all brokers (KIP694-1)."""
        context, changed = self.core.context, list(partitions)
        for partition in changed:
            if mode is PartitionMode.READ_WRITE:
                context.modes.pop(partition, None)
            else:
                context.modes[partition] = mode
        self.core.batch.update_metadata(changed)
        self.core.batch.send()

    def _notify_extensions(self, partitions: Sequence[TopicPartition]) -> None:
        for extension in self.extensions:
            extension.deleted(partitions)

    def _stopped(self, broker: int, request: StopReplicaRequest, response: StopReplicaResponse) -> None:
        """Hand each topic's answer to the part that deletes it; a request failed as a whole failed for each."""
        answers: dict[tuple[str, TopicId | None], dict[int, int]] = {}
        for answer in response.topics:
            answers.setdefault((answer.topic, answer.topic_id), {}).update(answer.partitions)
        for topic in request.topics:
            found = answers.get((topic.topic, topic.topic_id), {})
            missing = int(response.error) or int(KafkaError.UNKNOWN_SERVER_ERROR)
            errors = {
                each.partition: int(response.error) or found.get(each.partition, missing) for each in topic.partitions
            }
            self.dropped.stopped(topic.topic, topic.topic_id, broker, errors)
            if not self.garbage.stopped(topic.topic_id, broker, errors):
                known = self.core.context.topic_ids.get(topic.topic)
                if topic.topic_id is None or topic.topic_id == known:
                    self.deletions.stopped(topic.topic, broker, errors)
        self.core.batch.send()


class Extension(Protocol):
    """An addition to the active controller, which calls it, one call at a time."""

    def paths(self) -> Sequence[str]:
        """Return the paths of the nodes to be watched, with all nodes below them."""

    def loaded(self) -> None:
        """Called when the context was read and nothing was sent: modes set here go into the first requests."""

    def started(self) -> None:
        """Called after the first requests: continue the work that was begun under another controller."""

    def changed(self, path: str) -> None:
        """Called when a node at or below one of the paths was created, deleted, or given other data."""

    def deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """Called when nothing is left of partitions that ``Deletions.begin_partitions`` was to delete."""


def take_over(active: ActiveController) -> None:
    """Take over the cluster, and send the first requests."""
    core, context = active.core, active.core.context
    registered = core.nodes.brokers()
    active.topics.load()
    restarted = core.nodes.restarted(context.leadership, registered)
    context.brokers = {broker: epoch for broker, epoch in registered.items() if broker not in restarted}
    context.end_points = core.nodes.end_points()
    for broker, epoch in context.brokers.items():
        core.channels.open(broker, epoch)
    for extension in active.extensions:
        extension.loaded()
    core.batch.update_metadata()
    core.batch.send()
    active.replicas.take_over()
    active.partitions.take_over()
    core.batch.full(context.brokers)
    if context.leadership:
        core.batch.update_metadata(context.leadership)
    active.replicas.to_online(context.replica_states.found_in(ReplicaState.ONLINE))
    core.batch.send()
    active.brokers.begin()
    active.topics.delete_marked()
    active.reassignments.resume()
    active.reassignments.from_node()
    active.brokers.log_dirs_failed()
    for extension in active.extensions:
        extension.started()


_PARTITION_NODE = re.compile(r".+/partitions/[0-9]+(?:/state)?")
"""Nodes that only controllers write, so that a change needs no look."""


class Watches:
    """The watches of an active controller: each change in ZooKeeper causes one look at the nodes that it may concern.

    A watch says that something changed, never what; many changes at once cause one look.
    """

    def __init__(
        self, session: Session, active: ActiveController, guarded: Callable[[Callable[[], None]], None], later: Later
    ) -> None:
        """Watch nothing yet; ``guarded`` and ``later`` call nothing after the controller has resigned."""
        self._session, self._active, self._guarded, self._later = session, active, guarded, later
        self._due: dict[str, None] = {}

    def begin(self) -> None:
        """Watch from now on."""
        topics, brokers = self._active.topics.look, self._active.brokers.look
        self._watch(TOPICS, "topics", topics)
        self._watch(DELETE_TOPICS, "topics", topics)
        self._watch(BROKERS, "brokers", brokers)
        self._watch(LOG_DIR_EVENTS, "log dirs", self._active.brokers.log_dirs_failed)
        self._watch(CONFIG_CHANGES, "configs", self._active.brokers.configs_changed)
        self._watch(REASSIGN_PARTITIONS, "reassignments", self._active.reassignments.from_node)
        for extension in self._active.extensions:
            for path in extension.paths():
                self._session.watch(path, partial(self._extension_changed, extension))

    def _extension_changed(self, extension: Extension, path: str) -> None:
        self._guarded(lambda: extension.changed(path))

    def _watch(self, path: str, what: str, look: Callable[[], None]) -> None:
        def changed(at: str) -> None:
            if not _PARTITION_NODE.fullmatch(at):
                self._guarded(lambda: self._look_soon(what, look))

        self._session.watch(path, changed)

    def _look_soon(self, what: str, look: Callable[[], None]) -> None:
        if what not in self._due:
            self._due[what] = None
            self._later(0, f"look at {what}", lambda: self._look(what, look))

    def _look(self, what: str, look: Callable[[], None]) -> None:
        del self._due[what]
        look()
