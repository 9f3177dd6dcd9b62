"""The store that is drilled, and the changes of many steps that are drawn for it, each with what it should come to."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from layout.ids import TopicId
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore.namespaces import (
    PlannedChange,
    create_namespace,
    plan_convert,
    plan_create,
    plan_delete,
    plan_move,
    plan_move_namespace,
    plan_rename,
)
from reconciler.simulator.drills.journals.machine import DrilledMachine
from reconciler.simulator.drills.journals.states import OFFSETS, One, StoreState
from reconciler.simulator.drills.kept_replicas import NUMBER_FILE

_FORMER, _FORMER_MS = 0.8, 5_000
"""How likely a topic has a staged replica of its former life, and how long ago that was staged."""


class LongChange(NamedTuple):
    """One change: how it is planned, and what there is after it."""

    name: str
    plan: Callable[[], PlannedChange]
    after: StoreState


def set_up(machine: DrilledMachine, random: Random, scheme: Scheme) -> StoreState:
    """Give an empty store topics with replicas in every log dir; gives what there is then."""
    state = StoreState(scheme, frozenset(), ())
    if scheme is Scheme.NAMESPACED:
        create_namespace(machine.store, "org:apache")
        state = state.created("org", "org:apache")
    in_a_namespace = "" if scheme is Scheme.FLAT else "org:"
    disks = len(machine.log_dirs)
    if random.random() < _FORMER:
        former = TopicPartition(f"{in_a_namespace}orders", 0)
        state = make(machine, state, former, 0, TopicId(random.randbytes(16))).staged(former)
        machine.store.stage([former], "STALE_ID", "a drill")
        machine.clock.advance(_FORMER_MS)
    places = [(f"{in_a_namespace}orders", number, number) for number in range(disks)]
    if scheme is not Scheme.FLAT:
        places.append(("org:apache:hits", 0, random.randrange(disks)))
    places.append(("clicks", 0, random.randrange(disks)))
    ids = {topic: TopicId(random.randbytes(16)) for topic, _, _ in places}
    for topic, partition, disk in places:
        state = make(machine, state, TopicPartition(topic, partition), disk, ids[topic])
    return state


def make(machine: DrilledMachine, state: StoreState, at: TopicPartition, disk: int, topic_id: TopicId) -> StoreState:
    """Make a replica on a disk, with a number and an offset; gives the state with it."""
    one = One(len(state.replicas) + 1, disk, at, topic_id)
    (log_dir,) = [each for each in machine.store.log_dirs if each.path == machine.log_dirs[disk]]
    machine.store.create(at, topic_id, directory_id=log_dir.identity.directory_id)
    machine.write(f"{log_dir.path}/{state.path(one)}", NUMBER_FILE, b"%d" % one.number)
    machine.store.write_offsets(OFFSETS, {at: one.number})
    return state.with_one(one)


def draw(machine: DrilledMachine, state: StoreState, random: Random) -> LongChange:
    """Draw a change that the store can make."""
    store, scheme = machine.store, state.scheme
    topic = "orders" if scheme is Scheme.FLAT else "org:orders"
    renamed = f"{topic}2"
    changes = [LongChange("rename", lambda: plan_rename(store, topic, renamed), state.renamed(topic, renamed))]
    target = random.choice([each for each in Scheme if each not in (scheme, Scheme.FLAT)])
    changes.append(LongChange("convert", lambda: plan_convert(store, target), state.converted(target)))
    if scheme is Scheme.FLAT:
        return random.choice(changes)
    changes += [
        LongChange("move", lambda: plan_move(store, topic, ""), state.renamed(topic, "orders")),
        LongChange("move_namespace", lambda: plan_move_namespace(store, "org", "com"), state.moved("org", "com")),
        LongChange("delete_namespace", lambda: plan_delete(store, "org", recursive=True), state.deleted("org")),
        LongChange("delete_namespace", lambda: plan_delete(store, "org", recursive=True), state.deleted("org")),
    ]
    if scheme is Scheme.NAMESPACED:
        created = state.created("net", "net:deep")
        changes.append(LongChange("create_namespace", lambda: plan_create(store, "net:deep"), created))
    return random.choice(changes)
