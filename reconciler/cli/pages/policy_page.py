"""What a policy file means for some disks, as a page of one screen and as JSON."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.cli.frame import Page, open_page, write_document
from reconciler.plan import PlanChoice
from reconciler.policy import GateNumber, PolicyRules, Rule, RuleKind, RuleReach, StagedGroup
from reconciler.text import NOTHING, Column, age, count, listed, moment, size

SCHEMA_VERSION = 1
"""Version of the JSON; raised whenever a field changes its meaning or goes."""

DEFAULT = "the default of a plan"


@dataclass(frozen=True, slots=True)
class CheckedPolicy:
    """A policy file, and what it means.

    Attributes:
        rules: of the file.
        choice: of a plan that has the numbers of the file, and no option.
        now_ms: when it was checked, in ms since 1970.
        reaches: what each rule names.
        planned: what would be staged, by delay, and what a rule keeps from that, by that rule.
        staged: what lies staged, by the rule that keeps it.
        findings: what somebody should look at, one sentence each.
        with_disks: whether log dirs were looked at.
    """

    rules: PolicyRules
    choice: PlanChoice
    now_ms: int
    reaches: Sequence[RuleReach]
    planned: Sequence[StagedGroup]
    staged: Sequence[StagedGroup]
    findings: Sequence[str]
    with_disks: bool

    def gates(self) -> list[tuple[str, str, str]]:
        """List the numbers in force: the gate, its number, and where that stands."""
        policy = self.choice.policy
        defaults = {
            "max_age": f"{(policy.oldest_ms or 0) // 3_600_000}h",
            "max_share": f"{100 * (policy.most_share or 0):g}%",
            "max_count": str(policy.most_count),
            "max_shrink": f"{100 * (policy.most_shrink or 0):g}%",
        }
        numbers = {name: self.rules.gates.get(name, GateNumber(0, text, DEFAULT)) for name, text in defaults.items()}
        return [(name, number.text, number.origin) for name, number in numbers.items()]


def show_policy(checked: CheckedPolicy, output: str | None) -> None:
    """Write the page: the rules, the gates, what would be staged, and what lies staged."""
    with open_page(output) as page:
        page.line(f"{checked.rules.path}: {count(len(checked.rules.rules), 'rule')}", "bold")
        _rules(checked, page)
        page.line()
        page.line("Gates of a plan; an option counts more", "bold")
        page.table(
            [Column("GATE"), Column("NUMBER", right=True), Column("FROM")],
            [(*each[:2], _place(each[2])) for each in checked.gates()],
            {},
        )
        if not checked.with_disks:
            return
        page.line()
        kept = [each for each in checked.planned if each.rule is not None and each.rule.kind is not RuleKind.DELAY]
        goes = [each for each in checked.planned if each not in kept]
        page.line(f"Would be staged now: {_sum(goes)}; kept from it: {_sum(kept)}", "bold")
        rows = [
            (
                "stays" if each in kept else f"waits {age(_delay_ms(each, checked))}",
                *(count(each.number), size(each.bytes), moment(each.first_due_ms)),
                DEFAULT if each.rule is None else _said(each.rule) if each in kept else _place(each.rule.origin),
            )
            for each in checked.planned
        ]
        _groups(page, ("STATE", "REPLICAS", "SIZE", "DUE", "BECAUSE"), rows)
        page.line()
        page.line(f"Lies staged: {_sum(checked.staged)}", "bold")
        lying = [
            (
                "held" if each.rule is not None else "due" if each.due == each.number else "waits",
                *(count(each.number), size(each.bytes), count(each.due), moment(each.first_due_ms)),
                NOTHING if each.rule is None else _said(each.rule),
            )
            for each in checked.staged
        ]
        _groups(page, ("STATE", "REPLICAS", "SIZE", "DUE NOW", "FIRST DUE", "BECAUSE"), lying)


def _delay_ms(group: StagedGroup, checked: CheckedPolicy) -> int:
    return checked.choice.delay_ms if group.rule is None else group.rule.delay_ms


def _place(origin: str) -> str:
    """Leave out the folder of a file, which the first line of the page names."""
    return posixpath.basename(origin)


def _said(rule: Rule) -> str:
    return rule.described().replace(rule.origin, _place(rule.origin))


def _sum(groups: Sequence[StagedGroup]) -> str:
    if not groups:
        return "nothing"
    total = sum(each.bytes for each in groups)
    return f"{count(sum(each.number for each in groups), 'replica')}, {size(total)}"


def _groups(page: Page, titles: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    if rows:
        page.table([Column(title, right=title in ("REPLICAS", "SIZE", "DUE NOW")) for title in titles], rows, {})


def _rules(checked: CheckedPolicy, page: Page) -> None:
    columns = [Column("RULE"), Column("NAMES"), Column("HERE"), Column("SIZE", right=True), Column("MEANS")]
    if not checked.with_disks:
        del columns[2:4]
    rows = []
    for reach in checked.reaches:
        here = (_here(reach), size(reach.bytes) if reach.bytes else NOTHING) if checked.with_disks else ()
        rows.append((reach.rule.kind.value, listed(reach.rule.patterns), *here, _means(reach.rule, checked.now_ms)))
    if rows:
        page.table(columns, rows, {RuleKind.HOLD.value: "yellow", RuleKind.NEVER_TOUCH.value: "yellow"})


def _here(reach: RuleReach) -> str:
    parts = [
        count(reach.live, "replica") if reach.live else "",
        f"{count(reach.staged)} staged" if reach.staged else "",
        f"{count(reach.others)} future, stray or delete" if reach.others else "",
        count(reach.foreign, "entry", "entries") if reach.foreign else "",
    ]
    here = ", ".join(filter(None, parts))
    return here or (f"{count(reach.in_metadata, 'topic')} elsewhere" if reach.in_metadata else "nothing")


def _means(rule: Rule, now_ms: int) -> str:
    match rule.kind:
        case RuleKind.DELAY:
            return f"waits {age(rule.delay_ms)} for its purge ({_place(rule.origin)})"
        case RuleKind.FOREIGN:
            return f"allowed ({_place(rule.origin)})"
        case _:
            return f"ended; {_said(rule)}" if rule.has_ended(now_ms) else _said(rule)


def write_policy(checked: CheckedPolicy, output: str | None) -> None:
    """Write the same as JSON."""
    write_document(
        {
            "schema_version": SCHEMA_VERSION,
            "policy_file": checked.rules.path,
            "checked_ms": checked.now_ms,
            "rules": [_rule_row(reach, checked) for reach in checked.reaches],
            "gates": [dict(zip(("gate", "number", "from"), each, strict=True)) for each in checked.gates()],
            "default_delay_ms": checked.choice.delay_ms,
            "would_be_staged": [_group_row(each) for each in checked.planned] if checked.with_disks else None,
            "staged": [_group_row(each) for each in checked.staged] if checked.with_disks else None,
            "findings": list(checked.findings),
        },
        output,
    )


def _rule_row(reach: RuleReach, checked: CheckedPolicy) -> dict[str, Any]:
    rule = reach.rule
    numbers = {name: getattr(reach, name) for name in ("live", "staged", "others", "foreign", "bytes", "in_metadata")}
    return {
        "rule": rule.kind.value,
        "from": rule.origin,
        "names": list(rule.patterns),
        "reason": rule.reason or None,
        "delay_ms": rule.delay_ms if rule.kind is RuleKind.DELAY else None,
        "until_ms": rule.until_ms,
        "ended": rule.has_ended(checked.now_ms),
        **(numbers if checked.with_disks else dict.fromkeys(numbers)),
        "names_nothing": reach.is_empty if checked.with_disks else None,
    }


def _group_row(group: StagedGroup) -> dict[str, Any]:
    return {
        "from": None if group.rule is None else group.rule.origin,
        "reason": None if group.rule is None else group.rule.reason or None,
        "replicas": group.number,
        "bytes": group.bytes,
        "due": group.due,
        "first_due_ms": group.first_due_ms,
    }
