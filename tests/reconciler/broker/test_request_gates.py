"""The gates of a request that a person sends, one by one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.broker import ActionResult, HandSentRequest, newest_files, shut_gates
from reconciler.broker.gates import ALLOWABLE, CREATE
from reconciler.plan import Action, ActionKind, Policy
from tests.reconciler.protocol.control_requests import FULL, INCREMENTAL, A, leader_and_isr, state, stop_replica, topic

POLICY = Policy(None, None, 0.3, 5)
ALONE = leader_and_isr(
    FULL,
    topic("orders", A, replace(state(0, replicas=(2, 3)), isr=()), state(1)),
    topic("made-anew", A, state(0, replicas=(1,))),
)


def change(
    kind: ActionKind, name: str = "orders", verdict: str = "UNKNOWN_TOPIC", topic_id: str | None = str(A)
) -> ActionResult:
    action = Action(kind, "/d1", f"{name}-0", name, 0, topic_id, None, verdict, "why")
    return ActionResult(action, "/d1", f"{name}-0")


def staged(*names: str, verdict: str = "UNKNOWN_TOPIC") -> list[ActionResult]:
    return [change(ActionKind.STAGE, name, verdict) for name in names]


def sent(*changes: ActionResult, **more) -> HandSentRequest:
    request = leader_and_isr(FULL, topic("orders", A, 0))
    usual = HandSentRequest(
        request, "r.json", 1, "broker 1 of cluster C", 100, changes, {}, frozenset(), 0, cluster="C", own_cluster="C"
    )
    return replace(usual, **more)


def test_a_request_that_stages_little_passes() -> None:
    assert shut_gates(sent(*staged("a", "b")), POLICY) == []


CASES = {
    "empty": (sent(request=leader_and_isr(FULL)), "r.json knows 0 topics and 0 replicas"),
    "broker": (
        sent(request=leader_and_isr(FULL, topic("orders", A, state(0, replicas=(2, 3))))),
        "does not speak of broker 1 of cluster C",
    ),
    "clock": (
        sent(*staged("a"), written=[("the newest file in /d1", 61_000), ("the newest journal in /d2", 60_000)]),
        "this machine's clock says 1970-01-01 00:00:00 UTC, and the newest file in /d1 is of 1970-01-01 00:01:01 UTC",
    ),
    "absent": (sent(offline={"/d2": "Input/output error"}), "/d2 cannot be trusted"),
    "internal": (sent(*staged("__consumer_offsets", "org:__transaction_state")), "2 replicas are of internal topics"),
    "sole-copy": (
        sent(*staged("orders", verdict="NOT_ASSIGNED"), request=ALONE),
        "no other is in sync",
    ),
    "no-id": (
        sent(change(ActionKind.STAGE, topic_id=None)),
        "1 replica is without a topic ID, and of a name that the metadata does not know: orders-0",
    ),
    "cluster": (sent(cluster=None), "r.json names no cluster.id"),
    "epoch": (
        sent(*staged("a"), older=("orders-0 (epoch 3, and 5 here)",)),
        "older than the records of 1 replica, so nobody is to be condemned by it: orders-0 (epoch 3, and 5 here)",
    ),
    "create": (sent(change(ActionKind.CREATE), foreign={"/d1"}), "1 empty replica would be made"),
}  # fmt: skip


@pytest.mark.parametrize("gate", CASES)
def test_each_gate_is_shut_with_its_override_and_open_when_it_is_allowed(gate: str) -> None:
    given, said = CASES[gate]
    shut = shut_gates(given, POLICY)
    assert [each for each in shut if said in each and each.endswith(f"(override: --allow {gate})")], shut
    assert not [each for each in shut_gates(given, POLICY, ALLOWABLE) if said in each]
    assert {str(each) for each in ALLOWABLE} == set(CASES)


def test_a_replica_of_the_deleted_topic_is_no_copy_of_what_is_in_sync_here_alone() -> None:
    assert shut_gates(sent(*staged("made-anew", verdict="STALE_ID"), request=ALONE), POLICY) == []


def test_where_nothing_is_staged_no_clock_matters() -> None:
    assert shut_gates(sent(written=[("the newest file in /d1", 61_000)]), POLICY) == []


def test_the_newest_file_of_each_directory_is_found_but_for_what_is_hidden(tmp_path: Path) -> None:
    for name, seconds in (("a", 5), ("b", 7), (".lock", 9)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (seconds, seconds))
    (tmp_path / "empty").mkdir()
    found = newest_files([str(tmp_path), f"{tmp_path}/empty", f"{tmp_path}/absent"])
    assert list(found) == [(f"the newest file in {tmp_path}", 7_000)]


def test_numbers_that_are_too_large_name_their_own_options() -> None:
    (share,) = shut_gates(sent(*staged("a", "b", "c", "d"), live=10), POLICY)
    assert "4 of 10 replicas of broker 1 of cluster C look unwanted: 40 %" in share
    assert "(override: --max-share 40%)" in share
    (count,) = shut_gates(sent(*staged(*"abcdef")), POLICY)
    assert "(override: --max-count 6)" in count


def test_internal_topics_are_kafka_s_own_and_those_of_the_patterns() -> None:
    (shut,) = shut_gates(sent(*staged("_schemas", "connect-offsets", "orders")), POLICY)
    assert "2 replicas are of internal topics" in shut
    (shut,) = shut_gates(sent(*staged("_schemas", "orders", "__consumer_offsets"), internal=("ord*",)), POLICY)
    assert "orders-0, __consumer_offsets-0" in shut


def test_another_cluster_is_said_with_both_names() -> None:
    (shut,) = shut_gates(sent(cluster="X"), POLICY)
    assert shut.startswith("the request was sent in cluster X, and the log dirs are of broker 1 of cluster C")


def test_the_share_is_of_all_that_looks_unwanted_and_of_nothing_where_nothing_is_staged() -> None:
    (share,) = shut_gates(sent(*staged("a"), live=10, unwanted=4), POLICY)
    assert "4 of 10 replicas" in share
    assert shut_gates(sent(live=10, unwanted=4), POLICY) == []


@pytest.mark.parametrize("request_of", [leader_and_isr(INCREMENTAL), stop_replica("a", 0)])
def test_only_a_full_request_says_anything_by_what_it_lacks(request_of) -> None:
    assert shut_gates(sent(request=request_of), POLICY) == []
    assert shut_gates(sent(*staged(*"abcdef"), request=request_of), POLICY) != []


def test_copies_in_sync_elsewhere_make_a_replica_expendable() -> None:
    for isr, alone in [((1, 2), False), ((2,), False), ((1,), True), ((9,), True)]:
        partition = replace(state(0, replicas=(1, 2)), isr=isr)
        given = sent(
            *staged("orders", verdict="NOT_ASSIGNED"), request=leader_and_isr(FULL, topic("orders", A, partition))
        )
        assert bool(shut_gates(given, POLICY)) is alone


def test_a_real_brokers_log_dirs_may_be_restored_and_given_ids() -> None:
    changes = [change(ActionKind.RESTORE), change(ActionKind.WRITE_TOPIC_ID)]
    assert shut_gates(sent(*changes, foreign={"/d1"}), POLICY) == []
    assert shut_gates(sent(change(ActionKind.CREATE), foreign={"/d1"}), POLICY, [CREATE]) == []


def test_what_the_request_does_not_call_new_is_made_by_hand_only_where_it_is_allowed() -> None:
    def made(verdict: str, *, new: bool = False) -> HandSentRequest:
        asked = leader_and_isr(FULL, topic("orders", A, state(0, new=new)))
        return sent(change(ActionKind.CREATE, verdict=verdict), request=asked)

    (shut,) = shut_gates(made("MISSING"), POLICY)
    assert "1 empty replica would be made in the place of one that is missing" in shut
    assert shut.endswith("it had its records once: orders-0 (override: --allow create)")
    assert shut_gates(made("MISSING"), POLICY, [CREATE]) == []
    assert shut_gates(made("MISSING", new=True), POLICY) == []
    assert shut_gates(made("STALE_ID"), POLICY) == [], "the successor of what is staged has no records to lose"
