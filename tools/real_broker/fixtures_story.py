"""What happens to the cluster whose disks become a fixture, and what its disks must hold for it.

Three brokers with two disks each. Broker 2 is stopped cleanly and stays down while topics are deleted, re-created,
moved and made; broker 3 is killed at the end, in the middle of a move between its disks; broker 1 sees all of it and
is stopped cleanly. Each step notes what it leaves behind, and the verdict that follows from that alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from tools.real_broker.client import Topic, until
from tools.real_broker.cluster import Cluster
from tools.real_broker.errors import NotInTimeError, RealBrokerError
from tools.real_broker.fixtures_planted import PARTITION_METADATA, Planted, planted, with_what_has_no_id
from tools.real_broker.releases import Mode
from tools.real_broker.servers import Broker, ZooKeeper
from tools.real_broker.znodes import connected

BROKERS, LOG_DIRS = 3, 2
RECORDS = 20
OFFSETS = "__consumer_offsets"

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

TRIES, SECONDS_OF_A_TRY = 3, 20
"""To begin a move between disks."""

SMALL_SEGMENTS = {"segment.index.bytes": "100", "index.interval.bytes": "0"}
"""A segment ends when its index is full, so these give several of them with few records."""


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
            self._restart_into_a_recreated_topic()
        self._before_the_stop()
        self.cluster.stop_broker(2)
        self._while_broker_2_is_down()
        self._before_the_kill()
        self.topics = {name: self._client.describe_topic(name) for name in self._client.topic_names()}
        self.cluster.kill_broker(3)
        self.cluster.stop()
        if isinstance(self.cluster.metadata, ZooKeeper):
            self._have_a_snapshot_written(self.cluster.metadata)
        self.planted = with_what_has_no_id(self.planted, self.cluster)

    def _plant(self, broker: int, topic: Topic, verdict: str, how: str, at_start: str = "") -> None:
        self.planted += planted(broker, topic, verdict, how, at_start)

    @property
    def _set_aside_at_start(self) -> str:
        """What a broker does to a replica that is not wanted: in ZooKeeper mode nothing (FACTS §6)."""
        return "renamed_to_stray" if self.cluster.mode is Mode.KRAFT else ""

    def _create(self, name: str, assignment: Sequence[Sequence[int]], **settings: str) -> Topic:
        self._client.create_topic(name, assignment, settings)
        self._client.produce(name, RECORDS)
        return self._client.wait_until_in_sync(name)

    def _healthy(self) -> None:
        """Topics that stay as they are; of one, a replica has moved to the other disk of its broker."""
        self._client.create_topic("orders", [[1, 2], [2, 3], [3, 1]], SMALL_SEGMENTS)
        for _ in range(10):
            self._client.produce("orders", 9)
        self._create("compacted", [[2, 1, 3]], **{"cleanup.policy": "compact"})
        self._commit("readers", "orders", 1)
        self._client.wait_until_in_sync(OFFSETS)
        topic = self._create("swapped", [[1]])
        self.cluster.reassign("swapped", {0: [1]}, {0: [self._other_disk(self.cluster.brokers[1], "swapped")]})
        how = "its place was taken by the copy on the other disk"
        self._plant(1, topic, "MARKED_DELETE", how, "deleted")

    def _commit(self, group: str, topic: str, offset: int) -> None:
        """Commit an offset of partition 0, which makes the internal topic."""
        import confluent_kafka

        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": group})
        try:
            consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, offset)], asynchronous=False)
        finally:
            consumer.close()

    def _restart_into_a_recreated_topic(self) -> None:
        """A KRaft broker comes back to a topic that was re-created, and sets its old replica aside."""
        old = self._create("aside", [[2, 1]])
        self.cluster.stop_broker(2)
        self.cluster.recreate_topic("aside", [[1, 2]])
        self.cluster.start_broker(2)
        self._client.wait_until_in_sync("aside")
        self._plant(1, old, "MARKED_DELETE", "deleted while this broker ran", "deleted")
        self._plant(2, old, "STRAY", "re-created while this broker was down, and set aside when it came back")

    def _before_the_stop(self) -> None:
        """All that broker 2 leads when it is stopped, and a move between its disks that is held back."""
        for name in ("again", "elsewhere", "gone", "moved", "lost"):
            self._create(name, [[2, 1]])
        self._fill("shift", [2, 1])
        self._begin_to_move(self.cluster.brokers[2], "shift", [2, 1])

    def _while_broker_2_is_down(self) -> None:
        old = {name: self._client.describe_topic(name) for name in ("again", "elsewhere", "gone", "moved", "shift")}
        aside = self._set_aside_at_start
        self._delete(old["gone"])
        self._plant(2, old["gone"], "UNKNOWN_TOPIC", "deleted while this broker was down", aside)
        self._recreate(old["again"], [[1, 2]])
        how = "re-created, for this broker too, while it was down"
        self._plant(2, old["again"], "STALE_ID", how, aside or "not_served")
        self._recreate(old["elsewhere"], [[1]])
        how = "re-created on another broker while this one was down"
        self._plant(2, old["elsewhere"], "STALE_ID", how, aside)
        for name in ("moved", "shift"):
            self.cluster.reassign(name, {0: [1, 3]})
            self._client.wait_until_in_sync(name)
            how = "moved to another broker while this one was down"
            self._plant(2, old[name], "NOT_ASSIGNED", how, aside)
        how = "moved to another broker in the middle of a move between the disks of this one"
        self._plant(2, old["shift"], "FUTURE_ABANDONED", how, aside)
        late = self._client.create_topic("late", [[1, 2]])
        self._client.produce("late", RECORDS)
        self._plant(2, late, "MISSING", "created while this broker was down")
        (self._replica(self.cluster.brokers[2], "lost") / PARTITION_METADATA).unlink()
        lost = self._client.describe_topic("lost")
        self._plant(2, lost, "NO_ID", "partition.metadata was removed", aside)

    def _before_the_kill(self) -> None:
        broker = self.cluster.brokers[3]
        self._create("dropped", [[3, 1]])
        self._delete(self._client.describe_topic("dropped"))
        self._fill("moving", [3])
        self._begin_to_move(broker, "moving", [3])
        how = "this broker was killed in the middle of a move between its disks"
        self._plant(3, self._client.describe_topic("moving"), "FUTURE", how, "replaced")
        # A broker writes this file now and then, and a kill before the next time would leave an entry too many.
        until("the checkpoints of broker 3 have forgotten dropped", lambda: not list(_entries(broker, "dropped")))

    def _delete(self, topic: Topic) -> None:
        """Delete a topic for good, though a broker with a replica is down."""
        going = {broker for part in topic.partitions.values() for broker in part.replicas}
        up = {number for number in going if self.cluster.brokers[number].running}
        hangs = self.cluster.mode is Mode.ZOOKEEPER and up != going
        self._client.delete_topic(topic.name, wait=not hangs)
        for number in up:
            until(f"broker {number} has deleted {topic.name}", partial(self._is_gone, number, topic.name))
            self._plant(number, topic, "MARKED_DELETE", "deleted while this broker ran", "deleted")
        if hangs:
            self.cluster.forget_topic(topic.name)

    def _is_gone(self, broker: int, name: str) -> bool:
        return self.cluster.brokers[broker].replica(name, 0) is None

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
        target = self._other_disk(broker, name)
        places = [target if number == broker.node_id else "any" for number in brokers]
        copies = partial(target.glob, f"{name}-0.*-future/*.log")
        for _ in range(TRIES):
            # Release 2.8 now and then makes the directory and never fetches; asked again, it does.
            self.cluster.reassign(name, {0: brokers}, {0: places}, wait=False, throttle=THROTTLE)
            with suppress(NotInTimeError):
                until(f"the copy of {name} has begun", lambda: any(map(_size, copies())), SECONDS_OF_A_TRY)
                return
        raise RealBrokerError(f"broker {broker.node_id} began no copy of {name}-0 on its other disk; look into its log")

    def _replica(self, broker: Broker, name: str) -> Path:
        path = broker.replica(name, 0)
        if path is None:
            raise RealBrokerError(f"broker {broker.node_id} has no replica of {name}-0, where it was made")
        return path

    def _other_disk(self, broker: Broker, name: str) -> Path:
        (other,) = (disk for disk in broker.log_dirs if disk != self._replica(broker, name).parent)
        return other

    def _have_a_snapshot_written(self, zookeeper: ZooKeeper) -> None:
        """ZooKeeper writes a snapshot of all it knows when it is started, and seldom else."""
        zookeeper.launch()
        zookeeper.wait_until_ready()
        # It listens at once, and takes a session only after it has written the snapshot.
        with connected(zookeeper.address) as client:
            client.exists("/brokers")
        zookeeper.stop()


def _size(path: Path) -> int:
    return path.stat().st_size


def _entries(broker: Broker, topic: str) -> Iterator[str]:
    for disk in broker.log_dirs:
        for path in disk.glob("*-offset-checkpoint"):
            yield from (line for line in path.read_text().splitlines() if line.startswith(f"{topic} "))
