"""A broker opens its disks, registers, serves, crashes, stops and comes back, over real folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from layout.scheme import UNCLEAN_FILE
from logstore import KafkaError, OfflineLogDirError
from logstore.fs.crash_disk import MachineDisks
from logstore.store import LogStore
from reconciler.simulator.kernel import MetadataRequest, World
from reconciler.simulator.machine import BrokerSettings
from reconciler.simulator.machine.broker import open_store
from reconciler.simulator.machine.host import MachineClock, short_path
from reconciler.simulator.zookeeper import kafka_paths
from tests.reconciler.simulator.machine.brokers import ALL, FULL, ORDERS, A, Brokers, HandController, values


def test_records_are_replicated_and_acknowledged(brokers: Brokers) -> None:
    assert brokers.lead(1) == {1: 0, 2: 0, 3: 0}
    assert brokers.produce(1, "a", "b", "c") == [0, 1, 2]
    brokers.run(5_000)
    for node_id in ALL:
        assert brokers.values(node_id) == ["a", "b", "c"]
        assert brokers.partition(node_id).high_watermark == 3


def test_a_broker_registers_and_its_epoch_is_the_transaction(brokers: Brokers) -> None:
    epochs = [brokers.of[node_id].broker.broker_epoch for node_id in ALL]
    assert epochs == [brokers.session.get(kafka_paths.broker_path(node_id)).czxid for node_id in ALL]
    assert epochs == sorted(set(epochs))
    assert brokers.session.children(kafka_paths.BROKERS) == ["1", "2", "3"]


def test_what_was_acknowledged_survives_the_leader(brokers: Brokers) -> None:
    brokers.lead(1)
    brokers.produce(1, "a", "b")
    brokers.crash(1)
    brokers.lead(2, 1, to=(2, 3), isr=(2, 3))
    assert brokers.produce(2, "c") == [2]
    assert values(brokers.fetch(2).records) == ["a", "b", "c"]
    brokers.of[1].start()
    brokers.lead(2, 1, to=(1,), isr=(2, 3), kind=FULL)
    brokers.run(8_000)
    assert brokers.values(1) == ["a", "b", "c"]
    assert sorted(brokers.partition(2).isr) == [1, 2, 3]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_crash_leaves_of_a_follower_it_becomes_what_the_leader_has(
    make_brokers: Callable[..., Brokers], seed: int
) -> None:
    brokers = make_brokers(seed=seed)
    brokers.lead(1)
    brokers.produce(1, *(f"v{number}" for number in range(4)))
    brokers.run(100)
    brokers.crash(3)
    assert brokers.produce(1, "later", wait_ms=40_000) == [4]
    brokers.of[3].start()
    brokers.lead(1, 1, to=ALL, isr=(1, 2))
    brokers.run(8_000)
    assert brokers.values(3) == brokers.values(1) == ["v0", "v1", "v2", "v3", "later"]


def test_a_crash_gives_the_locks_back_and_the_next_start_recovers(brokers: Brokers) -> None:
    brokers.lead(1)
    brokers.crash(1)
    assert not brokers.of[1].running
    assert Path(brokers.disks[1].log_dirs[0], UNCLEAN_FILE).exists()
    with pytest.raises(RuntimeError, match="broker 1 is down; start it first"):
        _ = brokers.of[1].store
    brokers.of[1].start()
    assert brokers.of[1].running
    assert brokers.of[1].store.get(ORDERS).topic_id == A
    assert brokers.ask(1, MetadataRequest()) is not None


def test_a_stop_in_order_loses_nothing(brokers: Brokers) -> None:
    brokers.lead(1, to=(1,), isr=(1,))
    brokers.produce(1, "a", "b")
    brokers.of[1].shut_down()
    brokers.of[1].shut_down()
    assert not Path(brokers.disks[1].log_dirs[0], UNCLEAN_FILE).exists()
    assert brokers.session.find(kafka_paths.broker_path(1)) is None
    brokers.disks[1].crash(Random(1))
    brokers.of[1].start()
    brokers.lead(1, 1, to=(1,), isr=(1,))
    assert brokers.values(1) == ["a", "b"]
    assert brokers.partition(1).log.recovery_point == 2


def test_a_broker_that_is_down_refuses_connections(brokers: Brokers) -> None:
    brokers.of[1].shut_down()
    assert brokers.ask(1, MetadataRequest()) is None


def test_a_broker_without_a_disk_that_works_stays_down(brokers: Brokers) -> None:
    brokers.of[2].shut_down()
    brokers.disks[2].fail(0, Random(1))
    brokers.of[2].start()
    assert not brokers.of[2].running
    assert brokers.said("broker-2  does not start: no log dir can be used")
    brokers.disks[2].come_back(0)
    brokers.of[2].start()
    assert brokers.of[2].running


def test_each_life_has_a_controller_of_its_own_which_ends_with_it(brokers: Brokers) -> None:
    first = brokers.of[3].controller
    brokers.crash(3)
    brokers.of[3].start()
    assert isinstance(first, HandController)
    assert (first.stopped, brokers.of[3].controller is first) == (1, False)


@pytest.mark.parametrize("steps", range(0, 60, 3))
def test_a_power_cut_in_the_middle_of_anything_is_sorted_out_by_the_next_start(brokers: Brokers, steps: int) -> None:
    brokers.lead(1)
    brokers.produce(1, "a")
    brokers.run(100)
    down: list[str] = []

    class Target:
        name = "broker-2"
        running = True

        def crash(self) -> None:
            down.append(self.name)
            session = brokers.of[2].session
            brokers.of[2].crash()
            brokers.disks[2].crash(brokers.world.random)
            if session is not None:
                session.expire()

        def faults(self) -> dict[str, object]:
            return {}

    brokers.world.add_target(Target())  # type: ignore[arg-type]
    brokers.world.stop_after("broker-2", steps)
    brokers.stop_replica(2)
    brokers.lead(1, 1, to=(1, 3), isr=(1, 3))
    brokers.produce(1, "b")
    brokers.run(10_000)
    brokers.world.guarded(brokers.of[2].shut_down)
    if not down:
        brokers.world.crash("broker-2")
    assert down == ["broker-2"]
    brokers.world.calm()
    brokers.of[2].start()
    assert brokers.lead(1, 2, to=(1, 2, 3), isr=(1, 3)) == {1: 0, 2: 0, 3: 0}
    brokers.run(10_000)
    assert brokers.values(2) == ["a", "b"]


def test_a_power_cut_at_the_first_start_is_sorted_out_by_the_next_one(brokers: Brokers) -> None:
    for steps in range(200):
        brokers.crash(2)
        brokers.disks[2].replace(0)
        before = brokers.world.life_of("broker-2")
        brokers.world.stop_after("broker-2", steps)
        brokers.world.guarded(brokers.of[2].start)
        if brokers.world.life_of("broker-2") == before:
            break
        brokers.crash(2)
        brokers.of[2].start()
        assert brokers.of[2].running
    assert steps > 10
    brokers.world.calm()
    brokers.lead(1, 1, to=ALL)
    assert brokers.produce(1, "a") == [0]


def test_one_seed_gives_one_history(tmp_path: Path) -> None:
    digests = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        brokers = Brokers(tmp_path / name, seed=7)
        brokers.lead(1)
        brokers.produce(1, "a", "b")
        brokers.crash(2)
        brokers.lead(3, 1, to=(1, 3), isr=(1, 3))
        brokers.produce(3, "c", wait_ms=30_000)
        brokers.of[2].start()
        brokers.lead(3, 1, to=(2,), isr=(1, 3), kind=FULL)
        brokers.disks[3].fail(0, Random(1))
        brokers.run(70_000)
        digests.append("\n".join(brokers.world.history.lines))
        brokers.close()
    assert digests[0] == digests[1]
    assert "broker-3  orders-0: leads at epoch 1" in digests[0]
    assert "broker-3  halts" in digests[0]


def test_a_broker_that_was_away_answers_as_a_stranger_until_a_request_comes(brokers: Brokers) -> None:
    brokers.lead(1)
    brokers.crash(1)
    brokers.of[1].start()
    assert brokers.fetch(1).error is KafkaError.NOT_LEADER_OR_FOLLOWER


class Machine:
    def __init__(self, root: Path) -> None:
        self.disks = MachineDisks(str(root), 2)
        self.said: list[str] = []
        self.stores: list[LogStore] = []

    def open(self, node_id: int = 1, **settings: str) -> LogStore:
        self.said.clear()
        self.stores.append(
            open_store(
                self.disks.log_dirs,
                node_id,
                disk=self.disks.disk,
                clock=MachineClock(World(1).timers("m")),
                settings=BrokerSettings(**settings),  # type: ignore[arg-type]
                say=self.said.append,
            )
        )
        return self.stores[-1]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path)
    yield found
    for store in found.stores:
        store.close()
    found.disks.close()


def test_new_disks_are_formatted_and_belong_to_the_broker(machine: Machine) -> None:
    store = machine.open(7)
    assert [each.identity.node_id for each in store.log_dirs] == [7, 7]
    assert [each.identity.cluster_id for each in store.log_dirs] == ["simulated", "simulated"]
    assert machine.said == ["disk-1/data is new, and is formatted", "disk-2/data is new, and is formatted"]


def test_a_second_start_formats_nothing(machine: Machine) -> None:
    machine.open().close()
    machine.open()
    assert machine.said == []


def test_a_disk_that_was_replaced_is_formatted_in_the_scheme_of_the_others(machine: Machine) -> None:
    machine.open(scheme="by-topic-id").close()
    machine.disks.replace(0)
    store = machine.open()
    assert [each.scheme for each in store.log_dirs] == ["by-topic-id", "by-topic-id"]
    assert machine.said == ["disk-1/data is new, and is formatted"]


def test_a_disk_that_fails_is_offline_from_the_start(machine: Machine) -> None:
    store = machine.open()
    store.create(ORDERS, A)
    lies = store.get(ORDERS).log_dir
    store.close()
    number = machine.disks.log_dirs.index(lies)
    machine.disks.fail(number, Random(1))
    store = machine.open()
    assert list(store.offline) == [lies]
    store.close()
    machine.disks.come_back(number)
    store = machine.open()
    assert (store.offline, store.get(ORDERS).topic_id) == ({}, A)


def test_without_any_disk_there_is_no_start(machine: Machine) -> None:
    machine.open().close()
    for number in (0, 1):
        machine.disks.fail(number, Random(1))
    with pytest.raises(OfflineLogDirError):
        machine.open()


def test_what_holds_something_else_is_left_out(machine: Machine) -> None:
    Path(machine.disks.log_dirs[0]).mkdir()
    Path(machine.disks.log_dirs[0], "photos").mkdir()
    store = machine.open()
    assert [short_path(each.path) for each in store.log_dirs] == ["disk-2/data"]
    assert machine.said[0].startswith("disk-1/data is left out: ")
    assert list(Path(machine.disks.log_dirs[0]).iterdir()) == [Path(machine.disks.log_dirs[0], "photos")]
