"""``-q`` and ``-v``: in every verb, before its name and behind it, in both forms of log lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result

from reconciler.cli import logstore
from reconciler.cli.settings import (
    Level,
    Verbosity,
    add_verbosity,
    choose_log_format,
    choose_verbosity,
    is_said,
    verbosity,
)
from tests.logstore.changes import fill_store, two_disks
from tests.logstore.engine import opened
from tests.reconciler.cli.conftest import Cluster

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    choose_log_format("text")
    choose_verbosity(Verbosity.NORMAL)


def every_command(group: click.Group = logstore, name: str = "logstore") -> Iterator[tuple[str, click.Command]]:
    yield name, group
    context = click.Context(group)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        assert command is not None
        if isinstance(command, click.Group):
            yield from every_command(command, f"{name} {each}")
        else:
            yield f"{name} {each}", command


def test_every_command_has_both_and_no_other_option_takes_their_letters() -> None:
    for name, command in every_command():
        found = [option for parameter in command.params for option in parameter.opts]
        wanted = ["-q", "--quiet", "-v", "--verbose"]
        assert [option for option in found if option in wanted] == wanted, name


def test_an_option_of_its_own_is_kept_and_none_is_added_twice() -> None:
    command = click.Command("purge", params=[click.Option(["--quiet"], help="its own")])
    for _ in range(2):
        add_verbosity(command)
    assert [option.opts for option in command.params] == [["--quiet"], ["-v", "--verbose"]]


def test_what_is_said_by_which() -> None:
    said = {}
    for each in Verbosity:
        choose_verbosity(each)
        said[each.value] = [level.value for level in Level if is_said(level)]
    loud = ["warning", "error"]
    assert said == {"quiet": loud, "normal": ["info", *loud], "verbose": ["debug", "info", *loud]}


def test_verbose_says_what_is_read_and_for_how_long_and_quiet_not_even_what_comes_next(
    cluster: Cluster, run: Run
) -> None:
    asked = [*cluster.log_dirs, "--metadata", cluster.metadata]
    normal = run("audit", *asked)
    assert normal.exit_code == 1 and "Next: logstore plan " in normal.stderr
    for words in (["-v", "audit", *asked], ["audit", "-v", *asked], ["audit", *asked, "--verbose"]):
        verbose = run(*words)
        assert (verbose.exit_code, verbose.stdout) == (1, normal.stdout)
        found = verbose.stderr
        assert f"logstore: log dirs: {', '.join(cluster.log_dirs)}; " in found
        assert f"logstore: metadata is read from {cluster.metadata}, after 0." in found
        assert "logstore: scanning log dirs: 2 of 2, after " in found and "logstore: comparing: done after " in found
        assert found.splitlines()[0].startswith("logstore: settings are read from ")
        assert found.splitlines()[-1].startswith("logstore: ended with exit code 1, after ")
        assert "Next: logstore plan " in found
    for words in (["-q", "audit", *asked], ["audit", "-q", *asked], ["--quiet", "audit", *asked]):
        quiet = run(*words)
        assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (1, normal.stdout, "")
    assert "Next: logstore plan " in run("audit", *asked).stderr, "what was chosen is of one call alone"


def test_quiet_lets_warnings_and_errors_through(cluster: Cluster, run: Run) -> None:
    absent = cluster.folder / "absent"
    result = run("scan", "-q", cluster.log_dirs[0], absent)
    assert result.exit_code == 4
    assert (
        result.stderr.startswith(f"logstore: {absent}: there is no such directory") and result.stderr.count("\n") == 1
    )
    refused = run("-q", "plan", *cluster.log_dirs, "--metadata", cluster.metadata, "--max-share", "0%")
    assert refused.exit_code == 3 and "logstore: refused: " in refused.stderr
    assert "    logstore plan " in refused.stderr, "the command that opens the gate is a part of the refusal"
    assert run("audit", "-q", absent).stderr.startswith("logstore: ")


def test_verbose_in_json_is_a_level_of_its_own(cluster: Cluster, run: Run) -> None:
    result = run("--log-format", "json", "scan", "-v", cluster.log_dirs[0])
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert {line["level"] for line in lines} == {"debug"} and {line["fields"]["command"] for line in lines} == {"scan"}


def test_commands_in_a_group_take_them_in_each_place_and_say_what_is_locked(tmp_path: Path, run: Run) -> None:
    paths = two_disks(tmp_path)
    with opened(*paths) as store:
        fill_store(store, "orders")
    words = ["namespace", "create", "org", *paths, "--dry-run"]
    for place in range(3):
        result = run(*words[:place], "-v", *words[place:])
        assert [f"logstore: {path} is locked" in result.stderr for path in paths] == [True, True], place
        assert run(*words[:place], "-q", *words[place:]).stderr == ""


def test_both_at_once_are_refused_and_the_command_line_counts_more_than_a_setting(
    cluster: Cluster, tmp_path: Path, run: Run
) -> None:
    for words in (["-q", "scan", "-v"], ["scan", "-q", "-v"], ["-v", "-q", "scan"]):
        result = run(*words, cluster.log_dirs[0])
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--quiet and --verbose do not go together: leave one of them out" in result.stderr
    (tmp_path / "settings.toml").write_text("[scan]\nquiet = true\n")
    silent = run("--settings", tmp_path / "settings.toml", "scan", cluster.log_dirs[0])
    assert (silent.exit_code, silent.stderr, verbosity()) == (0, "", Verbosity.NORMAL)
    for words in (["-v", "scan"], ["scan", "-v"]):
        result = run("--settings", tmp_path / "settings.toml", *words, cluster.log_dirs[0])
        assert "settings.toml:2: quiet is " in result.stderr and result.exit_code == 0
