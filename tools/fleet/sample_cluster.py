"""The cluster behind the sample fleet: topics, brokers, who holds what, and the KRaft metadata that says so.

Owns what is *wanted*; what lies on the disks, and what has gone wrong there, belongs to ``sample_fleet``. The metadata
tells a story in two parts, a snapshot and the log after it: since the snapshot a topic was deleted, one was re-created
under its old name, and two reassignments have begun. So a reader that stops at the snapshot gives wrong verdicts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from layout.ids import DirectoryId, TopicId
from tools.writers import (
    feature_level_record,
    no_op_record,
    partition_change_record,
    partition_record,
    register_broker_record,
    remove_topic_record,
    topic_record,
)

BROKERS = 12
DISKS = 2
LONG_TOPIC = "warehouse.eu-central.replenishment.forecast.daily-by-article-and-store." + "with-history-" * 12 + "v2"
"""229 characters: a broker cuts it in the name of a stray or delete dir (FACTS §1.2)."""

TOPICS: tuple[tuple[str, int, int], ...] = (
    ("orders", 24, 3),
    ("payments", 12, 3),
    ("clicks", 18, 2),
    ("page-views", 24, 2),
    ("inventory", 8, 3),
    ("shipments", 8, 3),
    ("users", 6, 3),
    ("emails", 6, 2),
    ("sessions", 12, 2),
    ("audit-log", 6, 3),
    ("metrics.cpu", 10, 2),
    ("search_index", 8, 2),
    (LONG_TOPIC, 4, 2),
    ("__consumer_offsets", 10, 3),
    ("__transaction_state", 4, 3),
)
"""Name, partitions, replication factor."""

RECREATED, DELETED = "clicks", "legacy-exports"
FEATURE_LEVEL_39 = 21


@dataclass(frozen=True, slots=True)
class SamplePartition:
    """One partition as the controller wants it; ``disks`` stands beside ``replicas`` and counts from 0."""

    topic: str
    topic_id: TopicId
    index: int
    replicas: tuple[int, ...]
    disks: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    def disk_on(self, node: int) -> int:
        """The disk of that broker on which the replica should lie."""
        return self.disks[self.replicas.index(node)]

    def settled(self) -> SamplePartition:
        """The same before its reassignment began."""
        kept = len(self.replicas) - len(self.adding)
        return replace(self, replicas=self.replicas[:kept], disks=self.disks[:kept], adding=(), removing=())


@dataclass(slots=True)
class SampleCluster:
    """All that the controller knows, at the end of the story and at the time of the snapshot."""

    cluster_id: str
    topic_ids: dict[str, TopicId]
    old_ids: dict[str, TopicId]
    """Of the re-created topic and of the deleted one, as the snapshot has them."""
    directory_ids: dict[int, tuple[DirectoryId, ...]]
    partitions: list[SamplePartition] = field(default_factory=list)
    old_partitions: list[SamplePartition] = field(default_factory=list)

    def wanted(self) -> Iterator[tuple[SamplePartition, int]]:
        """Every replica that should exist, with its broker."""
        for partition in self.partitions:
            for node in partition.replicas:
                yield partition, node


def design(rng: random.Random) -> SampleCluster:
    """Draw the IDs and spread the replicas; the same generator state gives the same cluster."""
    ids = {name: TopicId.random(rng.randbytes) for name, _, _ in TOPICS}
    old_ids = {name: TopicId.random(rng.randbytes) for name in (RECREATED, DELETED)}
    # Broker 12 has registered one log dir only: what is in its second slot is a disk of another cluster.
    counts = {node: 1 if node == BROKERS else DISKS for node in range(1, BROKERS + 1)}
    directories = {node: tuple(DirectoryId.random(rng.randbytes) for _ in range(n)) for node, n in counts.items()}
    cluster = SampleCluster(str(TopicId.random(rng.randbytes)), ids, old_ids, directories)
    for salt, (name, partitions, factor) in enumerate(TOPICS):
        cluster.partitions += _spread(cluster, name, ids[name], (partitions, factor), salt)
    cluster.old_partitions += _spread(cluster, RECREATED, old_ids[RECREATED], (18, 2), 3)
    cluster.old_partitions += _spread(cluster, DELETED, old_ids[DELETED], (6, 2), 7)
    return cluster


def _spread(
    cluster: SampleCluster, topic: str, topic_id: TopicId, shape: tuple[int, int], salt: int
) -> list[SamplePartition]:
    """Round-robin over brokers with a stride that changes from round to round, and over each broker's disks.

    ``shape`` is the number of partitions and the replication factor; ``salt`` makes one topic differ from the next.
    """
    partitions, factor = shape
    spread = []
    for index in range(partitions):
        stride = 1 + (salt + index // BROKERS) % 3
        replicas = tuple((index + 5 * salt + stride * copy) % BROKERS + 1 for copy in range(factor))
        disks = tuple((index + salt) % len(cluster.directory_ids[node]) for node in replicas)
        spread.append(SamplePartition(topic, topic_id, index, replicas, disks, replicas))
    return spread


def begin_reassignment(cluster: SampleCluster, partition: SamplePartition, incoming: int) -> SamplePartition:
    """Let a reassignment take the partition from its first replica's broker to ``incoming``; neither step is done."""
    after = replace(
        partition,
        replicas=(*partition.replicas, incoming),
        disks=(*partition.disks, 0),
        adding=(incoming,),
        removing=partition.replicas[:1],
    )
    return _put_in_place(cluster, partition, after)


def shrink_isr(cluster: SampleCluster, partition: SamplePartition, last: int) -> SamplePartition:
    """Let all replicas of the partition but one fall out of sync."""
    return _put_in_place(cluster, partition, replace(partition, isr=(last,)))


def _put_in_place(cluster: SampleCluster, before: SamplePartition, after: SamplePartition) -> SamplePartition:
    cluster.partitions[cluster.partitions.index(before)] = after
    return after


def snapshot_records(cluster: SampleCluster) -> list[bytes]:
    """The state at the time of the snapshot: the old IDs, and no reassignment."""
    records = [feature_level_record("metadata.version", FEATURE_LEVEL_39)]
    for node, directories in cluster.directory_ids.items():
        ordered = sorted(directories, key=lambda directory: directory.halves)
        records.append(register_broker_record(node, 100 + node, directory_ids=ordered))
    settled = [p.settled() for p in cluster.partitions if p.topic != RECREATED]
    return records + _creation(cluster, [*settled, *cluster.old_partitions])


def log_records(cluster: SampleCluster) -> list[list[bytes]]:
    """The changes since the snapshot, a batch for each."""
    changes = [
        partition_change_record(
            p.topic_id,
            p.index,
            replicas=p.replicas,
            addingReplicas=p.adding,
            removingReplicas=p.removing,
            directories=_directories(cluster, p),
        )
        for p in cluster.partitions
        if p.adding
    ]
    recreated = [p for p in cluster.partitions if p.topic == RECREATED]
    return [
        [remove_topic_record(cluster.old_ids[DELETED])],
        [remove_topic_record(cluster.old_ids[RECREATED])],
        _creation(cluster, recreated),
        changes,
        [no_op_record()],
    ]


def _creation(cluster: SampleCluster, partitions: Sequence[SamplePartition]) -> list[bytes]:
    """TopicRecord and PartitionRecords of the topics that the partitions belong to."""
    records = []
    seen: set[TopicId] = set()
    for p in partitions:
        if p.topic_id not in seen:
            seen.add(p.topic_id)
            records.append(topic_record(p.topic, p.topic_id))
        records.append(
            partition_record(
                p.topic_id, p.index, p.replicas, isr=p.isr, leader=p.isr[0], directories=_directories(cluster, p)
            )
        )
    return records


def _directories(cluster: SampleCluster, partition: SamplePartition) -> list[DirectoryId]:
    return [cluster.directory_ids[node][disk] for node, disk in zip(partition.replicas, partition.disks, strict=True)]
