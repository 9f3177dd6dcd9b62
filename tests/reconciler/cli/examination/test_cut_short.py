"""A change of many steps that is not finished: doctor says so before anything else, and how it comes to its end."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from layout.scheme import INTENT_FILE
from logstore.fs import Disk
from logstore.journal import INTENT_LIMIT
from logstore.log_dir import LogDir
from reconciler.cli.examination.cut_short import find_cut_short
from reconciler.cli.frame import warn_unfinished
from tests.logstore.changes import filled_disks

Run = Callable[..., Result]
CHANGES = {
    "namespaced": ("namespace", "rename", "orders", "purchases"),
    "by-topic-id": ("convert", "--to", "by-topic-id"),
}
"""The scheme that the log dirs have after a change, and its command."""


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Two disks of a broker with a topic."""
    return filled_disks(tmp_path)


def steps(result: Result) -> list[dict[str, Any]]:
    (broker,) = json.loads(result.stdout)["brokers"]
    found: list[dict[str, Any]] = broker["next"]
    return found


def cut_short(paths: list[Path], run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a change, and end the process when the first replica of the second disk has its turn."""

    def interrupted(disk: Disk, source: int, name: str, *to: Any) -> None:
        if name == "orders-1":
            raise KeyboardInterrupt
        rename(disk, source, name, *to)

    rename = Disk.rename
    with monkeypatch.context() as patched:
        patched.setattr(Disk, "rename", interrupted)
        assert run(*words, *paths).exit_code == 130


@pytest.mark.parametrize("scheme", list(CHANGES))
def test_doctor_names_the_command_that_finishes_what_was_cut_short_and_nothing_that_is_judged_by_half_of_it(
    paths: list[Path], run: Run, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    cut_short(paths, run, CHANGES[scheme], monkeypatch)
    finish, again = steps(run("doctor", *paths, "--json"))
    assert "a change of many steps was cut short" in finish["why"]
    assert finish["command"] == f"logstore convert {paths[0]} {paths[1]} --to {scheme}"
    assert again["command"] == f"logstore doctor {paths[0]} {paths[1]}"
    assert "how it comes to its end" in run("explain", paths[0]).stdout
    finished = run(*shlex.split(finish["command"])[1:])
    assert (finished.exit_code, "has been brought to its end" in finished.stderr) == (0, True)
    assert f"convert to the scheme {scheme}: there is nothing to do" in finished.stderr
    assert not any((path / INTENT_FILE).exists() for path in paths)
    assert all("cut short" not in step["why"] for step in steps(run("doctor", *paths, "--json")))
    assert "how it comes to its end" not in run("explain", paths[0]).stdout


@pytest.mark.parametrize("words", [("audit",), ("plan",), ("preflight",), ("repair",), ("staged",)])
def test_each_command_that_judges_what_it_finds_says_that_it_is_half_of_a_change(
    cluster, run: Run, words: tuple[str, ...]
) -> None:
    log_dir = cluster.log_dir(1)
    asked = () if words == ("staged",) else ("--metadata", cluster.metadata)
    said = "logstore: {}: a change of many steps is under way there, or was cut short"
    assert "a change of many steps" not in run(*words, log_dir, *asked).stderr
    (log_dir / INTENT_FILE).write_bytes(b"{}")
    assert said.format(log_dir) in run(*words, log_dir, *asked).stderr


def test_only_log_dirs_in_which_a_change_is_begun_are_warned_of(
    paths: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (paths[1] / INTENT_FILE).write_bytes(b"{}")
    warn_unfinished(map(str, paths))
    assert capsys.readouterr().err.count("logstore: ") == 1


def test_a_change_that_is_under_way_is_waited_for(paths: list[Path], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short(paths, run, CHANGES["namespaced"], monkeypatch)
    monkeypatch.setattr("reconciler.cli.examination.examined_broker.why_in_use", lambda _: "in use")
    waiting, again = steps(run("doctor", *paths, "--json"))
    assert "is under way" in waiting["why"] and "wait until nobody uses" in waiting["why"]
    assert (waiting["command"], again["command"]) == (None, f"logstore doctor {paths[0]} {paths[1]}")


def test_a_file_that_cannot_be_read_says_that_a_change_is_not_finished_all_the_same(
    paths: list[Path], run: Run
) -> None:
    assert find_cut_short([str(path) for path in paths]) is None
    (paths[1] / INTENT_FILE).write_bytes(b"{}")
    found = find_cut_short([str(path) for path in paths])
    assert found is not None
    with LogDir.open(str(paths[1])) as log_dir:
        assert (found.log_dirs, found.scheme) == ((str(paths[1]),), log_dir.scheme.value)
    assert found.sentence == "nobody can say which one"
    os.truncate(paths[1] / INTENT_FILE, INTENT_LIMIT + 1)  # it takes no room
    assert find_cut_short([str(path) for path in paths]) == found
    unread, again = steps(run("doctor", *paths, "--json"))
    assert f"by {paths[1]}/{INTENT_FILE}, which cannot be read" in unread["why"]
    assert unread["why"].count("cannot be read") == 1
    assert (unread["command"], again["command"]) == (None, f"logstore doctor {paths[0]} {paths[1]}")
