"""``logstore convert`` from end to end. KIP516-12."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.logstore.changes import fill_store, lies, look, two_disks
from tests.logstore.engine import opened
from tests.reconciler.cli.conftest import make_log_dir

Run = Callable[..., Result]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Two disks of a broker with a topic, laid out flat."""
    paths = two_disks(tmp_path, "flat")
    with opened(*paths) as store:
        fill_store(store, "orders")
    return paths


def test_there_and_back(paths: list[Path], run: Run) -> None:
    before = look(paths)
    result = run("convert", *paths, "--to", "by-topic-id")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "convert to the scheme by-topic-id: done, 6 steps in 2 log dirs" in result.stderr
    assert lies(paths)[0].startswith("orders-0 in 51/")
    assert run("convert", *paths, "--to", "flat").exit_code == 0
    assert look(paths) == before


def test_where_standard_output_is_closed_only_what_would_be_shown_is_refused(
    paths: list[Path], run: Run, start: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    for refused in (("--dry-run",), ("--json",)):
        result = start("convert", *paths, "--to", "by-topic-id", *refused, preexec_fn=lambda: os.close(1))
        assert result.returncode == 2 and "standard output is closed" in result.stderr
    assert "there is nothing to do" in run("convert", *paths, "--to", "flat").stderr
    assert start("convert", *paths, "--to", "by-topic-id", preexec_fn=lambda: os.close(1)).returncode == 0


def test_a_dry_run_shows_the_steps_and_takes_none(paths: list[Path], run: Run) -> None:
    before = look(paths)
    document = json.loads(run("convert", *paths, "--to", "by-topic-id", "--dry-run", "--format", "json").stdout)
    assert [step["step"].split(" ")[0] for step in document["steps"]] == ["make", "rename", "rewrite"] * 2
    assert look(paths) == before


def test_what_has_the_scheme_already_is_left_alone(paths: list[Path], run: Run) -> None:
    result = run("convert", *paths, "--to", "flat")
    assert (result.exit_code, "there is nothing to do" in result.stderr) == (0, True)


def test_what_will_be_forgotten_is_said(paths: list[Path], run: Run) -> None:
    run("convert", *paths, "--to", "namespaced")
    run("namespace", "create", "org", *paths)
    result = run("convert", *paths, "--to", "flat", "--dry-run")
    assert "no topic is in org" in result.stderr


def test_refusals_and_bad_input_are_one_sentence(paths: list[Path], tmp_path: Path, run: Run) -> None:
    real = make_log_dir(tmp_path / "real", 1, {"orders-0": None})
    result = run("convert", real, "--to", "by-topic-id")
    assert (result.exit_code, "a real broker's log dir" in result.stderr) == (3, True)
    assert run("convert", *paths, "--to", "sideways").exit_code == 2
    assert run("convert", tmp_path / "nothing", "--to", "flat").exit_code == 2
    assert run("convert", *paths, "--to", "flat", "--dry-run", "-o", paths[0] / "x").exit_code == 2


def test_only_a_part_of_a_broker_that_is_in_another_scheme_is_seen(paths: list[Path], run: Run) -> None:
    assert run("convert", paths[0], "--to", "by-topic-id").exit_code == 0
    assert run("convert", *paths, "--to", "by-topic-id").exit_code == 0
    assert all(" in 51/" in each for each in lies(paths))
