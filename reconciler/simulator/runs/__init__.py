"""Histories of whole clusters: from a seed, or from a scenario that a person wrote."""

from reconciler.simulator.runs.coverage import unreached
from reconciler.simulator.runs.scenario import Scenario, parse_scenario, shipped_scenarios
from reconciler.simulator.runs.shrink import shortest_failure
from reconciler.simulator.runs.simulation import (
    METADATA_FOLDER,
    RunOutcome,
    history_settings,
    play_scenario,
    simulate,
)
from reconciler.simulator.runs.swarm import NOTHING, LeftOut

__all__ = [
    "METADATA_FOLDER",
    "NOTHING",
    "LeftOut",
    "RunOutcome",
    "Scenario",
    "history_settings",
    "parse_scenario",
    "play_scenario",
    "shipped_scenarios",
    "shortest_failure",
    "simulate",
    "unreached",
]
