"""The group of commands: listed without loading anything, loaded when called."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from click.testing import Result

from reconciler.cli import logstore

Run = Callable[..., Result]
HEAVY = ("pyarrow", "duckdb", "rich", "jinja2", "pyspark", "orjson", "pandas")


def modules_after(*args: str) -> set[str]:
    """The top-level modules that a command line leaves loaded."""
    program = (
        "import sys\n"
        "from reconciler.cli import main\n"
        f"sys.argv = ['logstore', *{list(args)!r}]\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {line.split(".")[0] for line in answer.stderr.splitlines()}


@pytest.mark.parametrize("args", [["--help"], ["--version"], [], ["nonsense"]])
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    assert not modules_after(*args) & set(HEAVY)


@pytest.mark.parametrize("command", ["scan", "audit", "explain"])
def test_the_help_of_a_command_loads_nothing_heavy(command: str) -> None:
    assert not modules_after(command, "--help") & set(HEAVY)


@pytest.mark.parametrize("command", [["staged"], ["restore", "--all"], ["purge"]])
def test_what_works_on_staged_directories_alone_loads_nothing_heavy(command: list[str], cluster) -> None:
    assert not modules_after(*command, cluster.log_dirs[0]) & set(HEAVY)
    assert set(HEAVY) & modules_after("scan", cluster.log_dirs[0])


def test_help_lists_every_command_with_its_line_the_exit_codes_and_an_example(run: Run) -> None:
    text = run("--help").output
    for name in logstore.list_commands(None):
        command = logstore.get_command(None, name)
        assert " ".join(command.get_short_help_str(200).split()) in " ".join(text.split())
        assert re.search(rf"logstore {name} ([a-z]+ \S+ )?(/|zk|--)", text), "an example, of a group's command too"
    for line in ("0  clean", "1  findings", "2  usage", "3  refused", "4  partly failed"):
        assert line in text


@pytest.mark.parametrize("name", ["scan", "audit", "explain"])
def test_the_help_of_every_command_has_an_example(run: Run, name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"logstore {name} /" in result.output


def test_an_unknown_command_is_a_usage_error(run: Run) -> None:
    result = run("scna")
    assert (result.exit_code, "scna" in result.stderr) == (2, True)
