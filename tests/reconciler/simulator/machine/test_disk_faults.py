"""What may happen to disks: only what makes sense now, and each thing does what it says."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from reconciler.simulator.kernel.fault_rates import KINDS
from reconciler.simulator.machine import MachineDisks, faults_while_running, faults_while_stopped
from tests.reconciler.simulator.machine.disk_folders import Fresh, fresh_folders


@pytest.fixture
def fresh() -> Iterator[Fresh]:
    yield from fresh_folders()


@pytest.fixture
def disks(fresh: Fresh) -> Iterator[MachineDisks]:
    made = MachineDisks(fresh(), 2)
    yield made
    made.close()


def test_only_what_makes_sense_is_offered(disks: MachineDisks) -> None:
    assert sorted(faults_while_running(disks)) == ["disk_full", "disk_offline"]
    assert sorted(faults_while_stopped(disks)) == ["disk_replaced", "disk_swapped"]
    disks.fail(0, Random(1))
    assert sorted(faults_while_running(disks)) == ["disk_back", "disk_full", "disk_offline", "disk_replaced"]
    assert sorted(faults_while_stopped(disks)) == ["disk_back", "disk_replaced"]
    disks.fill(1)
    assert sorted(faults_while_running(disks)) == ["disk_back", "disk_offline", "disk_replaced", "disk_space"]
    assert {*faults_while_running(disks), *faults_while_stopped(disks)} <= set(KINDS)


def test_a_disk_fails_and_comes_back(disks: MachineDisks) -> None:
    said = [faults_while_running(disks)["disk_offline"](Random(seed)) for seed in range(1)]
    for seed in range(1, 50):
        if disks.offline:
            break
        said.append(faults_while_running(disks)["disk_offline"](Random(seed)))
    failed = disks.offline[0]
    assert said[-1] == f"disk {failed + 1} fails"
    assert all(each.startswith("disk ") and each.endswith(" more changes") for each in said[:-1])
    assert faults_while_running(disks)["disk_back"](Random(1)) == f"disk {failed + 1} is back"
    assert disks.offline == []


def test_a_disk_is_full_and_has_room_again(disks: MachineDisks) -> None:
    said = faults_while_running(disks)["disk_full"](Random(1))
    full = disks.full[0]
    assert said == f"disk {full + 1} is full"
    assert faults_while_running(disks)["disk_space"](Random(1)) == f"disk {full + 1} has room again"
    assert disks.full == []


def test_a_running_machine_gets_only_a_failed_disk_replaced(disks: MachineDisks) -> None:
    disks.fail(1, Random(1))
    serials = [disks.serial(0), disks.serial(1)]
    assert faults_while_running(disks)["disk_replaced"](Random(1)) == "disk 2 is replaced by an empty one"
    assert disks.serial(0) == serials[0]
    assert disks.serial(1) not in serials


def test_two_disks_of_a_stopped_machine_change_places(disks: MachineDisks) -> None:
    serials = [disks.serial(0), disks.serial(1)]
    assert faults_while_stopped(disks)["disk_swapped"](Random(1)).endswith("change places")
    assert [disks.serial(0), disks.serial(1)] == serials[::-1]


def test_the_same_numbers_do_the_same_to_the_same_disks(fresh: Fresh) -> None:
    told = []
    for _ in range(2):
        disks, random, said = MachineDisks(fresh(), 3), Random(4), list[str]()
        for _ in range(30):
            offered = faults_while_running(disks)
            said.append(offered[random.choice(sorted(offered))](random))
        told.append(said)
        disks.close()
    assert told[0] == told[1]
    assert len(set(told[0])) > 5
