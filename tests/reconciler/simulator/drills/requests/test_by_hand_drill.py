"""The drill of requests by hand: sound gates are where they should be, and a mistake is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.broker import CarriedOut, gates, request_journal
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills import drill_by_hand
from reconciler.simulator.runs.coverage import EXPECTED
from tests.reconciler.simulator.drills.counting import counted

SEEDS, STEPS = 40, 200


def test_sound_gates_are_shut_where_they_should_be_and_a_seed_always_plays_the_same() -> None:
    found = counted(drill_by_hand, SEEDS, STEPS)
    assert found.keys() == {each for each in EXPECTED if each.startswith("drill_by_hand ")}
    assert counted(drill_by_hand, 3, STEPS) == counted(drill_by_hand, 3, STEPS)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(gates, "_of_cluster", lambda *_: iter(())), "should be"),
        (lambda patch: patch.setattr(gates, "_of_creations", lambda *_: iter(())), "should be"),
        (lambda patch: patch.setattr(gates, "_sole_copies", lambda *_: iter(())), "should be"),
        (lambda patch: patch.setattr(gates, "_is_unknown_by_name", lambda _: False), "should be"),
        (lambda patch: patch.setattr(gates, "is_internal_topic", lambda *_: False), "should be"),
        (lambda patch: patch.setattr(CarriedOut, "refusal", lambda *_: None), "is not refused"),
        (lambda patch: patch.setattr(CarriedOut, "is_before", lambda *_: True), "is newer than"),
        (
            lambda patch: patch.setattr(request_journal, "_is_of_request", lambda _: False),
            "is not refused|is newer than",
        ),
    ],
    ids=["cluster", "create", "sole copy", "no ID", "internal", "older", "newer", "journals"],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_by_hand, SEEDS, STEPS)
