"""Each gate by itself: what shuts it, what stands in the message, and what opens it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.plan import ALLOWABLE, BrokerFacts, Gate, GateInputs, MetadataFacts, Policy, refusals
from reconciler.plan.policy import BY_NUMBER, DAY_MS

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
    Gate.AGE: [replace(ALL_WELL, metadata=(replace(FRESH, timestamp_ms=NOW_MS - DAY_MS - 1),))],
    Gate.SHRUNK: [
        replace(ALL_WELL, metadata=(replace(FRESH, topics_before=143),)),
        replace(ALL_WELL, metadata=(replace(FRESH, replicas_before=1286),)),
    ],
    Gate.ABSENT: [replace(ALL_WELL, absent=(("/disk2", "it is not there"),))],
    Gate.SHARE: [replace(ALL_WELL, brokers=(replace(BROKER, staged=31),))],
    Gate.COUNT: [replace(ALL_WELL, brokers=(replace(BROKER, live=10_000, staged=1001),))],
    Gate.SOLE_COPY: [replace(ALL_WELL, sole_copies=("orders-0",))],
    Gate.INTERNAL: [replace(ALL_WELL, internal=("__consumer_offsets-3",))],
}
CASES = [(gate, facts) for gate, found in SHUT.items() for facts in found]

NUMBERS = {
    Gate.EMPTY: "0 topics",
    Gate.AGE: "24 h is the most",
    Gate.SHRUNK: "30 % is the most",
    Gate.SHARE: "31 of 100 replicas of broker 1 of cluster C would be staged: 31 %, where 30 % is the most",
    Gate.COUNT: "1,001 of 10,000 replicas of broker 1 of cluster C would be staged, where 1,000 is the most",
    Gate.SOLE_COPY: "1 replica is the only copy in sync, as far as the metadata knows: orders-0",
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
    assert f"(override: {BY_NUMBER.get(gate, f'--allow {gate}')})" in refusal.reason


@pytest.mark.parametrize(("gate", "numbers"), NUMBERS.items())
def test_the_numbers_stand_in_the_message(gate: Gate, numbers: str) -> None:
    (refusal,) = refusals(SHUT[gate][-1 if gate is not Gate.EMPTY else 1], Policy.cautious())
    assert numbers in refusal.reason


@pytest.mark.parametrize(("gate", "facts"), [(gate, facts) for gate, facts in CASES if gate in ALLOWABLE])
def test_a_gate_that_is_allowed_stands_open(gate: Gate, facts: GateInputs) -> None:
    assert refusals(facts, replace(Policy.cautious(), allowed=frozenset({gate}))) == []


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
        (replace(FRESH, timestamp_ms=NOW_MS - DAY_MS, topics=70, topics_before=100, replicas_before=None),),
        (replace(BROKER, staged=30), replace(BROKER, live=4000, staged=1000)),
    )
    assert refusals(facts, Policy.cautious()) == []


def test_metadata_that_tells_no_time_is_not_called_old() -> None:
    facts = replace(ALL_WELL, metadata=(replace(FRESH, timestamp_ms=None),))
    assert refusals(facts, Policy.cautious()) == []


def test_a_policy_is_told_as_text() -> None:
    assert Policy.cautious().described()["max_share"] == "0.3"
    assert Policy.kip516().described()["max_count"] == "none"
