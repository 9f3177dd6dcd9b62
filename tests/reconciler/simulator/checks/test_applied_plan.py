"""What a plan may do to the disks of a machine, and what it must leave: judged from what lay there before and after."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.repair import RepairStatus
from reconciler.plan import Action, ActionKind, AppliedAction, ApplyOutcome, Plan
from reconciler.simulator.checks.applied_plan import (
    FoundDisks,
    FoundReplica,
    wrongly_applied,
    wrongly_done_again,
    wrongly_planned,
    wrongly_refused,
)
from tests.reconciler.simulator.conftest import NewCluster

OLD, NEW = (TopicId(bytes([number] * 16)) for number in (1, 2))
STAGED = f"/a/deleting/{OLD}_0"
ORDERS, CLICKS = FoundReplica("/a/orders-0", {"log": b"1"}), FoundReplica("/a/clicks-0", {"log": b"2"})
DISKS = FoundDisks({"/a": 1}, {10: ORDERS, 11: CLICKS})


def action(kind: ActionKind = ActionKind.STAGE, inode: int | None = 10, wanted: TopicId | None = None) -> Action:
    ids = str(OLD), None if wanted is None else str(wanted)
    return Action(kind, "/a", "orders-0", "orders", 0, *ids, "STALE_ID", "why", inode=inode)


def outcome(done: Action, status: RepairStatus = RepairStatus.DONE) -> ApplyOutcome:
    return ApplyOutcome([AppliedAction(done, status)])


def found(**replicas: FoundReplica) -> FoundDisks:
    return FoundDisks(DISKS.serials, {int(name[1:]): each for name, each in replicas.items()})


MOVED = found(i10=replace(ORDERS, path=STAGED), i11=CLICKS)


def test_a_replica_that_lies_staged_as_it_was_is_what_a_plan_is_for() -> None:
    assert list(wrongly_applied(DISKS, DISKS, MOVED, outcome(action()), old=False)) == []


@pytest.mark.parametrize(
    ("planned", "before", "after", "old", "sentence"),
    [
        (DISKS, DISKS, MOVED, True, "older than is allowed"),
        (found(i10=replace(ORDERS, files={})), DISKS, MOVED, False, "not what the plan was made for any more"),
        (found(i11=CLICKS), DISKS, MOVED, False, "not what the plan was made for any more"),
        (DISKS, DISKS, found(i10=FoundReplica(STAGED, {}), i11=CLICKS), False, "its files are not what they were"),
        (DISKS, DISKS, DISKS, False, "it lies in /a/orders-0"),
        (DISKS, DISKS, found(i10=MOVED.replicas[10]), False, "changed /a/clicks-0, which it does not name"),
        (DISKS, DISKS, replace(MOVED, replicas={**MOVED.replicas, 12: CLICKS}), False, "made /a/clicks-0, where"),
    ],
)
def test_anything_else_is_told(
    planned: FoundDisks, before: FoundDisks, after: FoundDisks, old: bool, sentence: str
) -> None:
    (wrong,) = wrongly_applied(planned, before, after, outcome(action()), old=old)
    assert sentence in wrong


def test_what_lies_on_a_disk_that_went_away_meanwhile_is_not_judged() -> None:
    assert list(wrongly_applied(DISKS, DISKS, FoundDisks({}, {}), outcome(action()), old=False)) == []


def test_nothing_is_made_empty_that_lies_staged() -> None:
    makes = outcome(action(ActionKind.CREATE, None, OLD))
    after = replace(MOVED, replicas={**MOVED.replicas, 12: replace(ORDERS, files={})})
    (wrong,) = wrongly_applied(DISKS, MOVED, after, makes, old=False)
    assert wrong == f"a plan made orders-0 empty, and it lies whole in {STAGED}"
    assert not list(wrongly_applied(DISKS, MOVED, after, outcome(action(ActionKind.CREATE, None, NEW)), old=False))


def test_a_plan_is_refused_for_its_age_or_other_disks_and_then_changes_nothing() -> None:
    other = FoundDisks({"/a": 2}, DISKS.replicas)
    assert list(wrongly_refused(DISKS, DISKS, DISKS, "it is old", old=True)) == []
    assert list(wrongly_refused(DISKS, other, other, "it is another disk", old=False)) == []
    (wrong,) = wrongly_refused(DISKS, DISKS, DISKS, "I would not", old=False)
    assert wrong == "a plan of these disks, which is not too old, was refused: I would not"
    (wrong,) = wrongly_refused(DISKS, DISKS, MOVED, "it is old", old=True)
    assert wrong == "a plan was refused, and changed the disks: it is old"


def test_what_was_done_is_found_to_be_done() -> None:
    first = outcome(action())
    assert list(wrongly_done_again(first, outcome(action(), RepairStatus.ALREADY))) == []
    (wrong,) = wrongly_done_again(first, outcome(action(), RepairStatus.SKIPPED))
    assert wrong.startswith("stage of orders-0 was done, and then it is skipped")
    assert list(wrongly_done_again(outcome(action(), RepairStatus.FAILED), first)) == []


def test_a_plan_stages_what_the_znodes_do_not_want_and_only_that(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2)
    topic_id = cluster.create_topic("orders", assignment={0: [1, 2]})
    row = {"kind": "live", "metadata_state": "ok", "log_dir": "/a", "name": "orders-0"}
    with_it, without = [action()], list[Action]()

    def wrong(actions: list[Action], topic: str, of: TopicId) -> str:
        plan = Plan(0, "h", "u", 0, {}, (), (), tuple(actions))
        told = [{**row, "partition": 0, "topic": topic, "topic_id": str(of)}]
        return "".join(wrongly_planned(plan, told, cluster.oracle, 1))

    assert wrong(without, "orders", topic_id) == wrong(with_it, "orders", OLD) == wrong(with_it, "clicks", OLD) == ""
    assert wrong(with_it, "orders", topic_id).endswith("would stage it, though it is wanted")
    assert wrong(without, "orders", OLD).endswith("leaves it, though nobody wants it there")
    cluster.run(for_ms=1_000)
    active = cluster.active
    assert active is not None
    assert active.admin.reassign([(TopicPartition("orders", 0), (2,))])
    cluster.run(for_ms=20_000)
    assert wrong(with_it, "orders", topic_id) == ""
    alone = {at: tuple(each._replace(isr=(1,)) for each in found) for at, found in cluster.oracle.wanted().items()}
    cluster.oracle.wanted().update(alone)
    assert wrong(with_it, "orders", topic_id).endswith("the only copy of orders-0 in sync, and a plan would stage it")
    makes = action(ActionKind.CREATE, None, topic_id)
    assert wrong([makes], "clicks", topic_id).endswith("a plan would make it empty once more")
    assert "once more" not in wrong([makes], "clicks", NEW)
    assert wrong(without, "clicks", topic_id) == "", "the data of a topic that has another name now is renamed"
