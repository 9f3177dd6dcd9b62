"""What is told of things that a plan leaves alone, and rarer replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.log_dir import LogDir
from logstore.staging import stage
from reconciler.plan.plan_draft import PlanDraft
from tests.logstore.engine import candidate
from tests.reconciler.plan.plan_broker import GONE, NOW_MS, OLD, ORDERS, Broker, lines


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


def draft(broker: Broker, *, strays: bool = False) -> PlanDraft:
    made = PlanDraft(broker.view(), strays, NOW_MS)
    made.fill()
    return made


def test_many_of_a_kind_make_one_word_for_each_log_dir(broker: Broker) -> None:
    broker.in_order(2)
    for number in range(3):
        broker.stray(f"gone-{number}", GONE)
    broker.stray("gone-9", GONE, disk=1)
    one, other = draft(broker).told()
    assert (one.log_dir, "and 2 others like it" in one.reason) == (broker.paths[0], True)
    assert (other.log_dir, "others" in other.reason) == (broker.paths[1], False)
    assert one.next.startswith("logstore explain ") or one.next.startswith("kafka-")


def test_a_stray_whose_name_was_cut_gets_no_due_time(broker: Broker) -> None:
    broker.in_order(2)
    broker.stray(f"{'a' * 214}-0", GONE)
    made = draft(broker, strays=True)
    assert made.candidates == []
    assert [(left.verdict, "was cut" in left.reason) for left in made.told()] == [("STRAY", True)]


def test_what_is_staged_and_wanted_comes_back_from_where_it_lies(broker: Broker) -> None:
    broker.wanted("orders", ORDERS, 0)
    broker.replica("orders-0", ORDERS)
    with LogDir.open(broker.paths[0]) as log_dir:
        stage(log_dir, [candidate(topic_id=ORDERS)], NOW_MS)
    assert lines(broker.plan()) == [("restore", f"../d1.deleting/{ORDERS}_0")]


def test_what_is_staged_under_an_id_that_nobody_wants_stays(broker: Broker) -> None:
    broker.wanted("orders", ORDERS, 0)
    broker.replica("orders-0", OLD)
    with LogDir.open(broker.paths[0]) as log_dir:
        stage(log_dir, [candidate(topic_id=OLD)], NOW_MS)
    assert lines(broker.plan()) == []


def test_no_id_is_written_while_an_older_replica_of_the_topic_lies_aside(broker: Broker) -> None:
    broker.wanted("orders", ORDERS, 0, 1)
    broker.replica("orders-0", OLD)
    broker.replica("orders-1", None)
    assert broker.apply(broker.plan()).is_complete
    (left,) = [left for left in broker.plan().left_alone if left.verdict == "NO_ID"]
    assert str(OLD) in left.reason


def test_a_stale_replica_makes_room_for_the_one_that_comes_back(broker: Broker) -> None:
    broker.wanted("orders", ORDERS, 0)
    broker.replica("orders-0", OLD)
    stray = broker.stray("orders-0", ORDERS, disk=1)
    plan = broker.plan()
    assert lines(plan) == [("stage", "orders-0"), ("restore", stray.name)]
    assert broker.apply(plan).is_complete
    assert list(broker.verdicts().values()) == ["STAGED"]


def test_a_marked_replica_that_is_wanted_is_told_because_the_next_start_deletes_it(broker: Broker) -> None:
    broker.wanted("orders", ORDERS, 0)
    broker.replica(f"orders-0.{'a' * 32}-delete", ORDERS)
    assert [left.verdict for left in draft(broker).told()] == ["MARKED_DELETE"]
