"""Topics that were deleted at once: their replicas are collected later, with retries, and safely given up (KIP516-10).

A topic with an ID is deleted when its node is: from then on its name is free. What its replicas are is kept in memory
only, apart from all that lives. Every broker is told by a StopReplica request with the topic's ID, again after a while
where that failed, and not for ever: the FULL request that a broker gets when it returns, or when another controller is
elected, does not name the topic, and the broker deletes what it does not name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from layout.ids import TopicId
from logstore import KafkaError
from reconciler.simulator.controller.batch import partition_metadata
from reconciler.simulator.controller.core import Core
from reconciler.simulator.controller.partition_machine import PartitionMachine
from reconciler.simulator.controller.replica_states import Replica, ReplicaState, ReplicaStates
from reconciler.simulator.controller.settings import ControllerSettings
from reconciler.simulator.kernel import TopicMetadata

GONE = frozenset(
    {
        KafkaError.NONE,
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.INCONSISTENT_TOPIC_ID,
    }
)
"""Answers after which no replica of the topic is live on the broker; 103: what lies there is of another topic."""


@dataclass(slots=True)
class DeletedTopic:
    """One deleted topic on its way out."""

    topic: str
    topic_id: TopicId
    replicas: list[Replica]
    states: ReplicaStates = field(default_factory=ReplicaStates)
    attempts: int = 1
    is_due: bool = False
    """Whether a next attempt is waiting for its time."""


def retry_delay(settings: ControllerSettings, attempts: int) -> int:
    """The pause, in ms, after so many attempts to delete something."""
    return min(settings.deletion_retry_ms << min(attempts - 1, 20), settings.most_deletion_retry_ms)


class Garbage:
    """The topics that are deleted and not yet collected."""

    def __init__(self, core: Core, partitions: PartitionMachine) -> None:
        """Begin without any."""
        self._core, self._context, self._partitions = core, core.context, partitions
        self._found: dict[TopicId, DeletedTopic] = {}

    def topics(self) -> list[tuple[str, TopicId]]:
        """The topics that are not collected yet, by name and ID, in the order of their deletion."""
        return [(each.topic, each.topic_id) for each in self._found.values()]

    def state_of(self, topic_id: TopicId, replica: Replica) -> ReplicaState:
        """Where a replica of a deleted topic stands."""
        found = self._found.get(topic_id)
        return ReplicaState.NON_EXISTENT if found is None else found.states.of(replica)

    def collect(self, topic: str, *, renamed: bool = False) -> None:
        """A topic's node is gone: take it out of the context, tell all brokers, and have its replicas deleted.

        A topic without an ID is only forgotten: its name may be another topic's by now, and an order by name would
        reach that one.

        Args:
            topic: by the name under which it was known.
            renamed: it lives on under another name, with the same ID: its replicas stay (KIP516-13).
        """
        context, topic_id = self._context, self._context.topic_ids.get(topic)
        partitions = context.partitions_of(topic)
        told = tuple(
            partition_metadata(context, each, deleted=True) for each in partitions if each in context.leadership
        )
        self._core.batch.gone(TopicMetadata(topic, topic_id if self._core.settings.topic_ids else None, told))
        living = [each for each in partitions if each not in context.leaving_partitions]
        if topic not in context.leaving_topics:
            self._partitions.to_offline(living)
            self._partitions.to_non_existent(living)
        replicas = context.replicas_of(partitions)
        left = [(each, context.replica_states.take(each)) for each in replicas]
        context.forget_topic(topic)
        if renamed:
            self._core.say(f"topic {topic} with ID {topic_id} has another name now")
            return
        self._core.say(f"topic {topic} with ID {topic_id} is deleted; {len(replicas)} replicas are to be collected")
        if topic_id is not None and self._core.settings.topic_ids:
            self._begin(DeletedTopic(topic, topic_id, [each for each, state in left if state in _LEFT]))

    def stopped(self, topic_id: TopicId | None, broker: int, errors: Mapping[int, int]) -> bool:
        """Take the answer of a broker.

        Args:
            topic_id: in the request.
            broker: that answered.
            errors: partition → error.

        Returns:
            Whether the topic is one of those.
        """
        found = self._found.get(topic_id) if topic_id is not None else None
        if found is None:
            return False
        for replica in found.states.among(found.replicas, ReplicaState.DELETION_STARTED):
            if replica.broker == broker and replica.partition.partition in errors:
                done = errors[replica.partition.partition] in GONE
                state = ReplicaState.DELETION_SUCCESSFUL if done else ReplicaState.DELETION_INELIGIBLE
                found.states.move(replica, state)
        self._look(found)
        return True

    def brokers_went(self, brokers: Collection[int]) -> None:
        """What brokers that are gone were told to delete is to be tried again."""
        for found in list(self._found.values()):
            for replica in found.states.among(found.replicas, ReplicaState.DELETION_STARTED):
                if replica.broker in brokers:
                    found.states.move(replica, ReplicaState.DELETION_INELIGIBLE)
            self._look(found)

    def _begin(self, found: DeletedTopic) -> None:
        self._found[found.topic_id] = found
        for replica in found.replicas:
            found.states.begin(replica, ReplicaState.OFFLINE)
        self._order(found, found.replicas)
        self._look(found)

    def _order(self, found: DeletedTopic, replicas: list[Replica]) -> None:
        """Tell those brokers that live to delete; from the others nothing can be had now."""
        for replica in replicas:
            if replica.broker in self._context.brokers:
                self._core.batch.stop_replica(replica, found.topic_id, delete=True, leaving=True)
                found.states.move(replica, ReplicaState.DELETION_STARTED)
            else:
                found.states.move(replica, ReplicaState.DELETION_INELIGIBLE)

    def _look(self, found: DeletedTopic) -> None:
        """End, wait for answers, or try again after a while."""
        for replica in found.states.among(found.replicas, ReplicaState.DELETION_SUCCESSFUL):
            found.states.move(replica, ReplicaState.NON_EXISTENT)
        found.replicas = [each for each in found.replicas if found.states.of(each) is not ReplicaState.NON_EXISTENT]
        if not found.replicas:
            self._found.pop(found.topic_id, None)
            self._core.say(f"topic {found.topic} with ID {found.topic_id} is collected")
        elif not found.is_due and not found.states.among(found.replicas, ReplicaState.DELETION_STARTED):
            found.is_due = True
            label = f"collect {found.topic} with ID {found.topic_id} again"
            self._core.later(retry_delay(self._core.settings, found.attempts), label, lambda: self._again(found))

    def _again(self, found: DeletedTopic) -> None:
        found.is_due = False
        waiting = found.states.among(found.replicas, ReplicaState.DELETION_INELIGIBLE)
        if found.attempts >= self._core.settings.collection_attempts:
            del self._found[found.topic_id]
            brokers = sorted({replica.broker for replica in waiting})
            self._core.say(
                f"topic {found.topic} with ID {found.topic_id} is given up after {found.attempts} attempts: "
                f"the next FULL request sees to it on brokers {brokers}"
            )
            return
        found.attempts += 1
        for replica in waiting:
            # Ineligible to Offline is how a deletion is tried again.
            found.states.move(replica, ReplicaState.OFFLINE)
        self._order(found, waiting)
        self._look(found)
        self._core.batch.send()


_LEFT = frozenset(ReplicaState) - {ReplicaState.NON_EXISTENT, ReplicaState.DELETION_SUCCESSFUL}
"""States in which something may lie on a disk."""
