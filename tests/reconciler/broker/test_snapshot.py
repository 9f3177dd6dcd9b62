"""What is read of the disks before a request is decided: no more than it asks about."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.broker import look_at_live_replicas
from reconciler.broker.snapshot import look_at_disks
from reconciler.protocol import RequestType
from tests.reconciler.protocol.control_requests import (
    FULL,
    INCREMENTAL,
    NODE,
    OTHERS,
    UNSPECIFIED,
    A,
    B,
    C,
    Sim,
    leader_and_isr,
    state,
    stop_replica,
    topic,
)


@pytest.mark.parametrize("kind", [FULL, INCREMENTAL])
def test_staged_replicas_are_looked_for_where_the_request_may_want_them_live_again(sim: Sim, kind: RequestType) -> None:
    sim.put("gone-0", A)
    sim.start().handle(leader_and_isr(FULL))
    sim.put("live-0", B)
    sim.put("stale-0", A)
    sim.put("bare-0", None)
    store = sim.start().store
    request = leader_and_isr(
        kind,
        topic("gone", A, 0, state(1, replicas=OTHERS)),
        topic("live", B, 0),
        topic("stale", C, 0),
        topic("bare", type(A)(b"b" * 16), 0),
        topic("nameless", None, 0),
    )
    found = look_at_disks(store, request, NODE).restorable
    assert {key: [each.path for each in several] for key, several in found.items()} == {
        ("gone", 0): ["gone-0"],
        ("stale", 0): [],
    }


def test_nothing_is_looked_for_where_nothing_comes_back(sim: Sim) -> None:
    store = sim.start().store
    for log_dir in store.log_dirs:
        log_dir.go_offline("it failed")
    found = look_at_disks(store, leader_and_isr(UNSPECIFIED, topic("orders", A, 0)), NODE)
    assert (found.restorable, found.offline) == ({}, frozenset(map(str, sim.paths)))


def test_live_replicas_are_seen_with_their_copies_and_by_the_ids_of_the_request(sim: Sim) -> None:
    for disk in (0, 1):
        sim.put("orders-0", A, disk=disk)
    sim.put("deals-0", B)
    store = sim.start().store
    seen = look_at_live_replicas(store, leader_and_isr(INCREMENTAL, topic("sales", B, 0), topic("new", C, 0)))
    assert set(seen.entries) == {("orders", 0), ("deals", 0)}
    assert ([str(each.partition) for each in seen.duplicates], seen.topics) == (["orders-0"], {str(B): ("deals",)})
    assert look_at_live_replicas(store, leader_and_isr(FULL, topic("sales", B, 0))).topics == {}


def test_a_stop_replica_is_fenced_as_any_other_request(sim: Sim) -> None:
    sim.put("orders-0", A)
    store = sim.start().store
    assert look_at_disks(store, stop_replica("orders", 0, 1, topic_id=B), NODE).fences == {
        ("orders", 0): KafkaError.INCONSISTENT_TOPIC_ID,
        ("orders", 1): KafkaError.UNKNOWN_TOPIC_ID,
    }
