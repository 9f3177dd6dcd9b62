"""Topics and partitions that come, and topics that go: the nodes in ZooKeeper held against what the controller knows.

A topic is known by its name, the transaction that created its node, and its ID: one that was deleted and created again
before the controller looked is another topic, and is treated as both (KIP516-10). A new topic goes through four steps:
NewPartition, NewReplica, OnlinePartition, OnlineReplica (CREATE-3). Source: Kafka 2.8; KIP516-11.

Topics that were deleted at once: their replicas are collected later, with retries, and safely given up (KIP516-10).

A topic with an ID is deleted when its node is: from then on its name is free. What its replicas are is kept in memory
only, apart from all that lives. Every broker is told by a StopReplica request with the topic's ID, again after a while
where that failed, and not for ever: the FULL request that a broker gets when it returns, or when another controller is
elected, does not name the topic, and the broker deletes what it does not name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.controller.core import ControllerCore
from reconciler.simulator.controller.deletion import GONE, Deletions, retry_delay
from reconciler.simulator.controller.requests import partition_metadata
from reconciler.simulator.controller.state_machines import PartitionMachine, ReplicaMachine
from reconciler.simulator.controller.states import Replica, ReplicaState, ReplicaStates
from reconciler.simulator.controller.store import FoundTopic
from reconciler.simulator.kernel import TopicMetadata


class TopicChanges:
    """Keeps the context in step with the topics' nodes and with the marks for deletion."""

    def __init__(
        self,
        core: ControllerCore,
        partitions: PartitionMachine,
        replicas: ReplicaMachine,
        *,
        deletions: Deletions,
        garbage: DeletedTopics,
    ) -> None:
        """Begin with the topics of the context."""
        self._core, self._context = core, core.context
        self._partitions, self._replicas, self._deletions, self._garbage = partitions, replicas, deletions, garbage

    def load(self) -> None:
        """Read everything, at the election: topics, assignments, leaders, IDs.

        Topics without an ID get one (KIP516-11); one that is marked for deletion does not, nor have its replicas any.
        """
        marked = self._core.nodes.marked()
        for topic, found in self._core.nodes.topics().items():
            for partition in self._adopt(topic, found, marked):
                state = self._core.nodes.state(partition)
                if state is not None:
                    self._context.leadership[partition] = state

    def look(self) -> None:
        """Read the nodes again, and see to what changed. Sends."""
        found, context, marked = self._core.nodes.topics(), self._context, self._core.nodes.marked()
        for topic in sorted(context.births):
            if topic not in found or not self._is_same(topic, found[topic]):
                # One that lives on under a new name keeps its replicas.
                known = context.topic_ids.get(topic)
                renamed = known is not None and any(
                    each.topic_id == known for name, each in found.items() if name not in context.births
                )
                self._garbage.collect(topic, renamed=renamed)
        created: list[TopicPartition] = []
        context.unreadable = set()
        for topic, node in found.items():
            if topic not in context.leaving_topics:
                created += self._adopt(topic, node, marked)
        self._create(created)
        self.delete_marked(marked)

    def delete_marked(self, marked: Iterable[str] | None = None) -> None:
        """Delete the topics that are marked, each in the way that its ID allows. Sends.

        Args:
            marked: None: as ZooKeeper has it.
        """
        as_before = []
        for topic in self._core.nodes.marked() if marked is None else marked:
            if topic not in self._context.births:
                if topic not in self._context.unreadable:
                    self._core.nodes.unmark(topic)
            elif self._is_immediate(topic) and topic not in self._context.leaving_topics:
                self._delete_now(topic)
                self._core.nodes.unmark(topic)
            else:
                as_before.append(topic)
        self._deletions.begin_topics(as_before)
        self._core.batch.send()

    def delete(self, topics: Iterable[str]) -> dict[str, KafkaError]:
        """Do a DeleteTopics request, and answer at once: a topic with an ID is deleted then (KIP516-10). Sends.

        Returns:
            For each topic NONE, or UNKNOWN_TOPIC_OR_PARTITION.
        """
        self.look()
        answers = {}
        for topic in topics:
            known = topic in self._context.births
            answers[topic] = KafkaError.NONE if known else KafkaError.UNKNOWN_TOPIC_OR_PARTITION
            if known and self._is_immediate(topic) and topic not in self._context.leaving_topics:
                self._delete_now(topic)
            elif known:
                self._core.nodes.mark(topic)
        self.delete_marked()
        return answers

    def _is_immediate(self, topic: str) -> bool:
        return self._core.settings.topic_ids and self._context.topic_ids.get(topic) is not None

    def _delete_now(self, topic: str) -> None:
        """The node goes, and with that the topic; its replicas are collected afterwards."""
        self._core.nodes.delete_topic(topic)
        self._garbage.collect(topic)

    def _is_same(self, topic: str, found: FoundTopic) -> bool:
        known = self._context.topic_ids.get(topic)
        same_id = known is None or found.topic_id is None or known == found.topic_id
        return same_id and found.birth == self._context.births[topic]

    def _adopt(self, topic: str, found: FoundTopic, marked: Iterable[str]) -> list[TopicPartition]:
        """Take a topic's node into the context; gives the partitions that are new there."""
        context = self._context
        if found.problem is not None:
            context.unreadable.add(topic)
            self._core.say(f"the node of topic {topic} cannot be read: it {found.problem}")
            return []
        context.births.setdefault(topic, found.birth)
        if context.topic_ids.get(topic) is None:
            context.topic_ids[topic] = found.topic_id
        new = []
        for number, assignment in found.assignments.items():
            partition = TopicPartition(topic, number)
            if partition not in context.assignments:
                context.assignments[partition] = assignment
                new.append(partition)
        if context.topic_ids[topic] is None and self._core.settings.topic_ids and topic not in marked:
            self._give_id(topic, found)
        return new

    def _give_id(self, topic: str, found: FoundTopic) -> None:
        topic_id = TopicId.random(Random(f"{self._core.settings.id_seed} {topic} {found.birth}").randbytes)
        self._core.nodes.write_topic(topic, topic_id, {})
        self._context.topic_ids[topic] = topic_id
        self._core.say(f"topic {topic} gets ID {topic_id}")

    def _create(self, partitions: list[TopicPartition]) -> None:
        """The four steps (CREATE-3)."""
        if not partitions:
            return
        replicas = self._context.replicas_of(partitions)
        self._core.say(f"new: {', '.join(map(str, partitions))}")
        self._partitions.to_new(partitions)
        self._replicas.to_new(replicas)
        self._partitions.to_online(partitions)
        self._replicas.to_online(replicas)
        self._core.batch.send()


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


class DeletedTopics:
    """The topics that are deleted and not yet collected."""

    def __init__(self, core: ControllerCore, partitions: PartitionMachine) -> None:
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
