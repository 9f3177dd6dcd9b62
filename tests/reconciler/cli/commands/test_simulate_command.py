"""``logstore simulate``: the history it prints, what it says of the end, and what it leaves."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.checks import convergence as rest
from reconciler.simulator.runs import shipped_scenarios

Run = Callable[..., Result]
KEPT = Path(__file__).with_name("kept_histories.txt").read_text(encoding="utf-8").splitlines()
"""Histories that broke a promise once, shrunk, each as the command that plays it."""
SMALL = ("--brokers", "3", "--steps", "60")


def test_the_same_seed_gives_the_same_history_and_another_one_another(run: Run) -> None:
    one, same, other = (run("simulate", "--seed", seed, *SMALL) for seed in ("4", "4", "5"))
    assert one.exit_code == 0, one.stderr
    assert "every promise was kept" in one.stderr
    assert one.stdout == same.stdout != other.stdout
    assert one.stdout.startswith("+000000.000s broker-1  disk-1/data is new, and is formatted\n")


def test_as_json_it_has_all_that_is_needed_to_play_it_again(run: Run) -> None:
    shown = json.loads(run("simulate", "--seed", "4", *SMALL, "--format", "json").stdout)
    assert (shown["schema_version"], shown["seed"], shown["steps"], shown["broken"]) == (1, 4, 60, None)
    assert len(shown["history"]) > 10 and shown["events"] > 60
    assert set(shown["faults"]) <= {*shown["faults"], "crash"}


@pytest.mark.parametrize("name", sorted(shipped_scenarios()))
def test_every_scenario_that_is_shipped_keeps_its_promises(run: Run, name: str) -> None:
    result = run("simulate", "--scenario", name)
    assert result.exit_code == 0, result.stderr
    assert "scenario  rest" in result.stdout


def test_a_history_with_krafts_placement_is_another_one_and_zookeepers_is_the_default(run: Run) -> None:
    kraft, zookeeper, default = (run("simulate", "--seed", "3", *SMALL, *more) for more in (
        ("--placement", "kraft"), ("--placement", "zookeeper"), (),
    ))  # fmt: skip
    assert (kraft.exit_code, zookeeper.exit_code) == (0, 0), kraft.stderr
    assert kraft.stdout != zookeeper.stdout == default.stdout


def test_the_placement_that_is_asked_for_goes_before_that_of_a_scenario(run: Run) -> None:
    result = run("simulate", "--scenario", "kraft-placement", "--placement", "zookeeper")
    assert result.exit_code == 1
    assert "replication factor 4 with 3 brokers" in result.stderr


def test_every_scenario_that_is_shipped_is_named_in_the_help(run: Run) -> None:
    text = run("simulate", "--help").stdout
    assert [name for name in shipped_scenarios() if name not in text] == []
    assert "[zookeeper|kraft]" in text


def test_the_disks_that_are_kept_can_be_audited_against_what_the_cluster_wanted(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    assert run("simulate", "--scenario", "reassigned-while-down", "--keep", str(kept)).exit_code == 0
    disks = sorted(map(str, kept.glob("broker-*/disk-*/data")))
    audited = run("audit", *disks, "--metadata", str(kept / "metadata"), "--format", "json")
    assert audited.exit_code == 0, audited.stderr
    assert set(json.loads(audited.stdout)["totals"]) == {"OK"}


def test_a_scenario_from_a_file_that_is_not_as_expected_names_the_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("brokers 2\ncreate orders 1 2\nexpect absent 1 orders-0\n")
    result = run("simulate", "--scenario", str(file))
    assert result.exit_code == 1
    assert "line 3, 'expect absent 1 orders-0'" in result.stderr


def test_a_broken_promise_gives_the_seed_and_the_shortest_beginning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(cluster: object, **_: object) -> None:
        lines = cluster.world.history.lines  # type: ignore[attr-defined]
        if any("deletes " in line for line in lines):
            raise BrokenInvariantError("somebody deleted a topic")

    monkeypatch.setattr("reconciler.simulator.runs.simulation.check_converged", check)
    assert rest.check_converged is not check
    result = run("simulate", "--seed", "4", "--brokers", "2", "--steps", "400", "--faults", "none", "--format", "json")
    assert result.exit_code == 1
    shown = json.loads(result.stdout)
    assert "somebody deleted a topic" in shown["broken"]
    assert 0 < shown["steps"] < 400
    assert f"seed 4: {shown['steps']} steps" in result.stderr
    again = shlex.split(result.stderr.splitlines()[-1])
    assert again[:2] == ["logstore", "simulate"] and "--without" in again and "--skip" in again
    once_more = run(*again[1:], "--format", "json")
    assert (once_more.exit_code, json.loads(once_more.stdout)["digest"]) == (1, shown["digest"])
    again[again.index("--steps") + 1] = str(shown["steps"] - 1)
    assert run(*again[1:]).exit_code == 0


@pytest.mark.parametrize("line", [line for line in KEPT if not line.startswith("#")])
def test_a_history_that_broke_a_promise_once_keeps_them_all(run: Run, line: str) -> None:
    result = run(*shlex.split(line)[1:])
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--scenario", "nowhere.txt"], "there is no such file; shipped are"),
        (["--faults", "rain=1"], "is no fault and its rate"),
        (["--without", "rain"], "cannot be left out of a history"),
        (["--skip", "some"], "is no action and no range of actions"),
        (["--keep", "FULL"], "is not empty"),
        (["--brokers", "0"], "range"),
        (["--placement", "raft"], "'raft' is not one of 'zookeeper', 'kraft'"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(run: Run, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    (tmp_path / "file").write_text("")
    result = run("simulate", *(str(tmp_path) if each == "FULL" else each for each in arguments))
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_a_scenario_that_cannot_be_read_tells_every_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("create orders\nwait long\nexpect live 9 orders-0 1\n")
    result = run("simulate", "--scenario", str(file))
    assert result.exit_code == 2
    assert "line 1" in result.stderr and "line 2" in result.stderr
