"""Replicas that a reassignment dropped: brokers that could not delete theirs are asked again, and safely given up.

Kafka does not wait for these answers, and a replica that could not be deleted stays until the broker's next start. Here
it is tried again, as the replicas of a deleted topic are, unless the broker was given the partition again meanwhile. A
broker that goes is not waited for: the FULL request that it gets when it returns sees to it (KIP516-5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.simulator.controller.core import Core
from reconciler.simulator.controller.garbage import GONE, retry_delay
from reconciler.simulator.controller.replica_states import Replica


class Dropped:
    """The replicas that were dropped and are not known to be deleted."""

    def __init__(self, core: Core) -> None:
        """Begin without any."""
        self._core, self._context = core, core.context
        self._attempts: dict[tuple[TopicId, Replica], int] = {}

    def waiting(self) -> list[Replica]:
        """Those that are not known to be deleted, in the order in which they were dropped."""
        return [replica for _, replica in self._attempts]

    def ordered(self, replicas: Iterable[Replica]) -> None:
        """Brokers are being told to delete replicas. Those of a topic without an ID are left to their brokers."""
        for replica in replicas:
            topic_id = self._context.topic_ids.get(replica.partition.topic)
            if topic_id is not None and self._core.settings.topic_ids and replica.broker in self._context.brokers:
                self._attempts[topic_id, replica] = 1

    def stopped(self, topic: str, topic_id: TopicId | None, broker: int, errors: Mapping[int, int]) -> None:
        """Take the answer of a broker for one topic; partition → error."""
        for number, error in sorted(errors.items()):
            replica = Replica(TopicPartition(topic, number), broker)
            if topic_id is None or (topic_id, replica) not in self._attempts:
                continue
            if error in GONE:
                del self._attempts[topic_id, replica]
            else:
                self._retry_later(topic_id, replica)

    def _retry_later(self, topic_id: TopicId, replica: Replica) -> None:
        delay = retry_delay(self._core.settings, self._attempts[topic_id, replica])
        self._core.later(delay, f"delete {replica} again", lambda: self._again(topic_id, replica))

    def _again(self, topic_id: TopicId, replica: Replica) -> None:
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
