"""Changes of many steps that must be refused, and leave every disk as it is."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from layout.ids import TopicId
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import LogStoreError
from logstore.fs import Directory, make_directory
from logstore.namespaces import PlannedChange, plan_convert, plan_rename
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.journals.changes import make
from reconciler.simulator.drills.journals.machine import DrilledMachine
from reconciler.simulator.drills.journals.states import StoreState


def refuse(machine: DrilledMachine, state: StoreState, random: Random) -> str:
    """Plan a change that must be refused; gives which.

    Raises:
        BrokenInvariantError: it is not refused.
    """
    kinds: dict[str, Callable[[DrilledMachine, StoreState, Random], Callable[[], PlannedChange]]] = {
        "on_its_way": _on_its_way
    }
    if state.scheme is not Scheme.BY_TOPIC_ID:
        kinds["one_id"] = _one_id
    if state.scheme is Scheme.NAMESPACED:
        kinds["staged"] = _staged
    name = random.choice(sorted(kinds))
    plan = kinds[name](machine, state, random)
    try:
        plan()
    except LogStoreError:
        return name
    raise BrokenInvariantError(f"a change is planned that should be refused: {name}")


def _on_its_way(machine: DrilledMachine, state: StoreState, random: Random) -> Callable[[], PlannedChange]:
    """A topic may not be renamed while a copy of one of its replicas is on its way to another disk."""
    one = random.choice(state.live)
    (number,) = random.sample([disk for disk in range(len(machine.log_dirs)) if disk != one.disk], 1)
    with Directory.open(machine.log_dirs[number]) as root:
        name = f"{one.at.local_topic}-{one.at.partition}.{machine.disk.unique()}-future"
        make_directory(machine.disk, root, name).close()
    return lambda: plan_rename(machine.store, one.at.topic, f"{one.at.topic}2")


def _one_id(machine: DrilledMachine, state: StoreState, random: Random) -> Callable[[], PlannedChange]:
    """Two topics with one ID, on two disks, cannot lie by topic ID."""
    one = random.choice(state.live)
    other = random.choice([disk for disk in range(len(machine.log_dirs)) if disk != one.disk])
    make(machine, state, TopicPartition("twin", one.at.partition), other, one.topic_id)
    return lambda: plan_convert(machine.store, Scheme.BY_TOPIC_ID)


def _staged(machine: DrilledMachine, state: StoreState, random: Random) -> Callable[[], PlannedChange]:
    """What is staged of a namespace could not come back where there are none."""
    make(machine, state, TopicPartition("org:late", 0), 0, TopicId(random.randbytes(16)))
    inside = {each.at for each in state.live if each.at.namespace} | {TopicPartition("org:late", 0)}
    machine.store.stage(sorted(inside), "STALE_ID", "a drill")
    return lambda: plan_convert(machine.store, Scheme.FLAT)
