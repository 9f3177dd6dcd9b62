"""Whole clusters and their histories: by a test, from a seed, or written by hand."""

from reconciler.simulator.runs.scenario import Scenario, parse_scenario, shipped
from reconciler.simulator.runs.simulation import METADATA, RunOutcome, play_scenario, settings_for, shortest, simulate

__all__ = [
    "METADATA",
    "RunOutcome",
    "Scenario",
    "parse_scenario",
    "play_scenario",
    "settings_for",
    "shipped",
    "shortest",
    "simulate",
]
