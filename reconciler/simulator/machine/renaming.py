"""Topics under a new name or in a new namespace: what the store must do before such a request can be handled.

``Broker.handle`` makes no namespace and renames nothing by itself: it answers 17 for a topic whose namespace the disks
lack, and 103 for one whose data lies here under another name. In a simulated cluster the controller's word is enough
for both, so the store does it, and those partitions are handled once more. Source: KIP37-3, KIP37-4, KIP516-13.
"""

from __future__ import annotations

from dataclasses import replace

from layout.errors import LayoutError
from layout.scheme import Scheme
from layout.topic import namespace_of
from logstore import KafkaError, LogStoreError
from logstore.namespaces import create_namespace, list_namespaces, rename_topic
from logstore.store import LogStore
from reconciler.protocol import LeaderAndIsrRequest, LeaderAndIsrResponse, PartitionError, RequestType, TopicState
from reconciler.simulator.machine.host import Host
from reconciler.simulator.machine.hosted_replicas import HostedReplicas


class NamespaceChanges:
    """Namespaces and new names, as requests bring them."""

    def __init__(self, host: Host, store: LogStore, replicas: HostedReplicas) -> None:
        """Make them in this store; roles under an old name end."""
        self._host, self._store, self._replicas = host, store, replicas

    def prepare(self, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> LeaderAndIsrRequest | None:
        """Do what stood in the way of some partitions.

        Args:
            request: that was handled; its epochs are not stale.
            response: what it was answered.

        Returns:
            A request for those partitions alone, to be handled now; None: there are none.
        """
        topics = []
        for topic, answers in zip(request.topics, response.topics, strict=True):
            states = [
                state
                for state, answer in zip(topic.partitions, answers.partitions, strict=True)
                if answer.error in (KafkaError.INVALID_TOPIC_EXCEPTION, KafkaError.INCONSISTENT_TOPIC_ID)
            ]
            if states and self._prepare(topic):
                topics.append(replace(topic, partitions=tuple(states)))
        return replace(request, topics=tuple(topics), type=RequestType.INCREMENTAL) if topics else None

    def _prepare(self, topic: TopicState) -> bool:
        """Make the namespace of a topic, and give it the name; whether anything was done."""
        try:
            made = self._make_namespace(namespace_of(topic.topic))
            return self._rename(topic) or made
        except (LogStoreError, LayoutError) as error:
            self._host.say(f"{topic.topic}: {error}")
            return False

    def _make_namespace(self, namespace: str) -> bool:
        needed = any(log_dir.scheme is Scheme.NAMESPACED for log_dir in self._store.log_dirs)
        if not namespace or not needed or namespace in list_namespaces(self._store):
            return False
        create_namespace(self._store, namespace)
        self._host.say(f"namespace {namespace} is made")
        return True

    def _rename(self, topic: TopicState) -> bool:
        former = None if topic.topic_id is None else self._store.topic_of(topic.topic_id)
        if former is None or former == topic.topic:
            return False
        old = [each for each in self._replicas if each.at.topic == former]
        self._replicas.flush(old)
        for each in old:
            self._replicas.drop(each.at)
        rename_topic(self._store, former, topic.topic)
        self._host.say(f"topic {former} is called {topic.topic} from now on")
        return True


def merged(first: LeaderAndIsrResponse, second: LeaderAndIsrResponse) -> LeaderAndIsrResponse:
    """The first answer, with those of the second in the place of its own."""
    newer = {(topic.topic, each.partition): each for topic in second.topics for each in topic.partitions}
    return replace(
        first,
        topics=tuple(
            replace(topic, partitions=tuple(_newer(newer, topic.topic, each) for each in topic.partitions))
            for topic in first.topics
        ),
    )


def _newer(newer: dict[tuple[str, int], PartitionError], topic: str, answer: PartitionError) -> PartitionError:
    return newer.get((topic, answer.partition), answer)
