"""Plans from wrong premises, over real files: each shuts its gate, two at once are both named, and none is applied."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from reconciler.plan import Gate, GatesShutError, PlanChoice, Policy
from tests.reconciler.plan.premises import PREMISES, World, exclude_each_other, topic_id


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
            assert refusal.reason.endswith(f"(override: {' '.join(refusal.option)})")
