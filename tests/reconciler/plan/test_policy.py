"""Each gate by itself: what shuts it, its message and what opens it; and how actions are chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.plan import (
    ALLOWABLE,
    Action,
    ActionKind,
    BrokerFacts,
    CandidateFacts,
    Gate,
    GateInputs,
    MetadataFacts,
    PlanChoice,
    Policy,
    refusals,
)
from reconciler.plan.policy import BY_NUMBER, DAY_MS, SAFEST_FIRST, cheapest
from reconciler.verdicts import CLOCK_TOLERANCE_MS, Verdict

NOW_MS = 1_700_000_000_000
FRESH = MetadataFacts("/m", True, NOW_MS - 1000, 100, 900)
BROKER = BrokerFacts("broker 1 of cluster C", 100, 3, True, True)
ALL_WELL = GateInputs(NOW_MS, (FRESH,), (BROKER,))

SHUT = {
    Gate.CLUSTER: [
        replace(ALL_WELL, metadata=(replace(FRESH, names_cluster=False),)),
        replace(ALL_WELL, brokers=(replace(BROKER, cluster_matches=False),)),
    ],
    Gate.BROKER: [replace(ALL_WELL, brokers=(replace(BROKER, known=False),))],
    Gate.EMPTY: [
        replace(ALL_WELL, metadata=()),
        replace(ALL_WELL, metadata=(replace(FRESH, topics=0),)),
        replace(ALL_WELL, metadata=(replace(FRESH, replicas=0),)),
    ],
    Gate.AGE: [replace(ALL_WELL, metadata=(replace(FRESH, as_of_ms=NOW_MS - DAY_MS - 1),))],
    Gate.SHRUNK: [
        replace(ALL_WELL, metadata=(replace(FRESH, topics_before=143),)),
        replace(ALL_WELL, metadata=(replace(FRESH, replicas_before=1286),)),
    ],
    Gate.ABSENT: [replace(ALL_WELL, absent=(("/disk2", "it is not there"),))],
    Gate.TIME: [
        replace(ALL_WELL, metadata=(replace(FRESH, as_of_ms=None),)),
        replace(ALL_WELL, metadata=(replace(FRESH, as_of_ms=NOW_MS + DAY_MS),)),
    ],
    Gate.INCOMPLETE: [replace(ALL_WELL, metadata=(replace(FRESH, ends_early=("it is cut at byte 7",)),))],
    Gate.WENT_BACK: [replace(ALL_WELL, metadata=(replace(FRESH, went_back="its offset is 7, and was 9"),))],
    Gate.CLOCK: [replace(ALL_WELL, written=(("the newest file in /d1", NOW_MS + 2 * DAY_MS), ("/d2", NOW_MS)))],
    Gate.LOG_DIR: [replace(ALL_WELL, strange=(("/d1", "nobody registered it"),))],
    Gate.SHARE: [replace(ALL_WELL, brokers=(replace(BROKER, unwanted=31),))],
    Gate.COUNT: [replace(ALL_WELL, brokers=(replace(BROKER, live=10_000, unwanted=1001),))],
    Gate.NEWER: [replace(ALL_WELL, candidates=CandidateFacts(newer=("orders-0 (made today)",)))],
    Gate.UNCOMMITTED: [replace(ALL_WELL, candidates=CandidateFacts(uncommitted=("orders-0", "orders-1")))],
    Gate.SOLE_COPY: [replace(ALL_WELL, candidates=CandidateFacts(sole_copies=("orders-0",)))],
    Gate.LIVE_COPY: [replace(ALL_WELL, candidates=CandidateFacts(no_live_copy=("orders-0",)))],
    Gate.NO_ID: [replace(ALL_WELL, candidates=CandidateFacts(no_id=("orders-0",)))],
    Gate.INTERNAL: [replace(ALL_WELL, candidates=CandidateFacts(internal=("__consumer_offsets-3",)))],
}
CASES = [(gate, facts) for gate, found in SHUT.items() for facts in found]

NUMBERS = {
    Gate.EMPTY: "0 topics",
    Gate.AGE: "24 h is the most",
    Gate.SHRUNK: "30 % is the most",
    Gate.SHARE: "31 of 100 replicas of broker 1 of cluster C look unwanted: 31 %, where 30 % is the most",
    Gate.COUNT: "1,001 of 10,000 replicas of broker 1 of cluster C look unwanted, where 1,000 is the most",
    Gate.TIME: "which is 24 h in the future",
    Gate.INCOMPLETE: "/m is not whole, so what was created since looks unwanted: it is cut at byte 7",
    Gate.WENT_BACK: "/m went back in time: its offset is 7, and was 9",
    Gate.CLOCK: "the newest file in /d1 is of 2023-11-16 22:13:20 UTC: what is staged now would be due 2 d too early",
    Gate.LOG_DIR: "/d1 does not look like a log dir of this broker: nobody registered it",
    Gate.NEWER: "1 replica is newer than the metadata",
    Gate.UNCOMMITTED: "2 replicas are condemned by records that may never have been committed: orders-0, orders-1",
    Gate.NO_ID: "1 replica is without a topic ID",
    Gate.LIVE_COPY: "1 replica is the only live copy",
    Gate.SOLE_COPY: "1 replica is perhaps the only copy: no other is in sync, as far as the metadata knows: orders-0",
    Gate.INTERNAL: "__consumer_offsets-3",
    Gate.ABSENT: "/disk2 cannot be trusted: it is not there",
}


def test_every_gate_has_a_case_here() -> None:
    assert set(SHUT) == set(Gate)
    assert {*ALLOWABLE, *BY_NUMBER} == set(Gate)


def test_where_all_is_well_no_gate_is_shut() -> None:
    assert refusals(ALL_WELL, Policy.cautious()) == []


@pytest.mark.parametrize(("gate", "facts"), CASES)
def test_a_gate_is_shut_alone_and_names_its_override(gate: Gate, facts: GateInputs) -> None:
    (refusal,) = refusals(facts, Policy.cautious())
    assert refusal.gate is gate
    assert refusal.option[0] == BY_NUMBER.get(gate, "--allow")
    assert refusal.reason.endswith(f"(override: {' '.join(refusal.option)})")
    number = {Gate.AGE: "25h", Gate.SHARE: "31%", Gate.COUNT: "1001"}
    assert refusal.option[1] == number.get(gate, gate.value)


@pytest.mark.parametrize(("gate", "numbers"), NUMBERS.items())
def test_the_numbers_stand_in_the_message(gate: Gate, numbers: str) -> None:
    (refusal,) = refusals(SHUT[gate][-1 if gate is not Gate.EMPTY else 1], Policy.cautious())
    assert numbers in refusal.reason


@pytest.mark.parametrize(("gate", "facts"), [(gate, facts) for gate, facts in CASES if gate in ALLOWABLE])
def test_a_gate_that_is_allowed_stands_open(gate: Gate, facts: GateInputs) -> None:
    assert refusals(facts, replace(Policy.cautious(), allowed=frozenset({gate}))) == []


def test_where_a_log_dir_is_a_copy_no_reason_against_it_names_an_option() -> None:
    both = replace(ALL_WELL, strange=(("/d1", "unknown"), ("/d2", "unknown")), copied=(("/d2", "it is a copy"),))
    first, second = refusals(both, Policy.cautious())
    assert (first.reason.split()[0], first.option) == ("/d1", ("--allow", "log-dir"))
    assert second.reason == "/d2 does not look like a log dir of this broker: unknown; it is a copy"
    assert second.option is None


def test_gates_that_are_numbers_open_by_a_number() -> None:
    assert refusals(SHUT[Gate.AGE][0], replace(Policy.cautious(), oldest_ms=2 * DAY_MS)) == []
    assert refusals(SHUT[Gate.SHARE][0], replace(Policy.cautious(), most_share=0.31)) == []
    assert refusals(SHUT[Gate.COUNT][0], replace(Policy.cautious(), most_count=1001)) == []


@pytest.mark.parametrize(("gate", "facts"), CASES)
def test_an_embedded_broker_has_no_gates(gate: Gate, facts: GateInputs) -> None:
    assert refusals(facts, Policy.kip516()) == [], gate


def test_exactly_as_much_as_allowed_passes() -> None:
    facts = GateInputs(
        NOW_MS,
        (replace(FRESH, as_of_ms=NOW_MS - DAY_MS, topics=70, topics_before=100, replicas_before=None),),
        (replace(BROKER, unwanted=30), replace(BROKER, live=4000, unwanted=1000)),
    )
    assert refusals(facts, Policy.cautious()) == []


def test_clocks_may_differ_by_a_minute() -> None:
    facts = replace(ALL_WELL, metadata=(replace(FRESH, as_of_ms=NOW_MS + 60_000),), written=(("x", NOW_MS + 60_000),))
    assert refusals(facts, Policy.cautious()) == []


def test_a_share_of_some_of_the_log_dirs_says_of_which() -> None:
    part = replace(BROKER, live=6, unwanted=3, counted_in="1 of its 2 log dirs")
    (share,) = refusals(replace(ALL_WELL, brokers=(part,)), Policy.cautious())
    assert (
        "3 of 6 replicas of broker 1 of cluster C, counted in 1 of its 2 log dirs, look unwanted: 50 %" in share.reason
    )


def test_a_policy_is_described_as_text() -> None:
    assert Policy.cautious().described()["max_share"] == "0.3"
    assert Policy.kip516().described()["max_count"] == "none"


def stage(name: str, size: int, verdict: Verdict = Verdict.STALE_ID, kind: ActionKind = ActionKind.STAGE) -> Action:
    return Action(kind, "/d", name, name, 0, None, None, verdict.value, "why", bytes=size)


def test_everything_is_picked_where_nothing_is_asked_for() -> None:
    assert PlanChoice().has(stage("orders", 1))


def test_patterns_are_shell_patterns_with_upper_and_lower_case_apart() -> None:
    choice = PlanChoice(topics=("or*", "x"))
    assert [choice.has(stage(name, 1)) for name in ("orders", "x", "Orders", "xx")] == [True, True, False, False]


def test_topic_and_verdict_must_both_fit() -> None:
    choice = PlanChoice(topics=("orders",), verdicts=frozenset({Verdict.STRAY}))
    assert not choice.has(stage("orders", 1))
    assert choice.has(stage("orders", 1, Verdict.STRAY))


def test_what_risks_least_goes_first_and_of_that_the_largest() -> None:
    lines = [stage("unknown", 900, Verdict.UNKNOWN_TOPIC), stage("stale", 500), stage("small", 10, Verdict.STRAY)]
    lines += [stage("moved", 100, Verdict.NOT_ASSIGNED)]
    assert [each.name for each in cheapest(lines, 105, [])] == ["small", "moved"]
    assert [each.name for each in cheapest(lines, 111, [])] == ["stale"]
    assert [each.name for each in cheapest(lines, 10**6, [])] == ["unknown", "stale", "small", "moved"]


def test_what_a_gate_would_stop_and_what_frees_nothing_is_never_among_them() -> None:
    unsafe, empty = stage("unsafe", 100), stage("empty", 0)
    back = stage("back", 100, Verdict.STAGED, ActionKind.RESTORE)
    assert cheapest([unsafe, empty, back], 50, [unsafe]) == []


def test_what_is_made_in_place_of_a_staged_replica_goes_along() -> None:
    made = stage("a", 0, kind=ActionKind.CREATE)
    other = stage("b", 0, kind=ActionKind.CREATE)
    assert cheapest([stage("a", 9), made, other], 5, []) == [stage("a", 9), made]


@given(st.lists(st.tuples(st.integers(1, 50), st.sampled_from(SAFEST_FIRST)), max_size=12), st.integers(1, 300))
def test_the_set_is_enough_where_there_is_enough_and_no_member_can_be_spared(
    given_lines: list[tuple[int, Verdict]], need: int
) -> None:
    lines = [stage(str(number), size, verdict) for number, (size, verdict) in enumerate(given_lines)]
    total, taken = sum(each.bytes or 0 for each in lines), cheapest(lines, need, [])
    got = sum(each.bytes or 0 for each in taken)
    assert got >= min(need, total)
    if total >= need:
        assert all(got - (each.bytes or 0) < need for each in taken)


def test_where_there_is_no_metadata_nothing_is_said_of_clusters() -> None:
    facts = replace(ALL_WELL, metadata=(), brokers=(replace(BROKER, cluster_matches=False, known=False),))
    assert [refusal.gate for refusal in refusals(facts, Policy.cautious())] == [Gate.EMPTY]


def test_what_is_exactly_as_much_as_is_allowed_shuts_no_gate() -> None:
    cautious = Policy.cautious()
    for facts in (
        replace(ALL_WELL, metadata=(replace(FRESH, as_of_ms=NOW_MS - DAY_MS),)),
        replace(ALL_WELL, metadata=(replace(FRESH, as_of_ms=NOW_MS + CLOCK_TOLERANCE_MS),)),
        replace(ALL_WELL, written=(("/d1", NOW_MS + CLOCK_TOLERANCE_MS),)),
        replace(ALL_WELL, brokers=(replace(BROKER, unwanted=30),)),
        replace(ALL_WELL, brokers=(replace(BROKER, live=10_000, unwanted=1000),)),
    ):
        assert refusals(facts, cautious) == []
    halved = replace(ALL_WELL, metadata=(replace(FRESH, topics_before=200),))
    assert refusals(halved, replace(cautious, most_shrink=0.5)) == []


def test_the_number_that_opens_the_gate_of_shares_is_enough() -> None:
    facts = replace(ALL_WELL, brokers=(replace(BROKER, live=1000, unwanted=304),))
    (refusal,) = refusals(facts, Policy.cautious())
    assert refusal.option == ("--max-share", "31%")
