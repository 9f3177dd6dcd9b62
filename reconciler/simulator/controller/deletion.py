"""Topics and partitions deleted the old way, as before KIP-516, and replicas that reassignments dropped.

A topic without an ID is marked below ``/admin/delete_topics``, and its name is taken until all brokers have deleted
their replicas; an unavailable broker delays that. Partitions of a topic that stays (KIP694-3) are deleted the same way:
they become Offline and NonExistent, their replicas Offline and DeletionStarted, then DeletionSuccessful, or
DeletionIneligible and tried again.
Source: KIP516-10, *both formats*; Kafka 2.8's topic deletion manager; FACTS §8 for the order at the end.

Kafka does not wait for the answers about dropped replicas: one that could not be deleted stays until the broker's next
start. Here it is tried again, a limited number of times, unless the broker was assigned the partition again meanwhile.
A broker that goes is not waited for: the FULL request at its return deletes the replica (KIP516-5).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.controller.core import ControllerCore
from reconciler.simulator.controller.settings import ControllerSettings
from reconciler.simulator.controller.state_machines import PartitionMachine, ReplicaMachine
from reconciler.simulator.controller.states import AssignedReplica, PartitionState, ReplicaState
from reconciler.simulator.zookeeper import NoNodeError

GONE = frozenset(
    {
        KafkaError.NONE,
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.INCONSISTENT_TOPIC_ID,
    }
)
"""Answers after which no replica of the topic is live on the broker; 103: the replica there is of another topic."""


def retry_delay(settings: ControllerSettings, attempts: int) -> int:
    """Return the pause, in ms, after a number of attempts to delete something."""
    return min(settings.deletion_retry_ms << min(attempts - 1, 20), settings.most_deletion_retry_ms)


class Deletions:
    """The topics and partitions that are being deleted the old way.

    Attributes:
        on_partitions_deleted: called with partitions of a topic that stays, once nothing is left of them.
    """

    def __init__(self, core: ControllerCore, partitions: PartitionMachine, replicas: ReplicaMachine) -> None:
        """Start with nothing to delete."""
        self._core, self._context, self._partitions, self._replicas = core, core.context, partitions, replicas
        self._retrying = False
        self.on_partitions_deleted: Callable[[Sequence[TopicPartition]], None] = lambda partitions: None

    def begin_topics(self, topics: Iterable[str]) -> None:
        """Begin to delete marked topics, except those that are being deleted already. Sends."""
        begun = [topic for topic in topics if topic in self._context.births]
        begun = [topic for topic in begun if topic not in self._context.leaving_topics]
        self._context.leaving_topics.update(begun)
        for topic in begun:
            self._core.say(f"topic {topic} is being deleted; its name is taken until all its replicas are gone")
            self._begin(self._context.partitions_of(topic))
        self.resume()

    def begin_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin to delete partitions of topics that stay, except those that are being deleted already. Sends.

        The caller keeps the request where it survives this controller, and calls again after the next election.
        """
        begun = [each for each in partitions if each in self._context.assignments]
        begun = [each for each in begun if not self._context.is_leaving(each)]
        self._context.leaving_partitions.update(begun)
        self._begin(sorted(begun))
        self.resume()

    def stopped(self, topic: str, broker: int, errors: Mapping[int, int]) -> None:
        """Handle the answer of a broker that was to delete replicas of a topic; partition → error. Sends."""
        answered = [AssignedReplica(TopicPartition(topic, number), broker) for number in sorted(errors)]
        started = self._context.replica_states.among(answered, ReplicaState.DELETION_STARTED)
        done = [each for each in started if errors[each.partition.partition] in GONE]
        self._replicas.to_deletion_successful(done)
        self._replicas.to_deletion_ineligible(each for each in started if each not in done)
        self.resume()

    def replicas_went(self, replicas: Collection[AssignedReplica]) -> None:
        """Mark replicas that are being deleted and whose brokers or disks are unavailable now."""
        self._replicas.to_deletion_ineligible(
            self._context.replica_states.among(replicas, ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED)
        )

    def resume(self, *, retry: bool = False) -> None:
        """Finish complete deletions, and retry failed ones: with ``retry`` at once, else after a while. Sends."""
        self._finish()
        waiting = [
            replica
            for replica in self._context.replica_states.found_in(ReplicaState.DELETION_INELIGIBLE)
            if self._context.is_leaving(replica.partition) and self._context.is_online(replica)
        ]
        if waiting and retry:
            self._order(waiting)
        elif waiting and not self._retrying:
            self._retrying = True
            self._core.later(self._core.settings.deletion_retry_ms, "retry deletions", self._retry)
        self._core.batch.send()

    def _retry(self) -> None:
        self._retrying = False
        self.resume(retry=True)

    def _begin(self, partitions: list[TopicPartition]) -> None:
        """Update the clients' metadata first, then end the partitions, then delete the replicas that can be reached."""
        self._core.batch.update_metadata(partitions)
        exist = [
            each for each in partitions if self._context.partition_states.of(each) is not PartitionState.NON_EXISTENT
        ]
        self._partitions.to_offline(exist)
        self._partitions.to_non_existent(exist)
        replicas = self._context.replicas_of(partitions)
        reached = [each for each in replicas if self._context.is_online(each, though_leaving=True)]
        away = [each for each in replicas if each not in reached]
        states = self._context.replica_states
        self._replicas.to_offline(states.among(away, ReplicaState.NEW, ReplicaState.ONLINE))
        self.replicas_went(away)
        self._order(reached)

    def _order(self, replicas: list[AssignedReplica]) -> None:
        self._replicas.to_offline(replicas)
        self._replicas.to_deletion_started(replicas)

    def _finish(self) -> None:
        for topic in sorted(self._context.leaving_topics):
            partitions = self._context.partitions_of(topic)
            if self._all_deleted(partitions):
                self._finish_topic(topic, partitions)
        by_topic: dict[str, list[TopicPartition]] = {}
        for partition in sorted(self._context.leaving_partitions):
            by_topic.setdefault(partition.topic, []).append(partition)
        for topic, partitions in by_topic.items():
            if topic not in self._context.leaving_topics and self._all_deleted(partitions):
                self._finish_partitions(topic, partitions)

    def _all_deleted(self, partitions: list[TopicPartition]) -> bool:
        replicas = self._context.replicas_of(partitions)
        done = self._context.replica_states.among(replicas, ReplicaState.DELETION_SUCCESSFUL)
        return len(done) == len(replicas)

    def _finish_topic(self, topic: str, partitions: list[TopicPartition]) -> None:
        """Delete topic, configs, and last the mark: after a crash in between the next controller finds the mark."""
        self._replicas.to_non_existent(self._context.replicas_of(partitions))
        try:
            self._core.nodes.delete_topic(topic)
        except NoNodeError:
            self._core.say(f"the node of topic {topic} was deleted by somebody else")
        self._core.nodes.unmark(topic)
        self._context.forget_topic(topic)
        self._core.say(f"topic {topic} is deleted, and its name is free")

    def _finish_partitions(self, topic: str, partitions: list[TopicPartition]) -> None:
        self._replicas.to_non_existent(self._context.replicas_of(partitions))
        try:
            self._core.nodes.write_topic(
                topic, self._context.topic_ids[topic], {each.partition: None for each in partitions}
            )
        except NoNodeError:
            self._core.say(f"the node of topic {topic} was deleted by somebody else")
        for each in partitions:
            self._context.forget_partition(each)
        self._core.say(f"partitions {', '.join(map(str, partitions))} are deleted")
        self.on_partitions_deleted(partitions)


class DroppedReplicas:
    """The replicas that were dropped by reassignments and are not known to be deleted."""

    def __init__(self, core: ControllerCore) -> None:
        """Start empty."""
        self._core, self._context = core, core.context
        self._attempts: dict[tuple[TopicId, AssignedReplica], int] = {}

    def waiting(self) -> list[AssignedReplica]:
        """Return the replicas in the order in which they were dropped."""
        return [replica for _, replica in self._attempts]

    def ordered(self, replicas: Iterable[AssignedReplica]) -> None:
        """Add replicas that brokers are asked to delete; those of a topic without an ID are left to their brokers."""
        for replica in replicas:
            topic_id = self._context.topic_ids.get(replica.partition.topic)
            if topic_id is not None and self._core.settings.topic_ids and replica.broker in self._context.brokers:
                self._attempts[topic_id, replica] = 1

    def stopped(self, topic: str, topic_id: TopicId | None, broker: int, errors: Mapping[int, int]) -> None:
        """Handle the answer of a broker for one topic; partition → error."""
        for number, error in sorted(errors.items()):
            replica = AssignedReplica(TopicPartition(topic, number), broker)
            if topic_id is None or (topic_id, replica) not in self._attempts:
                continue
            if error in GONE:
                del self._attempts[topic_id, replica]
            else:
                self._retry_later(topic_id, replica)

    def _retry_later(self, topic_id: TopicId, replica: AssignedReplica) -> None:
        delay = retry_delay(self._core.settings, self._attempts[topic_id, replica])
        self._core.later(delay, f"delete {replica} again", lambda: self._again(topic_id, replica))

    def _again(self, topic_id: TopicId, replica: AssignedReplica) -> None:
        attempts = self._attempts.get((topic_id, replica))
        if attempts is None:
            return
        assignment = self._context.assignments.get(replica.partition)
        same = self._context.topic_ids.get(replica.partition.topic) == topic_id
        wanted = same and assignment is not None and replica.broker in assignment.replicas
        over = attempts >= self._core.settings.collection_attempts
        if wanted or over or replica.broker not in self._context.brokers:
            del self._attempts[topic_id, replica]
            why = "it is assigned again" if wanted else "the next FULL request sees to it"
            self._core.say(f"{replica} was dropped and not deleted: {why}")
            return
        self._attempts[topic_id, replica] = attempts + 1
        self._core.batch.stop_replica(replica, topic_id, delete=True)
        self._core.batch.send()
