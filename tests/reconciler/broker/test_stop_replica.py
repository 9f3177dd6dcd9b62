"""StopReplica beyond upstream's own cases: topic IDs, staging, many partitions, disks that fail (KIP516-7)."""

from __future__ import annotations

import errno

import pytest

from layout.ids import TopicId
from reconciler.protocol import KIP516, decode_stop_replica, encode_message
from tests.logstore.engine import DiskThat, contents
from tests.reconciler.protocol.control_requests import (
    FULL,
    ORDERS,
    A,
    B,
    Sim,
    answer,
    errors,
    leader_and_isr,
    state,
    stop_replica,
    topic,
)


@pytest.mark.parametrize("delete", [True, False])
def test_another_topic_id_is_refused_and_nothing_moves(sim: Sim, delete: bool) -> None:
    # KIP516-7
    sim.put("orders-0", A)
    broker = sim.start()
    before = contents(sim.paths[0])
    assert errors(broker.handle(stop_replica(topic_id=B, delete=delete))) == {"orders-0": 103}
    assert contents(sim.paths[0]) == before


@pytest.mark.parametrize("delete", [True, False])
@pytest.mark.parametrize("named", ["nothing", "a replica without an ID"])
def test_an_id_that_lies_here_under_another_name_is_refused_and_nothing_moves(
    sim: Sim, delete: bool, named: str
) -> None:
    # KIP516-7, KIP516-13: a renamed topic
    sim.put("orders-0", A)
    if named != "nothing":
        sim.put("sales-0", None)
    broker = sim.start()
    before = contents(sim.paths[0])
    asked = stop_replica("sales", 0, 1, topic_id=A, delete=delete)
    assert errors(broker.handle(asked)) == {"sales-0": 103, "sales-1": 0}, "only partition 0 lies here"
    assert contents(sim.paths[0]) == before
    assert errors(broker.handle(stop_replica("sales", topic_id=None, delete=False))) == {"sales-0": 0}


def test_of_two_names_under_one_id_the_one_that_is_named_is_stopped(sim: Sim) -> None:
    for name in ("orders-0", "sales-0"):
        sim.put(name, A)
    broker = sim.start()
    for name in ("sales", "orders"):
        assert errors(broker.handle(stop_replica(name, topic_id=A))) == {f"{name}-0": 0}
    assert sim.live() == {}


@pytest.mark.parametrize(("held", "asked"), [(A, A), (A, None), (None, A), (None, None)])
def test_the_same_topic_id_or_none_is_obeyed(sim: Sim, held: TopicId | None, asked: TopicId | None) -> None:
    # KIP516-7
    sim.put("orders-0", held)
    broker = sim.start()
    request = decode_stop_replica(encode_message(stop_replica(topic_id=asked), KIP516), KIP516)
    assert errors(broker.handle(request)) == {"orders-0": 0}
    assert sim.live() == {} and sim.staged() == {"orders-0": (held or TopicId.ZERO, "DELETED")}


def test_what_is_deleted_waits_for_its_own_delay(sim: Sim) -> None:
    # KIP516-7: file.delete.delay.ms, and not the four hours of stale replicas
    sim.put("orders-0", A)
    broker = sim.start()
    broker.handle(stop_replica())
    (staged,) = broker.store.staged()
    assert staged.due_ms == sim.clock.now_ms() + 60_000
    assert staged.record is not None
    assert staged.record.evidence == "controller 9, epoch 1, sent a StopReplica"


def test_to_stop_again_changes_nothing(sim: Sim) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    request = stop_replica("orders", 0, 7)
    assert errors(broker.handle(request)) == {"orders-0": 0, "orders-7": 0}
    before = contents(sim.paths[0])
    assert errors(broker.handle(request)) == {"orders-0": 0, "orders-7": 0}
    assert contents(sim.paths[0]) == before


def test_what_was_stopped_may_come_back_at_any_leader_epoch(sim: Sim) -> None:
    broker = sim.start()
    answer(broker, leader_and_isr(FULL, topic("orders", A, state(0, 9))))
    broker.handle(stop_replica())
    assert broker.leader_epoch(ORDERS) is None
    assert answer(broker, leader_and_isr(FULL, topic("orders", A, state(0, 0)))) == {"orders-0": 0}
    assert sim.staged() == {}, "what was deleted a moment ago under the same ID is brought back"


@pytest.mark.parametrize(("epoch", "error"), [(8, 74), (9, 0), (10, 0), (-1, 0), (-2, 0)])
def test_a_leader_epoch_that_is_older_than_the_last_one_is_fenced(sim: Sim, epoch: int, error: int) -> None:
    broker = sim.start()
    answer(broker, leader_and_isr(FULL, topic("orders", A, state(0, 9))))
    assert errors(broker.handle(stop_replica(epoch=epoch))) == {"orders-0": error}
    assert bool(sim.live()) == bool(error)


def test_what_was_staged_meanwhile_is_forgotten_when_it_is_stopped(sim: Sim) -> None:
    broker = sim.start()
    answer(broker, leader_and_isr(FULL, topic("orders", A, state(0, 9))))
    broker.store.stage([ORDERS], "TEST", "somebody staged it by hand")
    assert errors(broker.handle(stop_replica())) == {"orders-0": 0}
    assert broker.leader_epoch(ORDERS) is None


def test_stale_epochs_are_answered_without_partitions(sim: Sim) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    broker.broker_epoch = 7
    response = broker.handle(stop_replica(broker_epoch=6))
    assert (response.error, response.topics) == (77, ())
    assert errors(broker.handle(stop_replica(broker_epoch=-1, delete=False))) == {"orders-0": 0}
    assert sim.live() == {"orders-0": A}


def test_each_partition_is_answered_for_itself(sim: Sim) -> None:
    for number in (0, 1):
        sim.put(f"orders-{number}", A, disk=number)
    sim.put("orders-2", A, disk=0)
    sim.put("orders-2", A, disk=1)
    failing = DiskThat(errno.EIO, below=sim.paths[0])
    broker = sim.start(failing)
    failing.fails.add("rename")
    assert errors(broker.handle(stop_replica("orders", 0, 1, 2, 3))) == {
        "orders-0": 56,  # the disk fails
        "orders-1": 0,
        "orders-2": 56,  # lives twice
        "orders-3": 0,  # is not here
    }
