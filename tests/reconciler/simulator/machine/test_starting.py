"""From mounted disks to an open store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from logstore import OfflineLogDirError
from logstore.store import LogStore
from reconciler.simulator.kernel import World
from reconciler.simulator.machine import BrokerSettings, MachineDisks
from reconciler.simulator.machine.host import short_path
from reconciler.simulator.machine.machine_clock import MachineClock
from reconciler.simulator.machine.starting import open_store
from tests.reconciler.simulator.machine.brokers import ORDERS, A


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
