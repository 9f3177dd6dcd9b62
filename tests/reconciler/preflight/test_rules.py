"""Every rule reports its own kind of damage, and has a command that changes nothing.

Findings are sorted by their effects, in order of harm.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.preflight import FINDING_SCHEMA, Effect, next_command
from reconciler.preflight.rules import ORDER, RULES, Finding, FindingPlace
from tests.reconciler.preflight.disks import of_rule
from tests.reconciler.preflight.scenarios import SCENARIOS, Scenario


@pytest.mark.parametrize(("rule", "effect", "scenario"), SCENARIOS, ids=[rule for rule, _, _ in SCENARIOS])
def test_each_rule_speaks_with_its_effect(tmp_path: Path, rule: str, effect: Effect, scenario: Scenario) -> None:
    answer = scenario(tmp_path)
    found = of_rule(answer, rule)
    assert effect in {each.effect for each in found}, [(each.rule, each.problem) for each in answer.findings]
    assert all(each.problem and not each.problem.endswith(".") for each in found)
    assert answer.starts is not any(each.effect is Effect.STARTUP_ABORTS for each in answer.findings)


def test_there_is_a_scenario_for_every_rule() -> None:
    assert [rule for rule, _, _ in SCENARIOS] == list(RULES)


@pytest.mark.parametrize("rule", [rule for rule, each in RULES.items() if each.next])
def test_every_next_command_names_its_paths_and_only_looks_or_plans(rule: str) -> None:
    finding = Finding(Effect.NOTE, rule, "something", FindingPlace("/disks/a b", "orders-0", "orders", 0))
    command = next_command(finding, ["/disks/a b", "/disks/2"], None)
    assert "{" not in command
    assert re.match(r"logstore (explain|repair|preflight|scan|staged|audit|convert) |findmnt|fuser|grep|ls|cat|"
                    r"realpath|readlink|kafka-topics", command)  # fmt: skip
    assert not re.search(r"--apply|\brm\b|\bmv\b", command)
    assert " convert " not in command or "--dry-run" in command
    assert "'/disks/a b" in command or rule == "missing"


def test_a_finding_of_the_whole_broker_leaves_its_paths_in_capitals() -> None:
    assert "TOPIC" in next_command(Finding(Effect.NOTE, "missing", "something"), [], None)


def test_effects_are_ordered_from_the_gravest_to_a_note() -> None:
    assert sorted(Effect, key=ORDER.__getitem__) == list(Effect)
    assert (min(Effect, key=ORDER.__getitem__), max(Effect, key=ORDER.__getitem__)) == (
        Effect.STARTUP_ABORTS,
        Effect.NOTE,
    )


def test_findings_are_sorted_by_effect_then_rule_then_place() -> None:
    place = FindingPlace("/a", "x-1", "x", 1)
    note, stray = Finding(Effect.NOTE, "a", "n", place), Finding(Effect.RENAMED_TO_STRAY, "z", "s", place)
    of_broker, later = Finding(Effect.NOTE, "a", "n"), Finding(Effect.NOTE, "a", "n", FindingPlace("/a", "x-2", "x", 2))
    found = sorted([later, note, of_broker, stray], key=lambda each: each.order)
    assert found == [stray, of_broker, note, later]


def test_the_columns_have_all_that_a_finding_has() -> None:
    assert {"effect", "rule", "problem", "replicas", "only_in_sync"} <= set(FINDING_SCHEMA.names)
    assert set(FindingPlace.__dataclass_fields__) <= set(FINDING_SCHEMA.names)
