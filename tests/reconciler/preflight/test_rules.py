"""Every rule reports its own kind of damage.

Findings are sorted by their effects, in order of harm.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.preflight import FINDING_SCHEMA, Finding, StartEffect
from reconciler.preflight.rules import ORDER, RULES, FindingPlace
from tests.reconciler.preflight.disks import of_rule
from tests.reconciler.preflight.scenarios import SCENARIOS, Scenario


@pytest.mark.parametrize(("rule", "effect", "scenario"), SCENARIOS, ids=[rule for rule, _, _ in SCENARIOS])
def test_each_rule_speaks_with_its_effect(tmp_path: Path, rule: str, effect: StartEffect, scenario: Scenario) -> None:
    answer = scenario(tmp_path)
    found = of_rule(answer, rule)
    assert effect in {each.effect for each in found}, [(each.rule, each.problem) for each in answer.findings]
    assert all(each.problem and not each.problem.endswith(".") for each in found)
    assert answer.starts is not any(each.effect is StartEffect.STARTUP_ABORTS for each in answer.findings)


def test_there_is_a_scenario_for_every_rule() -> None:
    assert [rule for rule, _, _ in SCENARIOS] == list(RULES)


def test_effects_are_ordered_from_the_gravest_to_a_note() -> None:
    assert sorted(StartEffect, key=ORDER.__getitem__) == list(StartEffect)
    assert (min(StartEffect, key=ORDER.__getitem__), max(StartEffect, key=ORDER.__getitem__)) == (
        StartEffect.STARTUP_ABORTS,
        StartEffect.NOTE,
    )


def test_findings_are_sorted_by_effect_then_rule_then_place() -> None:
    place = FindingPlace("/a", "x-1", "x", 1)
    note, stray = Finding(StartEffect.NOTE, "a", "n", place), Finding(StartEffect.RENAMED_TO_STRAY, "z", "s", place)
    of_broker, later = (
        Finding(StartEffect.NOTE, "a", "n"),
        Finding(StartEffect.NOTE, "a", "n", FindingPlace("/a", "x-2", "x", 2)),
    )
    found = sorted([later, note, of_broker, stray], key=lambda each: each.order)
    assert found == [stray, of_broker, note, later]


def test_the_columns_have_all_that_a_finding_has() -> None:
    assert {"effect", "rule", "problem", "replicas", "only_in_sync"} <= set(FINDING_SCHEMA.names)
    assert set(FindingPlace.__dataclass_fields__) <= set(FINDING_SCHEMA.names)
