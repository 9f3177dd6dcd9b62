"""Properties of plans and actions."""

from __future__ import annotations

from layout.topic import TopicPartition
from reconciler.plan import REPAIRS, STAGING_ACTIONS, Action, ActionKind, Plan
from reconciler.plan.plan import PlannedLogDir


def action(kind: ActionKind, name: str, size: int | None) -> Action:
    return Action(kind, "/d", name, "orders", 3, None, None, "STALE_ID", "why", bytes=size)


def test_totals_are_given_by_kind_and_only_of_kinds_that_occur() -> None:
    lines = (action(ActionKind.STAGE, "a", 5), action(ActionKind.CREATE, "b", None), action(ActionKind.STAGE, "c", 7))
    plan = Plan(0, "h", "u", 0, {}, (), (), lines)
    assert plan.totals() == {"stage": {"actions": 2, "bytes": 12}, "create": {"actions": 1, "bytes": 0}}


def test_staging_actions_are_the_kinds_of_actions_that_stage() -> None:
    staging = {kind for kind in ActionKind if kind.value.startswith("stage")}
    assert staging == STAGING_ACTIONS | {ActionKind.STAGE_DUPLICATE}
    assert not STAGING_ACTIONS & REPAIRS, "no gate holds back a repair"


def test_an_action_names_its_replica_and_a_log_dir_its_broker() -> None:
    assert action(ActionKind.STAGE, "a", 1).replica == TopicPartition("orders", 3)
    assert PlannedLogDir("/d", "c", 7, None, "/d.deleting").broker == ("c", 7)
