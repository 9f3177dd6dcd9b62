"""The plan of the sample fleet: what will lie where, and what an audit must find there, while stories change both.

Nothing is written here. Paths are below the fleet's folder, with ``/`` between the parts: log dir, then the name in it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from layout import partition_metadata
from layout.directory_name import DirectoryKind, live_name, parse
from layout.ids import TopicId
from reconciler.verdicts import Verdict
from tools.fleet.sample_cluster import SampleCluster, SamplePartition


@dataclass(frozen=True, slots=True, order=True)
class Planted:
    """One finding that a right audit must report."""

    verdict: str
    log_dir: str
    """Below the fleet's folder; empty when nothing lies on a disk."""
    name: str
    """As in the log dir, ``.`` for itself; topic-partition for what is not there, and for a checkpoint entry."""
    broker: int


@dataclass(frozen=True, slots=True, order=True)
class PlantedFleet:
    """One fleet finding that a right audit must report."""

    kind: str
    subject: str


@dataclass(frozen=True, slots=True)
class PlannedReplica:
    """One partition dir that will be written."""

    metadata: bytes | None
    """Content of ``partition.metadata``; None: there is no such file."""
    topic_id: TopicId | None
    """What that file says when it is sound."""
    partition: int


@dataclass(slots=True)
class SamplePlan:
    """Everything that will be written, and the truth about it."""

    cluster: SampleCluster
    rng: random.Random
    now_ms: int
    replicas: dict[str, PlannedReplica] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    forgotten: list[tuple[str, str, str, int]] = field(default_factory=list)
    """Log dir, checkpoint file, topic and partition of entries that no directory answers for."""
    unmounted: list[str] = field(default_factory=list)
    """Log dirs that are empty mount points."""
    foreign_disks: dict[str, str] = field(default_factory=dict)
    """Log dir → ID of the other cluster that it belongs to."""
    findings: list[Planted] = field(default_factory=list)
    fleet: list[PlantedFleet] = field(default_factory=list)
    _used: set[tuple[str, int]] = field(default_factory=set)

    def find(self, verdict: Verdict, node: int, name: str, disk: int | None = None) -> None:
        """Write down that an audit must find this; ``disk`` is None for what lies on no disk."""
        self.findings.append(Planted(verdict.value, "" if disk is None else log_dir(node, disk), name, node))

    def place(self, path: str, topic_id: TopicId, partition: int) -> None:
        """Plan a partition dir with a sound ``partition.metadata``."""
        self.replicas[path] = PlannedReplica(partition_metadata.encode(topic_id), topic_id, partition)

    def damage(self, path: str, metadata: bytes | None) -> None:
        """Give a planned partition dir a ``partition.metadata`` without a valid topic ID; None: no such file."""
        self.replicas[path] = PlannedReplica(metadata, None, self.replicas[path].partition)

    def pick(self, topic: str, node: int | None = None) -> tuple[SamplePartition, int, str]:
        """A replica for a story: of the topic's first partition that no other story uses, and that the broker holds.

        Without a broker it is the partition's first replica.

        Returns:
            The partition, the broker, and the replica's path, at which it is planned.
        """
        for partition in self.cluster.partitions:
            holder = partition.replicas[0] if node is None else node
            if partition.topic != topic or (topic, partition.index) in self._used or holder not in partition.replicas:
                continue
            path = self.path(partition, holder)
            if path in self.replicas:
                self._used.add((topic, partition.index))
                return partition, holder, path
        raise LookupError(f"no replica of {topic} is left for another story on broker {node}")

    def unwanted_on(self, topic: str, node: int) -> SamplePartition:
        """For a story of leftovers: the topic's first unused partition that the broker should not hold."""
        for partition in self.cluster.partitions:
            key = (topic, partition.index)
            if partition.topic == topic and key not in self._used and node not in partition.replicas:
                self._used.add(key)
                return partition
        raise LookupError(f"every partition of {topic} is wanted on broker {node}, or used by another story")

    def path(self, partition: SamplePartition, node: int) -> str:
        """The place of a wanted replica when nothing is wrong."""
        return f"{log_dir(node, partition.disk_on(node))}/{live_name(partition.topic, partition.index)}"

    def unique(self) -> str:
        """The random part of a delete, stray or future name."""
        return self.rng.randbytes(16).hex()

    def live(self) -> Iterator[tuple[str, str]]:
        """Log dir and name of every planned directory that is live by its name."""
        for path in self.replicas:
            home, _, name = path.rpartition("/")
            if parse(name).kind is DirectoryKind.LIVE:
                yield home, name


def lay_out(cluster: SampleCluster, rng: random.Random, now_ms: int) -> SamplePlan:
    """A plan in which every replica lies where it should, before anything happens to it."""
    plan = SamplePlan(cluster, rng, now_ms)
    for partition, node in cluster.wanted():
        plan.place(plan.path(partition, node), partition.topic_id, partition.index)
    return plan


def log_dir(node: int, disk: int) -> str:
    """Path of a log dir below the fleet's folder; disks count from 0."""
    return f"broker-{node:02d}/disk-{disk + 1}"
