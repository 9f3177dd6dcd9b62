"""What may happen to the disks of a machine now, for its ``FaultTarget``: by the name of its rate.

Which disk, and when, is drawn from the generator that the kernel hands in. A disk that failed comes back only for those
who open it again, so ``disk_back`` and ``disk_replaced`` may happen while the machine is running; only a machine that
is stopped has two disks change places, or a disk that works replaced.
"""

from __future__ import annotations

from random import Random

from reconciler.simulator.kernel import Fault
from reconciler.simulator.machine.disks import MachineDisks

_CHANGES = 40
"""A disk that does not fail at once fails within so many changes."""


def faults_while_running(disks: MachineDisks) -> dict[str, Fault]:
    """What may happen while somebody has the disks open."""
    found = _remedies(disks)
    if disks.online:
        found["disk_offline"] = lambda random: _fail(disks, random)
    if set(disks.online) - set(disks.full):
        found["disk_full"] = lambda random: _fill(disks, random)
    if disks.offline:
        found["disk_replaced"] = lambda random: _replace(disks, disks.offline, random)
    return found


def faults_while_stopped(disks: MachineDisks) -> dict[str, Fault]:
    """What may happen while the machine is off."""
    found = _remedies(disks)
    found["disk_replaced"] = lambda random: _replace(disks, sorted([*disks.online, *disks.offline]), random)
    if len(disks.online) > 1:
        found["disk_swapped"] = lambda random: _swap(disks, random)
    return found


def _remedies(disks: MachineDisks) -> dict[str, Fault]:
    found: dict[str, Fault] = {}
    if disks.offline:
        found["disk_back"] = lambda random: _come_back(disks, random)
    if disks.full:
        found["disk_space"] = lambda random: _make_room(disks, random)
    return found


def _fail(disks: MachineDisks, random: Random) -> str:
    number, changes = random.choice(disks.online), random.choice((0, random.randrange(_CHANGES)))
    if changes:
        disks.fail_after(number, changes, random)
        return f"disk {number + 1} will fail after {changes} more changes"
    disks.fail(number, random)
    return f"disk {number + 1} fails"


def _come_back(disks: MachineDisks, random: Random) -> str:
    number = random.choice(disks.offline)
    disks.come_back(number)
    return f"disk {number + 1} is back"


def _fill(disks: MachineDisks, random: Random) -> str:
    number = random.choice(sorted(set(disks.online) - set(disks.full)))
    disks.fill(number)
    return f"disk {number + 1} is full"


def _make_room(disks: MachineDisks, random: Random) -> str:
    number = random.choice(disks.full)
    disks.make_room(number)
    return f"disk {number + 1} has room again"


def _replace(disks: MachineDisks, numbers: list[int], random: Random) -> str:
    number = random.choice(numbers)
    disks.replace(number)
    return f"disk {number + 1} is replaced by an empty one"


def _swap(disks: MachineDisks, random: Random) -> str:
    one, other = random.sample(disks.online, 2)
    disks.swap(one, other)
    return f"disks {one + 1} and {other + 1} change places"
