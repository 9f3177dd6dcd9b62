"""The drill of a broker: a sound one answers by the rules, and a mistake in it is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.broker import Broker
from reconciler.broker import broker as handling
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill, drill_requests
from tests.reconciler.simulator.drills.counting import counted

SEEDS = 30


def test_a_sound_broker_answers_by_the_rules_and_a_seed_always_plays_the_same() -> None:
    first = counted(drill_requests, 2, 25)
    assert first == counted(drill_requests, 2, 25)
    assert first["drill leader_and_isr_FULL"] and first["drill stop_replica"]


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(handling, "staleness", lambda *_: None), "STALE_"),
        (lambda patch: patch.setattr(Broker, "comes_in_order", lambda *_: True), "STALE_CONTROLLER_EPOCH"),
        (lambda patch: patch.setattr(Broker, "leader_epoch", lambda *_: 77), "taken for 77"),
    ],
    ids=["old requests obeyed", "late requests obeyed", "epochs forgotten"],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_requests, SEEDS, 25)


def test_each_seed_has_one_drill_on_disks_and_one_of_data() -> None:
    pairs = set[tuple[bool, bool]]()
    for seed in range(4):
        reached = set[str]()
        drill(seed, reached.add, 14)
        is_of_requests = any(each.startswith(("drill leader_and_isr", "drill stop_replica")) for each in reached)
        is_of_metadata = any(each.startswith("drill_metadata") for each in reached)
        assert is_of_metadata is not any(each.startswith("drill_verdict") for each in reached)
        pairs.add((is_of_requests, is_of_metadata))
    assert len(pairs) == 4
