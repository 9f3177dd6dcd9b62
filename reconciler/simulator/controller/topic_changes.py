"""Topics and partitions that come, and topics that go: the nodes in ZooKeeper held against what the controller knows.

A topic is known by its name, the transaction that created its node, and its ID: one that was deleted and created again
before the controller looked is another topic, and is treated as both (KIP516-10). A new topic goes through four steps:
NewPartition, NewReplica, OnlinePartition, OnlineReplica (CREATE-3). Source: Kafka 2.8; KIP516-11.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.controller.cluster_nodes import FoundTopic
from reconciler.simulator.controller.core import Core
from reconciler.simulator.controller.deletion import Deletions
from reconciler.simulator.controller.garbage import Garbage
from reconciler.simulator.controller.partition_machine import PartitionMachine
from reconciler.simulator.controller.replica_machine import ReplicaMachine


class TopicChanges:
    """Keeps the context in step with the topics' nodes and with the marks for deletion."""

    def __init__(
        self,
        core: Core,
        partitions: PartitionMachine,
        replicas: ReplicaMachine,
        *,
        deletions: Deletions,
        garbage: Garbage,
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
