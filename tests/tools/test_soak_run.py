"""The runner of many histories: what it counts, what it reports of a seed that fails, and what it refuses."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future

import pytest

from reconciler.simulator.kernel import FaultRates
from reconciler.simulator.placement import Placement
from tools import soak_run


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


@pytest.mark.parametrize(
    "arguments", [[], ["1", "--seeds", "2"], ["0"], ["--seeds", "0"], ["--seeds", "1", "--jobs", "0"]]
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
