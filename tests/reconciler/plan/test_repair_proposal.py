"""A plan is put together from all the rules, says what it leaves alone, and ranks copies as an audit does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from layout.ids import TopicId
from layout.ours import RepairKind
from logstore.repair import apply_repair
from reconciler.plan import RepairChoice
from tests.reconciler.plan.repair_broker import NOW_MS, OTHER, Broker, done, reason

POINT = "recovery-point-offset-checkpoint"


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


def test_a_broker_that_is_in_order_needs_no_repair(broker: Broker) -> None:
    broker.replica("orders-0")
    broker.wanted("orders", 0)
    plan = broker.plan()
    assert (plan.actions, plan.left_alone, plan.log_dirs) == ((), (), ())
    assert plan.metadata[0]["location"] == "/m"


def test_once_a_plan_is_applied_the_next_one_is_empty(broker: Broker) -> None:
    broker.replica("orders-0", None)
    broker.replica("orders-1", b"", disk=1)
    broker.replica("twice-0", OTHER, epoch=5)
    broker.replica("twice-0", OTHER, epoch=4, disk=1)
    broker.file("meta.properties.tmp", "half")
    broker.file(POINT, "0\n1\ngone 0 1\n")
    broker.file("cleaner-offset-checkpoint", "0\n2\norders 0 1\nhalf\n")
    broker.wanted("orders", 0, 1)
    broker.wanted("twice", 0, topic_id=OTHER)
    plans = []
    while (plan := broker.plan()).actions and len(plans) < 5:
        assert apply_repair(plan, NOW_MS).is_complete
        plans.append(plan)
    assert [len(each.actions) for each in plans] == [5, 1]
    assert plan.left_alone == ()


def test_a_log_dir_that_cannot_be_trusted_is_left_as_it_is(broker: Broker) -> None:
    broker.replica("orders-0", None)
    broker.replica("orders-1", None, disk=1)
    broker.wanted("orders", 0, 1)
    (broker.log_dirs[0] / "meta.properties").unlink()
    plan = broker.plan()
    assert [each.log_dir for each in plan.actions] == [str(broker.log_dirs[1])]
    assert "cannot be trusted" in reason(plan, ".")


def test_a_disk_that_is_not_mounted_is_left_as_it_is(broker: Broker) -> None:
    shutil.rmtree(broker.log_dirs[0])
    assert "no such directory" in reason(broker.plan(metadata=False), ".")


def test_only_the_kinds_that_were_asked_for_are_planned(broker: Broker) -> None:
    broker.replica("orders-0", None)
    broker.file("meta.properties.tmp", "half")
    broker.wanted("orders", 0)
    assert done(broker.plan(only=[RepairKind.REMOVE_LEFTOVER])) == [("remove_leftover", "meta.properties.tmp")]
    assert done(broker.plan(only=[RepairKind.REPLACE_TOPIC_ID])) == []
    assert RepairChoice().has([RepairKind.REMOVE_LEFTOVER])


def test_the_same_disks_give_the_same_plan(broker: Broker) -> None:
    for number in range(5):
        broker.replica(f"orders-{number}", None)
    broker.wanted("orders", *range(5))
    one, other = broker.plan(), broker.plan()
    assert one == other and one.fingerprint
    assert [each.path for each in one.actions] == sorted(each.path for each in one.actions)


def test_names_that_are_not_utf8_are_planned_around(broker: Broker) -> None:
    broker.replica("b\udcffd-0", None)
    broker.replica("orders-0", None)
    broker.wanted("orders", 0)
    assert done(broker.plan()) == [("write_partition_metadata", "orders-0/partition.metadata")]


def test_metadata_of_an_id_that_nobody_here_has_changes_no_live_replica(broker: Broker) -> None:
    broker.replica("orders-0", OTHER)
    broker.wanted("payments", 0, topic_id=TopicId(bytes(range(50, 66))))
    assert broker.plan().actions == ()
