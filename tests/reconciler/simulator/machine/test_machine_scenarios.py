"""Brokers, the real controller, clients and faults: nothing acknowledged is lost, no topic shows another's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from random import Random

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.fs.crash_disk import MachineDisks
from reconciler.simulator.controller import Controller
from reconciler.simulator.kernel import Fault, FaultRates, Record, World
from reconciler.simulator.machine import (
    BelievedPartition,
    BrokerSettings,
    ClientMetadata,
    Consumer,
    Producer,
    SimulatedBroker,
    disk_faults,
)
from reconciler.simulator.zookeeper import ZooKeeper, kafka_paths
from reconciler.sources.zookeeper import znodes
from tests.reconciler.simulator.machine.brokers import ALL

SESSION_MS = 6_000
RATES = FaultRates.parse("default,disk_replaced=0,disk_swapped=0")
"""A disk that is replaced takes what was acknowledged with it, where it was the last one."""


class Machine:
    """One broker's machine, as the kernel's faults see it."""

    def __init__(self, cluster: Cluster, node_id: int, root: Path) -> None:
        self.name, self.world = f"broker-{node_id}", cluster.world
        root.mkdir()
        self.disks = MachineDisks(str(root), 2, lambda: self.world.passes(self.name))
        settings = BrokerSettings(min_insync_replicas=2, flush_records=1)
        self.broker = SimulatedBroker(
            *(node_id, self.disks, cluster.zookeeper, self.world.network, self.world.timers(self.name)),
            *(self.world.history, settings, partial(self.controller, node_id)),
        )

    def controller(self, node_id: int, broker_epoch: Callable[[], int]) -> Controller:
        world = self.world
        return Controller(node_id, broker_epoch, world.network, world.timers(self.name), world.history)

    @property
    def running(self) -> bool:
        return self.broker.running

    def start(self, random: Random) -> str:
        self.broker.start()
        return "starts"

    def crash(self) -> None:
        session = self.broker.session
        self.broker.crash()
        self.disks.crash(self.world.random)
        if session is not None:
            self.world.timers("zookeeper").after(SESSION_MS, "session is over", session.expire)

    def faults(self) -> Mapping[str, Fault]:
        if not self.running:
            return {"restart": self.start, **disk_faults.faults_while_stopped(self.disks)}
        return disk_faults.faults_while_running(self.disks)


class Cluster:
    """Brokers, a producer, and a consumer that checks what it sees."""

    def __init__(self, root: Path, seed: int, rates: FaultRates) -> None:
        self.world = World(seed, rates)
        self.zookeeper = ZooKeeper(self.world.timers("zookeeper"))
        self.session = self.zookeeper.session("test")
        self.random = self.world.randomness("load")
        self.machines = {node_id: Machine(self, node_id, root / str(node_id)) for node_id in ALL}
        for machine in self.machines.values():
            self.world.add_target(machine)
            self.world.guarded(machine.broker.start)
        timers = self.world.timers("client-1")
        self.metadata = ClientMetadata("client-1", ALL, self.world.network, timers)
        self.producer = Producer("client-1", self.metadata, self.world.network, self.random)
        self.consumer = Consumer("client-1", self.metadata, self.world.network)
        self.consumer.on_record = self.saw
        self.wrong: list[tuple[BelievedPartition, Record]] = []

    def saw(self, believed: BelievedPartition, record: Record) -> None:
        if record.topic_id != believed[1]:
            self.wrong.append((believed, record))

    def create(self, topic: str) -> TopicId:
        topic_id = TopicId.random(self.random.randbytes)
        node = znodes.encode_topic(topic_id, {0: (1, 2, 3), 1: (2, 3, 1)})
        self.session.create(kafka_paths.topic_path(topic), node)
        return topic_id

    def load(self, seconds: int) -> None:
        for _ in range(seconds * 5):
            self.producer.send("orders")
            self.consumer.poll(["orders"])
            self.world.run(for_ms=200)

    def settle(self) -> None:
        """Let nothing more go wrong, and start every broker anew: a disk that is back is used after a start only."""
        self.world.calm()
        self.world.faults.put_right()
        self.world.run(for_ms=10_000)
        for machine in self.machines.values():
            self.world.crash(machine.name)
            self.world.run(for_ms=SESSION_MS + 1_000)
            for number in machine.disks.offline:
                machine.disks.come_back(number)
            machine.broker.start()
            self.world.run(for_ms=20_000)

    def log(self, node_id: int, at: TopicPartition) -> list[str]:
        partition = self.machines[node_id].broker.replicas.get(at)
        return [] if partition is None else [each.value for each in partition.log.read(0, partition.log.end)]

    def active(self) -> Controller:
        controllers = [each.broker.controller for each in self.machines.values() if each.running]
        return next(each for each in controllers if isinstance(each, Controller) and each.active)

    def close(self) -> None:
        for machine in self.machines.values():
            machine.broker.crash()
            machine.disks.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path, 1, FaultRates.none())
    yield found
    found.close()


def test_a_topic_is_led_replicated_and_known_to_clients(cluster: Cluster) -> None:
    topic_id = cluster.create("orders")
    cluster.load(3)
    assert cluster.metadata.topic_id("orders") == topic_id
    assert len(cluster.producer.acknowledged) > 5
    seen = sum(len(records) for records in cluster.consumer.seen.values())
    assert seen > 5
    cluster.world.run(for_ms=5_000)
    for number in (0, 1):
        at = TopicPartition("orders", number)
        assert cluster.log(1, at) == cluster.log(2, at) == cluster.log(3, at) != []


# KIP516-5, KIP516-8
def test_a_topic_is_made_anew_while_a_broker_is_away(cluster: Cluster) -> None:
    old = cluster.create("orders")
    cluster.load(3)
    cluster.world.crash("broker-2")
    cluster.world.run(for_ms=SESSION_MS + 1_000)
    cluster.active().delete_topics(["orders"])
    cluster.world.run(for_ms=5_000)
    new = cluster.create("orders")
    cluster.load(3)
    cluster.machines[2].broker.start()
    cluster.load(10)
    assert cluster.wrong == []
    assert {believed[1] for believed in cluster.consumer.seen} == {old, new}
    store = cluster.machines[2].broker.store
    assert {replica.topic_id for replica in store.replicas()} == {new}
    assert {staged.topic_id for staged in store.staged()} == {old}
    cluster.world.run(for_ms=5_000)
    for number in (0, 1):
        at = TopicPartition("orders", number)
        assert cluster.log(2, at) == cluster.log(1, at) != []


@pytest.mark.parametrize("seed", range(6))
def test_whatever_goes_wrong_what_was_acknowledged_is_there_in_the_end(tmp_path: Path, seed: int) -> None:
    cluster = Cluster(tmp_path, seed, RATES)
    cluster.create("orders")
    cluster.load(60)
    cluster.settle()
    assert cluster.wrong == []
    assert cluster.producer.acknowledged
    for record in cluster.producer.acknowledged:
        for node_id in ALL:
            assert cluster.log(node_id, record.partition)[record.offset] == record.value
    cluster.close()
