"""Plans from wrong premises, over real files: each shuts its gate, two at once are both named, and none is applied."""

from __future__ import annotations

import itertools
import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore import ChangeRefusedError
from logstore.clock import ManualClock
from reconciler.cli import logstore
from reconciler.plan import ALLOWABLE_FOR_REPAIR, ApplyOptions, Gate, GatesShutError, PlanChoice, Policy, apply_plan
from reconciler.plan.policy import BY_NUMBER
from tests.reconciler.plan.premises import NOW_MS, PREMISES, Premise, World, exclude_each_other, topic_id

COPIED = "another disk under a copied meta.properties"
"""The premise that no option accepts, since ``apply`` would refuse the plan."""


def test_where_every_premise_is_right_the_plan_is_made(tmp_path: Path) -> None:
    (action,) = World(tmp_path).plan().actions
    assert (action.kind, action.name, action.verdict) == ("stage", "moved-0", "NOT_ASSIGNED")
    assert action.created_ms == action.modified_ms and action.created_ms is not None


@pytest.mark.parametrize("name", PREMISES)
def test_a_wrong_premise_shuts_its_gate_and_no_other(name: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    PREMISES[name].spoil(world)
    assert world.shut() == [PREMISES[name].gate]


@pytest.mark.parametrize("name", PREMISES)
def test_of_two_wrong_premises_both_are_named_at_once(name: str, tmp_path: Path) -> None:
    """With each premise that comes later in the table, so that every pair is met once."""
    later = itertools.islice(PREMISES, list(PREMISES).index(name) + 1, None)
    one = PREMISES[name]
    for number, another in enumerate(later):
        two = PREMISES[another]
        if exclude_each_other(one, two):
            continue
        world = World(tmp_path / str(number))
        one.spoil(world)
        two.spoil(world)
        assert {one.gate, two.gate} <= set(world.shut()), another


@pytest.mark.parametrize("name", PREMISES)
def test_an_embedded_broker_is_held_to_none_of_them(name: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    PREMISES[name].spoil(world)
    world.choice = PlanChoice(Policy.kip516())
    assert world.shut() == []


def test_no_option_makes_a_plan_for_a_disk_and_its_copy_because_it_is_never_applied(tmp_path: Path) -> None:
    world = World(tmp_path)
    PREMISES[COPIED].spoil(world)
    world.choice = PlanChoice(replace(world.choice.policy, allowed=frozenset([Gate.LOG_DIR])))
    with pytest.raises(GatesShutError, match=r"no plan for both can be applied: leave the copy out$") as error:
        world.plan()
    assert [each.option for each in error.value.refusals] == [None]
    with pytest.raises(ChangeRefusedError, match="is also that of"):
        apply_plan(error.value.plan, ApplyOptions("h", "u", ManualClock(NOW_MS)))


def test_metadata_that_went_back_restores_nothing_either(tmp_path: Path) -> None:
    world = World(tmp_path)
    PREMISES["an offset below an earlier one"].spoil(world)
    world.choice = PlanChoice(verdicts=frozenset(["STAGED"]))  # type: ignore[list-item]
    assert world.shut() == [Gate.WENT_BACK]


def test_a_topic_that_is_re_created_with_the_only_copy_in_sync_here_raises_no_false_alarm(tmp_path: Path) -> None:
    """What lies on the disk has another topic ID than what is in sync, and is no copy of it."""
    world = World(tmp_path)
    world.extra.append(("moved-1", topic_id("moved-old")))
    world.isr, world.leader = (2,), 2
    assert world.shut() == []


def test_every_refusal_has_its_numbers_and_its_option(tmp_path: Path) -> None:
    for number, premise in enumerate(PREMISES.values()):
        world = World(tmp_path / str(number))
        premise.spoil(world)
        with pytest.raises(GatesShutError) as caught:
            world.plan()
        assert caught.value.plan.actions, "what is refused can be shown"
        for refusal in caught.value.refusals:
            way = "leave the copy out" if refusal.option is None else f"(override: {' '.join(refusal.option)})"
            assert refusal.reason.endswith(way)


def chosen_by(premise: Premise) -> PlanChoice:
    """What a premise lets the operator choose."""
    world = World(Path())
    premise.spoil(world)
    return world.choice


@pytest.mark.parametrize(
    "name", [name for name, each in PREMISES.items() if chosen_by(each) == PlanChoice() and name != COPIED]
)
def test_the_command_refuses_it_and_the_command_that_it_prints_makes_the_plan(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: NOW_MS * 1_000_000)
    world = World(tmp_path)
    PREMISES[name].spoil(world)
    metadata, *disks = world.build()
    kept = tmp_path / "plan.json"
    refused = CliRunner().invoke(logstore, ["plan", *disks, "--metadata", metadata, "-o", str(kept)])
    assert (refused.exit_code, kept.exists()) == (3, False), refused.output
    assert "moved-0" in refused.stdout
    assert f"override: {' '.join(option_of(PREMISES[name].gate))}" in refused.stderr
    # The first line also has a command, with metadata that would be newer; the one that is to be pasted stands alone.
    (command,) = (line for line in refused.stderr.splitlines() if line.strip().startswith("logstore plan"))
    made = CliRunner().invoke(logstore, shlex.split(command)[1:])
    assert (made.exit_code, kept.exists()) == (1, True), made.output


def option_of(gate: Gate) -> tuple[str, ...]:
    """The option that opens a gate; of a number, its name alone."""
    return (BY_NUMBER[gate],) if gate in BY_NUMBER else ("--allow", gate)


OF_METADATA = {*ALLOWABLE_FOR_REPAIR, Gate.AGE}
"""Gates about the metadata as a whole, whatever is done by it."""


@pytest.mark.parametrize("name", [name for name, each in PREMISES.items() if each.gate in OF_METADATA])
def test_no_repair_takes_a_topic_id_from_its_word_and_doctor_prints_the_command_that_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: NOW_MS * 1_000_000)
    monkeypatch.chdir(tmp_path)
    world = World(tmp_path)
    PREMISES[name].spoil(world)
    metadata, *disks = world.build()
    (world.disks[0] / "t0-0" / "partition.metadata").unlink()
    asked = [*disks, "--metadata", metadata]
    refused = CliRunner().invoke(logstore, ["repair", *asked, "-o", "kept.json"])
    assert (refused.exit_code, (tmp_path / "kept.json").exists()) == (3, False), refused.output
    assert "t0-0" in refused.stdout
    assert f"override: {' '.join(option_of(PREMISES[name].gate))}" in refused.stderr
    doctor = CliRunner().invoke(logstore, ["doctor", *asked, "--format", "json"])
    (examined,) = json.loads(doctor.stdout)["brokers"]
    steps = [step["command"] for step in examined["next"] if step["command"]]
    for lines, file in ((refused.stderr.splitlines(), "kept.json"), (steps, "repair.json")):
        repairs = (line for line in lines if line.strip().startswith("logstore repair"))
        command = next(line for line in repairs if f"-o {file}" in line or f"--output {file}" in line)
        result = CliRunner().invoke(logstore, shlex.split(command)[1:])
        assert (result.exit_code, (tmp_path / file).exists()) == (1, True), result.output
