"""Picking: by topic, by verdict, and the cheapest safe set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.plan import Action, ActionKind, PlanChoice
from reconciler.plan.plan_choice import SAFEST_FIRST, cheapest
from reconciler.verdicts import Verdict


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
