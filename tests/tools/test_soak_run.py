"""The runner of many histories: what it counts, what it reports of a seed that fails, and what it refuses."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from logstore.parallel import processors
from reconciler.simulator.kernel import FaultRates
from reconciler.simulator.placement import Placement
from reconciler.simulator.runs import LeftOut, RunOutcome
from tests.patience import PATIENCE_S, killed_at_last
from tools import soak_run
from tools.machine import ROOT


def test_every_mood_has_faults_that_can_be_read() -> None:
    for faults, _ in soak_run.MOODS.values():
        assert FaultRates.parse(faults) != FaultRates.none()


def test_a_seed_plays_in_a_mood_of_its_own_and_each_mood_with_both_placements() -> None:
    played = [soak_run.play((seed, 20, 3)) for seed in range(2 * len(soak_run.MOODS))]
    assert [(each.mood, each.placement) for each in played] == [
        (mood, placement) for placement in Placement for mood in soak_run.MOODS
    ]
    assert all(each.steps == 20 < each.events and each.broken is None for each in played)
    assert logging.getLogger("logstore").isEnabledFor(logging.WARNING), "else this process could not log any more"


def test_so_many_seeds_are_played_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak_run.main(["--seeds", "3", "--steps", "10", "--brokers", "2", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 seeds, 30 steps")
    assert "0 broke a promise" in out


def test_a_seed_that_fails_is_reported_with_the_command_that_plays_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = soak_run._options(["--seeds", "1"])
    soak_run._tell(soak_run.Played(5, "a bad day, durable", Placement.KRAFT, 17, 90, {}, "it is lost"), options)
    out = capsys.readouterr().out
    assert "seed 5, a bad day, durable: it is lost" in out
    assert "logstore simulate --seed 5 --steps 17 --brokers 5 --faults default --placement kraft --durable" in out


def test_a_soak_of_hours_plays_fresh_seeds_on_all_processors_and_says_what_it_saw(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = soak_run._options(["--hours", "0.5"])
    assert (options.minutes, options.jobs) == (30, processors())
    assert options.start > soak_run._options(["1"]).start == 0
    assert soak_run.main(["--hours", "0.00001", "--steps", "5", "--brokers", "2", "--jobs", "1", "--start", "7"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("seeds from 7 on, by 1 processes\n")
    reached = {"fault crash": 2, "fault loss": 1_000, "crash machine": 30, "crash disk": 41, "verdict OK": 9}
    failed = [soak_run.Played(seed, "a bad day", Placement.KRAFT, 1, 1, {}, "it is lost") for seed in (12, 9)]
    lines = list(soak_run._summary({"seeds": 4, "steps": 40, "events": 500}, reached, failed, 2.0))
    assert lines[:3] == [
        "4 seeds, 40 steps, 500 events in 2 s (250 events/s); 2 broke a promise",
        "1,002 faults; 30 crashes of machines, after which 41 disks had lost or kept what was not synced",
        "broken: seeds 9, 12",
    ]


def test_an_interrupt_ends_a_soak_in_order_with_what_it_has() -> None:
    command = [sys.executable, "-m", "tools.soak_run", "--hours", "1", "--steps", "5", "--brokers", "1", "--jobs", "1"]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    with killed_at_last(started) as soak:
        assert soak.stdout is not None and soak.stdout.readline().startswith("seeds from ")
        os.killpg(soak.pid, signal.SIGINT)
        out, err = soak.communicate(timeout=600)
    assert soak.returncode == 130, err
    assert re.match(r"\d+ seeds, \d+ steps, ", out) and "; 0 broke a promise" in out
    assert err == "interrupted: what is being played is played to its end\n"


def test_an_interrupt_while_its_process_starts_is_no_broken_promise() -> None:
    command = [sys.executable, "-m", "tools.soak_run", "--hours", "1", "--steps", "5", "--brokers", "1", "--jobs", "1"]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    with killed_at_last(started) as soak:
        while alive_in_session(soak.pid) < 3:  # itself, the one that cleans up, and the first that plays
            assert soak.poll() is None
        os.killpg(soak.pid, signal.SIGINT)
        out, err = soak.communicate(timeout=600)
    assert soak.returncode == 130, out + err
    assert "; 0 broke a promise" in out


def test_no_process_of_a_soak_outlives_the_one_that_was_killed() -> None:
    command = [sys.executable, "-m", "tools.soak_run", "--hours", "1", "--steps", "5", "--brokers", "1", "--jobs", "2"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True)
    with killed_at_last(started) as soak:
        assert soak.stdout is not None and soak.stdout.readline().startswith("seeds from ")
        while alive_in_session(soak.pid) < 3:
            assert soak.poll() is None
            time.sleep(0.1)
        soak.kill()
    until = time.monotonic() + PATIENCE_S
    while alive_in_session(soak.pid):
        assert time.monotonic() < until, "a process waits for work that nobody gives out"
        time.sleep(0.1)


def alive_in_session(session: int) -> int:
    """Count the processes of a session that have not ended."""
    fields = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            fields.append(stat.read_text().rpartition(") ")[2].split())
    return sum(state != "Z" and int(its_session) == session for state, _, _, its_session, *_ in fields)


def test_the_first_history_of_each_broken_promise_is_shrunk(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def simulated(seed: int, steps: int, settings: object) -> RunOutcome:
        return RunOutcome(seed, steps, "it is lost", (), "", promise="checks.look")

    def shrunk(failed: RunOutcome, settings: object) -> RunOutcome:
        return replace(failed, steps=3, left_out=LeftOut(frozenset({"crash"}), frozenset({0, 1})))

    monkeypatch.setattr(soak_run, "simulate", simulated)
    monkeypatch.setattr(soak_run, "shortest_failure", shrunk)
    failed = [
        soak_run.Played(seed, "a bad day", Placement.KRAFT, 17, 90, {}, "it is lost", promise)
        for seed, promise in ((8, "checks.look"), (5, "checks.look"), (3, ""))
    ]
    soak_run._tell_shrunk(failed, soak_run._options(["--seeds", "1"]))
    assert capsys.readouterr().out == (
        "the least of seed 5 that breaks a promise: it is lost\n    logstore simulate --seed 5 --steps 3 --brokers 5 "
        "--faults default --placement kraft --without crash --skip 0-1\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["1", "--seeds", "2"],
        ["1", "--hours", "2"],
        ["0"],
        ["--hours", "0"],
        ["--seeds", "0"],
        ["--seeds", "1", "--jobs", "0"],
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        soak_run.main(arguments)
    assert stopped.value.code == 2
    assert "tools/soak" in capsys.readouterr().err


def test_a_path_that_was_not_reached_is_named_and_fails_a_run_that_asked_for_every_path(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreached(reached: Mapping[str, int]) -> list[str]:
        return ["operation never"]

    monkeypatch.setattr(soak_run, "unreached", unreached)
    given = ["--seeds", "1", "--steps", "5", "--brokers", "2", "--jobs", "1"]
    assert soak_run.main(given) == 0
    assert soak_run.main([*given, "--every-path"]) == 1
    out = capsys.readouterr().out
    assert out.count("not reached, of what 1,000 seeds should reach: operation never") == 2
    assert "\nverdict: " in out and "\noperation: " in out


def test_a_bug_that_raises_fails_its_own_seed_and_says_where() -> None:
    bug: Future[soak_run.Played] = Future()
    try:
        raise KeyError("orders")
    except KeyError as error:
        bug.set_exception(error)
    (played,) = soak_run._ended({bug: (3, 10, 2)})
    assert (played.seed, played.steps, played.mood) == (3, 10, "bad machines")
    assert played.broken is not None and played.broken.startswith("KeyError: 'orders'\nTraceback")
    assert __file__ in played.broken
