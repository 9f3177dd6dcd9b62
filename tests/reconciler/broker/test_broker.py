"""The broker itself: its number, stale requests, which it refuses first, and malformed requests."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from layout.ids import TopicId
from logstore.namespaces import rename_topic
from reconciler.broker import Broker
from reconciler.errors import InvalidRequestError, UsageError
from reconciler.protocol import MAX_PARTITIONS, ControlRequest, PartitionState, RequestType, TopicState
from tests.logstore.engine import contents
from tests.reconciler.protocol.control_requests import (
    FULL,
    INCREMENTAL,
    ORDERS,
    A,
    B,
    C,
    Sim,
    answer,
    errors,
    leader_and_isr,
    state,
    stop_replica,
    topic,
)

TYPES = pytest.mark.parametrize("kind", list(RequestType))


def test_the_next_topic_of_a_name_that_was_given_up_begins_anew(sim: Sim) -> None:  # KIP516-13
    sim.put("orders-0", A)
    broker = sim.start()
    assert answer(broker, leader_and_isr(FULL, topic("orders", A, state(0, 7)))) == {"orders-0": 0}
    rename_topic(broker.store, "orders", "sales")
    another = leader_and_isr(INCREMENTAL, topic("orders", B, state(0, 1)))
    assert answer(broker, another) == {"orders-0": 11}
    broker.forget("orders")
    assert answer(broker, another) == {"orders-0": 0}
    assert broker.leader_epoch(ORDERS) == 1


def test_a_broker_has_the_number_of_its_log_dirs(sim: Sim) -> None:
    broker = sim.start()
    assert broker.node_id == 1
    assert Broker(broker.store, 1).node_id == 1
    with pytest.raises(UsageError, match="belong to broker 1, and not to broker 2"):
        Broker(broker.store, 2)


@TYPES
def test_a_stale_controller_changes_nothing(sim: Sim, kind: RequestType) -> None:
    # KIP516-4; FACTS §4.2, 3
    sim.put("orders-0", A)
    broker = sim.start()
    answer(broker, leader_and_isr(INCREMENTAL, controller_epoch=5))
    before = contents(sim.paths[0])
    old = leader_and_isr(kind, topic("orders", B, 0, 1), controller_epoch=4)
    assert answer(broker, old) == {"": 11, "orders-0": 11, "orders-1": 11}
    assert contents(sim.paths[0]) == before and broker.controller_epoch == 5
    assert answer(broker, leader_and_isr(kind, controller_epoch=5)) == {}
    assert answer(broker, leader_and_isr(kind, controller_epoch=6)) == {}
    assert broker.controller_epoch == 6


@TYPES
@pytest.mark.parametrize(("own", "given", "stale"), [(7, 6, True), (7, 7, False), (7, 8, False), (7, -1, False)])
def test_a_request_for_an_earlier_life_of_the_broker_changes_nothing(
    sim: Sim, kind: RequestType, own: int, given: int, stale: bool
) -> None:
    # FACTS §4.2, 2
    broker = sim.start()
    broker.broker_epoch = own
    found = answer(broker, leader_and_isr(kind, topic("orders", A, 0), broker_epoch=given))
    assert found == ({"": 77, "orders-0": 77} if stale else {"orders-0": 0})
    assert (sim.live() == {}) is stale


def test_the_broker_epoch_comes_before_that_of_the_controller(sim: Sim) -> None:
    broker = sim.start()
    broker.broker_epoch, broker.controller_epoch = 7, 5
    assert answer(broker, leader_and_isr(FULL, broker_epoch=6, controller_epoch=4)) == {"": 77}
    assert broker.controller_epoch == 5


def test_a_refused_request_raises_no_epoch(sim: Sim) -> None:
    broker = sim.start()
    broker.broker_epoch = 7
    answer(broker, leader_and_isr(FULL, broker_epoch=6, controller_epoch=99))
    assert broker.controller_epoch == 0


BAD: dict[str, tuple[ControlRequest, list[str]]] = {
    "a duplicate partition": (
        leader_and_isr(FULL, topic("orders", B, 0, 1, 0)),
        ["partition 0 of topic 'orders' is there 2 times"],
    ),
    "a negative partition": (
        leader_and_isr(FULL, topic("orders", B, -1)),
        ["partition -1 of topic 'orders': 0 to 2147483647 is expected"],
    ),
    "a broker that cannot be": (
        leader_and_isr(FULL, topic("orders", B, state(0, replicas=(1, -5)))),
        ["orders-0: replicas are no distinct broker ids: 1, -5", "orders-0: isr are no distinct broker ids: 1, -5"],
    ),
    "all of them, and more": (
        leader_and_isr(
            FULL,
            topic("orders", B, 0, 0, -1, state(3, replicas=(2, 2))),
            topic("no/name", A, 0),
            topic("other", B, 0),
            topic("other", B, 1),
            TopicState("zero", TopicId.ZERO, ()),
            topic("__cluster_metadata", None, 0),
        ),
        [
            "'no/name' is no topic name: it has a character other than a-z A-Z 0-9 . _ -",
            "topic 'zero': the zero ID stands for none, and None is expected",
            "__cluster_metadata is the controllers' own log, and no request gives or takes a replica of it",
            "topic 'other' is there 2 times",
            f"topic ID {B} is expected of one topic, and found of 'orders' and 'other'",
            f"topic ID {B} is expected of one topic, and found of 'orders' and 'other'",
            "partition 0 of topic 'orders' is there 2 times",
            "partition -1 of topic 'orders': 0 to 2147483647 is expected",
            "orders-3: replicas are no distinct broker ids: 2, 2",
            "orders-3: isr are no distinct broker ids: 2, 2",
        ],
    ),
    "a stop of nothing that could be": (
        stop_replica("orders", 1, 1, -7, epoch=-3),
        [
            "partition 1 of topic 'orders' is there 2 times",
            "partition -7 of topic 'orders': 0 to 2147483647 is expected",
            "orders-1: leader epoch -3 is none: -2 or more is expected",
            "orders-1: leader epoch -3 is none: -2 or more is expected",
            "orders--7: leader epoch -3 is none: -2 or more is expected",
        ],
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_malformed_request_is_refused_whole_with_every_reason(sim: Sim, what: str) -> None:
    # DESIGN §4
    sim.put("orders-0", A)
    broker = sim.start()
    before = contents(sim.paths[0])
    request, reasons = BAD[what]
    request = replace(request, controller_epoch=8)
    with pytest.raises(InvalidRequestError) as caught:
        broker.handle(request)
    assert list(caught.value.reasons) == reasons
    assert contents(sim.paths[0]) == before and sim.live() == {"orders-0": A}
    assert broker.controller_epoch == 0 and broker.leader_epoch(ORDERS) is None


def test_ten_million_partitions_are_too_many_and_are_not_looked_at(sim: Sim) -> None:
    broker = sim.start()
    one = PartitionState(0, 1, 1, 0, (1,), 0, (1,))
    request = leader_and_isr(FULL, TopicState("orders", A, (one,) * 10_000_000))
    with pytest.raises(InvalidRequestError, match=f"names 10000001 topics and partitions, and {MAX_PARTITIONS} are"):
        broker.handle(request)
    assert sim.live() == {}


def test_requests_from_many_threads_are_handled_one_after_the_other(sim: Sim) -> None:
    broker = sim.start()
    requests = [
        leader_and_isr(INCREMENTAL, topic("orders", (A, B)[number % 2], state(0, number))) for number in range(8)
    ]
    threads = [threading.Thread(target=broker.handle, args=(each,)) for each in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(sim.live()) == ["orders-0"]
    assert len(broker.store.staged()) <= 1


def test_a_copy_that_comes_late_is_not_in_order_and_the_same_number_again_is(sim: Sim) -> None:
    broker = sim.start()
    assert [broker.comes_in_order(1, number) for number in (1, 3, 2, 3, 4)] == [True, True, False, True, True]
    assert broker.comes_in_order(2, 1)  # another controller starts counting again
    assert broker.comes_in_order(1, 9)  # and what the earlier one sends is answered by its epoch
    assert [broker.comes_in_order(2, number) for number in (1, 2, 1)] == [True, True, False]


def test_a_request_that_comes_late_changes_nothing(sim: Sim) -> None:
    sim.put("orders-0", A)
    sim.put("clicks-0", C)
    broker = sim.start()
    full = leader_and_isr(FULL, topic("orders", A, 0))
    both = leader_and_isr(FULL, topic("orders", A, 0), topic("clicks", C, 0))
    assert answer(broker, both, 7) == {"orders-0": 0, "clicks-0": 0}
    before = contents(sim.paths[0])
    assert answer(broker, full, 6) == {"": 11, "orders-0": 11}, "it would stage clicks-0"
    assert errors(broker.handle(stop_replica(), 6)) == {"": 11}
    assert contents(sim.paths[0]) == before and broker.leader_epoch(ORDERS) == 0
    assert answer(broker, both, 7) == {"orders-0": 11, "clicks-0": 11}, "sent again, it has these epochs already"
    assert errors(broker.handle(stop_replica(), 8)) == {"orders-0": 0}
    assert sim.live() == {"clicks-0": C}


@pytest.mark.parametrize("old", [{"controller_epoch": 1}, {"broker_epoch": 4}])
def test_a_late_request_of_an_older_epoch_changes_nothing_not_even_what_is_late(sim: Sim, old: dict[str, int]) -> None:
    broker = sim.start()
    broker.broker_epoch = 5
    epochs = {"controller_epoch": 2, "broker_epoch": 5}
    assert answer(broker, leader_and_isr(INCREMENTAL, topic("orders", A, 0), **epochs), 3) == {"orders-0": 0}
    late = leader_and_isr(FULL, topic("clicks", C, 0), **(epochs | old))
    assert answer(broker, late, 9) == dict.fromkeys(("", "clicks-0"), 11 if "controller_epoch" in old else 77)
    assert sim.live() == {"orders-0": A}
    assert answer(broker, leader_and_isr(INCREMENTAL, topic("clicks", C, 0), **epochs), 4) == {"clicks-0": 0}


@pytest.mark.parametrize("given", [{"controllerId": 1}, b"\x00\x04", "FULL", None, topic("orders", A, 0)])
def test_what_is_no_request_is_refused_with_the_way_to_read_one(sim: Sim, given: object) -> None:
    with pytest.raises(InvalidRequestError, match=f"it is a {type(given).__name__}, and reconciler.protocol reads"):
        sim.start().handle(given)
