"""A history that fails is shrunk to what it needs for that, and plays again from the list of what is left out."""

from __future__ import annotations

import re

import pytest

from reconciler.errors import UsageError
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.kernel import FAULT_KINDS, FaultRates
from reconciler.simulator.runs import LeftOut, history_settings, shortest_failure, simulate, simulation
from reconciler.simulator.runs.swarm import FEATURES


def test_what_is_left_out_is_written_as_it_is_read() -> None:
    left_out = LeftOut.parse("crash, delete", "7,0-3,4")
    assert left_out == LeftOut(frozenset({"delete", "crash"}), frozenset({0, 1, 2, 3, 4, 7}))
    assert left_out.arguments == ("--without", "delete,crash", "--skip", "0-4,7")
    assert LeftOut.parse("", "") == LeftOut() and LeftOut().arguments == ()


@pytest.mark.parametrize(
    ("features", "actions", "sentence"),
    [
        ("delete,rain", "", "'rain' cannot be left out of a history: there are delete, grow"),
        ("", "3-1", "'3-1' is no action"),
        ("", "1,two", "'two' is no action"),
        ("", "1-2-3", "'1-2-3' is no action"),
    ],
)
def test_what_cannot_be_left_out_is_refused(features: str, actions: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        LeftOut.parse(features, actions)


def deeds(outcome: simulation.RunOutcome) -> list[str]:
    return [line.partition("admin  ")[2].partition(":")[0] for line in outcome.lines if " admin  " in line]


def test_an_action_that_is_left_out_changes_nothing_of_what_the_others_draw() -> None:
    settings = history_settings(2, FaultRates.none())
    every = deeds(simulate(37, 150, settings))
    others = deeds(simulate(37, 150, settings, left_out=LeftOut(actions=frozenset({0}))))
    assert every[0].startswith("creates ") and every[1:3] == others[:2]


def test_faults_and_features_that_are_left_out_do_not_happen() -> None:
    settings = history_settings(3, FaultRates.parse("default,crash=0.3"))
    left_out = LeftOut(frozenset({*FEATURES, *FAULT_KINDS}))
    outcome = simulate(37, 200, settings, left_out=left_out)
    assert simulate(37, 200, settings).faults != outcome.faults == {}
    assert {deed.partition(" ")[0] for deed in deeds(outcome)} == {"creates"}
    assert outcome.left_out is left_out


def test_a_failure_needs_no_more_than_what_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(cluster: Cluster, *, durable: bool) -> None:
        if any("admin  deletes" in line for line in cluster.world.history.lines):
            raise BrokenInvariantError(f"at event {cluster.world.events} somebody had deleted a topic")

    monkeypatch.setattr(simulation, "check_converged", check)
    settings = history_settings(1)
    (failed,) = [found for found in (simulate(seed, 150, settings) for seed in (21,)) if found.broken]
    least = shortest_failure(failed, settings)
    assert least.promise == failed.promise == "at event … somebody had deleted a topic"
    assert least.broken != failed.broken
    assert least.steps < failed.steps and least.faults == {}
    assert [deed.partition(" ")[0] for deed in deeds(least)] == ["deletes"]
    without = {*FEATURES, *(kind for kind in FAULT_KINDS if settings.rates.of(kind))} - {"delete"}
    assert least.left_out.features >= without
    again = simulate(21, least.steps, settings, left_out=LeftOut.parse(*least.left_out.arguments[1::2]))
    assert (again.digest, again.broken) == (least.digest, least.broken)
    assert simulate(21, least.steps - 1, settings, left_out=least.left_out).broken is None
