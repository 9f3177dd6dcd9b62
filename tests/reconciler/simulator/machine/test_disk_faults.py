"""The faults that may happen to a machine's disks: only possible ones are offered, and each says what it did."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from logstore.fs.crash_disk import MachineDisks
from reconciler.simulator.kernel.faults import KINDS
from reconciler.simulator.machine import faults_while_running, faults_while_stopped
from tests.reconciler.simulator.machine.disk_folders import Fresh


@pytest.fixture
def blank_disks(fresh: Fresh) -> Iterator[MachineDisks]:
    made = MachineDisks(fresh(), 2)
    yield made
    made.close()


def test_only_what_makes_sense_is_offered(blank_disks: MachineDisks) -> None:
    assert sorted(faults_while_running(blank_disks)) == ["disk_full", "disk_offline"]
    assert sorted(faults_while_stopped(blank_disks)) == ["disk_replaced", "disk_swapped"]
    blank_disks.fail(0, Random(1))
    assert sorted(faults_while_running(blank_disks)) == ["disk_back", "disk_full", "disk_offline", "disk_replaced"]
    assert sorted(faults_while_stopped(blank_disks)) == ["disk_back", "disk_replaced"]
    blank_disks.fill(1)
    assert sorted(faults_while_running(blank_disks)) == ["disk_back", "disk_offline", "disk_replaced", "disk_space"]
    assert {*faults_while_running(blank_disks), *faults_while_stopped(blank_disks)} <= set(KINDS)


def test_a_disk_fails_and_comes_back(blank_disks: MachineDisks) -> None:
    said = [faults_while_running(blank_disks)["disk_offline"](Random(seed)) for seed in range(1)]
    for seed in range(1, 50):
        if blank_disks.offline:
            break
        said.append(faults_while_running(blank_disks)["disk_offline"](Random(seed)))
    failed = blank_disks.offline[0]
    assert said[-1] == f"disk {failed + 1} fails"
    assert all(each.startswith("disk ") and each.endswith(" more changes") for each in said[:-1])
    assert faults_while_running(blank_disks)["disk_back"](Random(1)) == f"disk {failed + 1} is back"
    assert blank_disks.offline == []


def test_a_disk_is_full_and_has_room_again(blank_disks: MachineDisks) -> None:
    said = faults_while_running(blank_disks)["disk_full"](Random(1))
    full = blank_disks.full[0]
    assert said == f"disk {full + 1} is full"
    assert faults_while_running(blank_disks)["disk_space"](Random(1)) == f"disk {full + 1} has room again"
    assert blank_disks.full == []


def test_a_running_machine_gets_only_a_failed_disk_replaced(blank_disks: MachineDisks) -> None:
    blank_disks.fail(1, Random(1))
    serials = [blank_disks.serial(0), blank_disks.serial(1)]
    assert faults_while_running(blank_disks)["disk_replaced"](Random(1)) == "disk 2 is replaced by an empty one"
    assert blank_disks.serial(0) == serials[0]
    assert blank_disks.serial(1) not in serials


def test_two_disks_of_a_stopped_machine_change_places(blank_disks: MachineDisks) -> None:
    serials = [blank_disks.serial(0), blank_disks.serial(1)]
    assert faults_while_stopped(blank_disks)["disk_swapped"](Random(1)).endswith("change places")
    assert [blank_disks.serial(0), blank_disks.serial(1)] == serials[::-1]


def test_the_same_numbers_do_the_same_to_the_same_disks(fresh: Fresh) -> None:
    histories = []
    for _ in range(2):
        blank_disks, random, said = MachineDisks(fresh(), 3), Random(4), list[str]()
        for _ in range(30):
            offered = faults_while_running(blank_disks)
            said.append(offered[random.choice(sorted(offered))](random))
        histories.append(said)
        blank_disks.close()
    assert histories[0] == histories[1]
    assert len(set(histories[0])) > 5
