"""What a history counts of itself: it is the same each time, and the engine's own log is part of it."""

from __future__ import annotations

import logging

import pytest

from reconciler.simulator.kernel import FaultRates
from reconciler.simulator.runs import coverage, history_settings, simulate, unreached


def test_a_history_counts_operations_faults_verdicts_and_commands_the_same_each_time() -> None:
    outcome = simulate(51, 200)
    kinds = {each.partition(" ")[0] for each in outcome.reached}
    assert {"operation", "fault", "verdict", "command"} <= kinds
    assert outcome.reached == simulate(51, 200).reached
    assert {kind: outcome.reached[f"fault {kind}"] for kind in outcome.faults} == dict(outcome.faults)


def test_where_no_fault_happens_none_is_counted() -> None:
    reached = simulate(52, 100, history_settings(2, FaultRates.none())).reached
    faults = {each for each in reached if each.startswith("fault ")}
    assert reached and faults <= {"fault restart"}, "at its end a machine that an operator left off is switched on"


def test_the_ways_of_recovery_are_read_from_the_engines_log_while_a_history_is_played() -> None:
    reached: list[str] = []
    logger = logging.getLogger("logstore.store.recovery")
    with coverage.recoveries_counted(reached.append):
        logger.warning("%s: %s", "/data", "abc-delete was about to be created, and is removed")
        logger.warning("something that is no recovery")
    logger.warning("%s: %s", "/data", "abc-delete was about to be created, and is removed")
    assert reached == ["recovery draft_replica_removed"]


def test_what_was_not_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "EXPECTED", ("operation move", "verdict OK"))
    assert unreached({"verdict OK": 3}) == ["operation move"]
    assert unreached({"verdict OK": 3, "operation move": 1}) == []
