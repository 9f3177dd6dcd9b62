"""What a controller has from its election to its resignation; to resign is to forget it.

Owns how the parts are put together and where an answer of a broker goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import StopReplicaRequest, StopReplicaResponse
from reconciler.simulator.controller.batch import RequestBatch
from reconciler.simulator.controller.broker_changes import BrokerChanges
from reconciler.simulator.controller.channels import Channels, Later
from reconciler.simulator.controller.cluster_nodes import ClusterNodes
from reconciler.simulator.controller.context import ControllerContext
from reconciler.simulator.controller.core import Core
from reconciler.simulator.controller.deletion import Deletions
from reconciler.simulator.controller.dropped import Dropped
from reconciler.simulator.controller.extensions import Extension
from reconciler.simulator.controller.garbage import Garbage
from reconciler.simulator.controller.partition_machine import PartitionMachine
from reconciler.simulator.controller.reassignment import Reassignments
from reconciler.simulator.controller.replica_machine import ReplicaMachine
from reconciler.simulator.controller.settings import ControllerSettings
from reconciler.simulator.controller.topic_changes import TopicChanges
from reconciler.simulator.kernel import PartitionMode


class Active:
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
        extensions: Iterable[Callable[[Active], Extension]] = (),
    ) -> None:
        """Put the parts together; nothing is read or sent yet."""
        batch = RequestBatch(node_id, context, channels, settings)
        self.core = Core(node_id, settings, context, nodes, channels, batch, say, later)
        self.partitions, self.replicas = PartitionMachine(self.core), ReplicaMachine(self.core)
        self.garbage = Garbage(self.core, self.partitions)
        self.deletions = Deletions(self.core, self.partitions, self.replicas)
        self.dropped = Dropped(self.core)
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
