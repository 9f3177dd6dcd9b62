"""What the rules of a policy forbid, allow and change, without a disk."""

from __future__ import annotations

import pytest

from reconciler.policy import GateNumber, PolicyRules, Rule, RuleKind

END_MS = 1_800_000_000_000
RULES = PolicyRules(
    "/etc/policy.toml",
    (
        Rule(RuleKind.DELAY, ("pay-*", "ledger"), "p:1", delay_ms=9000),
        Rule(RuleKind.DELAY, ("pay*",), "p:4", delay_ms=1000),
        Rule(RuleKind.NEVER_TOUCH, ("audit",), "p:7", "auditors read it"),
        Rule(RuleKind.HOLD, ("trades", "pay-out"), "p:10", "case 7", until_ms=END_MS),
        Rule(RuleKind.HOLD, ("org:*",), "p:13", "case 8"),
        Rule(RuleKind.FOREIGN, ("lost+found",), "p:16"),
    ),
    {"max_count": GateNumber(5, "5", "p:20")},
)


def test_the_first_delay_that_names_a_topic_counts_else_the_default() -> None:
    waits = {topic: RULES.delay_ms(topic, 7) for topic in ("pay-out", "payments", "ledger", "ledgers", "orders")}
    assert waits == {"pay-out": 9000, "payments": 1000, "ledger": 9000, "ledgers": 7, "orders": 7}
    assert (RULES.delay_ms(None, 7), PolicyRules().delay_ms("pay-out", 7)) == (7, 7)


def test_a_hold_forbids_removal_alone_and_until_its_end() -> None:
    why = RULES.forbids_removal("trades", END_MS - 1)
    assert why == "held until 2027-01-15 08:00:00 UTC: case 7 (p:10)"
    assert RULES.forbids_removal("trades", END_MS) is None
    assert RULES.forbids_removal("org:apache:orders", END_MS + 1) == "held: case 8 (p:13)"
    assert RULES.forbids_change(["trades"]) is None


def test_what_is_never_touched_is_neither_changed_nor_removed() -> None:
    why = "never touched: auditors read it (p:7)"
    assert (RULES.forbids_change(["orders", "audit"]), RULES.forbids_removal("audit", 0)) == (why, why)
    assert RULES.forbids_change(["orders"]) is RULES.forbids_removal("orders", 0) is RULES.forbids_removal(None, 0)


def test_a_topic_is_matched_as_a_whole_and_by_upper_and_lower_case() -> None:
    assert [RULES.forbids_removal(topic, 0) for topic in ("Trades", "trades2", "my-trades")] == [None, None, None]


@pytest.mark.parametrize(("name", "allowed"), [("lost+found", True), ("lost", False), ("audit", False), (None, False)])
def test_only_foreign_names_of_the_policy_are_allowed(name: str | None, allowed: bool) -> None:
    assert RULES.allows(name) is allowed


def test_a_plan_says_of_which_rules_it_was_made() -> None:
    assert RULES.described() == {
        "policy_file": "/etc/policy.toml",
        "delay": "pay-*, ledger: 9000 ms; pay*: 1000 ms",
        "never_touch": "audit never touched: auditors read it (p:7)",
        "hold": "trades, pay-out held until 2027-01-15 08:00:00 UTC: case 7 (p:10); org:* held: case 8 (p:13)",
        "foreign": "lost+found",
    }
    assert PolicyRules().described() == {}
