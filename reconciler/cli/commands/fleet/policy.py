"""``logstore policy check``: what a policy file means for these disks. Takes no lock and changes nothing.

What would be staged is asked of the plan itself (:func:`reconciler.plan.make_plan`), so both say the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from logstore.scan import scan_all
from reconciler.cli.frame import (
    Exit,
    Format,
    Inputs,
    check_output,
    choose_metadata,
    fallback_records,
    read_policy,
    say_problems,
    sort_inputs,
    user_name,
    warn,
    with_progress,
)
from reconciler.cli.pages import CheckedPolicy, show_policy, write_policy
from reconciler.desired import by_cluster
from reconciler.errors import UsageError
from reconciler.plan import (
    STAGING_ACTIONS,
    GatesShutError,
    Plan,
    PlanChoice,
    PlanOrigin,
    PlanView,
    Policy,
    make_plan,
    read_history,
)
from reconciler.policy import PolicyRules, RuleKind, RuleReach, StagedGroup, reach_of, staged_groups
from reconciler.text import moment


@dataclass(frozen=True, slots=True)
class _Disks:
    """What the disks of the given log dirs make of the rules; without a log dir, nothing."""

    reaches: Sequence[RuleReach]
    staged: Sequence[StagedGroup] = ()
    planned: Sequence[StagedGroup] = ()
    shut: Sequence[str] = ()
    unread: Sequence[str] = ()


def run(
    *,
    policy_file: str,
    paths: tuple[str, ...],
    specs: tuple[str, ...],
    form: str,
    output: str | None,
    fallback_folder: str | None,
) -> Exit:
    """Check a policy file, and say what it means for the disks of these log dirs. Nothing is changed."""
    rules, now_ms = read_policy(policy_file), time.time_ns() // 1_000_000
    if specs and not paths:
        raise UsageError("--metadata is about log dirs: name them as well")
    inputs = sort_inputs(paths) if paths else None
    if inputs is not None and inputs.inventories.files:
        raise UsageError(
            f"{inputs.inventories.files[0]} is an inventory: a policy is checked on the log dirs themselves"
        )
    check_output(Format(form), output, [] if inputs is None else inputs.log_dirs, [policy_file])
    disks = _Disks(reach_of(rules, ())) if inputs is None else _looked_at(rules, inputs, specs, fallback_folder, now_ms)
    findings = _findings(disks, now_ms, with_disks=inputs is not None)
    choice = PlanChoice(Policy.cautious().with_numbers(rules))
    checked = CheckedPolicy(
        rules, choice, now_ms, disks.reaches, disks.planned, disks.staged, findings, with_disks=inputs is not None
    )
    if Format(form) is Format.JSON:
        write_policy(checked, output)
    else:
        show_policy(checked, output)
    for sentence in (*disks.unread, *disks.shut, *findings):
        warn(sentence)
    if disks.unread:
        return Exit.PARTLY_FAILED
    return Exit.FINDINGS if findings else Exit.CLEAN


def _looked_at(
    rules: PolicyRules, inputs: Inputs, specs: Sequence[str], fallback_folder: str | None, now_ms: int
) -> _Disks:
    states = choose_metadata(specs, inputs, now_ms)
    say_problems(states)
    scanned = scan_all(inputs.log_dirs, fallback=fallback_records(fallback_folder))
    seen = list(with_progress(scanned, len(inputs.log_dirs), "scanning log dirs"))
    by_cluster(states, {each.identity.cluster_id for each in seen if each.identity and each.identity.cluster_id})
    view = PlanView.of(seen, {}, states, now_ms)
    rows = [each.observed for each in view.judged if each.observed is not None]
    topics = {topic for state in states for topic in state.topics.column("topic").to_pylist()}
    plan, shut = _planned(view, rules, now_ms)
    without_rules, _ = _planned(view, replace(rules, rules=()), now_ms)
    return _Disks(
        reach_of(rules, rows, topics),
        staged_groups(rules, rows, now_ms),
        [*_grouped(plan, rules, kept=False), *_grouped(without_rules, rules, kept=True)],
        [f"a plan for these disks is refused now: {reason}" for reason in shut],
        [
            f"{log_dir.path} is left out: {log_dir.row['problem'] or 'nothing says whose it is'}"
            for log_dir in view.log_dirs.values()
            if not log_dir.can_be_trusted
        ],
    )


def _planned(view: PlanView, rules: PolicyRules, now_ms: int) -> tuple[Plan, list[str]]:
    """Make the plan that the rules lead to, though gates may be shut; with it, why they are."""
    choice = PlanChoice(Policy.cautious().with_numbers(rules), rules=rules)
    try:
        memory = read_history(view.log_dirs).memory()
        return make_plan(view, choice, PlanOrigin(now_ms, os.uname().nodename, user_name()), memory), []
    except GatesShutError as error:
        return error.plan, [refusal.reason for refusal in error.refusals]


def _grouped(plan: Plan, rules: PolicyRules, *, kept: bool) -> list[StagedGroup]:
    """Group what a plan stages: by the rule that keeps it where it is, or by the rule whose delay it has, if any."""
    groups = {rule: StagedGroup(rule) for rule in (*rules.rules, None)}
    for action in (each for each in plan.actions if each.kind in STAGING_ACTIONS):
        keeping = rules.keeping(action.topic, plan.created_ms)
        if (keeping is not None) == kept:
            rule = keeping or rules.first(action.topic, RuleKind.DELAY)
            groups[rule].add(action.frees, None if kept else action.due_ms, plan.created_ms)
    return [group for group in groups.values() if group.number]


def _findings(disks: _Disks, now_ms: int, *, with_disks: bool) -> list[str]:
    """Say what somebody should look at in the file: rules that do nothing."""
    found = []
    for reach in disks.reaches:
        rule = reach.rule
        if rule.has_ended(now_ms):
            found.append(f"{rule.origin}: this hold ended at {moment(rule.until_ms)}: take it out, or lay it anew")
        elif with_disks and reach.is_empty:
            what = ", ".join(rule.patterns)
            found.append(f"{rule.origin}: this {rule.kind} names nothing here: {what}")
    return found
