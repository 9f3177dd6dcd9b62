"""The steps that are advised after an audit."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.audit import AuditResult, advised_steps
from reconciler.desired import Mode
from reconciler.verdicts import URGENCY, Verdict, advice_of

Make = Callable[..., AuditResult]


def test_each_verdict_that_asks_for_action_has_one_step_with_a_command(make_result: Make) -> None:
    result = make_result({"verdict": "STRAY"}, {"verdict": "STALE_ID"}, {"verdict": "STRAY"}, ok=2)
    steps = advised_steps(result, URGENCY)
    assert sorted(step.verdict for step in steps) == [Verdict.STALE_ID, Verdict.STRAY]
    assert all(
        step.advice == advice_of(step.verdict, Mode.KRAFT) and step.command.startswith("logstore ") for step in steps
    )


def test_steps_come_in_the_order_in_which_the_verdicts_were_given(make_result: Make) -> None:
    result = make_result({"verdict": "STRAY"}, {"verdict": "STALE_ID"})
    given = (Verdict.STRAY, Verdict.STALE_ID)
    assert tuple(step.verdict for step in advised_steps(result, given)) == given


def test_an_audit_in_which_all_is_ok_advises_nothing(make_result: Make) -> None:
    assert advised_steps(make_result(ok=3), URGENCY) == []
