"""Whole clusters and their histories: by a test, from a seed, or written by hand."""

from reconciler.simulator.runs.scenario import Scenario, parse, shipped
from reconciler.simulator.runs.simulation import METADATA, Outcome, play_scenario, settings_for, shortest, simulate

__all__ = [
    "METADATA",
    "Outcome",
    "Scenario",
    "parse",
    "play_scenario",
    "settings_for",
    "shipped",
    "shortest",
    "simulate",
]
