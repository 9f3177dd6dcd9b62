"""The administrator's verbs of a scenario: alter, reassign, elect, delete, describe and list (KIP4-1).

Commands go to the active controller and are answered at once; what they begin is done later, which ``describe`` shows.
Descriptions and lists are lines of the history, and so are their errors. Each verb asks in the name of a principal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.errors import RefusedError
from reconciler.simulator.admin import Admin, AlterTopic, CommandOutcome, GivenPartition, TopicDescription
from reconciler.simulator.cluster import AnsweredError, Cluster
from reconciler.simulator.kernel import ANONYMOUS
from reconciler.text import count


class AdminVerbs:
    """Carries out the administrator's lines of one scenario."""

    def __init__(self, cluster: Cluster, topic_id: Callable[[str, int], TopicId]) -> None:
        """``topic_id`` gives the ID of a name's first, second … topic."""
        self._cluster, self._topic_id = cluster, topic_id
        self.verbs: Mapping[str, Callable[..., object]] = {
            "alter": self._alter,
            "delete": self._delete,
            "reassign": self._reassign,
            "elect": self._elect,
            "describe": self._describe,
            "list": self._list,
        }

    def _alter(self, topic: str, change: Mapping[str, Any], *, principal: str = ANONYMOUS) -> None:
        _check(self._admin().alter_topics([AlterTopic(topic, **change)], principal)[topic])

    def _delete(self, topic: str, which: int | None = None, *, principal: str = ANONYMOUS) -> None:
        """Delete a topic by its name, or by the ID of one of those that had the name, and wait until it is gone."""
        if which is None:
            self._cluster.delete_topic(topic, principal=principal)
            return
        given = self._topic_id(topic, which)
        _check(self._admin().delete_topics([given], principal)[given])
        self._cluster.run_until(f"{topic} is gone", lambda: not self._cluster.oracle.is_there(topic))

    def _reassign(
        self,
        partition: TopicPartition,
        brokers: tuple[int, ...],
        which: int | None = None,
        *,
        principal: str = ANONYMOUS,
    ) -> None:
        given: GivenPartition = partition
        if which is not None:
            given = (self._topic_id(partition.topic, which), partition.partition)
        _check(self._admin().reassign([(given, tuple(map(int, brokers)))], principal)[given])

    def _elect(self, partition: TopicPartition | None = None, *, principal: str = ANONYMOUS) -> None:
        """Elect the first replica of a partition; without one, of every partition that another replica leads."""
        outcomes = self._admin().elect_preferred([] if partition is None else [partition], principal)
        for outcome in outcomes.values():
            if partition is not None or outcome.error is not KafkaError.ELECTION_NOT_NEEDED:
                _check(outcome)

    def _describe(self, topic: str | None = None, which: int | None = None, *, principal: str = ANONYMOUS) -> None:
        """Describe the brokers and one topic, by its name or by the ID of one that had the name; or all topics.

        Raises:
            AnsweredError: the topic cannot be described; the history says why.
        """
        given = [] if topic is None else [topic if which is None else self._topic_id(topic, which)]
        brokers = [f"{each.node_id} at {each.host}:{each.port}" for each in self._admin().describe_brokers(principal)]
        self._say(f"live brokers: {', '.join(brokers) or 'none is known yet'}")
        for found in self._cluster.describe_topics(given, principal=principal):
            for line in _lines(found):
                self._say(line)
            if found.error is not KafkaError.NONE:
                raise AnsweredError(found.error, "the broker", found.message)

    def _list(self, *, principal: str = ANONYMOUS) -> None:
        self._say(f"topics: {', '.join(self._admin().list_topics(principal)) or 'none'}")

    def _admin(self) -> Admin:
        active = self._cluster.active
        if active is None:
            raise RefusedError("there is no controller to ask")
        return active.admin

    def _say(self, text: str) -> None:
        self._cluster.world.history.say("admin", text)


def _check(outcome: CommandOutcome) -> None:
    if outcome.error is not KafkaError.NONE:
        raise AnsweredError(outcome.error, "the controller", outcome.message)


def _lines(found: TopicDescription) -> Iterator[str]:
    if found.error is not KafkaError.NONE:
        yield f"{found.topic or found.topic_id}: {found.error}: {found.message}"
        return
    configs = ", ".join(f"{name}={value}" for name, value in found.configs.items()) or "none"
    yield (
        f"{found.topic} with ID {found.topic_id}: {count(len(found.partitions), 'partition')}, "
        f"{'internal, ' if found.is_internal else ''}configs {configs}, operations {found.authorized_operations}"
    )
    for each in found.partitions:
        at = TopicPartition(found.topic, each.partition)
        error = "" if each.error is KafkaError.NONE else f", {each.error}"
        replicas = f"replicas {list(each.replicas)}, in sync {list(each.isr)}"
        yield f"{at}: leader {each.leader}{error}, {replicas}, lags {_lags(each.lags)}"


def _lags(lags: Mapping[int, int]) -> str:
    """Format how far each replica is behind; a replica that has not fetched yet has no number."""
    return ", ".join(f"{broker} by {lag if lag >= 0 else '?'}" for broker, lag in lags.items()) or "not known"
