"""The live replicas of a store by topic and partition: loaded from a scan, and updated with every change.

For 100,000 replicas this is one dictionary of plain tuples; a :class:`Replica` is made when it is asked for. Not
thread-safe by itself: ``OpenStore`` guards it with a lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.arguments import check_argument
from logstore.errors import InvalidArgumentError
from logstore.scan import LiveReplica


@dataclass(frozen=True, slots=True)
class Replica:
    """One live replica as it lies on one disk.

    Attributes:
        partition: by the topic's full name.
        topic_id: from its ``partition.metadata``; None: there is none that can be read.
        log_dir: path of its log dir.
        path: of its directory below the log dir.
        metadata_state: state of its ``partition.metadata``, a :class:`logstore.rows.MetadataState`.
        inode: of its directory; 0: not known.
    """

    partition: TopicPartition
    topic_id: TopicId | None
    log_dir: str
    path: str
    metadata_state: str
    inode: int


class Entry(NamedTuple):
    """One replica as the index holds it, with its topic ID as text: for callers that go through all replicas."""

    log_dir: str
    path: str
    topic_id: str | None
    state: str
    inode: int


class ReplicaIndex:
    """Live replicas by (topic, partition)."""

    def __init__(self) -> None:
        """Start without replicas."""
        self._entries: dict[tuple[str, int], Entry] = {}
        self._topics: dict[str, tuple[str, ...]] | None = None
        self.counts: dict[str, int] = {}
        """Log dir → how many replicas it has."""
        self.duplicates: list[Replica] = []
        """Duplicates: replicas of partitions that are live in another log dir too.

        A broker would not start with them (FACTS §1.7).
        """

    def load(self, log_dir: str, replicas: Sequence[LiveReplica]) -> None:
        """Add the replicas of one log dir, as :func:`logstore.scan.scan_live` found them."""
        entries = self._entries
        for topic, partition, topic_id, path, state, inode in replicas:
            key, entry = (topic, partition), Entry(log_dir, path, topic_id, state, inode)
            if entries.setdefault(key, entry) is not entry:
                self.duplicates.append(replica_of(TopicPartition(*key), entry))
        self.counts[log_dir] = len(replicas)
        self._topics = None

    def get(self, partition: TopicPartition) -> Replica | None:
        """Find the live replica of a partition."""
        entry = self.entry_of(partition)
        return None if entry is None else replica_of(partition, entry)

    def entry_of(self, partition: TopicPartition) -> Entry | None:
        """Find the entry of a partition: the fast path for callers that ask about many."""
        try:
            return self._entries.get((partition.topic, partition.partition))
        except (AttributeError, TypeError):  # a look-up has no time for a check before it
            check_argument("partition", partition, TopicPartition, InvalidArgumentError)
            raise

    def topic_of(self, topic_id: TopicId) -> str | None:
        """Find the topic whose replicas have this ID; of several names the one that was seen last."""
        found = self.names_of(topic_id)
        return found[-1] if found else None

    def names_of(self, topic_id: TopicId) -> tuple[str, ...]:
        """Find the names under which replicas have this ID: more than one where a rename did not reach all."""
        if self._topics is None:
            self._topics = {}
            for (topic, _), entry in self._entries.items():
                if entry.topic_id is not None:
                    self._name(entry.topic_id, topic)
        return self._topics.get(str(topic_id), ())

    def _name(self, topic_id: str, topic: str) -> None:
        assert self._topics is not None, "it is being built, or was"
        known = self._topics.get(topic_id)
        if known is None or known[-1] != topic:
            self._topics[topic_id] = (*(each for each in known or () if each != topic), topic)

    def put(self, replica: Replica) -> None:
        """Add a replica, or replace its entry."""
        key = (replica.partition.topic, replica.partition.partition)
        self.drop(replica.partition)
        entry = self._entries[key] = entry_of(replica)
        self.counts[replica.log_dir] = self.counts.get(replica.log_dir, 0) + 1
        if self._topics is not None and entry.topic_id is not None:
            self._name(entry.topic_id, replica.partition.topic)

    def drop(self, partition: TopicPartition) -> None:
        """Remove a replica; nothing happens when the index does not have it."""
        entry = self._entries.pop((partition.topic, partition.partition), None)
        if entry is not None:
            self.counts[entry.log_dir] -= 1
            self._topics = None

    def drop_copy(self, partition: TopicPartition, log_dir: str, inode: int) -> None:
        """Remove one copy; where a partition had several, a remaining copy becomes its replica."""
        copies = [each for each in self.duplicates if each.partition == partition] if self.duplicates else []
        for copy in copies:
            if (copy.log_dir, copy.inode) == (log_dir, inode):
                self.duplicates.remove(copy)
                self.counts[log_dir] -= 1
                return
        self.drop(partition)
        if copies:
            self.duplicates.remove(copies[0])
            self.counts[copies[0].log_dir] -= 1  # load() counted it, and put() counts it again
            self.put(copies[0])

    def entries(self) -> dict[tuple[str, int], Entry]:
        """Copy all entries, by (topic, partition): the fast path for callers that go through all replicas."""
        return dict(self._entries)

    def __iter__(self) -> Iterator[Replica]:
        return (replica_of(TopicPartition(*key), entry) for key, entry in list(self._entries.items()))

    def __len__(self) -> int:
        return len(self._entries)


def replica_of(partition: TopicPartition, entry: Entry) -> Replica:
    """Make a replica of its partition and its entry."""
    topic_id = None if entry.topic_id is None else TopicId.parse(entry.topic_id)
    return Replica(partition, topic_id, entry.log_dir, entry.path, entry.state, entry.inode)


def entry_of(replica: Replica) -> Entry:
    """Make the entry of a replica."""
    topic_id = None if replica.topic_id is None else str(replica.topic_id)
    return Entry(replica.log_dir, replica.path, topic_id, replica.metadata_state, replica.inode)
