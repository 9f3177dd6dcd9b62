"""The rules of a policy file in a plan: what they forbid, what that leaves undone beside it, and how long is waited."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.errors import RefusedError
from reconciler.plan import Action, ActionKind, PlanChoice, Policy, encode_plan, parse_plan
from reconciler.plan.policy import why_forbidden
from reconciler.policy import GateNumber, PolicyRules, Rule, RuleKind
from tests.reconciler.plan.plan_broker import NOW_MS, OLD, ORDERS, PlanBroker, edited, lines, sealed_again, statuses

HOLD = Rule(RuleKind.HOLD, ("orders",), "p:1", "case 7", until_ms=NOW_MS + 1)
NEVER = Rule(RuleKind.NEVER_TOUCH, ("orders",), "p:4", "auditors read it")


def rules(*found: Rule) -> PolicyRules:
    return PolicyRules("/etc/policy.toml", found)


def choice(*found: Rule) -> PlanChoice:
    return PlanChoice(Policy.kip516(), rules=rules(*found))


def action(kind: ActionKind, topic: str = "orders", drops: tuple[str, ...] = ()) -> Action:
    return Action(kind, "/d", "x", topic, 0, None, None, "", "", drops=drops)


def test_a_hold_forbids_what_a_purge_would_end_and_never_touch_forbids_every_change() -> None:
    kinds = set(ActionKind)
    held = {kind for kind in kinds if why_forbidden(rules(HOLD), action(kind), NOW_MS)}
    assert held == {ActionKind.STAGE, ActionKind.STAGE_STRAY, ActionKind.STAGE_DUPLICATE}
    untouched = {kind for kind in kinds if why_forbidden(rules(NEVER), action(kind), NOW_MS)}
    assert untouched == kinds - {ActionKind.NOTE_SIGHTING}


def test_a_checkpoint_is_left_as_it_is_that_would_lose_an_entry_of_a_topic_that_is_never_touched() -> None:
    drop = action(ActionKind.DROP_CHECKPOINT_ENTRIES, "", ("clicks 0", "orders 1"))
    assert why_forbidden(rules(NEVER), drop, NOW_MS) == "never touched: auditors read it (p:4)"
    assert why_forbidden(rules(NEVER), replace(drop, drops=("clicks 0",)), NOW_MS) is None
    assert why_forbidden(rules(HOLD), drop, NOW_MS) is None


def test_nothing_is_created_in_the_place_of_a_replica_that_is_held(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path, "flat")
    broker.wanted("orders", ORDERS, 0)
    broker.replica("orders-0", OLD)
    assert [kind for kind, _ in lines(broker.plan())] == ["stage", "create"]
    held = broker.plan(choice(HOLD))
    assert lines(held) == []
    assert held.policy["hold"] == "orders held until 2023-11-14 22:13:20 UTC: case 7 (p:1)"


def test_a_hold_wins_that_was_laid_after_the_plan_and_no_longer_than_it_holds(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path)
    broker.in_order()
    broker.replica("orders-0", OLD)
    plan = broker.plan()
    held = broker.apply(plan, rules=rules(HOLD))
    assert statuses(held) == [("orders-0", "skipped")]
    assert held.results[0].detail == "the policy forbids it: held until 2023-11-14 22:13:20 UTC: case 7 (p:1)"
    assert held.journals == [] and (broker.log_dirs[0] / "orders-0").exists()
    broker.clock.advance(2)
    assert statuses(broker.apply(plan, rules=rules(HOLD))) == [("orders-0", "done")]


def test_a_due_time_before_the_plan_was_made_is_none(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path)
    broker.in_order(1)
    broker.replica("orders-0", OLD)
    plan = broker.plan(choice(Rule(RuleKind.DELAY, ("orders",), "p:1", delay_ms=5)))
    assert plan.delays() == {"": plan.delay_ms, "orders": 5}
    for due_ms, is_one in ((NOW_MS, True), (NOW_MS - 1, False)):
        document = json.dumps(sealed_again(json.loads(edited(plan, due_ms=due_ms)))).encode()
        if is_one:
            assert parse_plan(document).delay_of(parse_plan(document).actions[0]) == 0
        else:
            with pytest.raises(RefusedError, match="due_ms"):
                parse_plan(document)
    assert parse_plan(encode_plan(plan)).actions[0].due_ms == NOW_MS + 5


def test_numbers_of_a_policy_file_take_the_place_of_those_that_were_not_given() -> None:
    numbers = {"max_age": GateNumber(7, "7ms", "p:1"), "max_share": GateNumber(0.5, "50%", "p:2")}
    found = Policy.cautious().with_numbers(PolicyRules("p", gates=numbers), but=["max_share"])
    assert found == replace(Policy.cautious(), oldest_ms=7)
