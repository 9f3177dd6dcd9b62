"""``logstore simulate``: runs a controller and brokers in one process, with faults from a seed, or plays a scenario.

:mod:`reconciler.simulator` does the work. The history goes to standard output, the outcome to standard error. Disks lie
in memory where there is room for them, and are gone afterwards unless ``--keep`` names a folder.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from logstore import UnreadableFileError
from logstore.fs import read_small_file
from reconciler.cli.frame import (
    Exit,
    Format,
    check_output,
    destination,
    say,
    say_step,
    warn,
)
from reconciler.errors import UsageError
from reconciler.next_steps import Call, Command, Step
from reconciler.simulator.kernel import FaultRates
from reconciler.simulator.placement import Placement
from reconciler.simulator.runs import (
    METADATA_FOLDER,
    LeftOut,
    RunOutcome,
    Scenario,
    history_settings,
    parse_scenario,
    play_scenario,
    shipped_scenarios,
    shortest_failure,
    simulate,
)
from reconciler.text import count

SCHEMA_VERSION = 1
"""Version of the JSON; raised whenever a field changes its meaning or goes."""


def run(
    *,
    form: str,
    output: str | None,
    seed: int,
    brokers: int,
    steps: int,
    faults: str,
    durable: bool,
    placement: str | None,
    without: str,
    skip: str,
    scenario: str | None,
    keep: str | None,
) -> Exit:
    """Play one history of a simulated cluster, look at every event, bring it to rest, and check every disk."""
    check_output(Format(form), output, [])
    rates, left_out = FaultRates.parse(faults), LeftOut.parse(without, skip)
    asked = None if scenario is None else _scenario(scenario)
    folder = None if keep is None else _empty_folder(keep)
    rules = None if placement is None else Placement(placement)
    with _quiet("logstore", "reconciler"):
        if asked is not None:
            outcome = play_scenario(asked, seed, folder=folder, placement=rules)
        else:
            settings = history_settings(brokers, rates, durable=durable, placement=rules or Placement.ZOOKEEPER)
            outcome = simulate(seed, steps, settings, folder=folder, left_out=left_out)
            if outcome.broken is not None and keep is None:
                say(f"seed {seed} breaks a promise; looking for the least that still does")
                outcome = shortest_failure(outcome, settings)
    _write(outcome, Format(form), output)
    status = _say_outcome(outcome, keep)
    if status is Exit.FINDINGS and asked is None:
        chosen = ("--brokers", str(brokers), "--faults", faults, *(("--durable",) if durable else ()))
        again = (*chosen, *(() if placement is None else ("--placement", placement)), *outcome.left_out.arguments)
        words = ("--seed", str(seed), "--steps", str(outcome.steps), *again)
        say_step(Step("play it again", Command("simulate", words)))
    return status


@contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Silence the engine's own log meanwhile, because the history has the same facts."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _scenario(given: str) -> Scenario:
    known = shipped_scenarios()
    if given in known:
        return parse_scenario(known[given], given)
    try:
        data = read_small_file(given, 1 << 20)
    except UnreadableFileError as error:
        raise UsageError(f"{given} {error}") from error
    if data is None:
        raise UsageError(f"{given}: there is no such file; shipped are {', '.join(known)}")
    return parse_scenario(data.decode("utf-8", "replace"), given)


def _empty_folder(path: str) -> str:
    try:
        if os.path.lexists(path) and os.listdir(path):
            raise UsageError(f"{path} is not empty: name a folder that is, or is not there yet")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    return os.path.abspath(path)


def _write(outcome: RunOutcome, form: Format, output: str | None) -> None:
    with destination(output) as out:
        if form is Format.TABLE:
            out.write("".join(f"{line}\n" for line in outcome.lines).encode("utf-8", "surrogateescape"))
            return

        document = {
            "schema_version": SCHEMA_VERSION,
            "seed": outcome.seed,
            "steps": outcome.steps,
            "events": outcome.events,
            "simulated_ms": outcome.simulated_ms,
            "broken": outcome.broken,
            "digest": outcome.digest,
            "faults": dict(outcome.faults),
            "history": list(outcome.lines),
        }
        out.write(f"{json.dumps(document, indent=2)}\n".encode())


def _say_outcome(outcome: RunOutcome, keep: str | None) -> Exit:
    faults = ", ".join(f"{kind} {number}" for kind, number in outcome.faults.items()) or "none"
    say(
        f"seed {outcome.seed}: {count(outcome.steps, 'step')}, {count(outcome.events, 'event')} in all, "
        f"{outcome.simulated_ms / 1000:.0f} simulated seconds; faults: {faults}"
    )
    say(f"history {outcome.digest}")
    if keep is not None:
        look = Call((keep,), (f"{keep}/{METADATA_FOLDER}",)).audit()
        say_step(Step(f"the disks are in {keep}: look at them", look))
    if outcome.broken is None:
        say("every promise was kept")
        return Exit.CLEAN
    warn(f"BROKEN after {count(outcome.steps, 'step')}: {outcome.broken}")
    return Exit.FINDINGS
