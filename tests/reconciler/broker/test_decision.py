"""A decision is made of values alone: no disk, no store. What a broker remembers of it hangs on the results."""

from __future__ import annotations

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.staging import Placement, Staged
from logstore.store import Entry, replica_of
from reconciler.broker import DiskSnapshot
from reconciler.broker.decision import Decision, Outcome, remember
from reconciler.broker.leader_and_isr import decide_leader_and_isr
from reconciler.broker.memory import BrokerMemory
from reconciler.broker.restorable import RestorableReplica
from reconciler.broker.stop_replica import decide_stop_replica
from tests.reconciler.protocol.control_requests import (
    FULL,
    NODE,
    A,
    B,
    C,
    leader_and_isr,
    stop_replica,
    topic,
)

OLD, GONE, NEW = (TopicId(letter * 16) for letter in (b"o", b"g", b"n"))
STRAY = Staged("/d1", Placement.IN_PLACE, "clicks-0.x-stray", "clicks-0.x-stray", None, "why", 9, C)
REQUEST = leader_and_isr(
    FULL, topic("fresh", A, 0), topic("bare", B, 0), topic("clicks", C, 0), topic("orders", NEW, 0)
)


def snapshot(**more) -> DiskSnapshot:
    entries = {
        ("orders", 0): Entry("/d1", "orders-0", str(OLD), "ok", 1),
        ("gone", 0): Entry("/d2", "gone-0", str(GONE), "ok", 2),
        ("bare", 0): Entry("/d1", "bare-0", None, "missing", 3),
    }
    restorable = {("clicks", 0): [RestorableReplica(STRAY, "clicks-0")], ("fresh", 0): (), ("orders", 0): ()}
    return DiskSnapshot(entries, restorable=restorable, **more)


def decided(**more) -> Decision:
    return decide_leader_and_isr(REQUEST, NODE, snapshot(**more), BrokerMemory())


def shown(decision: Decision) -> list[tuple[str, str, str, int]]:
    return [(each.action.kind, each.action.log_dir, each.action.topic, each.place) for each in decision.actions]


def test_the_actions_are_those_of_plans_in_the_order_in_which_they_are_carried_out() -> None:
    decision = decided()
    assert shown(decision) == [
        ("stage", "/d1", "orders", 3),
        ("stage", "/d2", "gone", -1),
        ("restore", "/d1", "clicks", 2),
        ("write_topic_id", "/d1", "bare", 1),
        ("create", "", "fresh", 0),
        ("create", "", "orders", 3),
    ]
    assert decision.answers == [0, 0, 0, 0]
    stage, gone, restore, write, create, _ = (each.action for each in decision.actions)
    assert (stage.verdict, stage.name, stage.topic_id, stage.inode) == ("STALE_ID", "orders-0", str(OLD), 1)
    assert (gone.verdict, gone.wanted_topic_id) == ("UNKNOWN_TOPIC", None)
    assert (restore.verdict, restore.name, restore.wanted_topic_id) == ("MISSING", STRAY.location, str(C))
    assert (write.verdict, write.topic_id, write.wanted_topic_id) == ("NO_ID", None, str(B))
    assert create.why == f"wanted here under topic ID {A}, and no log dir of this broker that was looked at has it"


def test_while_a_disk_is_offline_what_may_lie_there_is_answered_and_not_made() -> None:
    decision = decided(offline={"/d3"})
    assert shown(decision)[2:] == [("write_topic_id", "/d1", "bare", 1)]
    assert decision.answers == [56, 0, 56, 56]
    assert decision.kept_back == {("clicks", 0, str(C))}


def test_a_replica_that_was_not_looked_for_is_never_replaced_by_an_empty_one() -> None:
    decision = decide_leader_and_isr(REQUEST, NODE, DiskSnapshot({}), BrokerMemory())
    assert (decision.actions, decision.answers) == ([], [56, 56, 56, 56])
    assert len(decision.kept_back) == 4


@pytest.mark.parametrize("failed", [None, "stage", "restore", "write_topic_id", "create"])
def test_a_leader_epoch_is_remembered_where_its_action_is_done(failed: str | None) -> None:
    decision, memory, outcome = decided(), BrokerMemory({"gone": {0: 7}}), Outcome()
    for each in decision.actions:
        is_failed = each.action.kind == failed
        outcome.add(each, each.failed(KafkaError.KAFKA_STORAGE_ERROR, "") if is_failed else each.done("/d1", "x"))
    answers = remember(memory, decision, outcome)
    lost = {
        **{None: set(), "stage": {"orders"}, "restore": {"clicks"}, "write_topic_id": {"bare"}},
        "create": {"fresh", "orders"},
    }[failed]
    assert set(memory.epochs) == {"fresh", "bare", "clicks", "orders"} - lost | (
        {"gone"} if failed == "stage" else set()
    )
    assert answers == [56 if name in lost else 0 for name in ("fresh", "bare", "clicks", "orders")]
    assert memory.kept_back == ({("clicks", 0, str(C))} if failed == "restore" else set())


def test_what_lives_twice_is_not_stopped_by_guessing_and_the_log_says_so() -> None:
    entry = snapshot().entries["orders", 0]
    copy = replica_of(TopicPartition("orders", 0), entry._replace(log_dir="/d2"))
    present = DiskSnapshot({("orders", 0): entry}, [copy], fences={("orders", 0): KafkaError.NONE})
    decision = decide_stop_replica(stop_replica(), present, BrokerMemory())
    assert (decision.actions, decision.answers) == ([], [56])
    assert decision.remarks == ["orders-0 is live in two log dirs: repair that first"]
