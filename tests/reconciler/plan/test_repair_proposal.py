"""A plan of repairs is put together from all the rules, and says what it leaves alone.

A topic ID is written only where the metadata, the replica and everything near it on the disks agree.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import TopicId
from layout.ours import MISSING, sum_of
from reconciler.plan import ActionKind, Gate, GatesShutError, Policy, RepairChoice, shut_for_repair
from reconciler.plan.gate_inputs import EarlierRuns
from tests.reconciler.plan.repair_broker import NOW_MS, OLD, ORDERS, OTHER, RepairBroker, applied, done, reason

POINT = "recovery-point-offset-checkpoint"


@pytest.fixture
def broker(tmp_path: Path) -> RepairBroker:
    return RepairBroker(tmp_path)


def test_a_broker_that_is_in_order_needs_no_repair(broker: RepairBroker) -> None:
    broker.replica("orders-0")
    broker.wanted("orders", 0)
    plan = broker.plan()
    assert (plan.actions, plan.left_alone, plan.log_dirs) == ((), (), ())
    assert plan.metadata[0]["location"] == "/m"


def test_once_a_plan_is_applied_the_next_one_is_empty(broker: RepairBroker) -> None:
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
        assert applied(plan).is_complete
        plans.append(plan)
    assert [len(each.actions) for each in plans] == [5, 1]
    assert plan.left_alone == ()


def test_a_log_dir_that_cannot_be_trusted_is_left_as_it_is(broker: RepairBroker) -> None:
    broker.replica("orders-0", None)
    broker.replica("orders-1", None, disk=1)
    broker.wanted("orders", 0, 1)
    (broker.log_dirs[0] / "meta.properties").unlink()
    plan = broker.plan()
    assert [each.log_dir for each in plan.actions] == [str(broker.log_dirs[1])]
    assert "cannot be trusted" in reason(plan, ".")


def test_a_disk_that_is_not_mounted_is_left_as_it_is(broker: RepairBroker) -> None:
    shutil.rmtree(broker.log_dirs[0])
    assert "no such directory" in reason(broker.plan(metadata=False), ".")


def test_only_the_kinds_that_were_asked_for_are_planned(broker: RepairBroker) -> None:
    broker.replica("orders-0", None)
    broker.file("meta.properties.tmp", "half")
    broker.wanted("orders", 0)
    assert done(broker.plan(only=[ActionKind.REMOVE_LEFTOVER])) == [("remove_leftover", "meta.properties.tmp")]
    assert done(broker.plan(only=[ActionKind.REPLACE_TOPIC_ID])) == []
    assert RepairChoice().has([ActionKind.REMOVE_LEFTOVER])


def test_the_same_disks_give_the_same_plan(broker: RepairBroker) -> None:
    for number in range(5):
        broker.replica(f"orders-{number}", None)
    broker.wanted("orders", *range(5))
    one, other = broker.plan(), broker.plan()
    assert one == other and one.fingerprint
    assert [each.name for each in one.actions] == sorted(each.name for each in one.actions)


def test_names_that_are_not_utf8_are_planned_around(broker: RepairBroker) -> None:
    broker.replica("b\udcffd-0", None)
    broker.replica("orders-0", None)
    broker.wanted("orders", 0)
    assert done(broker.plan()) == [("write_partition_metadata", "orders-0/partition.metadata")]


def test_metadata_of_an_id_that_nobody_here_has_changes_no_live_replica(broker: RepairBroker) -> None:
    broker.replica("orders-0", OTHER)
    broker.wanted("payments", 0, topic_id=TopicId(bytes(range(50, 66))))
    assert broker.plan().actions == ()


WRITE, REPLACE = "write_partition_metadata", "replace_topic_id"
FILE = "orders-0/partition.metadata"


@pytest.mark.parametrize(
    "damage", [None, b"", b"garbage", b"version: 0\ntopic_id: " + b"A" * 22, b"\0" * 43, b"version: 0\ntopic_id: ?"]
)
def test_a_missing_or_damaged_file_is_written_where_the_id_is_certain(
    broker: RepairBroker, damage: bytes | None
) -> None:
    broker.replica("orders-0", damage)
    broker.wanted("orders", 0)
    (action,) = broker.plan().actions
    assert (action.kind, action.name, action.wanted_topic_id) == (WRITE, FILE, str(ORDERS))
    assert (action.expects, action.writes) == (sum_of(damage), sum_of(partition_metadata.encode(ORDERS)))
    assert str(ORDERS) in action.why and "the metadata counts it as in sync" in action.why
    assert (damage is None) == (action.expects == MISSING)


def test_the_evidence_says_what_a_broker_would_do(broker: RepairBroker) -> None:
    broker.replica("orders-0", None)
    broker.replica("orders-1", b"")
    broker.replica("orders-2")
    broker.wanted("orders", 0, 1, 2)
    missing, empty = broker.plan().actions
    assert "sets it aside as stray" in missing.why and "1 other of this broker's replicas" in missing.why
    assert "the broker does not start" in empty.why


def test_in_a_log_dir_of_ours_the_json_form_is_planned(tmp_path: Path) -> None:
    ours = RepairBroker(tmp_path, "namespaced")
    ours.replica("org/apache/orders-0", None)
    for tier in ("org", "org/apache"):
        (ours.log_dirs[0] / tier / ".logstore_tier").touch()
    ours.wanted("org:apache:orders", 0)
    (action,) = ours.plan().actions
    assert action.replica.topic == "org:apache:orders"
    assert action.writes == sum_of(partition_metadata.encode_json(ORDERS, "org:apache:orders", 0))


def test_by_topic_id_the_directory_itself_says_the_id(tmp_path: Path) -> None:
    ours = RepairBroker(tmp_path, "by-topic-id")
    ours.replica(f"{ORDERS.hex[:2]}/{ORDERS.hex}_0", None)
    ours.wanted("orders", 0)
    assert [action.topic for action in ours.plan().actions] == ["orders"]


def test_a_file_that_names_another_replica_is_written_only_when_it_holds_the_wanted_id(broker: RepairBroker) -> None:
    broker.replica("orders-0", partition_metadata.encode_json(ORDERS, "payments", 7))
    broker.replica("orders-1", partition_metadata.encode_json(OTHER, "payments", 7))
    broker.wanted("orders", 0, 1)
    plan = broker.plan()
    assert done(plan) == [(WRITE, FILE)]
    assert f"the disk says {OTHER}" in reason(plan, "orders-1")


def test_other_replicas_of_the_topic_under_another_id_speak_against_it(broker: RepairBroker) -> None:
    broker.replica("orders-0", None)
    broker.replica("orders-1", OLD, disk=1)
    broker.wanted("orders", 0, 1)
    plan = broker.plan()
    assert done(plan) == []
    assert f"hold topic ID {OLD}" in reason(plan, "orders-0")


def test_a_leader_epoch_that_the_metadata_has_not_reached_speaks_against_it(broker: RepairBroker) -> None:
    broker.replica("orders-0", None, epoch=9)
    broker.replica("orders-1", None, epoch=3)
    broker.wanted("orders", 0, 1, leader_epoch=3)
    plan = broker.plan()
    assert done(plan) == [(WRITE, "orders-1/partition.metadata")]
    assert "deleted and made anew" in reason(plan, "orders-0")


def test_the_id_on_disk_under_another_name_speaks_against_it(broker: RepairBroker) -> None:
    broker.replica("orders-0", None)
    broker.replica("payments-0", ORDERS, disk=1)
    broker.wanted("orders", 0)
    assert "as topic payments" in reason(broker.plan(), "orders-0")


def test_a_stray_or_staged_copy_speaks_against_it(broker: RepairBroker) -> None:
    broker.replica("orders-0", None)
    broker.replica(f"orders-0.{'0' * 32}-stray", ORDERS)
    broker.wanted("orders", 0)
    assert "lies aside" in reason(broker.plan(), "orders-0")


def test_what_is_live_twice_waits(broker: RepairBroker) -> None:
    broker.replica("orders-0", None)
    broker.replica("orders-0", b"", disk=1)
    broker.wanted("orders", 0)
    plan = broker.plan()
    assert done(plan) == []
    assert any("repair that first" in each.reason for each in plan.left_alone)


def test_a_reassignment_in_flight_is_not_disturbed(broker: RepairBroker) -> None:
    broker.replica("orders-0", None)
    broker.wanted("orders", 0, adding=[1])
    assert "a reassignment" in reason(broker.plan(), "orders-0")


def test_a_damaged_file_of_what_nobody_wants_here_is_left_alone(broker: RepairBroker) -> None:
    broker.replica("orders-0", b"")
    broker.wanted("orders", 0, nodes=(2,))
    assert "does not want" in reason(broker.plan(), "orders-0")


def test_without_metadata_no_id_is_ever_guessed(broker: RepairBroker) -> None:
    broker.replica("orders-0", b"")
    broker.replica("orders-1")
    broker.replica("orders-2", None)
    plan = broker.plan(metadata=False)
    assert done(plan) == []
    assert "no metadata speaks" in reason(plan, "orders-0") and "no metadata speaks" in reason(plan, "orders-2")


def test_before_topic_ids_nothing_is_missing(broker: RepairBroker) -> None:
    broker.replica("orders-0", None)
    broker.wanted("orders", 0, topic_id=None)
    for plan in (broker.plan(), broker.plan(metadata=False)):
        assert (plan.actions, plan.left_alone) == ((), ())


def test_a_replica_without_id_that_is_not_wanted_is_no_matter_for_a_repair(broker: RepairBroker) -> None:
    broker.replica("orders-0", None)
    broker.wanted("orders", 0, nodes=(2,))
    assert broker.plan().left_alone == ()


def test_a_file_that_cannot_be_replaced_is_left_alone(broker: RepairBroker) -> None:
    path = broker.replica("orders-0", None)
    (path / "partition.metadata").symlink_to("/etc/hostname")
    broker.wanted("orders", 0)
    assert "symbolic link" in reason(broker.plan(), "orders-0")


def test_damage_of_a_replica_that_is_not_live_is_reported_and_left(broker: RepairBroker) -> None:
    name = f"orders-0.{'0' * 32}-future"
    broker.replica(name, b"")
    broker.wanted("orders", 0)
    assert "only live replicas" in reason(broker.plan(), name)


def test_another_id_is_never_replaced_unasked_and_the_wrong_cure_is_named(broker: RepairBroker) -> None:
    for number in range(3):
        broker.replica(f"orders-{number}", OLD)
    broker.wanted("orders", 0, 1, 2)
    plan = broker.plan()
    assert plan.actions == ()
    text = reason(plan, "orders-0")
    assert "2 more of topic orders" in text
    assert "--adopt-topic-id orders" in text and "deleting partition.metadata is the wrong cure" in text


def test_the_operator_can_declare_the_data_to_be_the_new_topics(broker: RepairBroker) -> None:
    broker.replica("orders-0", OLD, epoch=7)
    broker.replica("orders-1", None, epoch=7)
    broker.replica("payments-0", OTHER)
    broker.wanted("orders", 0, 1, leader_epoch=0)
    broker.wanted("payments", 0, topic_id=OTHER)
    plan = broker.plan(adopt=["orders"])
    assert done(plan) == [(WRITE, "orders-1/partition.metadata"), (REPLACE, FILE)]
    replace = plan.actions[1]
    assert (replace.expects, replace.wanted_topic_id) == (sum_of(partition_metadata.encode(OLD)), str(ORDERS))
    assert "wrong cure" in replace.why and "7, the metadata's 0" in replace.why
    assert plan.left_alone == ()


def test_data_that_the_cluster_wants_under_another_name_is_not_adopted(broker: RepairBroker) -> None:
    broker.replica("orders-0", OTHER)
    broker.wanted("orders", 0)
    broker.wanted("payments", 0, topic_id=OTHER)
    plan = broker.plan(adopt=["orders"])
    assert plan.actions == ()
    assert "belongs to topic payments" in reason(plan, "orders-0")


def test_data_of_a_topic_that_is_not_wanted_here_is_not_adopted(broker: RepairBroker) -> None:
    broker.replica("orders-0", OLD)
    broker.wanted("orders", 0, nodes=(2,))
    assert "does not want a replica" in reason(broker.plan(adopt=["orders"]), "orders-0")


def test_a_topic_to_adopt_that_is_not_there_is_reported(broker: RepairBroker) -> None:
    broker.wanted("orders", 0)
    assert "nothing to adopt" in reason(broker.plan(adopt=["odrers"]), "odrers")


def test_a_topic_to_adopt_that_is_in_order_is_left_as_it_is(broker: RepairBroker) -> None:
    broker.replica("orders-0")
    broker.wanted("orders", 0)
    plan = broker.plan(adopt=["orders"])
    assert (plan.actions, plan.left_alone) == ((), ())


def test_old_metadata_gives_no_topic_id_that_the_disk_does_not_say_too(broker: RepairBroker) -> None:
    broker.wanted("orders", 0, 1)
    path = broker.replica("orders-0", None)
    for as_of_ms, gate in ((NOW_MS - 90_000_000, Gate.AGE), (None, Gate.TIME), (NOW_MS + 90_000_000, Gate.TIME)):
        with pytest.raises(GatesShutError) as refused:
            broker.plan(as_of_ms=as_of_ms)
        assert [each.gate for each in refused.value.refusals] == [gate]
        assert done(refused.value.plan) == [("write_partition_metadata", "orders-0/partition.metadata")]
    assert shut_for_repair(broker.view([broker.state()]).states, Policy.cautious(), EarlierRuns(), NOW_MS) == []
    broker.file("recovery-point-offset-checkpoint", "0\n1\ngone 0 5\n")
    old = {"as_of_ms": NOW_MS - 90_000_000}
    assert done(broker.plan(only=[ActionKind.DROP_CHECKPOINT_ENTRIES], **old)) == [
        ("drop_checkpoint_entries", "recovery-point-offset-checkpoint")
    ]
    broker.replica("orders-1")  # in KRaft mode it tells of which topic all of this name are
    assert ("write_partition_metadata", "orders-0/partition.metadata") in done(broker.plan(**old))
    assert not (path / "partition.metadata").exists()
