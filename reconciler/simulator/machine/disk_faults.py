"""The faults of a machine's disks: which may happen now, and what each one says."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from logstore.fs.crash_disk import MachineDisks
from reconciler.simulator.kernel import Fault

_CHANGES = 40
"""A disk that does not fail at once fails within this many changes."""
_REPLACED = "is replaced by an empty one"


def faults_while_running(disks: MachineDisks) -> dict[str, Fault]:
    """The faults that may happen while the broker has the disks open, by the name of their rate.

    Which disk, and when, is drawn from the generator that the kernel passes in. ``disk_back`` and ``disk_replaced`` may
    happen here too, because the broker has to open a disk that failed again before it can use it.
    """
    found = _remedies(disks)
    if disks.online:
        found["disk_offline"] = lambda random: _fail(disks, random)
    roomy = set(disks.online) - set(disks.full)
    if roomy:
        found["disk_full"] = _to_one(sorted(roomy), disks.fill, "is full")
    if disks.offline:
        found["disk_replaced"] = _to_one(disks.offline, disks.replace, _REPLACED)
    return found


def faults_while_stopped(disks: MachineDisks) -> dict[str, Fault]:
    """The faults that may happen while the machine is off, where working disks are swapped or replaced too."""
    found = _remedies(disks)
    found["disk_replaced"] = _to_one(sorted([*disks.online, *disks.offline]), disks.replace, _REPLACED)
    if len(disks.online) > 1:
        found["disk_swapped"] = lambda random: _swap(disks, random)
    return found


def _remedies(disks: MachineDisks) -> dict[str, Fault]:
    found: dict[str, Fault] = {}
    if disks.offline:
        found["disk_back"] = _to_one(disks.offline, disks.come_back, "is back")
    if disks.full:
        found["disk_space"] = _to_one(disks.full, disks.make_room, "has room again")
    return found


def _fail(disks: MachineDisks, random: Random) -> str:
    number, changes = random.choice(disks.online), random.choice((0, random.randrange(_CHANGES)))
    if changes:
        disks.fail_after(number, changes, random)
        return f"disk {number + 1} will fail after {changes} more changes"
    disks.fail(number, random)
    return f"disk {number + 1} fails"


def _to_one(numbers: list[int], act: Callable[[int], None], words: str) -> Fault:
    """What happens to one of some disks: the act, and the words behind its name."""

    def happen(random: Random) -> str:
        number = random.choice(numbers)
        act(number)
        return f"disk {number + 1} {words}"

    return happen


def _swap(disks: MachineDisks, random: Random) -> str:
    one, other = random.sample(disks.online, 2)
    disks.swap(one, other)
    return f"disks {one + 1} and {other + 1} change places"
