"""Repairs of checkpoints, leftovers and duplicates.

Checkpoints keep what is whole and lose only what is surely stale. Leftovers go only beside the whole file. A duplicate
is staged only where the other copy is surely the better one, on disks that are surely one broker's.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from layout.ours import sum_of
from logstore.scan import scan_all
from reconciler.audit import audit
from reconciler.audit.findings import FINDINGS_FILE
from reconciler.desired import DesiredState
from reconciler.plan import ActionKind, PlanOrigin, RepairChoice, propose_repair
from reconciler.plan.repair_files import MANY
from tests.reconciler.plan.repair_broker import NOW_MS, OLD, ORDERS, RepairBroker, applied, done, reason

POINT, CLEANER = "recovery-point-offset-checkpoint", "cleaner-offset-checkpoint"
REBUILD, DROP, REMOVE = "rebuild_checkpoint", "drop_checkpoint_entries", "remove_leftover"


@pytest.fixture
def with_orders(tmp_path: Path) -> RepairBroker:
    made = RepairBroker(tmp_path)
    made.replica("orders-0")
    return made


def test_a_checkpoint_that_does_not_parse_keeps_its_whole_lines(with_orders: RepairBroker) -> None:
    with_orders.file(POINT, "0\n4\norders 0 5\n\0\0\ngone 1 7\norders 0")
    (action,) = with_orders.plan(metadata=False).actions
    assert (action.kind, action.name, action.drops) == (REBUILD, POINT, ("gone 1",))
    assert action.lost == ("\\x00\\x00", "orders 0")
    assert action.writes == sum_of(b"0\n1\norders 0 5\n")
    assert "learns the high watermark anew" in action.why


def test_a_checkpoint_of_another_version_is_not_taken_for_damage(with_orders: RepairBroker) -> None:
    with_orders.file(POINT, "1\n1\norders 0 5\n")
    plan = with_orders.plan(metadata=False)
    assert plan.actions == ()
    assert "format that is not known" in reason(plan, POINT)


def test_a_checkpoint_that_is_no_file_is_left_alone(with_orders: RepairBroker) -> None:
    (with_orders.log_dirs[0] / POINT).mkdir()
    plan = with_orders.plan(metadata=False)
    assert plan.actions == ()


def test_entries_without_a_directory_are_dropped_and_listed(with_orders: RepairBroker) -> None:
    with_orders.file(POINT, "0\n4\norders 0 5\ngone 1 7\nlost 0 1\nmoving 3 9\n")
    with_orders.replica(f"moving-3.{'0' * 32}-future")
    (action,) = with_orders.plan(metadata=False).actions
    assert (action.kind, action.drops) == (DROP, ("gone 1", "lost 0"))
    assert action.writes == sum_of(b"0\n2\norders 0 5\nmoving 3 9\n")


def test_an_entry_of_the_other_log_dir_is_stale_in_this_one(with_orders: RepairBroker) -> None:
    with_orders.file(POINT, "0\n1\norders 0 5\n", disk=1)
    (action,) = with_orders.plan(metadata=False).actions
    assert (action.log_dir, action.drops) == (str(with_orders.log_dirs[1]), ("orders 0",))


def test_negative_partitions_can_be_dropped_too(with_orders: RepairBroker) -> None:
    with_orders.file(POINT, "0\n1\norders -1 5\n")
    assert [action.drops for action in with_orders.plan(metadata=False).actions] == [("orders -1",)]


def test_what_may_lie_in_a_tier_that_cannot_be_listed_is_not_called_stale(tmp_path: Path) -> None:
    broker = RepairBroker(tmp_path, "namespaced")
    for tier in ("org", "org/apache"):
        (broker.log_dirs[0] / tier).mkdir()
        (broker.log_dirs[0] / tier / ".logstore_tier").touch()
    (broker.log_dirs[0] / "org" / "linked").symlink_to(tmp_path)
    broker.file(POINT, "0\n3\norg:linked:orders 0 1\norg:apache:orders 0 2\norders 0 3\n")
    (action,) = broker.plan(metadata=False).actions
    assert action.drops == ("orders 0", "org:apache:orders 0")


def test_by_topic_id_no_entry_is_stale_while_a_directory_does_not_tell_its_topic(tmp_path: Path) -> None:
    broker = RepairBroker(tmp_path, "by-topic-id")
    broker.replica("51/517c94f62e40467e96d3438ddad69e58_0", None)
    broker.file(POINT, "0\n1\norders 0 1\n")
    plan = broker.plan(metadata=False)
    assert plan.actions == ()
    assert "not everything" in reason(plan, POINT)


def test_entries_wait_while_a_duplicate_of_the_log_dir_is_staged(with_orders: RepairBroker) -> None:
    with_orders.replica("twice-0", epoch=1)
    with_orders.replica("twice-0", disk=1, epoch=2)
    with_orders.file(POINT, "0\n1\ngone 1 7\n")
    plan = with_orders.plan(metadata=False)
    assert done(plan) == [("stage_duplicate", "twice-0")]
    assert "plan again after" in reason(plan, POINT)
    assert done(with_orders.plan(metadata=False, only=[ActionKind.DROP_CHECKPOINT_ENTRIES])) == [(DROP, POINT)]


def test_a_leftover_goes_beside_the_whole_file_it_was_to_become(with_orders: RepairBroker) -> None:
    with_orders.file(CLEANER, "0\n0\n")
    with_orders.file(f"{CLEANER}.tmp", "0\n")
    with_orders.file("meta.properties.tmp", "")
    assert done(with_orders.plan(metadata=False)) == [(REMOVE, f"{CLEANER}.tmp"), (REMOVE, "meta.properties.tmp")]


@pytest.mark.parametrize(("target", "said"), [(None, "missing"), ("", "empty"), ("7\n1\nx\n", "version 7")])
def test_a_leftover_that_may_be_all_there_is_stays(with_orders: RepairBroker, target: str | None, said: str) -> None:
    with_orders.file(f"{CLEANER}.tmp", "0\n0\n")
    if target is not None:
        with_orders.file(CLEANER, target)
    plan = with_orders.plan(metadata=False, only=[ActionKind.REMOVE_LEFTOVER])
    assert plan.actions == ()
    assert said in reason(plan, f"{CLEANER}.tmp")


def test_a_leftover_whose_target_nothing_here_can_check_stays(with_orders: RepairBroker) -> None:
    with_orders.file("bootstrap.checkpoint", "x")
    with_orders.file("bootstrap.checkpoint.tmp", "x")
    assert "nothing here can tell" in reason(with_orders.plan(metadata=False), "bootstrap.checkpoint.tmp")


@pytest.fixture
def broker(tmp_path: Path) -> RepairBroker:
    return RepairBroker(tmp_path)


@pytest.mark.parametrize("number", range(12))
def test_copies_are_ranked_as_the_audit_ranks_them(tmp_path: Path, number: int) -> None:
    random = Random(number)
    broker = RepairBroker(tmp_path)
    offsets: list[list[str]] = [[], []]
    for partition, disk in itertools.product(range(6), range(2)):
        metadata = random.choice([ORDERS, ORDERS, ORDERS, OLD])
        broker.replica(f"orders-{partition}", metadata, disk=disk, epoch=random.choice([None, 1, 2]))
        if random.random() < 0.7:
            offsets[disk].append(f"orders {partition} {random.choice([5, 7])}\n")
    for disk, lines in enumerate(offsets):
        broker.file(POINT, "".join(["0\n", f"{len(lines)}\n", *lines]), disk=disk)
    broker.wanted("orders", *range(6), directories=[str(broker.directory_ids[random.randrange(2)])])
    staged = {(each.log_dir, each.name) for each in broker.plan().actions if each.kind == "stage_duplicate"}
    ranks = ranked_by_audit(broker, broker.state(), tmp_path)
    assert staged and all(ranks[place] == 2 for place in staged)


def ranked_by_audit(broker: RepairBroker, state: DesiredState, folder: Path) -> dict[tuple[str, str], int]:
    tables = [seen.rows for seen in scan_all(list(map(str, broker.log_dirs)))]
    audit(tables, [], [state], str(folder), now_ms=NOW_MS)
    found = pq.read_table(folder / FINDINGS_FILE).to_pylist()
    return {(each["log_dir"], each["name"]): each["copy_rank"] for each in found if each["copy_rank"] is not None}


def test_the_plan_names_both_copies_and_locks_both_log_dirs(broker: RepairBroker) -> None:
    broker.replica("orders-0", epoch=1)
    broker.replica("orders-0", epoch=2, disk=1)
    broker.wanted("orders", 0)
    plan = broker.plan()
    (action,) = plan.actions
    assert (action.log_dir, action.keeps and action.keeps.log_dir) == tuple(map(str, broker.log_dirs))
    assert [each.path for each in plan.log_dirs] == list(map(str, broker.log_dirs))
    assert "last leader epoch is 1, and the other copy's is 2" in action.why


def test_a_copy_without_a_readable_id_gives_way_to_the_wanted_one(broker: RepairBroker) -> None:
    broker.replica("orders-0", b"garbage", epoch=9)
    broker.replica("orders-0", disk=1)
    broker.wanted("orders", 0)
    plan = broker.plan()
    assert done(plan) == [("stage_duplicate", "orders-0")]
    assert plan.actions[0].topic_id is None
    assert applied(plan).is_complete
    assert not (broker.log_dirs[0] / "orders-0").exists()


def test_copies_that_cannot_be_ranked_are_left_with_the_reason(broker: RepairBroker) -> None:
    broker.replica("orders-0")
    broker.replica("orders-0", disk=1)
    broker.wanted("orders", 0)
    plan = broker.plan()
    assert plan.actions == ()
    assert "alike in topic ID, leader epoch and recovery point" in reason(plan, "orders-0")


def test_the_operator_says_which_of_two_equal_copies_stays(broker: RepairBroker) -> None:
    copies = [broker.replica("orders-0", disk=disk) for disk in range(2)]
    broker.wanted("orders", 0)
    (copies[1] / "1.log").write_bytes(bytes(70_000))
    plan = broker.plan(keep=[str(copies[1])])
    assert (done(plan), plan.left_alone) == ([("stage_duplicate", "orders-0")], ())
    # Size and time of both are what a person compares.
    assert re.search(r"stays, of 70 kB, last changed 20.* UTC, beside this one, of \d+ B, last", plan.actions[0].why)
    assert applied(plan).is_complete
    assert [path.exists() for path in copies] == [False, True]


def test_a_choice_between_copies_of_one_disk_is_not_asked_for(broker: RepairBroker) -> None:
    kept = str(broker.replica("orders-0"))
    broker.replica("orders-0", disk=1)
    properties = broker.log_dirs[1] / "meta.properties"
    properties.write_text(properties.read_text().replace(*map(str, reversed(broker.directory_ids))))
    plan = broker.plan(metadata=False, keep=[kept])
    assert plan.actions == ()
    assert "one is a copy of the other" in reason(plan, "orders-0")


def test_a_choice_of_both_copies_or_of_none_decides_nothing(broker: RepairBroker) -> None:
    copies = [str(broker.replica("orders-0", disk=disk)) for disk in range(2)]
    broker.wanted("orders", 0)
    assert "names more than one" in reason(broker.plan(keep=copies), "orders-0")
    single = str(broker.replica("single-0"))
    plan = broker.plan(keep=[single])
    assert plan.actions == ()
    assert "no copy of a replica that is live twice" in reason(plan, "single-0")


def test_only_what_a_person_has_to_decide_is_undecided(broker: RepairBroker) -> None:
    for disk in range(2):
        broker.replica("orders-0", disk=disk)
        broker.replica("ranked-0", disk=disk, epoch=disk + 1)
    view = broker.view([broker.state()])
    _, (found,) = propose_repair(view, RepairChoice(), PlanOrigin(NOW_MS, "a-host", "a user"))
    assert found.paths == tuple(f"{log_dir}/orders-0" for log_dir in broker.log_dirs)
    assert "alike" in found.reason


def test_two_copies_in_one_log_dir_are_left_with_the_reason(broker: RepairBroker) -> None:
    broker.replica("orders-0", epoch=1)
    broker.replica("orders-00", epoch=2)
    assert "lie in one log dir" in reason(broker.plan(metadata=False), "orders-0")


def test_copies_wait_for_the_checkpoints_they_are_ranked_by(broker: RepairBroker) -> None:
    broker.replica("orders-0", epoch=1)
    broker.replica("orders-0", epoch=2, disk=1)
    broker.file(POINT, "half", disk=1)
    plan = broker.plan(metadata=False)
    assert done(plan) == [("rebuild_checkpoint", POINT)]
    assert "plan again" in reason(plan, "orders-0")


def test_a_damaged_leader_epoch_checkpoint_decides_nothing(broker: RepairBroker) -> None:
    (broker.replica("orders-0") / "leader-epoch-checkpoint").write_bytes(b"\0\0\0")
    broker.replica("orders-0", epoch=2, disk=1)
    assert "leader epoch of a copy cannot be read" in reason(broker.plan(metadata=False), "orders-0")


def test_two_log_dirs_with_one_directory_id_are_copies_of_one_disk(broker: RepairBroker) -> None:
    broker.replica("orders-0", epoch=1)
    broker.replica("orders-0", epoch=2, disk=1)
    properties = broker.log_dirs[1] / "meta.properties"
    properties.write_text(properties.read_text().replace(*map(str, reversed(broker.directory_ids))))
    broker.file(POINT, "half")
    plan = broker.plan(metadata=False)
    assert plan.actions == ()
    assert "one is a copy of the other" in reason(plan, "orders-0")
    assert reason(plan, ".").endswith("leave the copy out"), "apply opens every log dir, and refuses a copy"


def test_a_log_dir_that_its_broker_did_not_register_is_not_chosen_between(broker: RepairBroker) -> None:
    broker.replica("orders-0", epoch=1)
    broker.replica("orders-0", epoch=2, disk=1)
    broker.wanted("orders", 0)
    broker.builder.broker(1, 5, False, [str(broker.directory_ids[0])])
    plan = broker.plan()
    assert plan.actions == ()
    assert "did not register" in reason(plan, "orders-0")


def test_a_whole_copied_disk_is_not_staged_and_is_reported_in_one_line(broker: RepairBroker) -> None:
    for partition in range(MANY + 1):
        broker.replica(f"orders-{partition}", epoch=1)
        broker.replica(f"orders-{partition}", epoch=2, disk=1)
    plan = broker.plan(metadata=False)
    assert plan.actions == ()
    (left,) = plan.left_alone
    assert "10 more replicas" in left.reason and "11 of the 11 replicas" in left.reason
    first, second = (f"{disk}/meta.properties" for disk in broker.log_dirs)
    assert left.next == f"grep -H = {first} {second}"


def test_a_few_duplicates_among_many_replicas_are_staged(broker: RepairBroker) -> None:
    for partition in range(MANY + 1):
        broker.replica(f"orders-{partition}", epoch=1)
        broker.replica(f"orders-{partition}", epoch=2, disk=1)
    for partition in range(40):
        for disk in range(2):
            broker.replica(f"single{disk}-{partition}", disk=disk)
    assert len(broker.plan(metadata=False).actions) == MANY + 1
