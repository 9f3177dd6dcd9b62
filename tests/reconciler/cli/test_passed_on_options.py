"""What the operator said of the broker reaches every command that is printed later, whichever verb prints it."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from reconciler.cli import logstore
from reconciler.desired import DesiredBuilder, MetadataIdentity
from reconciler.sources import parquet
from tests.reconciler.cli.conftest import CLUSTER, ORDERS, Cluster, long_written

Run = Callable[..., Result]
SILENT = {"scan", "watch", "where", "diff", "simulate", "reconcile", "convert", "namespace", "topic-ids"}
SILENT |= {"help", "runbook", "completion", "policy"}  # of pages, which know no disks, and of a file
"""Verbs that print no command which asks about a start, or whose log dirs are no real broker's."""


def printed(text: str) -> list[list[str]]:
    """The commands of this program in an output, whole, without those that only take back a change of a file."""
    joined = re.sub(r" \\\n\s*", " ", text)
    found = re.findall(r"(?:^ +|[Nn]ext: |the same: )(logstore .*)$", joined, re.MULTILINE)
    return [shlex.split(each)[1:] for each in found if " --undo " not in each]


def live_metadata(folder: Path) -> str:
    """Metadata of this moment, which wants ``orders-0`` and ``orders-1`` on both brokers."""
    builder = DesiredBuilder()
    for partition in range(2):
        builder.partition("orders", str(ORDERS), partition, [1, 2], isr=[1, 2], leader=1)
    identity = MetadataIdentity("kraft", "x", CLUSTER, timestamp_ms=time.time_ns() // 1_000_000)
    folder.mkdir()
    parquet.save_state(builder.build(identity), str(folder))
    return str(folder)


@pytest.fixture
def broken(cluster: Cluster, tmp_path: Path) -> list[str]:
    """Broker 2 with a stale replica, one that is not assigned, a stray, and a damaged checkpoint; how it is asked."""
    home = cluster.log_dir(2)
    (home / f"orders-9.{'0' * 32}-stray").mkdir()
    (home / "orders-7").mkdir()
    for name in (f"orders-9.{'0' * 32}-stray", "orders-7"):
        (home / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {ORDERS}")
    (home / "recovery-point-offset-checkpoint").write_text("0\n2\norders 0 5\n")
    long_written(home)
    (tmp_path / "spare").mkdir()
    return [str(home), "--metadata", live_metadata(tmp_path / "fresh")]


def told(tmp_path: Path) -> list[str]:
    spare = str(tmp_path / "spare")
    elsewhere = str(tmp_path / "disks" / "broker-2")
    (tmp_path / "policy.toml").write_text("foreign = ['lost+found']\n", encoding="utf-8")
    policy = ["--policy", str(tmp_path / "policy.toml")]
    return ["--kafka", "3.7.1", "--mode", "kraft", "--metadata-log-dir", elsewhere, "--spare-records", spare, *policy]


def test_no_command_from_the_first_to_the_last_drops_what_was_said_of_the_broker(
    broken: list[str], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = told(tmp_path)
    waiting, seen = [["doctor", *broken, *said]], list[list[str]]()
    while waiting and len(seen) < 20:
        command = waiting.pop(0)
        if command in seen or command[0] in SILENT:
            continue
        seen.append(command)
        result = run(*command, *(("--max-share", "100%") if command[0] == "plan" else ()))
        assert result.exit_code in (0, 1, 4), result.output
        following = printed(result.output)
        for each in following:
            assert [word for word in said if word not in each] == [], (command, each)
        waiting += following
    verbs = {command[0] for command in seen}
    assert {"doctor", "repair", "plan", "apply", "preflight", "restore", "purge"} <= verbs, seen


@pytest.mark.parametrize("verb", ["audit", "staged", "explain"])
def test_a_verb_that_only_looks_passes_it_on_too(broken: list[str], run: Run, tmp_path: Path, verb: str) -> None:
    home, *metadata = broken
    asked = {"audit": [home, *metadata], "staged": [home], "explain": [f"{home}/orders-7", *metadata]}
    found = printed(run(verb, *asked[verb], *told(tmp_path)).output)
    assert found
    assert all(word in each for each in found for word in told(tmp_path))


@pytest.mark.parametrize("verb", sorted(set(logstore.list_commands(click.Context(logstore))) - SILENT))
def test_every_verb_that_prints_commands_takes_what_they_need(verb: str) -> None:
    command = logstore.get_command(click.Context(logstore), verb)
    assert command is not None
    taken = {option for parameter in command.params for option in parameter.opts}
    assert {"--kafka", "--mode", "--metadata-log-dir", "--spare-records", "--policy"} <= taken


def test_a_release_that_nobody_knows_is_refused_before_it_is_passed_on(broken: list[str], run: Run) -> None:
    refused = run("plan", *broken, "--kafka", "9.9")
    assert (refused.exit_code, "9.9" in refused.stderr, printed(refused.output)) == (2, True, [])
