"""Every rule speaks of the disk that it is there for, and has a source and a command that changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.preflight import Effect, next_command, source_of
from reconciler.preflight.finding import Finding, FindingPlace
from reconciler.preflight.rules import RULES
from tests.reconciler.preflight.disks import of_rule
from tests.reconciler.preflight.scenarios import SCENARIOS, Scenario


@pytest.mark.parametrize(("rule", "effect", "scenario"), SCENARIOS, ids=[rule for rule, _, _ in SCENARIOS])
def test_each_rule_speaks_with_its_effect(tmp_path: Path, rule: str, effect: Effect, scenario: Scenario) -> None:
    answer = scenario(tmp_path)
    found = of_rule(answer, rule)
    assert effect in {each.effect for each in found}, [(each.rule, each.problem) for each in answer.findings]
    assert all(each.problem and not each.problem.endswith(".") for each in found)
    assert all(re.search(r"(FACTS|DESIGN) §", source_of(each)) for each in found)
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
