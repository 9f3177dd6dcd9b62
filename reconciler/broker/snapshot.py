"""What lies on a broker's disks when a control request comes: read first, so that a decision is made of values alone.

The live replicas come from the store's index. Among what is staged, only the replicas are looked for that the request
may want live again: of partitions that it places here under a topic ID, and that are not live under that ID.
Source: DESIGN §4.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.store import Entry, LogStore, Replica
from reconciler.broker.memory import PartitionKey
from reconciler.broker.restorable import RestorableReplica, find_restorable
from reconciler.protocol import ControlRequest, LeaderAndIsrRequest, RequestType, StopReplicaRequest, StopTopic


@dataclass(frozen=True, slots=True)
class DiskSnapshot:
    """The replicas on a broker's disks, as far as one request asks about them.

    Attributes:
        entries: live replicas, as the store holds them.
        duplicates: further copies of partitions that are live in several log dirs.
        offline: paths of offline log dirs; their replicas are not judged.
        topics: topic ID of the request, as text → topics of live replicas here with that ID, more than one where a
            rename did not reach all. Empty for a FULL request, which covers every replica by its name.
        restorable: partition that the request may want live again → its staged replicas, best first. A partition that
            is missing was not looked for, or a disk could not be listed: any replica of it may be staged.
        fences: partition of a StopReplica → the answer to a request for its name and topic ID.
    """

    entries: Mapping[PartitionKey, Entry]
    duplicates: Sequence[Replica] = ()
    offline: Collection[str] = ()
    topics: Mapping[str, Collection[str]] = field(default_factory=dict)
    restorable: Mapping[PartitionKey, Sequence[RestorableReplica]] = field(default_factory=dict)
    fences: Mapping[PartitionKey, KafkaError] = field(default_factory=dict)


def look_at_disks(store: LogStore, request: ControlRequest, node_id: int) -> DiskSnapshot:
    """Read everything that a decision about a request depends on. Nothing is changed."""
    if isinstance(request, StopReplicaRequest):
        entries = store.entries()
        fences = {
            (topic.topic, state.partition): _fence(store, entries, topic, state.partition)
            for topic in request.topics
            for state in topic.partitions
        }
        return DiskSnapshot(entries, store.duplicates, fences=fences)
    wanted = _not_live(request, node_id, store.entries())
    restorable = find_restorable(store, wanted)  # which finds out whether a disk fails
    return replace(look_at_live_replicas(store, request), restorable=restorable)


def look_at_live_replicas(store: LogStore, request: LeaderAndIsrRequest) -> DiskSnapshot:
    """Read what the verdicts on live replicas depend on, and nothing of what is staged."""
    topics = dict[str, Collection[str]]()
    if request.type is not RequestType.FULL:
        for topic in request.topics:
            found = () if topic.topic_id is None else store.names_of(topic.topic_id)
            if found:
                topics[str(topic.topic_id)] = found
    return DiskSnapshot(store.entries(), store.duplicates, frozenset(store.offline), topics)


def newest_files(places: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Find when the newest file of each directory was written, for the gate of the clock.

    A file of ours, and any other whose name begins with a dot, does not count.

    Args:
        places: paths of directories; one that cannot be read is left out, for it has a finding of its own.

    Yields:
        What it is, as ``the newest file in PATH``, and its time of change in ms since 1970.
    """
    for path in places:
        try:
            with os.scandir(path) as entries:
                times = [
                    entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000
                    for entry in entries
                    if not entry.name.startswith(".") and entry.is_file(follow_symlinks=False)
                ]
        except OSError:
            continue
        if times:
            yield f"the newest file in {path}", max(times)


def _fence(store: LogStore, entries: Mapping[PartitionKey, Entry], topic: StopTopic, partition: int) -> KafkaError:
    """Answer a StopReplica by topic ID and name; what lies here by that ID under another name is not what it means."""
    fenced = store.fence(TopicPartition(topic.topic, partition), topic.topic_id)
    named, topic_id = entries.get((topic.topic, partition)), topic.topic_id
    if topic_id is None or (named is not None and named.topic_id is not None):
        return fenced
    others = (entries.get((name, partition)) for name in store.names_of(topic_id))
    is_elsewhere = any(other is not None and other.topic_id == str(topic_id) for other in others)
    return KafkaError.INCONSISTENT_TOPIC_ID if is_elsewhere else fenced


def _not_live(
    request: LeaderAndIsrRequest, node_id: int, entries: Mapping[PartitionKey, Entry]
) -> dict[PartitionKey, TopicId]:
    """Find the partitions that are wanted here under a topic ID, and are not live, or under another ID."""
    found = dict[PartitionKey, TopicId]()
    if request.type is RequestType.UNSPECIFIED:
        return found  # nothing is restored for it
    for topic in request.topics:
        if topic.topic_id is None:
            continue
        name, unaffected = topic.topic, (str(topic.topic_id), None)
        for state in topic.partitions:
            entry = entries.get((name, state.partition))
            if (entry is None or entry.topic_id not in unaffected) and node_id in state.replicas:
                found[name, state.partition] = topic.topic_id
    return found
