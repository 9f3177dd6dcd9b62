"""A broker's side of moved topics: replicas get the name that ZooKeeper has for their ID (KIP37-3, KIP516-13).

Until that is done the broker answers 103 to requests under the new name, and no data is touched. In ``by-topic-id``
no directory moves; elsewhere each replica is renamed once, all of a topic's or none.
"""

from __future__ import annotations

from collections.abc import Callable

from layout.errors import LayoutError
from layout.topic import TopicPartition
from logstore.errors import LogStoreError
from logstore.store import LogStore
from reconciler.simulator.zookeeper.kafka_nodes import decode_topic, read_topics
from reconciler.simulator.zookeeper.kafka_paths import PARTITIONS, TOPICS, name_at
from reconciler.simulator.zookeeper.tree import Session


class BrokerTopics:
    """Keeps the names of one broker's replicas in step, from the broker's start to its end."""

    def __init__(
        self,
        store: LogStore,
        session: Session,
        let_go: Callable[[TopicPartition], None],
        say: Callable[[str], None],
    ) -> None:
        """Take what the broker has.

        Args:
            store: its log dirs.
            session: its own; where it opens another, make another of these.
            let_go: has the broker forget the role of a partition, before its replica is renamed.
            say: adds a line to the history.
        """
        self._store, self._session, self._let_go, self._say = store, session, let_go, say

    def start(self) -> None:
        """Bring the names in step, before the broker hears of any topic, and watch from then on.

        Where log dirs have tiers, ``BrokerNamespaces`` starts first: a topic moves into a tier that is there.
        """
        self._session.watch(TOPICS, self._changed)
        self._follow({str(node.topic_id): topic for topic, node in read_topics(self._session).items() if node.topic_id})

    def _changed(self, path: str) -> None:
        if self._session.expired or f"/{PARTITIONS}/" in f"{path}/":
            return
        found, topic = self._session.find(path), name_at(TOPICS, path)
        topic_id = decode_topic(found.data).topic_id if found is not None and found.data else None
        if topic is not None and topic_id is not None:
            self._follow({topic_id: topic})

    def _follow(self, name_by_id: dict[str, str]) -> None:
        """Rename the topics whose ID has another name by now; what a disk refuses is said, and left as it is."""
        old_names: dict[str, str] = {}
        for replica in self._store.replicas():
            wanted = name_by_id.get(str(replica.topic_id))
            if wanted is not None and wanted != replica.partition.topic:
                old_names[replica.partition.topic] = wanted
        for old, new in sorted(old_names.items()):
            for replica in self._store.replicas():
                if replica.partition.topic == old:
                    self._let_go(replica.partition)
            try:
                self._store.rename_topic(old, new)
                self._say(f"topic {old} is {new} now")
            except (LogStoreError, LayoutError) as error:
                self._say(f"topic {old} cannot be {new} here: {error}")
