"""What happens to the cluster whose disks become a fixture, and what its disks must hold for it.

Three brokers with two disks each. Broker 2 is stopped cleanly and stays down while topics are deleted, re-created, moved
and made; broker 3 is killed at the end, in the middle of a move between its disks; broker 1 sees all of it and is
stopped cleanly. Each step notes what it leaves behind, and the verdict that follows from that alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.real_broker.client import Topic, until
from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import RealBrokerError
from tools.real_broker.releases import Mode
from tools.real_broker.servers import Broker, ZooKeeper

BROKERS, LOG_DIRS = 3, 2
RECORDS = 20

SETTINGS = {
    # Whatever is marked for deletion is still there when the disks are packed.
    "log.segment.delete.delay.ms": 3_600_000,
    "log.index.size.max.bytes": 4096,
    "replica.high.watermark.checkpoint.interval.ms": 500,
    # A move between disks under a throttle stops after its first fetch, which is a small part of the replica.
    "replica.fetch.max.bytes": 10_000,
}
THROTTLE = 500
"""Bytes each second: after the first fetch of a move between disks the next one is minutes away."""

SMALL_SEGMENTS = {"segment.index.bytes": "100", "index.interval.bytes": "0"}
"""A segment ends when its index is full, so these give several of them with few records."""


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
    how: str


class Story:
    """The steps, on a running cluster that has nothing yet."""

    def __init__(self, cluster: Cluster) -> None:
        """Nothing is done yet."""
        self.cluster = cluster
        self.planted: list[Planted] = []
        self.topics: dict[str, Topic] = {}
        """What the cluster wants in the end, as its brokers describe it."""
        self._client = cluster.client

    def tell(self) -> None:
        """Do it all; in the end nothing runs.

        Raises:
            RealBrokerError: if the cluster does not do as it should.
        """
        self._healthy()
        if self.cluster.mode is Mode.KRAFT:
            self._set_aside()
        self._before_the_stop()
        self.cluster.stop_broker(2)
        self._while_broker_2_is_down()
        self._before_the_kill()
        self.topics = {name: self._client.describe_topic(name) for name in self._client.topic_names()}
        self.cluster.kill_broker(3)
        self.cluster.stop()
        if isinstance(self.cluster.metadata, ZooKeeper):
            self._have_a_snapshot_written(self.cluster.metadata)

    def manifest(self) -> dict[str, Any]:
        """What was made, and what must be found, in words that JSON knows."""
        topics = {
            name: {
                "topic_id": topic.topic_id,
                "replicas": [sorted(topic.partitions[number].replicas) for number in sorted(topic.partitions)],
            }
            for name, topic in sorted(self.topics.items())
        }
        return {
            "kafka": self.cluster.release.version,
            "mode": str(self.cluster.mode),
            "cluster_id": self.cluster.cluster_id,
            "brokers": {
                "1": "stopped cleanly, after all the others",
                "2": "stopped cleanly, and down while topics changed",
                "3": "killed while it copied a replica to its other disk",
            },
            "log_dirs": LOG_DIRS,
            "topics": topics,
            "planted": [asdict(each) for each in sorted(self.planted, key=repr)],
            "without_id": [list(each) for each in sorted(self._without_id())],
        }

    def _plant(self, broker: int, topic: Topic, verdict: str, kind: str, how: str) -> None:
        for number in topic.partitions:
            topic_id = topic.topic_id if kind and verdict != "NO_ID" else None
            self.planted.append(Planted(broker, topic.name, number, verdict, kind, topic_id, how))

    def _create(self, name: str, assignment: Sequence[Sequence[int]], **settings: str) -> Topic:
        topic = self._client.create_topic(name, assignment, settings)
        self._client.produce(name, RECORDS)
        return self._client.wait_until_in_sync(name) if topic.partitions else topic

    def _healthy(self) -> None:
        """Topics to which nothing happens."""
        self._client.create_topic("orders", [[1, 2], [2, 3], [3, 1]], SMALL_SEGMENTS)
        for _ in range(10):
            self._client.produce("orders", 9)
        self._create("compacted", [[2, 1, 3]], **{"cleanup.policy": "compact"})

    def _set_aside(self) -> None:
        """A KRaft broker comes back to a topic that was re-created, and sets its old replica aside."""
        old = self._create("aside", [[2, 1]])
        self.cluster.stop_broker(2)
        self.cluster.recreate_topic("aside", [[1, 2]])
        self.cluster.start_broker(2)
        self._client.wait_until_in_sync("aside")
        self._plant(1, old, "MARKED_DELETE", "delete", "deleted while this broker ran")
        self._plant(2, old, "STRAY", "stray", "re-created while this broker was down, and set aside when it came back")

    def _before_the_stop(self) -> None:
        """All that broker 2 leads when it is stopped, and a move between its disks that is held back."""
        for name in ("again", "elsewhere", "gone", "moved", "lost"):
            self._create(name, [[2, 1]])
        self._fill("shift", [2, 1])
        self._begin_to_move(self.cluster.brokers[2], "shift", [2, 1])

    def _while_broker_2_is_down(self) -> None:
        old = {name: self._client.describe_topic(name) for name in ("again", "elsewhere", "gone", "moved", "shift")}
        self._delete(old["gone"])
        self._plant(2, old["gone"], "UNKNOWN_TOPIC", "live", "deleted while this broker was down")
        self._recreate(old["again"], [[1, 2]])
        self._plant(2, old["again"], "STALE_ID", "live", "re-created, for this broker too, while it was down")
        self._recreate(old["elsewhere"], [[1]])
        self._plant(2, old["elsewhere"], "STALE_ID", "live", "re-created on another broker while this one was down")
        for name in ("moved", "shift"):
            self.cluster.reassign(name, {0: [1, 3]})
            self._client.wait_until_in_sync(name)
            self._plant(2, old[name], "NOT_ASSIGNED", "live", "moved to another broker while this one was down")
        self._plant(2, old["shift"], "FUTURE_ABANDONED", "future", "moved away in the middle of a move between disks")
        late = self._client.create_topic("late", [[1, 2]])
        self._client.produce("late", RECORDS)
        self._plant(2, late, "MISSING", "", "created while this broker was down")
        lost = self.cluster.brokers[2].replica("lost", 0)
        if lost is None:
            raise RealBrokerError("broker 2 has no replica of lost-0; it should, as its leader")
        (lost / "partition.metadata").unlink()
        self._plant(2, self._client.describe_topic("lost"), "NO_ID", "live", "partition.metadata was removed")

    def _before_the_kill(self) -> None:
        broker = self.cluster.brokers[3]
        self._create("dropped", [[3, 1]])
        self._delete(self._client.describe_topic("dropped"))
        self._fill("moving", [3])
        self._begin_to_move(broker, "moving", [3])
        moving = self._client.describe_topic("moving")
        self._plant(3, moving, "FUTURE", "future", "this broker was killed in the middle of a move between its disks")
        # A broker writes this file now and then, and a kill before the next time would leave an entry too many.
        until("the checkpoints of broker 3 have forgotten dropped", lambda: not list(_entries(broker, "dropped")))

    def _delete(self, topic: Topic) -> None:
        """Delete a topic for good, though a broker with a replica is down."""
        going = {broker for part in topic.partitions.values() for broker in part.replicas}
        up = {number for number in going if self.cluster.brokers[number].running}
        hangs = self.cluster.mode is Mode.ZOOKEEPER and up != going
        self._client.delete_topic(topic.name, wait=not hangs)
        for number in up:
            broker = self.cluster.brokers[number]
            until(f"broker {number} has deleted {topic.name}", lambda b=broker: b.replica(topic.name, 0) is None)
            self._plant(number, topic, "MARKED_DELETE", "delete", "deleted while this broker ran")
        if hangs:
            self.cluster.forget_topic(topic.name)

    def _recreate(self, old: Topic, assignment: Sequence[Sequence[int]]) -> None:
        self._delete(old)
        self._client.create_topic(old.name, assignment)
        self._client.produce(old.name, RECORDS)

    def _fill(self, name: str, brokers: Sequence[int]) -> None:
        """A topic of one partition that takes many fetches to copy."""
        self._client.create_topic(name, [brokers])
        for _ in range(8):
            self._client.produce(name, 12, size=900)
        self._client.wait_until_in_sync(name)

    def _begin_to_move(self, broker: Broker, name: str, brokers: Sequence[int]) -> None:
        """Begin a move to the other disk that will not end."""
        path = broker.replica(name, 0)
        if path is None:
            raise RealBrokerError(f"broker {broker.node_id} has no replica of {name}-0; it should, as its leader")
        (target,) = (disk for disk in broker.log_dirs if disk != path.parent)
        places = [target if number == broker.node_id else "any" for number in brokers]
        self.cluster.reassign(name, {0: brokers}, {0: places}, wait=False, throttle=THROTTLE)
        until(f"the copy of {name} has begun", lambda: any(map(_size, target.glob(f"{name}-0.*-future/*.log"))))

    def _have_a_snapshot_written(self, zookeeper: ZooKeeper) -> None:
        """ZooKeeper writes a snapshot of all it knows when it is started, and seldom else."""
        zookeeper.launch()
        zookeeper.wait_until_ready()
        zookeeper.stop()

    def _without_id(self) -> Iterator[tuple[int, str]]:
        """Broker and directory of replicas that never had a ``partition.metadata``: release 2.8 writes it late."""
        lost = {(each.broker, f"{each.topic}-{each.partition}") for each in self.planted if each.verdict == "NO_ID"}
        for number, broker in self.cluster.brokers.items():
            for disk in broker.log_dirs:
                for path in disk.iterdir():
                    is_replica = path.is_dir() and path.name != "__cluster_metadata-0"
                    if is_replica and not (path / "partition.metadata").exists() and (number, path.name) not in lost:
                        yield number, path.name


def _size(path: Path) -> int:
    return path.stat().st_size


def _entries(broker: Broker, topic: str) -> Iterator[str]:
    for disk in broker.log_dirs:
        for path in disk.glob("*-offset-checkpoint"):
            yield from (line for line in path.read_text().splitlines() if line.startswith(f"{topic} "))
