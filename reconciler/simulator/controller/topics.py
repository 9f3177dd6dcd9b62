"""Topics and partitions that are created and deleted: the nodes in ZooKeeper compared with the controller's context.

A topic is known by its name, the transaction that created its node, and its ID. A topic that was deleted and created
again before the controller looked counts as one deleted and one new topic (KIP516-10). A new topic goes through four
steps: NewPartition, NewReplica, OnlinePartition, OnlineReplica (CREATE-3). Source: Kafka 2.8; KIP516-11; KIP37-2.

A topic with an ID is deleted when its node is: from then on its name is free, and its replicas are collected later. The
list of its replicas is kept in memory only, apart from the live topics. Every broker gets a StopReplica request with
the topic's ID, again after a while where that failed, but not for ever. The FULL request that a broker gets when it
returns, or when another controller is elected, does not name the topic, and the broker deletes what it does not name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from layout.ids import TopicId
from layout.topic import TopicPartition, clash_with_tier
from logstore import KafkaError
from reconciler.protocol import UpdateMetadataTopic
from reconciler.simulator.controller.core import ControllerCore
from reconciler.simulator.controller.deletion import GONE, Deletions, retry_delay
from reconciler.simulator.controller.requests import partition_metadata
from reconciler.simulator.controller.state_machines import PartitionMachine, ReplicaMachine
from reconciler.simulator.controller.states import AssignedReplica, ReplicaState, ReplicaStates
from reconciler.simulator.controller.store import FoundTopic


class TopicChanges:
    """Keeps the context equal to the topics' nodes and the marks for deletion."""

    def __init__(
        self,
        core: ControllerCore,
        partitions: PartitionMachine,
        replicas: ReplicaMachine,
        *,
        deletions: Deletions,
        garbage: DeletedTopics,
    ) -> None:
        """Start with the topics of the context."""
        self._core, self._context = core, core.context
        self._partitions, self._replicas, self._deletions, self._garbage = partitions, replicas, deletions, garbage

    def load(self) -> None:
        """Read everything, at the election: topics, assignments, leaders, IDs.

        Topics without an ID get one (KIP516-11), except those marked for deletion, whose replicas have none either.
        """
        marked = self._core.nodes.marked()
        for topic, found in self._core.nodes.topics().items():
            for partition in self._adopt(topic, found, marked):
                state = self._core.nodes.state(partition)
                if state is not None:
                    self._context.leadership[partition] = state

    def look(self) -> None:
        """Read the nodes again, and handle every change. Sends."""
        found, context, marked = self._core.nodes.topics(), self._context, self._core.nodes.marked()
        for topic in sorted(context.births):
            if topic not in found or not self._is_same(topic, found[topic]):
                # A renamed topic keeps its replicas, also one that has its former name again, or another topic's.
                known = context.topic_ids.get(topic)
                renamed = known is not None and any(each.topic_id == known for each in found.values())
                self._garbage.collect(topic, renamed=renamed)
        created: list[TopicPartition] = []
        context.unreadable = set()
        for topic, node in found.items():
            if topic not in context.leaving_topics:
                created += self._adopt(topic, node, marked)
        self._create(created)
        self.delete_marked(marked)

    def delete_marked(self, marked: Iterable[str] | None = None) -> None:
        """Delete the marked topics: with an ID at once, without one the old way. Sends. None: read the marks first."""
        old_way = []
        for topic in self._core.nodes.marked() if marked is None else marked:
            if topic not in self._context.births:
                if topic not in self._context.unreadable:
                    self._core.nodes.unmark(topic)
            elif self._is_immediate(topic) and topic not in self._context.leaving_topics:
                self._delete_now(topic)
                self._core.nodes.unmark(topic)
            else:
                old_way.append(topic)
        self._deletions.begin_topics(old_way)
        self._core.batch.send()

    def delete(self, topics: Iterable[str]) -> dict[str, KafkaError]:
        """Delete topics, and answer at once: a topic with an ID is deleted by then (KIP516-10). Sends.

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
        """Delete a topic's node, and so the topic; its replicas are collected afterwards."""
        self._core.nodes.delete_topic(topic)
        self._garbage.collect(topic)

    def _is_same(self, topic: str, found: FoundTopic) -> bool:
        known = self._context.topic_ids.get(topic)
        same_id = known is None or found.topic_id is None or known == found.topic_id
        return same_id and found.birth == self._context.births[topic]

    def _adopt(self, topic: str, found: FoundTopic, marked: Iterable[str]) -> list[TopicPartition]:
        """Take a topic's node into the context, and return the partitions that are new there."""
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
            if partition not in context.assignments and self._has_its_directory(partition):
                context.assignments[partition] = assignment
                new.append(partition)
        if context.topic_ids[topic] is None and self._core.settings.topic_ids and topic not in marked:
            self._give_id(topic, found)
        return new

    def _has_its_directory(self, partition: TopicPartition) -> bool:
        """Whether a partition may be created: no namespace has its directory (KIP37-2).

        The commands refuse both to exist; this is for what other tools wrote. A partition that was created before the
        namespace has a state, and stays.
        """
        nodes = self._core.nodes
        if not nodes.is_namespace(str(partition)) or nodes.state(partition) is not None:
            return True
        self._core.say(f"{partition} is not created: {clash_with_tier(partition)}")
        return False

    def _give_id(self, topic: str, found: FoundTopic) -> None:
        topic_id = TopicId.random(Random(f"{self._core.settings.id_seed} {topic} {found.birth}").randbytes)
        self._core.nodes.write_topic(topic, topic_id, {})
        self._context.topic_ids[topic] = topic_id
        self._core.say(f"topic {topic} gets ID {topic_id}")

    def _create(self, partitions: list[TopicPartition]) -> None:
        """Take new partitions through the four steps (CREATE-3)."""
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
    """One deleted topic whose replicas are being collected."""

    topic: str
    topic_id: TopicId
    replicas: list[AssignedReplica]
    states: ReplicaStates = field(default_factory=ReplicaStates)
    attempts: int = 1
    is_due: bool = False
    """Whether a next attempt is scheduled."""


class DeletedTopics:
    """The topics that are deleted and whose replicas are not yet collected."""

    def __init__(self, core: ControllerCore, partitions: PartitionMachine) -> None:
        """Start empty."""
        self._core, self._context, self._partitions = core, core.context, partitions
        self._found: dict[TopicId, DeletedTopic] = {}

    def topics(self) -> list[tuple[str, TopicId]]:
        """Return the topics by name and ID, in the order of their deletion."""
        return [(each.topic, each.topic_id) for each in self._found.values()]

    def state_of(self, topic_id: TopicId, replica: AssignedReplica) -> ReplicaState:
        """Return the state of a replica of a deleted topic."""
        found = self._found.get(topic_id)
        return ReplicaState.NON_EXISTENT if found is None else found.states.of(replica)

    def collect(self, topic: str, *, renamed: bool = False) -> None:
        """Remove a topic whose node is gone from the context and the clients' metadata, and delete its replicas.

        A topic without an ID is only forgotten: its name may be another topic's by now, and a request by name would
        delete that topic. The replicas of one that is ``renamed``, and keeps its ID, stay (KIP516-13).
        """
        context, topic_id = self._context, self._context.topic_ids.get(topic)
        partitions = context.partitions_of(topic)
        metadata = tuple(
            partition_metadata(context, each, deleted=True) for each in partitions if each in context.leadership
        )
        self._core.batch.gone(UpdateMetadataTopic(topic, topic_id if self._core.settings.topic_ids else None, metadata))
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
        """Handle the answer of a broker to a request for a topic ID; partition → error.

        Returns:
            Whether the topic is being collected.
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
        """Schedule replicas again that were to be deleted by brokers that are gone."""
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

    def _order(self, found: DeletedTopic, replicas: list[AssignedReplica]) -> None:
        """Ask live brokers to delete replicas; replicas on other brokers cannot be deleted now."""
        for replica in replicas:
            if replica.broker in self._context.brokers:
                self._core.batch.stop_replica(replica, found.topic_id, delete=True, leaving=True)
                found.states.move(replica, ReplicaState.DELETION_STARTED)
            else:
                found.states.move(replica, ReplicaState.DELETION_INELIGIBLE)

    def _look(self, found: DeletedTopic) -> None:
        """Finish the topic, wait for answers, or schedule another attempt."""
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
"""States in which a disk may still have data of the replica."""
