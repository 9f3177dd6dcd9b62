"""Readings of changes: what a plan would do, and what came of applying it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from logstore.repair import RepairStatus
from reconciler.metrics import families as of
from reconciler.metrics.families import Readings
from reconciler.plan import STAGING_ACTIONS

if TYPE_CHECKING:
    from reconciler.plan import ApplyOutcome, Gate, Plan


def read_plan(readings: Readings, plan: Plan, shut: Iterable[Gate] = ()) -> None:
    """Take in a plan, and the gates that were shut where it was refused."""
    for action in plan.actions:
        readings.add(of.PLAN_ACTIONS, 1, action.kind)
        readings.add(of.PLAN_BYTES, action.frees, action.kind)
    for left in plan.left_alone:
        readings.add(of.PLAN_LEFT_ALONE, 1, left.verdict)
    for gate in shut:
        readings.add(of.PLAN_GATES_SHUT, 1, gate)


def read_apply(readings: Readings, outcome: ApplyOutcome) -> None:
    """Take in the results of a plan's actions, and the bytes of what was staged now."""
    readings.add(of.APPLY_STAGED_BYTES, 0)
    for result in outcome.results:
        readings.add(of.APPLY_ACTIONS, 1, result.action.kind, result.status)
        if result.action.kind in STAGING_ACTIONS and result.status is RepairStatus.DONE:
            readings.add(of.APPLY_STAGED_BYTES, result.action.frees)
