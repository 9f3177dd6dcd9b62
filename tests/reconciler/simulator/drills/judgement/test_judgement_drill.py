"""The drill of verdicts and gates: sound ones are what the oracles say, and a mistake is noticed within a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from reconciler.plan import Gate, gate_inputs, gates, proposal
from reconciler.policy import PolicyRules
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.judgement import drill as drilling
from reconciler.simulator.drills.judgement import drill_judgement
from reconciler.simulator.drills.judgement.drawn import draw_cluster
from reconciler.simulator.drills.judgement.verdict_oracle import better_copy
from reconciler.verdicts import Copy, JoinedRow, Verdict, join
from tests.reconciler.simulator.drills.counting import counted

SEEDS = 20


def test_sound_verdicts_and_gates_are_what_the_oracles_say_and_a_seed_always_plays_the_same() -> None:
    first = counted(drill_judgement, 2, 40)
    assert first == counted(drill_judgement, 2, 40)
    assert first["drill_verdict OK"] and first["drill_verdict STALE_ID"]


def test_every_verdict_and_every_gate_is_come_to() -> None:
    reached = counted(drill_judgement, SEEDS, 40)
    assert {f"drill_verdict {each}" for each in Verdict} | {f"drill_gate {each}" for each in Gate} == reached.keys()


def test_the_same_chance_draws_the_same_cluster() -> None:
    one, other = draw_cluster(Random(7)), draw_cluster(Random(7))
    assert one == other != draw_cluster(Random(8))


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda patch: patch.setattr(join, "doubt_of", lambda *_: None), "in doubt none, and"),
        (lambda patch: patch.setattr(join, "_absent", lambda wanted, *_: JoinedRow(wanted=True)), "the absent"),
        (lambda patch: patch.setattr(gates, "_of_candidates", lambda _: iter(())), "are open that should be shut"),
        (lambda patch: patch.setattr(gate_inputs, "went_back", lambda *_: "it did"), "went-back are shut"),
        (lambda patch: patch.setattr(gate_inputs, "_nodes", lambda _: frozenset(range(5))), "broker are open"),
        (lambda patch: patch.setattr(PolicyRules, "keeping", lambda *_: None), "stage and stage_stray"),
        (lambda patch: patch.setattr(proposal, "epoch_above", lambda *_: None), "write_topic_id"),
        (lambda patch: patch.setattr(drilling, "wanted_again", lambda *_: {}), "wanted again"),
        (lambda patch: patch.setattr(drilling, "rank_copies", lambda *_: "nobody knows"), "the best is None"),
    ],
    ids=["doubt", "absent", "candidates", "went-back", "broker", "holds", "epochs", "wanted again", "copies"],
)
def test_a_mistake_is_noticed(
    mistake: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with pytest.raises(BrokenInvariantError, match=said):
        counted(drill_judgement, SEEDS, 40)


def test_the_better_copy_is_the_one_that_surely_wins_against_each_other_one() -> None:
    late, long = Copy("late", "a", 5, 1, False), Copy("long", "a", 4, 9, True)
    unread, same = Copy("unread", "a", None, 9, True), Copy("same", "a", 5, 1, False)
    assert better_copy([long, late], "a") is late
    assert better_copy([late, unread], "a") is None
    assert better_copy([late, same], "a") is None
    assert better_copy([late, Copy("of another topic", "b", 9, 9, True)], "a") is late
    assert better_copy([late, Copy("of another topic", "b", 9, 9, True)], "") is None
