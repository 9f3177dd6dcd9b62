"""What a controller has from its election to its resignation; to resign is to forget it.

Owns how the parts are put together and where an answer of a broker goes.

How something takes part in a controller without being part of it: fewer partitions (KIP694-3) does.

An extension is made at each election and forgotten at the resignation; what has to outlast that it keeps in ZooKeeper,
below the paths that it names.

What a controller does first: read everything, tell everybody, elect, and go on with what its predecessor began.

Nothing is taken over but what is in ZooKeeper. Every broker gets a FULL request, so what the predecessor had deleted
and not collected is deleted by the brokers that still have it (KIP516-5, KIP516-10). Source: Kafka 2.8.

In one thing this goes beyond Kafka: a broker that went, or was restarted, while there was no controller goes out of
sync as under a controller, for a restart loses what was not synced. Kafka leaves it in sync, and it may lead.

The watches of an active controller: a change in ZooKeeper becomes one look at the nodes that it may concern.

Watches tell that something changed, never what; many changes at once lead to one look.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
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
from reconciler.simulator.zookeeper import BROKERS, DELETE_TOPICS, LOG_DIR_EVENTS, REASSIGN_PARTITIONS, TOPICS, Session


class ActiveController:
    """An active controller's parts.

    Attributes:
        core: what all parts share; the context is in it.
        partitions: moves partitions between states.
        replicas: moves replicas between states.
        garbage: topics deleted at once, being collected.
        deletions: topics and partitions deleted as before.
        reassignments: partitions on their way to other brokers.
        dropped: replicas that reassignments dropped, until they are deleted.
        topics: topics that come and go.
        brokers: brokers that come and go.
        extensions: that take part, in the order in which they were given.
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
        self.deletions.on_partitions_deleted = self._tell_deleted
        batch.on_leader_and_isr = self.brokers.answered
        batch.on_stop_replica = self._stopped

    def set_modes(self, partitions: Iterable[TopicPartition], mode: PartitionMode) -> None:
        """Say who may use some partitions, and tell all brokers (KIP694-1). Sends."""
        context, changed = self.core.context, list(partitions)
        for partition in changed:
            if mode is PartitionMode.READ_WRITE:
                context.modes.pop(partition, None)
            else:
                context.modes[partition] = mode
        self.core.batch.update_metadata(changed)
        self.core.batch.send()

    def _tell_deleted(self, partitions: Sequence[TopicPartition]) -> None:
        for extension in self.extensions:
            extension.deleted(partitions)

    def _stopped(self, broker: int, request: StopReplicaRequest, response: StopReplicaResponse) -> None:
        """Hand the answer for each topic to whoever deletes it; a request that failed as a whole failed for each."""
        answers: dict[tuple[str, TopicId | None], dict[int, int]] = {}
        for told in response.topics:
            answers.setdefault((told.topic, told.topic_id), {}).update(told.partitions)
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
    """Called by the active controller, one call at a time."""

    def paths(self) -> Sequence[str]:
        """The nodes to be watched, with all below them."""

    def loaded(self) -> None:
        """The context was read, and nothing was sent yet: set modes here, so that the first requests have them."""

    def started(self) -> None:
        """The controller has sent its first requests: go on with what was begun under another controller."""

    def changed(self, path: str) -> None:
        """A node at or below one of the paths was created, deleted, or given other data."""

    def deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """Nothing is left of partitions that ``Deletions.begin_partitions`` was asked to delete."""


def take_over(active: ActiveController) -> None:
    """Begin to be the controller. Sends."""
    core, context = active.core, active.core.context
    registered = core.nodes.brokers()
    active.topics.load()
    restarted = core.nodes.restarted(context.leadership, registered)
    context.brokers = {broker: epoch for broker, epoch in registered.items() if broker not in restarted}
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
"""Written by controllers alone, and so nothing to look at."""


class Watches:
    """The watches from one election to the resignation."""

    def __init__(
        self, session: Session, active: ActiveController, guarded: Callable[[Callable[[], None]], None], later: Later
    ) -> None:
        """Watch nothing yet.

        Args:
            session: tells what changes.
            active: whose parts look.
            guarded: runs something, unless the controller has resigned by then.
            later: has something done later, unless the controller has resigned by then.
        """
        self._session, self._active, self._guarded, self._later = session, active, guarded, later
        self._due: dict[str, None] = {}

    def begin(self) -> None:
        """Be told from now on."""
        topics, brokers = self._active.topics.look, self._active.brokers.look
        self._watch(TOPICS, "topics", topics)
        self._watch(DELETE_TOPICS, "topics", topics)
        self._watch(BROKERS, "brokers", brokers)
        self._watch(LOG_DIR_EVENTS, "log dirs", self._active.brokers.log_dirs_failed)
        self._watch(REASSIGN_PARTITIONS, "reassignments", self._active.reassignments.from_node)
        for extension in self._active.extensions:
            for path in extension.paths():
                changed = extension.changed
                self._session.watch(path, lambda at, told=changed: self._guarded(lambda: told(at)))  # type: ignore[misc]

    def _watch(self, path: str, what: str, look: Callable[[], None]) -> None:
        def told(at: str) -> None:
            if not _PARTITION_NODE.fullmatch(at):
                self._guarded(lambda: self._look_soon(what, look))

        self._session.watch(path, told)

    def _look_soon(self, what: str, look: Callable[[], None]) -> None:
        if what not in self._due:
            self._due[what] = None
            self._later(0, f"look at {what}", lambda: self._look(what, look))

    def _look(self, what: str, look: Callable[[], None]) -> None:
        del self._due[what]
        look()
