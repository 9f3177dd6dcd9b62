"""What was planted in a fixture, as its story notes it, and the manifest that says so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tools.real_broker.client import Topic
from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import RealBrokerError

METADATA_LOG = "__cluster_metadata-0"
PARTITION_METADATA = "partition.metadata"
DIRECTORY = re.compile(r"(.+)-(\d+)(?:\.[0-9a-f]{32}-(delete|future|stray))?")
"""Topic, partition, and what a broker has marked it as."""

KINDS = {"MARKED_DELETE": "delete", "STRAY": "stray", "FUTURE": "future", "FUTURE_ABANDONED": "future", "MISSING": ""}
"""Kind of directory by verdict, where it is not a live one."""


@dataclass(frozen=True, slots=True, order=True)
class Planted:
    """One replica that is not as the cluster wants it, and why."""

    broker: int
    topic: str
    partition: int
    verdict: str
    kind: str
    """Of the directory, as a scan calls it; empty where there is none."""
    topic_id: str | None
    """That the disk holds."""
    at_start: str
    """What the broker does to it at its next start, as preflight calls it; empty where it does nothing."""
    how: str


def planted(broker: int, topic: Topic, verdict: str, how: str, at_start: str = "") -> list[Planted]:
    """The same of each partition of a topic.

    Args:
        broker: on whose disks.
        topic: as it was when the replicas were made.
        verdict: what an audit must say.
        how: what was done.
        at_start: see :class:`Planted`.
    """
    kind = KINDS.get(verdict, "live")
    topic_id = topic.topic_id if kind and verdict != "NO_ID" else None
    return [Planted(broker, topic.name, number, verdict, kind, topic_id, at_start, how) for number in topic.partitions]


def with_what_has_no_id(told: Sequence[Planted], cluster: Cluster) -> list[Planted]:
    """What was planted, and what it means that release 2.8 gives a replica its ``partition.metadata`` late or never.

    Raises:
        RealBrokerError: for a directory that the story does not tell of.
    """
    noted = {(each.broker, each.topic, each.partition, each.kind): each for each in told}
    for number, path in _without_id(cluster):
        name = DIRECTORY.fullmatch(path.name)
        key = (number, name[1], int(name[2]), name[3] or "live") if name is not None else None
        each = noted.get(key) if key is not None else None
        if key is None or (each is None and key[3] != "live"):
            raise RealBrokerError(f"{path} is no directory that the story tells of; look at what made it")
        if each is None:
            how = "this release had not given it an ID yet"
            noted[key] = Planted(*key[:3], "NO_ID", key[3], None, "", how)
        elif each.topic_id is not None:
            # Without an ID its live copy must speak for it, which is there and is judged itself.
            noted[key] = replace(each, topic_id=None, verdict="FUTURE" if each.kind == "future" else each.verdict)
    return list(noted.values())


def _without_id(cluster: Cluster) -> Iterator[tuple[int, Path]]:
    """Broker and path of each partition dir without ``partition.metadata``."""
    for number, broker in cluster.brokers.items():
        for disk in broker.log_dirs:
            for path in sorted(disk.iterdir()):
                if path.is_dir() and path.name != METADATA_LOG and not (path / PARTITION_METADATA).exists():
                    yield number, path


def manifest(cluster: Cluster, topics: Mapping[str, Topic], told: Sequence[Planted]) -> dict[str, Any]:
    """What was made, and what must be found, in words that JSON knows.

    Args:
        cluster: whose disks they are.
        topics: what it wants in the end, by name.
        told: what was planted.
    """
    return {
        "kafka": cluster.release.version,
        "mode": str(cluster.mode),
        "cluster_id": cluster.cluster_id,
        "topics": {
            name: {
                "topic_id": topic.topic_id,
                "replicas": [sorted(topic.partitions[number].replicas) for number in sorted(topic.partitions)],
            }
            for name, topic in sorted(topics.items())
        },
        "planted": [asdict(each) for each in sorted(told, key=repr)],
    }
