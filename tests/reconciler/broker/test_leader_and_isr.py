"""LeaderAndIsr, case by case: what each type of request does to each kind of replica, and the answer."""

from __future__ import annotations

import errno
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from layout import partition_metadata
from layout.checkpoint import RECOVERY_POINT_CHECKPOINT
from layout.ids import TopicId
from layout.scheme import LEDGER_FILE, Scheme
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.namespaces import create_namespace, rename_topic
from logstore.purge import PurgeRules, purge
from reconciler.broker import Broker, dry_run_request
from reconciler.broker.leader_and_isr import LEFT_ALONE, STAGED_BY
from reconciler.protocol import LiveLeader, RequestType
from reconciler.verdicts import Verdict
from tests.logstore.engine import HOUR_MS, DiskThat, contents
from tests.reconciler.protocol.control_requests import (
    FULL,
    INCREMENTAL,
    NODE,
    ORDERS,
    OTHERS,
    UNSPECIFIED,
    A,
    B,
    C,
    Sim,
    answer,
    errors,
    leader_and_isr,
    state,
    topic,
)

TYPES = pytest.mark.parametrize("kind", list(RequestType))
RECONCILING = pytest.mark.parametrize("kind", [FULL, INCREMENTAL])


# DESIGN §4, line by line: STALE_ID


@RECONCILING
def test_a_replica_under_another_id_is_staged_and_its_successor_made(sim: Sim, kind: RequestType) -> None:
    # KIP516-5
    sim.put("orders-0", A)
    broker = sim.start()
    assert answer(broker, leader_and_isr(kind, topic("orders", B, 0))) == {"orders-0": 0}
    assert sim.live() == {"orders-0": B}
    assert sim.staged() == {"orders-0": (A, "STALE_ID")}
    assert sim.data_of("orders-0") == b""


def test_a_request_that_does_not_say_its_type_refuses_another_id_and_moves_nothing(sim: Sim) -> None:
    # KIP516-5, DESIGN §4: UNSPECIFIED
    sim.put("orders-0", A)
    broker = sim.start()
    before = contents(sim.paths[0])
    assert answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", B, 0))) == {"orders-0": 103}
    assert contents(sim.paths[0]) == before and sim.live() == {"orders-0": A}


@RECONCILING
def test_a_re_created_topic_that_is_not_wanted_here_leaves_no_replica(sim: Sim, kind: RequestType) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    elsewhere = topic("orders", B, state(0, leader=2, replicas=OTHERS))
    assert answer(broker, leader_and_isr(kind, elsewhere)) == {"orders-0": 3}
    assert sim.live() == {} and sim.staged() == {"orders-0": (A, "STALE_ID")}


def test_partitions_that_an_incremental_request_does_not_name_stay_though_their_topic_was_re_created(sim: Sim) -> None:
    for number in (0, 1):
        sim.put(f"orders-{number}", A)
    broker = sim.start()
    answer(broker, leader_and_isr(INCREMENTAL, topic("orders", B, 0)))
    assert sim.live() == {"orders-0": B, "orders-1": A}
    answer(broker, leader_and_isr(FULL, topic("orders", B, 0)))
    assert sim.live() == {"orders-0": B}


def test_the_epoch_of_the_old_topic_does_not_hold_up_the_new_one(sim: Sim) -> None:
    broker = sim.start()
    answer(broker, leader_and_isr(INCREMENTAL, topic("orders", A, state(0, 41))))
    assert answer(broker, leader_and_isr(INCREMENTAL, topic("orders", B, state(0, 0)))) == {"orders-0": 0}
    assert broker.leader_epoch(ORDERS) == 0


# Not in the request, or without this broker


def test_only_a_full_request_stages_what_it_lacks(sim: Sim) -> None:
    # KIP516-5
    sim.put("gone-3", A)
    sim.put("orders-0", B)
    broker = sim.start()
    for kind in (UNSPECIFIED, INCREMENTAL):
        answer(broker, leader_and_isr(kind, topic("orders", B, 0)))
        assert sim.live() == {"gone-3": A, "orders-0": B}
    answer(broker, leader_and_isr(FULL, topic("orders", B, 0)))
    assert sim.live() == {"orders-0": B} and sim.staged() == {"gone-3": (A, "UNKNOWN_TOPIC")}


@pytest.mark.parametrize(("kind", "goes"), [(FULL, True), (INCREMENTAL, False), (UNSPECIFIED, False)])
def test_a_replica_whose_partition_is_on_other_brokers_goes_with_a_full_request(
    sim: Sim, kind: RequestType, goes: bool
) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    elsewhere = topic("orders", A, state(0, leader=2, replicas=OTHERS))
    assert answer(broker, leader_and_isr(kind, elsewhere)) == {"orders-0": 3}
    assert (sim.live() == {}) is goes
    assert sim.staged() == ({"orders-0": (A, "NOT_ASSIGNED")} if goes else {})


def test_a_replica_that_a_reassignment_is_still_taking_away_stays(sim: Sim) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    leaving = replace(state(0, replicas=OTHERS), removing=(1,))
    assert answer(broker, leader_and_isr(FULL, topic("orders", A, leaving))) == {"orders-0": 3}
    assert sim.live() == {"orders-0": A}


def test_a_replica_that_a_reassignment_brings_here_is_made(sim: Sim) -> None:
    broker = sim.start()
    coming = replace(state(0), adding=(1,))
    assert answer(broker, leader_and_isr(INCREMENTAL, topic("orders", A, coming))) == {"orders-0": 0}
    assert sim.live() == {"orders-0": A}


def test_what_has_no_topic_id_and_is_not_in_a_full_request_is_staged_under_the_zero_id(sim: Sim) -> None:
    # DESIGN §4
    sim.put("orders-0", None)
    broker = sim.start()
    answer(broker, leader_and_isr(FULL, topic("other", A, 0)))
    assert sim.staged() == {"orders-0": (TopicId.ZERO, "UNKNOWN_TOPIC")}
    assert (sim.paths[0] / "deleting" / f"{TopicId.ZERO}_0").is_dir()


def test_an_empty_full_request_stages_everything(sim: Sim) -> None:
    # Upstream: LogManagerTest.testFindStrayReplicasInEmptyLAIR; a controller that has nothing for this broker says so.
    for name in ("foo-0", "foo-1", "bar-0"):
        sim.put(name, A)
    broker = sim.start()
    assert answer(broker, leader_and_isr(FULL)) == {}
    assert sim.live() == {} and len(sim.staged()) == 3


def test_what_is_staged_is_logged_at_warn_with_the_time_of_its_deletion(
    sim: Sim, caplog: pytest.LogCaptureFixture
) -> None:
    # KIP516-6
    sim.put("gone-3", A)
    broker = sim.start()
    with caplog.at_level(logging.WARNING):
        answer(broker, leader_and_isr(FULL, topic("orders", B, 0)))
    (record,) = [each for each in caplog.records if "gone-3" in each.getMessage()]
    # The clock of the tests stands at 2023-11-14 22:13:20; the delay is four hours.
    assert record.levelno == logging.WARNING
    assert "may be purged from 2023-11-15 02:13:20 UTC on" in record.getMessage()
    assert "UNKNOWN_TOPIC" in record.getMessage()


def test_what_is_staged_goes_when_its_delay_is_over_and_not_before(sim: Sim) -> None:
    # KIP516-6
    sim.put("gone-3", A)
    broker = sim.start()
    answer(broker, leader_and_isr(FULL, topic("orders", B, 0)))
    sim.clock.advance(4 * HOUR_MS - 1)
    purge(broker.store.log_dirs, PurgeRules(sim.clock.now_ms()))
    assert sim.staged() == {"gone-3": (A, "UNKNOWN_TOPIC")}
    sim.clock.advance(1)
    purge(broker.store.log_dirs, PurgeRules(sim.clock.now_ms()))
    assert sim.staged() == {} and os.listdir(sim.paths[0] / "deleting") == [LEDGER_FILE]


# NO_ID


@TYPES
def test_a_replica_without_an_id_gets_the_one_of_the_request_and_keeps_its_data(sim: Sim, kind: RequestType) -> None:
    # KIP516-11
    path = sim.put("orders-0", None)
    broker = sim.start()
    assert answer(broker, leader_and_isr(kind, topic("orders", A, 0))) == {"orders-0": 0}
    assert partition_metadata.parse((path / partition_metadata.FILE_NAME).read_bytes()).topic_id == A
    assert sim.data_of("orders-0") == b"data" and sim.staged() == {}
    sim.start()
    assert sim.live() == {"orders-0": A}


@TYPES
def test_an_id_is_never_guessed(sim: Sim, kind: RequestType) -> None:
    # KIP516-11
    path = sim.put("orders-0", None)
    broker = sim.start()
    assert answer(broker, leader_and_isr(kind, topic("orders", None, 0))) == {"orders-0": 0}
    assert not (path / partition_metadata.FILE_NAME).exists()


@TYPES
def test_a_request_without_an_id_contradicts_no_replica(sim: Sim, kind: RequestType) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    assert answer(broker, leader_and_isr(kind, topic("orders", None, 0))) == {"orders-0": 0}
    assert sim.live() == {"orders-0": A} and sim.staged() == {}


# MISSING


@TYPES
@pytest.mark.parametrize("topic_id", [A, None])
@pytest.mark.parametrize("new", [True, False])
def test_what_is_wanted_here_and_missing_is_made(
    sim: Sim, kind: RequestType, topic_id: TopicId | None, new: bool
) -> None:
    broker = sim.start()
    assert answer(broker, leader_and_isr(kind, topic("orders", topic_id, state(0, new=new)))) == {"orders-0": 0}
    assert sim.live() == {"orders-0": topic_id}
    sim.start()
    assert sim.live() == {"orders-0": topic_id}


def test_many_new_replicas_are_spread_over_the_disks(sim: Sim) -> None:
    sim.put("old-0", C)
    broker = sim.start()
    answer(broker, leader_and_isr(INCREMENTAL, topic("orders", A, *range(9))))
    assert [len(list(path.glob("*-*"))) for path in sim.paths] == [5, 5]


def test_a_follower_of_a_leader_that_nobody_knows_is_made_all_the_same(sim: Sim) -> None:
    # FACTS §4.2, 6: an unknown broker leads
    broker = sim.start()
    request = replace(
        leader_and_isr(INCREMENTAL, topic("orders", A, state(0, leader=77))), live_leaders=(LiveLeader(2, "h", 1),)
    )
    assert answer(broker, request) == {"orders-0": 0}
    assert sim.live() == {"orders-0": A}


@RECONCILING
def test_what_lies_staged_under_the_wanted_id_is_brought_back(sim: Sim, kind: RequestType) -> None:
    # DESIGN §4
    path = sim.put("orders-0", A, data=b"precious")
    before = contents(path)
    broker = sim.start()
    answer(broker, leader_and_isr(FULL, topic("other", B, 0)))
    assert sim.staged() == {"orders-0": (A, "UNKNOWN_TOPIC")}
    assert answer(broker, leader_and_isr(kind, topic("other", B, 0), topic("orders", A, 0)))["orders-0"] == 0
    assert contents(path) == before and sim.staged() == {}
    assert sim.live() == {"orders-0": A, "other-0": B}


@RECONCILING
def test_a_stray_under_the_wanted_id_is_brought_back_and_one_under_another_id_is_left(
    sim: Sim, kind: RequestType
) -> None:
    # KIP516-5: what a broker left in a log dir before it was ours
    sim.put(f"orders-0.{'0' * 32}-stray", A, data=b"of orders")
    sim.put(f"orders-1.{'0' * 32}-stray", B)
    sim.put(f"orders-2.{'0' * 32}-stray", None)
    broker = sim.start()
    asked = leader_and_isr(kind, topic("orders", A, 0, 1, 2))
    assert answer(broker, asked) == {"orders-0": 0, "orders-1": 0, "orders-2": 0}
    assert sim.live() == dict.fromkeys(("orders-0", "orders-1", "orders-2"), A)
    assert [sim.data_of(f"orders-{number}") for number in range(3)] == [b"of orders", b"", b""]
    assert sim.staged() == {"orders-1": (B, ""), "orders-2": (None, "")}
    broker = sim.start()
    assert sim.live() == dict.fromkeys(("orders-0", "orders-1", "orders-2"), A)


def test_a_request_that_does_not_say_its_type_brings_nothing_back(sim: Sim) -> None:
    # DESIGN §4: UNSPECIFIED
    sim.put("orders-0", A, data=b"precious")
    broker = sim.start()
    answer(broker, leader_and_isr(FULL, topic("other", B, 0)))
    answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", A, 0)))
    assert sim.data_of("orders-0") == b"" and sim.staged() == {"orders-0": (A, "UNKNOWN_TOPIC")}


def test_of_several_staged_under_one_id_the_last_one_comes_back(sim: Sim) -> None:
    sim.put("orders-0", A, data=b"first")
    broker = sim.start()
    answer(broker, leader_and_isr(FULL))
    sim.stop()
    sim.clock.advance(1000)
    sim.put("orders-0", A, data=b"second")
    broker = sim.start()
    answer(broker, leader_and_isr(FULL))
    answer(broker, leader_and_isr(FULL, topic("orders", A, 0)))
    assert sim.data_of("orders-0") == b"second"
    assert sim.staged() == {"orders-0": (A, "UNKNOWN_TOPIC")}


def test_what_is_staged_under_another_id_or_partition_is_not_brought_back(sim: Sim) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    answer(broker, leader_and_isr(FULL))
    answer(broker, leader_and_isr(FULL, topic("orders", B, 0), topic("others", A, 1)))
    assert sim.staged() == {"orders-0": (A, "UNKNOWN_TOPIC")}
    assert sim.data_of("orders-0") == b"" and sim.data_of("others-1") == b""


@RECONCILING
@pytest.mark.parametrize("scheme", list(Scheme))
def test_what_was_staged_under_a_former_name_is_served_under_its_new_one(
    tmp_path: Path, scheme: Scheme, kind: RequestType
) -> None:
    """KIP37-3, KIP516-13: the namespace was moved while the broker was down, and the partition had no leader yet."""
    old, new = ("orders", "sales") if scheme is Scheme.FLAT else ("org:orders", "net:orders")
    sim = Sim(tmp_path, scheme=scheme.value)
    store = sim.start().store
    if scheme is Scheme.NAMESPACED:
        create_namespace(store, "org")
    made = store.create(TopicPartition(old, 0), A)
    Path(made.log_dir, made.path, "00000000000000000000.log").write_bytes(b"data")
    store.write_offsets(RECOVERY_POINT_CHECKPOINT, {TopicPartition(old, 0): 4})
    broker = sim.start()
    if scheme is Scheme.NAMESPACED:
        create_namespace(broker.store, "net")
    assert answer(broker, leader_and_isr(FULL)) == {}
    assert sim.staged() == {f"{old}-0": (A, "UNKNOWN_TOPIC")}
    # By now another topic has the former name.
    asked = leader_and_isr(kind, topic(new, A, 0), topic(old, B, 0))
    foreseen, _ = dry_run_request(broker.store, asked, NODE)
    assert answer(broker, asked) == {f"{new}-0": 0, f"{old}-0": 0} == errors(foreseen)
    assert sim.live() == {f"{new}-0": A, f"{old}-0": B} and sim.staged() == {}
    broker = sim.start()
    assert answer(broker, leader_and_isr(FULL, topic(new, A, 0), topic(old, B, 0))) == {f"{new}-0": 0, f"{old}-0": 0}
    found = broker.store.get(TopicPartition(new, 0))
    assert (found.topic_id, found.metadata_state) == (A, "ok")
    assert Path(found.log_dir, found.path, "00000000000000000000.log").read_bytes() == b"data"
    (log_dir,) = [each for each in broker.store.log_dirs if each.path == found.log_dir]
    assert log_dir.checkpoints.entries(RECOVERY_POINT_CHECKPOINT) == {(new, 0): 4}
    sim.stop()


def test_what_is_staged_under_a_former_name_waits_while_its_data_is_live_under_that_name(sim: Sim) -> None:
    sim.put("orders-0", A)
    sim.start().store.stage([ORDERS], "TEST", "x")
    sim.put("orders-0", A, data=b"second")
    broker = sim.start()
    assert answer(broker, leader_and_isr(FULL, topic("sales", A, 0))) == {"sales-0": 103}
    assert sim.live() == {"orders-0": A} and sim.staged() == {"orders-0": (A, "TEST")}


def test_what_was_purged_is_made_anew(sim: Sim) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    answer(broker, leader_and_isr(FULL))
    sim.clock.advance(5 * HOUR_MS)
    purge(broker.store.log_dirs, PurgeRules(sim.clock.now_ms()))
    assert answer(broker, leader_and_isr(FULL, topic("orders", A, 0))) == {"orders-0": 0}
    assert sim.data_of("orders-0") == b""


# What stands in the way and stays


@TYPES
def test_a_damaged_replica_is_left_alone_in_the_request_and_out_of_it(sim: Sim, kind: RequestType) -> None:
    for name in ("orders-0", "gone-0"):
        (sim.put(name, None) / partition_metadata.FILE_NAME).write_bytes(b"version: 0\ntopic")
    broker = sim.start()
    assert answer(broker, leader_and_isr(kind, topic("orders", A, 0))) == {"orders-0": 56}
    assert sorted(sim.live()) == ["gone-0", "orders-0"] and sim.staged() == {}


@TYPES
def test_a_replica_that_lives_twice_under_the_wanted_id_is_left_to_repair(sim: Sim, kind: RequestType) -> None:
    for disk in (0, 1):
        sim.put("orders-0", A, disk=disk)
        sim.put("gone-0", A, disk=disk)
    broker = sim.start()
    assert answer(broker, leader_and_isr(kind, topic("orders", A, 0))) == {"orders-0": 56}
    assert sim.staged() == {}


@pytest.mark.parametrize("stale", [0, 1])
@TYPES
def test_of_two_copies_the_one_of_the_former_topic_is_staged(sim: Sim, kind: RequestType, stale: int) -> None:
    # KIP516-5: the topic was re-created while a disk was away, and now the disk is back.
    sim.put("orders-0", A, disk=stale)
    kept = sim.put("orders-0", B, disk=1 - stale)
    broker = sim.start()
    asked = leader_and_isr(kind, topic("orders", B, 0))
    if kind is RequestType.UNSPECIFIED:
        assert answer(broker, asked) == {"orders-0": 56}
        assert sim.staged() == {}
        return
    assert answer(broker, asked) == {"orders-0": 0}
    assert [each.topic_id for each in broker.store.staged()] == [A]
    found = broker.store.get(ORDERS)
    assert (found.topic_id, os.path.join(found.log_dir, found.path)) == (B, str(kept))
    assert broker.store.duplicates == []
    assert len(broker.store) == 1


@TYPES
def test_two_copies_of_a_former_topic_are_both_staged(sim: Sim, kind: RequestType) -> None:
    # KIP516-5
    for disk in (0, 1):
        sim.put("orders-0", A, disk=disk)
    broker = sim.start()
    asked = leader_and_isr(kind, topic("orders", B, 0))
    if kind is RequestType.UNSPECIFIED:
        assert answer(broker, asked) == {"orders-0": 56}
        return
    assert answer(broker, asked) == {"orders-0": 0}
    assert [each.topic_id for each in broker.store.staged()] == [A, A]
    assert broker.store.get(ORDERS).topic_id == B


@TYPES
def test_data_that_has_another_name_here_is_not_called_stale_and_no_empty_replica_hides_it(
    sim: Sim, kind: RequestType
) -> None:
    # KIP516-13: a renamed topic
    sim.put("orders-0", A)
    broker = sim.start()
    assert answer(broker, leader_and_isr(kind, topic("sales", A, 0, 1))) == {"sales-0": 103, "sales-1": 0}
    assert sim.live() == {"orders-0": A, "sales-1": A} and sim.staged() == {}
    rename_topic(broker.store, "orders", "deals")
    assert answer(broker, leader_and_isr(kind, topic("deals", A, 0))) == {"deals-0": 0}


@TYPES
def test_a_topic_with_two_names_here_hides_none_of_its_data_by_an_empty_replica(sim: Sim, kind: RequestType) -> None:
    # KIP516-13: a rename that did not reach all
    sim.put("orders-0", A)
    broker = sim.start()
    broker.store.create(TopicPartition("sales", 1), A)
    assert answer(broker, leader_and_isr(kind, topic("sales", A, 0))) == {"sales-0": 103}
    assert ("orders", 0) in sim.live() or sim.live()["orders-0"] == A
    assert set(sim.live()) - {"sales-1"} == {"orders-0"}


@TYPES
def test_a_replica_without_an_id_is_not_given_one_that_is_live_here_under_another_name(
    sim: Sim, kind: RequestType
) -> None:
    # KIP516-11: "never guessed", and never given twice
    sim.put("orders-0", A)
    sim.put("sales-0", None, disk=1)
    sim.put("sales-1", None, disk=1)
    broker = sim.start()
    assert answer(broker, leader_and_isr(kind, topic("sales", A, 0, 1))) == {"sales-0": 103, "sales-1": 0}
    assert sim.live() == {"orders-0": A, "sales-0": None, "sales-1": A} and sim.staged() == {}
    assert broker.leader_epoch(TopicPartition("sales", 0)) is None
    broker.store.stage([ORDERS], "TEST", "the other topic is not wanted any more")
    assert answer(broker, leader_and_isr(kind, topic("sales", A, state(0, 1), state(1, 1)))) == dict.fromkeys(
        ("sales-0", "sales-1"), 0
    )
    assert sim.live() == {"sales-0": A, "sales-1": A}


def test_a_name_that_is_taken_by_a_renamed_topic_waits(sim: Sim) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    request = leader_and_isr(FULL, topic("sales", A, 0), topic("orders", B, 0))
    assert answer(broker, request) == {"sales-0": 103, "orders-0": 103}
    assert sim.live() == {"orders-0": A} and sim.staged() == {}


# Epochs (FACTS §4.2)


def test_the_leader_epoch_decides_what_is_old(sim: Sim) -> None:
    broker = sim.start()
    answers = [
        answer(broker, leader_and_isr(INCREMENTAL, topic("orders", A, state(0, epoch))))["orders-0"]
        for epoch in (5, 5, 4, 6)
    ]
    assert answers == [0, 11, 11, 0]
    assert broker.leader_epoch(ORDERS) == 6


def test_a_kraft_controller_may_repeat_a_leader_epoch(sim: Sim) -> None:
    broker = sim.start()
    request = leader_and_isr(INCREMENTAL, topic("orders", A, state(0, 5)), kraft=True)
    assert [answer(broker, request), answer(broker, request)] == [{"orders-0": 0}, {"orders-0": 0}]
    older = leader_and_isr(INCREMENTAL, topic("orders", A, state(0, 4)), kraft=True)
    assert answer(broker, older) == {"orders-0": 11}


@pytest.mark.parametrize(("leader", "expected"), [(2, 0), (1, 11)])
def test_a_request_may_make_a_follower_go_on_without_an_id(sim: Sim, leader: int, expected: int) -> None:
    # FACTS §4.2, 5 f: the controller was downgraded
    broker = sim.start()
    answer(broker, leader_and_isr(UNSPECIFIED, topic("orders", A, state(0, 5, leader=leader))))
    again = leader_and_isr(UNSPECIFIED, topic("orders", None, state(0, 5, leader=leader)))
    assert answer(broker, again) == {"orders-0": expected}
    assert sim.live() == {"orders-0": A}


def test_a_partition_on_other_brokers_is_unknown_here(sim: Sim) -> None:
    broker = sim.start()
    elsewhere = topic("orders", A, state(0, leader=2, replicas=OTHERS))
    assert answer(broker, leader_and_isr(FULL, elsewhere)) == {"orders-0": 3}
    assert sim.live() == {} and broker.leader_epoch(ORDERS) is None


def test_a_replica_that_went_missing_comes_back_at_the_same_epoch(sim: Sim) -> None:
    broker = sim.start()
    request = leader_and_isr(FULL, topic("orders", A, state(0, 5)))
    answer(broker, request)
    broker.store.stage([ORDERS], "TEST", "somebody staged it by hand")
    assert answer(broker, request) == {"orders-0": 0}
    assert sim.live() == {"orders-0": A} and sim.staged() == {}


# Disks that fail


def fail(broker: Broker, number: int) -> None:
    broker.store.log_dirs[number].go_offline("it failed")


@TYPES
def test_what_lies_on_an_offline_disk_is_not_served_and_not_made_elsewhere(sim: Sim, kind: RequestType) -> None:
    sim.put("orders-0", A)
    broker = sim.start()
    fail(broker, 0)
    assert answer(broker, leader_and_isr(kind, topic("orders", A, state(0, new=True)))) == {"orders-0": 56}
    assert not list(sim.paths[1].glob("orders-*"))


@TYPES
def test_while_a_disk_is_away_only_what_is_new_is_made(sim: Sim, kind: RequestType) -> None:
    broker = sim.start()
    fail(broker, 0)
    request = leader_and_isr(kind, topic("orders", A, state(0), state(1, new=True)))
    assert answer(broker, request) == {"orders-0": 56, "orders-1": 0}
    assert [path.name for path in sim.paths[1].glob("orders-*")] == ["orders-1"]


def test_what_is_staged_on_a_good_disk_is_not_brought_back_while_the_live_one_may_lie_on_a_bad_one(sim: Sim) -> None:
    sim.put("orders-0", A, disk=1)
    broker = sim.start()
    answer(broker, leader_and_isr(FULL))
    fail(broker, 0)
    assert answer(broker, leader_and_isr(FULL, topic("orders", A, 0))) == {"orders-0": 56}
    assert sim.staged() == {"orders-0": (A, "UNKNOWN_TOPIC")}


def test_a_disk_that_fails_while_it_stages_holds_up_no_other(sim: Sim, caplog: pytest.LogCaptureFixture) -> None:
    for disk in (0, 1):
        sim.put(f"gone-{disk}", A, disk=disk)
        sim.put(f"orders-{disk}", A, disk=disk)
    failing = DiskThat(errno.EIO, below=sim.paths[0])
    broker = sim.start(failing)
    failing.fails.add("rename")
    request = leader_and_isr(FULL, topic("orders", B, *(state(number, new=True) for number in (0, 1))))
    assert answer(broker, request) == {"orders-0": 56, "orders-1": 0}
    assert sim.staged() == {"gone-1": (A, "UNKNOWN_TOPIC"), "orders-1": (A, "STALE_ID")}
    assert "not all of them are" in caplog.text
    # The disk comes back, and the same request does the rest.
    failing.fails.clear()
    broker = sim.start(failing)
    assert answer(broker, request) == {"orders-0": 0, "orders-1": 0}
    assert sim.live() == {"orders-0": B, "orders-1": B}
    assert sorted(sim.staged()) == ["gone-0", "gone-1", "orders-0", "orders-1"]


def test_a_new_replica_goes_to_the_next_disk_when_one_fails(sim: Sim) -> None:
    failing = DiskThat(errno.EIO, below=sim.paths[0])
    broker = sim.start(failing)
    failing.fails.add("mkdir")
    request = leader_and_isr(INCREMENTAL, topic("orders", A, *(state(number, new=True) for number in range(4))))
    assert set(answer(broker, request).values()) == {0}
    assert len(list(sim.paths[1].glob("orders-*"))) == 4


def test_a_disk_without_room_refuses_and_the_same_request_succeeds_later(sim: Sim) -> None:
    full = DiskThat(errno.ENOSPC)
    broker = sim.start(full)
    full.fails.add("mkdir")
    request = leader_and_isr(INCREMENTAL, topic("orders", A, 0))
    assert answer(broker, request) == {"orders-0": 56}
    full.fails.clear()
    assert answer(broker, request) == {"orders-0": 0}


def test_an_id_that_cannot_be_written_is_answered(sim: Sim) -> None:
    sim.put("orders-0", None)
    full = DiskThat(errno.ENOSPC)
    broker = sim.start(full)
    full.fails.add("write")
    request = leader_and_isr(INCREMENTAL, topic("orders", A, 0))
    assert answer(broker, request) == {"orders-0": 56}
    full.fails.clear()
    assert answer(broker, request) == {"orders-0": 0}
    assert sim.live() == {"orders-0": A}


def test_a_name_that_no_disk_can_hold_is_refused_for_itself_alone(sim: Sim) -> None:
    broker = sim.start()
    long = "x" * 249
    answers = answer(broker, leader_and_isr(INCREMENTAL, topic(long, A, 2147483647), topic("orders", B, 0)))
    assert answers["orders-0"] == 0 and answers[f"{long}-2147483647"] != 0
    assert sim.live() == {"orders-0": B}


def test_a_topic_in_a_namespace_that_was_not_created_is_refused(sim: Sim, tmp_path: Path) -> None:
    sim.paths = Sim(tmp_path / "tiers", scheme="namespaced").paths
    broker = sim.start()
    request = leader_and_isr(INCREMENTAL, topic("org:orders", A, 0))
    assert answer(broker, request) == {"org:orders-0": KafkaError.INVALID_TOPIC_EXCEPTION}
    create_namespace(broker.store, "org")
    assert answer(broker, request) == {"org:orders-0": 0}
    assert broker.store.find(TopicPartition("org:orders", 0)) is not None


# The tables


def test_every_verdict_of_a_live_replica_has_its_place() -> None:
    live = {
        *(Verdict.OK, Verdict.NO_ID, Verdict.MISSING, Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC),
        *(Verdict.RENAMED, Verdict.DAMAGED, Verdict.DUPLICATE, Verdict.NOT_COMPARED),
    }
    settled = {Verdict.OK, Verdict.NO_ID, Verdict.MISSING, Verdict.NOT_COMPARED}
    assert live == settled | set(LEFT_ALONE) | STAGED_BY[FULL]


# Handling again


@TYPES
def test_the_same_request_again_changes_nothing(sim: Sim, kind: RequestType) -> None:
    for name, topic_id in {"stale-0": A, "gone-0": B, "bare-0": None, "kept-0": C}.items():
        sim.put(name, topic_id)
    broker = sim.start()
    known = {name: TopicId(name.encode().ljust(16, b"_")) for name in ("stale", "bare", "fresh")}
    request = leader_and_isr(
        kind, topic("kept", C, 0), *(topic(name, topic_id, 0, 1) for name, topic_id in known.items())
    )
    first = answer(broker, request)
    before = [contents(path) for path in sim.paths]
    live = sim.live()
    again = answer(broker, request)
    assert [contents(path) for path in sim.paths] == before and sim.live() == live
    assert again == {key: 11 if error == 0 else error for key, error in first.items()}
    # A broker that was restarted meanwhile remembers no epochs, and still changes nothing.
    broker = sim.start()
    assert answer(broker, request) == first
    assert [contents(path) for path in sim.paths] == before and sim.live() == live


@pytest.mark.parametrize("scheme", ["flat", "namespaced", "by-topic-id"])
def test_every_scheme_is_handled_alike(tmp_path: Path, scheme: str) -> None:
    sim = Sim(tmp_path, scheme=scheme)
    try:
        broker = sim.start()
        name = "orders" if scheme == "flat" else "org:apache:orders"
        if scheme == "namespaced":
            create_namespace(broker.store, "org:apache")
        for topic_id, others in ((A, 3), (B, 2), (A, 1)):
            answers = answer(broker, leader_and_isr(FULL, topic(name, topic_id, *range(others)), topic("z", C, 0)))
            assert set(answers.values()) <= {0, 11}
            assert sim.live() == {f"{name}-{number}": topic_id for number in range(others)} | {"z-0": C}
        # What came back last was staged in the second round; the rest waits, each under the ID it had.
        listed = sorted((str(each.topic_id), str(each.partition)) for each in broker.store.staged())
        expected = [(A, 1), (A, 2), (B, 0), (B, 1)]
        assert listed == sorted((str(topic_id), f"{name}-{number}") for topic_id, number in expected)
    finally:
        sim.stop()
