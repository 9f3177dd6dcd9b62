"""Histories from seeds: the same byte for byte anywhere, every invariant holds, the shortest one that still fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from logstore import DELETE_DELAY, STALE_DELAY, ChangeFailedError
from reconciler.simulator.checks import BrokenInvariantError, Invariants
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.kernel import FaultRates
from reconciler.simulator.placement import Placement
from reconciler.simulator.runs import (
    METADATA_FOLDER,
    RunOutcome,
    history_settings,
    parse_scenario,
    play_scenario,
    simulate,
    simulation,
)
from reconciler.simulator.runs.shrink import shortest_beginning

REPOSITORY = Path(__file__).resolve().parents[4]

PLAY_AND_PRINT = """
import sys
from reconciler.simulator.runs.simulation import simulate
for seed in map(int, sys.argv[1:]):
    outcome = simulate(seed, 600)
    print(seed, outcome.broken, outcome.steps, outcome.events, outcome.simulated_ms, outcome.digest, outcome.faults)
    print("\\n".join(outcome.lines))
"""
"""A history with the default faults and five brokers, in a folder of its own, and all that is said of it."""


def run_elsewhere(hash_seed: str, *seeds: int) -> str:
    """Play histories in a process of its own, where hashes are drawn from another seed."""
    done = subprocess.run(
        [sys.executable, "-c", PLAY_AND_PRINT, *map(str, seeds)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_same_seeds_give_the_same_histories_byte_for_byte_in_any_process_and_folder() -> None:
    one = run_elsewhere("1", 11, 12, 13, 14)
    assert one == run_elsewhere("4242", 11, 12, 13, 14)
    for seed in (11, 12, 13, 14):
        assert f"\n{seed} None 600 " in f"\n{one}"
    assert "crash" in one and "logstore-simulated" not in one


def test_another_seed_gives_another_history() -> None:
    assert simulate(21, 100).digest != simulate(22, 100).digest


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("rates", ["default", "default,double=0.3,reorder=0.3,crash=0.02", "default,disk_full=0.05"])
def test_histories_keep_every_invariant(rates: str, durable: bool) -> None:
    settings = history_settings(5, FaultRates.parse(rates), durable=durable)
    for seed in range(200, 204):
        outcome = simulate(seed, 400, settings)
        assert outcome.broken is None, f"seed {seed}: {outcome.broken}"
        assert outcome.steps == 400 < outcome.events
        assert sum(outcome.faults.values()) > 0
        assert outcome.simulated_ms > 10_000


def test_histories_with_krafts_placement_keep_every_invariant_and_place_replicas_otherwise() -> None:
    settings = history_settings(5, placement=Placement.KRAFT)
    assert settings.controller.placement is Placement.KRAFT
    alike = 0
    for seed in range(204, 208):
        outcome = simulate(seed, 400, settings)
        assert outcome.broken is None, f"seed {seed}: {outcome.broken}"
        assert outcome.digest == simulate(seed, 400, settings).digest
        alike += outcome.digest == simulate(seed, 400).digest
    assert alike <= 1, "only a history that places hardly anything may be the same by both rules"


def test_a_history_is_audited_again_and_again_in_its_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    audited: list[int] = []

    def noted(cluster: Cluster) -> None:
        audited.append(cluster.world.events)

    monkeypatch.setattr(simulation, "check_audit", noted)
    assert simulate(31, 220, history_settings(3)).broken is None
    assert [each - audited[0] for each in audited] == [0, 50, 100, 150]


def test_a_durable_history_syncs_each_record_loses_no_disk_and_looks_for_every_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = history_settings(durable=True)
    assert (settings.broker.flush_records, settings.rates.disk_replaced) == (1, 0.0)
    assert settings.broker.delays.of("orders", STALE_DELAY) > settings.broker.delays.of("orders", DELETE_DELAY)
    asked: list[bool] = []
    monkeypatch.setattr(simulation, "check_converged", lambda cluster, *, durable: asked.append(durable))
    simulate(32, 20, settings)
    simulate(32, 20, history_settings())
    assert asked == [True, False]


@pytest.mark.parametrize(
    ("error", "said"),
    [(BrokenInvariantError("planted"), "planted"), (ChangeFailedError("the disk says no"), "the disk says no")],
)
def test_a_history_that_fails_says_why_and_after_how_many_steps(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def look(invariants: Invariants, *, everywhere: bool = False) -> None:
        invariants.looks += 1
        if invariants._cluster.consumer.seen or len(invariants._cluster.world.history.lines) > 60:
            raise error

    monkeypatch.setattr(Invariants, "look", look)
    outcome = simulate(33, 500, history_settings(3))
    assert outcome.broken == said
    assert 0 < outcome.steps < 500


def fails_with(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Plant a bug that shows at rest alone: a history in which something was said fails."""

    def check(cluster: Cluster, *, durable: bool) -> None:
        if any(text in line for line in cluster.world.history.lines):
            raise BrokenInvariantError(f"{text!r} was said")

    monkeypatch.setattr(simulation, "check_converged", check)


def test_the_shortest_beginning_of_a_history_that_fails_at_rest_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with(monkeypatch, "admin  deletes")
    settings = history_settings(3, FaultRates.none())
    failed = simulate(54, 400, settings)
    assert (failed.steps, failed.broken) == (400, "'admin  deletes' was said")
    short = shortest_beginning(failed, settings)
    assert 0 < short.steps < 400
    assert short.broken == failed.broken
    assert simulate(54, short.steps - 1, settings).broken is None
    assert simulate(54, short.steps, settings).digest == short.digest


def test_a_shorter_beginning_that_fails_at_rest_is_found_where_the_history_broke_off_in_its_middle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fails_with(monkeypatch, "admin  deletes")
    look = Invariants.look

    def breaks_off(invariants: Invariants, *, everywhere: bool = False) -> None:
        look(invariants, everywhere=everywhere)
        if sum("admin" in line for line in invariants._cluster.world.history.lines) > 5:
            raise BrokenInvariantError("too many deeds")

    monkeypatch.setattr(Invariants, "look", breaks_off)
    settings = history_settings(3, FaultRates.none())
    failed = simulate(54, 2_000, settings)
    assert failed.broken == "too many deeds" and failed.steps < 2_000
    short = shortest_beginning(failed, settings)
    assert short.broken == "'admin  deletes' was said"
    assert simulate(54, short.steps - 1, settings).broken is None


def test_a_history_that_fails_from_its_first_step_has_no_steps_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with(monkeypatch, "broker-1")
    settings = history_settings(2, FaultRates.none())
    assert shortest_beginning(simulate(35, 50, settings), settings).steps == 0


def test_a_scenario_that_is_played_gives_an_outcome_like_a_history(tmp_path: Path) -> None:
    scenario = parse_scenario("brokers 2\nlog-dirs 1\ncreate orders 1 2\nexpect live 1 orders-0 1\nrest\n", "small")
    outcome = play_scenario(scenario, 3, folder=str(tmp_path / "kept"))
    assert isinstance(outcome, RunOutcome)
    assert (outcome.broken, outcome.steps, outcome.faults, outcome.seed) == (None, 3, {}, 3)
    assert (tmp_path / "kept" / METADATA_FOLDER).is_dir()
    assert outcome.digest == play_scenario(scenario, 3).digest
    assert (tmp_path / "kept" / "broker-2" / "disk-1" / "data" / "orders-0").is_dir()
    broken = play_scenario(parse_scenario("create orders 1 1\nexpect records orders 1", "small"))
    assert str(broken.broken).startswith("small, line 2, 'expect records orders 1': 0 records can be read")
