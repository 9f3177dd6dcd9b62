"""What rules name on some disks, from rows alone."""

from __future__ import annotations

from typing import Any

from logstore.rows import Kind
from reconciler.policy import PolicyRules, Rule, RuleKind, RuleReach, StagedGroup, reach_of, staged_groups

FIRST = Rule(RuleKind.DELAY, ("pay*",), "p:1", delay_ms=5)
SECOND = Rule(RuleKind.DELAY, ("pay-out", "ledger"), "p:2", delay_ms=6)
HOLD = Rule(RuleKind.HOLD, ("pay-out",), "p:3", "case", until_ms=100)
FOREIGN = Rule(RuleKind.FOREIGN, ("lost+found",), "p:4")
RULES = PolicyRules("p", (FIRST, SECOND, HOLD, FOREIGN))


def row(kind: Kind, topic: str | None, disk_bytes: int | None = 8, due_ms: int | None = None) -> dict[str, Any]:
    name = "lost+found" if topic is None else f"{topic}-0"
    return {"kind": kind, "topic": topic, "name": name, "bytes": 3, "disk_bytes": disk_bytes, "due_ms": due_ms}


ROWS = [
    row(Kind.LIVE, "pay-out"),
    row(Kind.STAGED, "pay-out", None, due_ms=50),
    row(Kind.STRAY, "pay"),
    row(Kind.STAGED, "ledger", due_ms=90),
    row(Kind.STAGED, "other", due_ms=80),
    row(Kind.FOREIGN, None, None) | {"bytes": None},
    row(Kind.CHECKPOINT_ENTRY, "pay-out"),
]


def test_each_rule_counts_what_it_names_and_of_delays_the_first() -> None:
    assert reach_of(RULES, ROWS, ["pay-out", "ledger", "else"]) == [
        RuleReach(FIRST, live=1, staged=1, others=1, bytes=19, in_metadata=1),
        RuleReach(SECOND, staged=1, bytes=8, in_metadata=1),
        RuleReach(HOLD, live=1, staged=1, bytes=11, in_metadata=1),
        RuleReach(FOREIGN, foreign=1),
    ]


def test_a_rule_is_empty_that_names_nothing_here_or_in_the_metadata() -> None:
    assert [each.is_empty for each in reach_of(RULES, [])] == [True] * 4
    assert [each.is_empty for each in reach_of(RULES, [], ["pay-out"])] == [False, True, False, True]


def test_what_lies_staged_is_grouped_by_the_rule_that_keeps_it_while_that_holds() -> None:
    assert staged_groups(RULES, ROWS, 99) == [
        StagedGroup(HOLD, 1, 3, 1, 50),
        StagedGroup(None, 2, 16, 2, 80),
    ]
    assert staged_groups(RULES, ROWS, 100) == [StagedGroup(None, 3, 19, 3, 50)]
    assert staged_groups(RULES, ROWS, 60)[1].due == 0
