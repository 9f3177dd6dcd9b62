"""Duplicates are staged where one copy is surely the better one, of disks that are surely one broker's."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from logstore.repair import apply_repair
from logstore.scan import scan_all
from reconciler.audit import audit
from reconciler.audit.embedded import FINDINGS_FILE
from reconciler.desired import DesiredState
from reconciler.plan.repair_copies import MANY
from tests.reconciler.plan.repair_broker import NOW_MS, OLD, ORDERS, Broker, done, reason

POINT = "recovery-point-offset-checkpoint"


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


@pytest.mark.parametrize("number", range(12))
def test_copies_are_ranked_as_the_audit_ranks_them(tmp_path: Path, number: int) -> None:
    random = Random(number)
    broker = Broker(tmp_path)
    offsets: list[list[str]] = [[], []]
    for partition, disk in itertools.product(range(6), range(2)):
        metadata = random.choice([ORDERS, ORDERS, ORDERS, OLD])
        broker.replica(f"orders-{partition}", metadata, disk=disk, epoch=random.choice([None, 1, 2]))
        if random.random() < 0.7:
            offsets[disk].append(f"orders {partition} {random.choice([5, 7])}\n")
    for disk, lines in enumerate(offsets):
        broker.file(POINT, "".join(["0\n", f"{len(lines)}\n", *lines]), disk=disk)
    broker.wanted("orders", *range(6), directories=[str(broker.directory_ids[random.randrange(2)])])
    staged = {(each.log_dir, each.path) for each in broker.plan().actions if each.kind == "stage_duplicate"}
    ranks = ranked_by_audit(broker, broker.state(), tmp_path)
    assert staged and all(ranks[place] == 2 for place in staged)


def ranked_by_audit(broker: Broker, state: DesiredState, folder: Path) -> dict[tuple[str, str], int]:
    tables = [seen.rows for seen in scan_all(list(map(str, broker.log_dirs)))]
    audit(tables, [], [state], str(folder), now_ms=NOW_MS)
    found = pq.read_table(folder / FINDINGS_FILE).to_pylist()
    return {(each["log_dir"], each["name"]): each["copy_rank"] for each in found if each["copy_rank"] is not None}


def test_the_plan_names_both_copies_and_locks_both_log_dirs(broker: Broker) -> None:
    broker.replica("orders-0", epoch=1)
    broker.replica("orders-0", epoch=2, disk=1)
    broker.wanted("orders", 0)
    plan = broker.plan()
    (action,) = plan.actions
    assert (action.log_dir, action.keeps and action.keeps.log_dir) == tuple(map(str, broker.log_dirs))
    assert [each.path for each in plan.log_dirs] == list(map(str, broker.log_dirs))
    assert "last leader epoch is 1, and the other copy's is 2" in action.evidence


def test_a_copy_without_a_readable_id_gives_way_to_the_wanted_one(broker: Broker) -> None:
    broker.replica("orders-0", b"garbage", epoch=9)
    broker.replica("orders-0", disk=1)
    broker.wanted("orders", 0)
    plan = broker.plan()
    assert done(plan) == [("stage_duplicate", "orders-0")]
    assert plan.actions[0].topic_id is None
    assert apply_repair(plan, NOW_MS).is_complete
    assert not (broker.log_dirs[0] / "orders-0").exists()


def test_copies_that_cannot_be_told_apart_are_left_with_the_reason(broker: Broker) -> None:
    broker.replica("orders-0")
    broker.replica("orders-0", disk=1)
    broker.wanted("orders", 0)
    plan = broker.plan()
    assert plan.actions == ()
    assert "alike in topic ID, leader epoch and recovery point" in reason(plan, "orders-0")


def test_two_copies_in_one_log_dir_are_left_with_the_reason(broker: Broker) -> None:
    broker.replica("orders-0", epoch=1)
    broker.replica("orders-00", epoch=2)
    assert "lie in one log dir" in reason(broker.plan(metadata=False), "orders-0")


def test_copies_wait_for_the_checkpoints_they_are_ranked_by(broker: Broker) -> None:
    broker.replica("orders-0", epoch=1)
    broker.replica("orders-0", epoch=2, disk=1)
    broker.file(POINT, "half", disk=1)
    plan = broker.plan(metadata=False)
    assert done(plan) == [("rebuild_checkpoint", POINT)]
    assert "plan again" in reason(plan, "orders-0")


def test_a_damaged_leader_epoch_checkpoint_decides_nothing(broker: Broker) -> None:
    (broker.replica("orders-0") / "leader-epoch-checkpoint").write_bytes(b"\0\0\0")
    broker.replica("orders-0", epoch=2, disk=1)
    assert "leader epoch of a copy cannot be read" in reason(broker.plan(metadata=False), "orders-0")


def test_two_log_dirs_with_one_directory_id_are_copies_of_one_disk(broker: Broker) -> None:
    broker.replica("orders-0", epoch=1)
    broker.replica("orders-0", epoch=2, disk=1)
    properties = broker.log_dirs[1] / "meta.properties"
    properties.write_text(properties.read_text().replace(*map(str, reversed(broker.directory_ids))))
    plan = broker.plan(metadata=False)
    assert plan.actions == ()
    assert "one is a copy of the other" in reason(plan, "orders-0")


def test_a_log_dir_that_its_broker_did_not_register_is_not_chosen_between(broker: Broker) -> None:
    broker.replica("orders-0", epoch=1)
    broker.replica("orders-0", epoch=2, disk=1)
    broker.wanted("orders", 0)
    broker.builder.broker(1, 5, False, [str(broker.directory_ids[0])])
    plan = broker.plan()
    assert plan.actions == ()
    assert "did not register" in reason(plan, "orders-0")


def test_a_whole_copied_disk_is_not_staged_and_is_told_in_one_line(broker: Broker) -> None:
    for partition in range(MANY + 1):
        broker.replica(f"orders-{partition}", epoch=1)
        broker.replica(f"orders-{partition}", epoch=2, disk=1)
    plan = broker.plan(metadata=False)
    assert plan.actions == ()
    (left,) = plan.left_alone
    assert "10 more replicas" in left.reason and "11 of the 11 replicas" in left.reason


def test_a_few_duplicates_among_many_replicas_are_staged(broker: Broker) -> None:
    for partition in range(MANY + 1):
        broker.replica(f"orders-{partition}", epoch=1)
        broker.replica(f"orders-{partition}", epoch=2, disk=1)
    for partition in range(40):
        for disk in range(2):
            broker.replica(f"single{disk}-{partition}", disk=disk)
    assert len(broker.plan(metadata=False).actions) == MANY + 1
