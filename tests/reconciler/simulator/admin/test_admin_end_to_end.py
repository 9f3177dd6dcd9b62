"""The commands on real brokers over real folders, with real controllers: asked for, carried out, seen by describe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.fs.crash_disk import MachineDisks
from reconciler.simulator.admin import (
    Admin,
    AlterTopic,
    BrokerNamespaces,
    CommandOutcome,
    CreateTopic,
    DeletePartitions,
    is_created,
)
from reconciler.simulator.admin.commands import TopicDescription
from reconciler.simulator.controller import Controller, FewerPartitionsSettings, fewer_partitions_extension
from reconciler.simulator.kernel import MetadataRequest, MetadataResponse, PartitionMode, World, broker_endpoint
from reconciler.simulator.machine import BrokerSettings, SimulatedBroker
from reconciler.simulator.zookeeper import Session, ZooKeeper, kafka_paths
from tests.reconciler.simulator.admin.admin_bench import is_deleted, is_preferred, is_reassigned

FEWER = FewerPartitionsSettings(enabled=True, interval_ms=1_000)
LONG_ENOUGH_MS = 60_000


class Machines:
    """Three brokers that are up, each with a controller and the commands."""

    def __init__(self, root: Path, scheme: Scheme) -> None:
        self.world = World(5)
        self.zookeeper = ZooKeeper(self.world.timers("zookeeper"))
        self.brokers: dict[int, SimulatedBroker] = {}
        self.admins: dict[int, Admin] = {}
        self.root = root
        for node_id in (1, 2, 3):
            (root / f"machine-{node_id}").mkdir()
            timers = self.world.timers(broker_endpoint(node_id))
            broker = SimulatedBroker(
                *(node_id, MachineDisks(str(root / f"machine-{node_id}"), 1), self.zookeeper, self.world.network),
                *(timers, self.world.history, BrokerSettings(scheme=scheme), partial(self.controller, node_id)),
            )
            self.brokers[node_id] = broker
            self.start(node_id)
        self.wait(lambda: bool(self.active))

    def start(self, node_id: int) -> None:
        broker, timers = self.brokers[node_id], self.world.timers(broker_endpoint(node_id))
        broker.start()
        self.admins[node_id] = self.admin_of(broker, timers)
        self.admins[node_id].start()
        assert broker.session is not None
        BrokerNamespaces(broker.store, broker.session, timers, lambda text: None).start()

    def controller(self, node_id: int, broker_epoch: Callable[[], int]) -> Controller:
        timers = self.world.timers(broker_endpoint(node_id))
        ports = (self.world.network, timers, self.world.history)
        extension = fewer_partitions_extension(timers.now_ms, FEWER)
        return Controller(node_id, broker_epoch, *ports, extensions=[extension])

    def admin_of(self, broker: SimulatedBroker, timers: Any) -> Admin:
        def session() -> Session:
            assert broker.session is not None
            return broker.session

        def metadata(request: MetadataRequest) -> MetadataResponse:
            return broker.metadata.answer(request)

        controller = broker.controller
        assert isinstance(controller, Controller)
        return Admin(controller, session, metadata, timers, random=Random(1), fewer_partitions=FEWER)

    @property
    def active(self) -> list[int]:
        return [each for each, broker in self.brokers.items() if getattr(broker.controller, "active", False)]

    @property
    def admin(self) -> Admin:
        (found,) = self.active
        return self.admins[found]

    def wait(self, done: Callable[[], bool]) -> None:
        """Let simulated time go by until something holds."""
        for _ in range(LONG_ENOUGH_MS // 100):
            if done():
                return
            self.world.run(for_ms=100)
        raise AssertionError("this does not come about")

    def everywhere(self, topic: str, holds: Callable[[TopicDescription], bool]) -> None:
        """Wait until every broker describes a topic so."""
        self.wait(lambda: all(holds(self.described(each, topic)) for each in self.admins))

    def described(self, node_id: int, topic: str) -> TopicDescription:
        (found,) = self.admins[node_id].describe_topics([topic])
        return found

    def on_disk(self, topic: str) -> set[tuple[int, int]]:
        """Broker and partition of each live replica of a topic."""
        return {
            (node_id, replica.partition.partition)
            for node_id, broker in self.brokers.items()
            for replica in broker.store.replicas()
            if replica.partition.topic == topic
        }

    def inodes(self, topic: str) -> dict[tuple[int, int], int]:
        """The directory of each live replica, by which it is known again."""
        return {
            (node_id, replica.partition.partition): os.stat(os.path.join(replica.log_dir, replica.path)).st_ino
            for node_id, broker in self.brokers.items()
            for replica in broker.store.replicas()
            if replica.partition.topic == topic
        }

    def staged(self, node_id: int) -> list[str]:
        folder = self.root / f"machine-{node_id}" / "disk-1" / "data" / "deleting"
        return sorted(each.name for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []


@pytest.fixture(params=[Scheme.BY_TOPIC_ID, Scheme.NAMESPACED])
def machines(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Machines]:
    found = Machines(tmp_path, request.param)
    yield found
    for broker in found.brokers.values():
        broker.shut_down()


def create(machines: Machines, topic: str, assignment: dict[int, list[int]]) -> None:
    assert machines.admin.create_topics([CreateTopic(topic, assignment=assignment)]) == {topic: CommandOutcome()}
    machines.everywhere(topic, lambda found: is_created(found, len(assignment)))


def test_a_topic_is_created_grows_and_is_deleted_as_every_broker_says(
    machines: Machines,
) -> None:  # KIP4-1, CREATE-4
    create(machines, "orders", {0: [1, 2], 1: [2, 3]})
    assert machines.on_disk("orders") == {(1, 0), (2, 0), (2, 1), (3, 1)}
    assert machines.admin.alter_topics([AlterTopic("orders", 3)]) == {"orders": CommandOutcome()}
    machines.everywhere("orders", lambda found: is_created(found, 3))
    assert {(1, 0), (2, 0), (2, 1), (3, 1)} < machines.on_disk("orders")
    assert machines.admin.delete_topics(["orders"]) == {"orders": CommandOutcome()}
    machines.everywhere("orders", is_deleted)
    machines.wait(lambda: not machines.on_disk("orders"))


def test_a_topic_can_be_created_again_and_has_another_id(machines: Machines) -> None:  # KIP516-10
    create(machines, "orders", {0: [1, 2]})
    before = machines.described(1, "orders").topic_id
    machines.admin.delete_topics(["orders"])
    machines.everywhere("orders", is_deleted)
    create(machines, "orders", {0: [2, 3]})
    assert before is not None and machines.described(1, "orders").topic_id not in (None, before)


def test_partitions_move_to_other_brokers_and_first_replicas_lead(machines: Machines) -> None:  # KIP4-1
    create(machines, "orders", {0: [1, 2]})
    partition = TopicPartition("orders", 0)
    assert machines.admin.reassign([(partition, (3, 1))]) == {partition: CommandOutcome()}
    machines.everywhere("orders", lambda found: is_reassigned(found, {0: (3, 1)}))
    machines.wait(lambda: machines.on_disk("orders") == {(1, 0), (3, 0)})
    if not is_preferred(machines.described(1, "orders")):
        assert machines.admin.elect_preferred([partition]) == {partition: CommandOutcome()}
    machines.everywhere("orders", is_preferred)


def test_only_the_controllers_broker_carries_commands_out(machines: Machines) -> None:  # KIP4-1
    other = next(each for each in machines.admins if each not in machines.active)
    outcome = machines.admins[other].create_topics([CreateTopic("orders", 1, 1)])["orders"]
    assert outcome.error is KafkaError.NOT_CONTROLLER


def test_fewer_partitions_stage_the_data_of_those_that_go_and_of_no_other(machines: Machines) -> None:  # KIP694-4
    create(machines, "orders", {0: [1, 2], 1: [2, 3], 2: [3, 1]})
    topic_id = machines.described(1, "orders").topic_id
    machines.admin.delete_partitions([DeletePartitions("orders", 1)])
    machines.everywhere("orders", lambda found: is_created(found, 1))
    machines.wait(lambda: machines.on_disk("orders") == {(1, 0), (2, 0)})
    assert {each: machines.staged(each) for each in (1, 2, 3)} == {
        1: [f"{topic_id}_2"],
        2: [f"{topic_id}_1"],
        3: [f"{topic_id}_1", f"{topic_id}_2"],
    }
    machines.wait(lambda: machines.zookeeper.nodes.children(kafka_paths.DELETE_PARTITIONS) == [])


def test_partitions_that_will_go_are_read_only_until_then(machines: Machines) -> None:  # KIP694-1
    create(machines, "orders", {0: [1, 2], 1: [2, 3]})
    machines.admin.delete_partitions([DeletePartitions("orders", 1, 20_000)])
    machines.everywhere("orders", lambda found: found.partitions[-1].mode is PartitionMode.READ_ONLY)
    assert machines.on_disk("orders") == {(1, 0), (2, 0), (2, 1), (3, 1)}
    machines.everywhere("orders", lambda found: is_created(found, 1))
    machines.wait(lambda: machines.on_disk("orders") == {(1, 0), (2, 0)})


def test_a_namespace_holds_topics_and_goes_with_them(machines: Machines) -> None:  # KIP37-3
    admin = machines.admin
    assert admin.create_namespace("org:apache") == CommandOutcome()
    create(machines, "org:apache:orders", {0: [1, 2]})
    create(machines, "orders", {0: [1, 2]})
    assert machines.on_disk("org:apache:orders") == {(1, 0), (2, 0)}
    assert admin.delete_namespace("org", recursive=True) == CommandOutcome()
    machines.everywhere("org:apache:orders", is_deleted)
    machines.wait(lambda: admin.list_namespaces() == [])
    machines.wait(lambda: not machines.on_disk("org:apache:orders"))
    assert machines.on_disk("orders") == {(1, 0), (2, 0)}


def test_a_topic_moves_to_another_namespace_with_its_data(machines: Machines) -> None:  # KIP37-3, KIP516-13
    admin = machines.admin
    admin.create_namespace("org:apache")
    create(machines, "orders", {0: [1, 2], 1: [2, 3]})
    topic_id, inodes = machines.described(1, "orders").topic_id, machines.inodes("orders")
    assert admin.move_topic("orders", "org:apache") == CommandOutcome()
    machines.everywhere("org:apache:orders", lambda found: is_created(found, 2))
    machines.everywhere("orders", is_deleted)
    machines.wait(lambda: machines.on_disk("org:apache:orders") == {(1, 0), (2, 0), (2, 1), (3, 1)})
    machines.world.run(for_ms=10_000)
    assert machines.inodes("org:apache:orders") == inodes and machines.on_disk("orders") == set()
    assert machines.described(3, "org:apache:orders").topic_id == topic_id
    assert {each: machines.staged(each) for each in (1, 2, 3)} == {1: [], 2: [], 3: []}
    found = machines.described(2, "org:apache:orders")
    assert [sorted(each.isr) for each in found.partitions] == [[1, 2], [2, 3]]


def test_a_namespace_moves_with_its_data_also_where_a_broker_is_away(machines: Machines) -> None:  # KIP37-3
    admin = machines.admin
    admin.create_namespace("org:apache")
    create(machines, "org:apache:orders", {0: [1, 2], 1: [2, 3]})
    topic_id, inodes = machines.described(1, "org:apache:orders").topic_id, machines.inodes("org:apache:orders")
    (away,) = {2, 3} - set(machines.active) if machines.active != [1] else {3}
    machines.brokers[away].shut_down()
    assert admin.move_namespace("org", "com:shop") == CommandOutcome()
    # The old name is free at once, and its new topic is another.
    admin.create_namespace("org:apache")
    assert (
        admin.create_topics([CreateTopic("org:apache:orders", assignment={0: [1, 2]})]).popitem()[1] == CommandOutcome()
    )
    machines.world.run(for_ms=5_000)
    machines.start(away)
    moved = "com:shop:apache:orders"
    machines.wait(lambda: machines.inodes(moved) == inodes)
    machines.wait(lambda: machines.on_disk("org:apache:orders") == {(1, 0), (2, 0)})
    assert machines.described(1, moved).topic_id == topic_id
    assert {each: machines.staged(each) for each in (1, 2, 3)} == {1: [], 2: [], 3: []}
    machines.wait(lambda: [sorted(each.isr) for each in machines.described(1, moved).partitions] == [[1, 2], [2, 3]])
