"""What a plan makes of each verdict, the gates from end to end, the choice of actions, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.log_dir import LogDir
from logstore.staging import stage
from reconciler.plan import Gate, PlanChoice, Policy
from reconciler.plan.gate_inputs import EarlierRuns, Sighting, count_sightings
from reconciler.plan.gates import GatesShutError
from reconciler.plan.proposal import PlanDraft
from reconciler.verdicts import Verdict
from tests.logstore.engine import candidate
from tests.reconciler.plan.plan_broker import CLICKS, GONE, HOUR_MS, NOW_MS, OLD, ORDERS, UNUSED, PlanBroker, lines


@pytest.fixture
def broker(tmp_path: Path) -> PlanBroker:
    return PlanBroker(tmp_path)


@pytest.fixture
def messy(broker: PlanBroker) -> PlanBroker:
    """Three kinds of unwanted replicas among twenty that are in order."""
    broker.in_order()
    broker.wanted("orders", ORDERS, 0)
    broker.replica("orders-0", OLD)
    broker.replica("clicks-77", CLICKS, disk=1)
    broker.replica("gone-0", GONE, size=50_000)
    return broker


def test_whatever_nobody_wants_is_staged_and_the_rest_is_counted(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice())
    assert lines(plan) == [("stage", "gone-0"), ("stage", "orders-0"), ("stage", "clicks-77")]
    assert [action.verdict for action in plan.actions] == ["UNKNOWN_TOPIC", "STALE_ID", "NOT_ASSIGNED"]
    assert [action.bytes for action in plan.actions] == [50_000 + 43, 100 + 43, 100 + 43]
    files = [file for action in plan.actions for file in Path(action.log_dir, action.name).iterdir()]
    assert plan.totals() == {"stage": {"actions": 3, "bytes": sum(512 * file.stat().st_blocks for file in files)}}


def test_each_action_carries_its_evidence(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(delay_ms=1000))
    (action,) = [action for action in plan.actions if action.name == "orders-0"]
    directory = messy.log_dirs[0] / "orders-0"
    assert (action.log_dir, action.inode, action.bytes) == (str(messy.log_dirs[0]), directory.stat().st_ino, 143)
    assert action.modified_ms == max(path.stat().st_mtime_ns for path in directory.iterdir()) // 1_000_000
    assert (action.topic_id, action.wanted_topic_id) == (str(OLD), str(ORDERS))
    assert str(OLD) in action.why and action.due_ms == NOW_MS + 1000
    assert action.undo is not None and action.undo.startswith(
        f"logstore restore {' '.join(messy.paths)} --topic orders"
    )
    (source,) = plan.metadata
    assert (source["location"], source["sha256"], source["topics"]) == ("/metadata", "d" * 64, "2")
    assert {log_dir.staging for log_dir in plan.log_dirs} == {f"{path}.deleting" for path in messy.paths}


def test_nothing_to_do_gives_a_plan_without_actions(broker: PlanBroker) -> None:
    broker.in_order(3)
    assert broker.plan(PlanChoice()).actions == ()


# KIP516-11
def test_a_replica_without_an_id_gets_the_one_under_which_it_is_wanted(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0)
    broker.replica("orders-0", None)
    (action,) = broker.plan().actions
    assert (action.kind, action.topic_id, action.wanted_topic_id) == ("write_topic_id", None, str(ORDERS))


def test_no_id_is_written_where_others_of_the_topic_hold_another(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0, 1)
    broker.replica("orders-0", None)
    broker.replica("orders-1", OLD)
    plan = broker.plan()
    assert lines(plan) == [("stage", "orders-1")]
    (left,) = plan.left_alone
    assert (left.name, str(OLD) in left.reason) == ("orders-0", True)


def test_no_id_is_written_over_data_of_a_leader_epoch_that_the_metadata_has_not_reached(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0, leader_epoch=3)
    (broker.replica("orders-0", None) / "leader-epoch-checkpoint").write_text("0\n1\n4 0\n")
    plan = broker.plan()
    assert plan.actions == ()
    (left,) = plan.left_alone
    assert "last leader epoch is 4 and the metadata's is 3" in left.reason


def test_a_replica_without_a_certain_id_is_staged_where_another_broker_leads_it_in_sync(broker: PlanBroker) -> None:
    broker.in_order()
    broker.wanted("orders", ORDERS, 0, 1, isr=[2])
    broker.wanted("orders", ORDERS, 2, isr=[2], leader=-1)
    for partition in range(3):
        path = broker.replica(f"orders-{partition}", None)
        if partition:
            (path / "partition.metadata").write_bytes(b"")
    (broker.replica("gone-0", None) / "partition.metadata").write_bytes(b"")
    plan = broker.plan(PlanChoice(Policy.kip516(), refetched=frozenset({"orders", "gone"})))
    assert lines(plan) == [("stage", "gone-0"), ("stage", "orders-0"), ("stage", "orders-1")]
    (left,) = plan.left_alone
    assert (left.name, "no other live broker leads it in sync" in left.reason) == ("orders-2", True)
    assert lines(broker.plan(PlanChoice(Policy.kip516()))) == [("write_topic_id", "orders-0")]


def test_a_stray_that_is_wanted_comes_back(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0)
    stray = broker.stray("orders-0", ORDERS)
    assert lines(broker.plan()) == [("restore", stray.name)]


def test_what_is_wanted_stays_stray_where_a_replica_is_live_or_two_could_come(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0, 1)
    broker.replica("orders-0", ORDERS)
    broker.stray("orders-0", ORDERS)
    broker.stray("orders-1", ORDERS)
    broker.stray("orders-1", ORDERS, disk=1)
    plan = broker.plan()
    assert plan.actions == ()
    assert sorted(left.reason for left in plan.left_alone) == [
        "2 replicas could come back: choose one of them, and restore it",
        "2 replicas could come back: choose one of them, and restore it",
        "the metadata wants it, and a replica of the partition is live",
    ]


def test_strays_get_a_due_time_only_when_asked_for_and_only_once(broker: PlanBroker) -> None:
    broker.in_order(2)
    stray = broker.stray("gone-0", GONE)
    plan = broker.plan()
    assert (plan.actions, "--strays" in plan.left_alone[0].reason) == ((), True)
    plan = broker.plan(PlanChoice(Policy.kip516(), strays=True))
    assert lines(plan) == [("stage_stray", stray.name)]
    assert plan.actions[0].undo == f"logstore restore {stray.parent} --location {stray.name} --as-stray"
    broker.apply(plan)
    assert broker.plan(PlanChoice(Policy.kip516(), strays=True)).actions == ()


@pytest.mark.parametrize(("scheme", "gets_one"), [("flat", True), ("namespaced", False)])
def test_a_stray_in_a_log_dir_that_is_ours_gets_a_due_time_where_a_broker_can_have_left_it(
    tmp_path: Path, scheme: str, gets_one: bool
) -> None:
    ours = PlanBroker(tmp_path, scheme)
    ours.in_order(2)
    stray = ours.stray("gone-0", GONE)
    plan = ours.plan(PlanChoice(Policy.kip516(), strays=True))
    assert lines(plan) == ([("stage_stray", stray.name)] if gets_one else [])
    ours.apply(plan)
    assert ours.plan(PlanChoice(Policy.kip516(), strays=True)).actions == ()


def test_a_stray_of_which_nothing_says_that_it_is_unwanted_gets_none(broker: PlanBroker) -> None:
    broker.in_order(2)
    broker.stray("gone-0", None)
    plan = broker.plan(PlanChoice(Policy.kip516(), strays=True))
    assert (plan.actions, "nothing says surely" in plan.left_alone[0].reason) == ((), True)


def test_missing_replicas_are_made_in_log_dirs_that_are_ours_alone(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "ours").mkdir()
    real, ours = PlanBroker(tmp_path / "real"), PlanBroker(tmp_path / "ours", "flat")
    for broker in (real, ours):
        broker.wanted("orders", ORDERS, 0, 1, 2)
        broker.replica("orders-0", OLD)
        broker.replica("orders-1", ORDERS)
    assert lines(real.plan()) == [("stage", "orders-0")]
    assert sorted(lines(ours.plan())) == [("create", "orders-0"), ("create", "orders-2"), ("stage", "orders-0")]


def test_nothing_takes_the_place_of_data_that_is_live_under_a_former_topic_name(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path, "flat")
    broker.wanted("orders", ORDERS, 0, 1, 2)
    broker.replica("orders-0", ORDERS)
    with LogDir.open(broker.paths[0]) as log_dir:
        stage(log_dir, [candidate(topic_id=ORDERS)], NOW_MS)
    broker.replica("orders-1", None)
    for partition in range(3):
        broker.replica(f"kicks-{partition}", ORDERS)
    plan = broker.plan()
    assert plan.actions == ()
    reason = "its data is live here under another topic name, so nothing takes its place"
    assert {each.name: each.reason for each in plan.left_alone} == {
        f"deleting/{ORDERS}_0": "the metadata wants it, and a replica of the partition is live",
        "orders-1": reason,
        "orders-2": reason,
    }
    assert {each.next.split()[1] for each in plan.left_alone if each.reason == reason} == {"doctor"}


def test_no_partition_is_made_of_a_topic_that_is_live_under_a_former_name_which_nothing_could_rename_then(
    tmp_path: Path,
) -> None:
    broker = PlanBroker(tmp_path, "flat")
    broker.wanted("orders", ORDERS, 0, 1)
    broker.replica("kicks-0", ORDERS)
    plan = broker.plan()
    assert plan.actions == ()
    assert {each.name: each.reason.split(", ")[1] for each in plan.left_alone} == {
        "orders-0": "so nothing takes its place",
        "orders-1": "and could not be renamed any more once it had this one too",
    }


def test_a_replica_is_made_on_the_log_dir_to_which_the_metadata_assigns_it(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path, "flat")
    for partition in range(3):
        broker.replica(f"clicks-{partition}", CLICKS, disk=1)
    broker.wanted("clicks", CLICKS, 0, 1, 2)
    broker.wanted("orders", ORDERS, 0, directories=(str(broker.directory_ids[1]), None))
    (action,) = broker.plan().actions
    assert (action.kind, action.log_dir) == ("create", broker.paths[1])


def test_damage_and_duplicates_are_left_to_repair_which_is_named(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0, 1)
    broker.replica("orders-0", ORDERS)
    broker.replica("orders-0", ORDERS, disk=1)
    (broker.replica("orders-1", None) / "partition.metadata").write_bytes(b"")
    plan = broker.plan()
    assert plan.actions == ()
    assert {left.verdict for left in plan.left_alone} == {"DUPLICATE", "DAMAGED"}
    assert all(left.next.startswith("logstore repair ") for left in plan.left_alone)


def test_an_abandoned_future_replica_is_left_alone(broker: PlanBroker) -> None:
    broker.in_order(2)
    broker.replica(f"clicks-9.{'0' * 32}-future", CLICKS)
    plan = broker.plan()
    assert (plan.actions, [left.verdict for left in plan.left_alone]) == ((), ["FUTURE_ABANDONED"])


def test_topics_and_verdicts_can_be_picked(messy: PlanBroker) -> None:
    assert lines(messy.plan(PlanChoice(topics=("click*", "gone")))) == [("stage", "gone-0"), ("stage", "clicks-77")]
    assert lines(messy.plan(PlanChoice(verdicts=frozenset({Verdict.STALE_ID})))) == [("stage", "orders-0")]


def test_the_cheapest_set_is_enough_and_no_more(messy: PlanBroker) -> None:
    takes = {action.name: action.frees for action in messy.plan(PlanChoice()).actions}
    assert takes["clicks-77"] + takes["orders-0"] < takes["gone-0"]
    assert lines(messy.plan(PlanChoice(need=140))) == [("stage", "clicks-77")]
    assert lines(messy.plan(PlanChoice(need=takes["clicks-77"] + takes["orders-0"] + 1))) == [("stage", "gone-0")]
    assert len(messy.plan(PlanChoice(need=10**12)).actions) == 3


def test_what_an_index_reserves_and_does_not_take_frees_nothing(broker: PlanBroker) -> None:
    broker.in_order()
    broker.wanted("orders", ORDERS, 0)
    with (broker.replica("orders-0", OLD) / "00000000000000000000.index").open("wb") as index:
        index.truncate(10 << 20)
    (action,) = broker.plan().actions
    assert action.bytes == (10 << 20) + 143
    assert action.frees < 1 << 20


def test_the_cheapest_set_has_nothing_that_a_gate_would_stop(broker: PlanBroker) -> None:
    broker.in_order()
    broker.replica("__offsets-0", GONE)
    broker.replica("gone-0", UNUSED)
    assert lines(broker.plan(PlanChoice(need=1000))) == [("stage", "gone-0")]


def test_all_shut_gates_are_reported_at_once_with_their_overrides(broker: PlanBroker) -> None:
    broker.in_order(2)
    broker.replica("__offsets-0", GONE)
    broker.replica("gone-0", UNUSED)
    with pytest.raises(GatesShutError) as caught:
        broker.plan(PlanChoice(Policy.cautious()), states=[broker.state(timestamp_ms=NOW_MS - 30 * HOUR_MS)])
    assert [refusal.gate for refusal in caught.value.refusals] == [
        *(Gate.AGE, Gate.NEWER, Gate.SHARE, Gate.INTERNAL),
    ]
    for override in (
        "--max-age 31h",
        "--max-share 50%",
        "--allow internal",
        "--allow newer",
        "2 of 4 replicas",
        "50 %",
    ):
        assert override in str(caught.value)


def test_a_replica_is_only_noted_until_enough_runs_have_seen_it(messy: PlanBroker) -> None:
    choice = PlanChoice(sightings=2, topics=("orders",))
    (noted,) = messy.plan(choice).actions
    assert (noted.kind, noted.due_ms, noted.undo) == ("note_sighting", None, None)
    long_ago = (Sighting(NOW_MS - 3 * HOUR_MS, NOW_MS - 2 * HOUR_MS),)
    seen = EarlierRuns(sightings={(noted.log_dir, noted.inode, noted.topic_id): long_ago})
    assert lines(messy.plan(choice, memory=seen)) == [("stage", "orders-0")]
    another = EarlierRuns(sightings={(noted.log_dir, 1, noted.topic_id): long_ago})
    assert lines(messy.plan(choice, memory=another)) == [("note_sighting", "orders-0")]


@pytest.mark.parametrize(
    ("sightings", "number"),
    [
        ([(10, 100), (20, 200)], 2),
        ([(10, 100), (10, 200)], 1),  # the same metadata twice
        ([(10, 100), (20, 149)], 1),  # too soon after the first
        ([(20, 100), (10, 200), (21, 201)], 2),  # metadata that went back in between
        ([(10, 100), (20, 149), (30, 150), (40, 199)], 2),
    ],
)
def test_a_second_sighting_is_of_later_metadata_and_apart_from_the_first(
    sightings: list[tuple[int, int]], number: int
) -> None:
    assert count_sightings([Sighting(*each) for each in sightings], 50) == number


def test_the_same_disks_give_the_same_plan(messy: PlanBroker) -> None:
    assert messy.plan() == messy.plan()


def test_a_log_dir_that_cannot_be_trusted_shuts_a_gate_and_gets_no_action(messy: PlanBroker) -> None:
    (messy.log_dirs[0] / "meta.properties").unlink()
    with pytest.raises(GatesShutError, match="--allow absent"):
        messy.plan(PlanChoice())
    plan = messy.plan(PlanChoice(Policy(None, None, None, None, frozenset({Gate.ABSENT}))))
    assert {action.log_dir for action in plan.actions} == {messy.paths[1]}
    assert [log_dir.path for log_dir in plan.log_dirs] == [messy.paths[1]]


def draft(broker: PlanBroker, *, strays: bool = False) -> PlanDraft:
    made = PlanDraft(broker.view(), PlanChoice(strays=strays), NOW_MS)
    made.fill()
    return made


def test_many_of_a_kind_make_one_word_for_each_log_dir(broker: PlanBroker) -> None:
    broker.in_order(2)
    for number in range(3):
        broker.stray(f"gone-{number}", GONE)
    broker.stray("gone-9", GONE, disk=1)
    one, other = draft(broker).left_alone()
    assert (one.log_dir, "and 2 others like it" in one.reason) == (broker.paths[0], True)
    assert (other.log_dir, "others" in other.reason) == (broker.paths[1], False)
    assert one.next.startswith("logstore plan ") and one.next.endswith(" --strays -o plan.json")


def test_a_stray_whose_name_was_cut_gets_no_due_time(broker: PlanBroker) -> None:
    broker.in_order(2)
    broker.stray(f"{'a' * 214}-0", GONE)
    made = draft(broker, strays=True)
    assert made.candidates == []
    assert [(left.verdict, "was cut" in left.reason) for left in made.left_alone()] == [("STRAY", True)]


def test_what_is_staged_and_wanted_comes_back_from_where_it_lies(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0)
    broker.replica("orders-0", ORDERS)
    with LogDir.open(broker.paths[0]) as log_dir:
        stage(log_dir, [candidate(topic_id=ORDERS)], NOW_MS)
    assert lines(broker.plan()) == [("restore", f"../d1.deleting/{ORDERS}_0")]


def test_what_is_staged_under_an_id_that_nobody_wants_stays(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0)
    broker.replica("orders-0", OLD)
    with LogDir.open(broker.paths[0]) as log_dir:
        stage(log_dir, [candidate(topic_id=OLD)], NOW_MS)
    assert lines(broker.plan()) == []


def test_no_id_is_written_while_an_older_replica_of_the_topic_is_staged(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0, 1)
    broker.replica("orders-0", OLD)
    broker.replica("orders-1", None)
    assert broker.apply(broker.plan()).is_complete
    (left,) = [left for left in broker.plan().left_alone if left.verdict == "NO_ID"]
    assert str(OLD) in left.reason


def test_a_stale_replica_makes_room_for_the_one_that_comes_back(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0)
    broker.replica("orders-0", OLD)
    stray = broker.stray("orders-0", ORDERS, disk=1)
    plan = broker.plan()
    assert lines(plan) == [("stage", "orders-0"), ("restore", stray.name)]
    assert broker.apply(plan).is_complete
    assert list(broker.verdicts().values()) == ["STAGED"]


def test_a_marked_replica_that_is_wanted_is_reported_because_the_next_start_deletes_it(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0)
    broker.replica(f"orders-0.{'a' * 32}-delete", ORDERS)
    assert [left.verdict for left in draft(broker).left_alone()] == ["MARKED_DELETE"]


def test_a_stray_without_a_topic_id_gets_a_due_time_where_the_live_replica_is_in_sync(broker: PlanBroker) -> None:
    """It is what a deleted partition.metadata leaves: the broker set it aside, and fetched the replica anew."""
    broker.in_order(2)
    stray = broker.stray("clicks-0", None)
    (left,) = broker.plan(PlanChoice(Policy.kip516(), strays=True)).left_alone
    assert f"{broker.paths[0]}/clicks-0 is live and in sync in its place" in left.reason
    assert left.next.endswith(" --strays --strays-without-id -o plan.json")
    plan = broker.plan(PlanChoice(Policy.kip516(), strays=True, strays_without_id=True))
    assert lines(plan) == [("stage_stray", stray.name)]
    assert broker.apply(plan).is_complete
    assert broker.plan(PlanChoice(Policy.kip516(), strays=True, strays_without_id=True)).actions == ()


def test_a_stray_without_a_topic_id_gets_a_due_time_where_another_live_broker_leads_in_sync(broker: PlanBroker) -> None:
    """The ISR loses a stopped broker, but its replica is fetched from the leader."""
    broker.wanted("orders", ORDERS, 0, isr=(2,))
    broker.replica("orders-0", ORDERS)
    stray = broker.stray("orders-0", None)
    (left,) = broker.plan(PlanChoice(Policy.kip516(), strays=True)).left_alone
    assert "orders-0 is live in its place, and another live broker leads it in sync" in left.reason
    plan = broker.plan(PlanChoice(Policy.kip516(), strays=True, strays_without_id=True))
    assert lines(plan) == [("stage_stray", stray.name)]


def test_a_stray_without_a_topic_id_stays_where_nobody_is_in_sync_for_certain(broker: PlanBroker) -> None:
    broker.wanted("orders", ORDERS, 0, isr=(2,), leader=-1)
    broker.replica("orders-0", ORDERS)
    broker.stray("orders-0", None)
    plan = broker.plan(PlanChoice(Policy.kip516(), strays=True, strays_without_id=True))
    assert plan.actions == ()
    assert "nothing says surely" in plan.left_alone[0].reason
    assert plan.left_alone[0].next.startswith("logstore explain ")
