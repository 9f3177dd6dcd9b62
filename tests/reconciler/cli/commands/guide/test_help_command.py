"""``logstore help``: pages, commands, and what is near a topic that does not exist."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable

import pytest
from click.testing import Result

from reconciler.cli.guide import TOPICS, read_page

Run = Callable[..., Result]


def test_without_a_topic_every_topic_is_listed_with_its_line(run: Run) -> None:
    shown = run("help")
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.output.splitlines() if line.startswith("  ")] == list(TOPICS)
    assert all(read_page(name).title in shown.output for name in TOPICS)
    assert max(map(len, shown.output.splitlines())) <= 80


def test_a_topic_is_shown_in_whatever_case_it_is_typed(run: Run) -> None:
    shown = run("help", "Exit-Codes")
    assert (shown.exit_code, shown.output) == (0, run("help", "exit-codes").output)
    assert shown.output.startswith("Exit codes, and the variables it reads\n======")


@pytest.mark.parametrize("words", [("audit",), ("namespace",), ("namespace", "create")])
def test_a_command_is_explained_as_by_its_own_option(run: Run, words: tuple[str, ...]) -> None:
    shown = run("help", *words)
    assert (shown.exit_code, shown.output) == (0, run(*words, "--help").output)


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        (["sorces"], "did you mean sources?"),
        (["metadata"], "did you mean sources?"),
        (["adit"], "did you mean audit?"),
        (["namespace", "crate"], "did you mean namespace or namespaces?"),
    ],
)
def test_a_topic_that_does_not_exist_names_the_nearest(run: Run, typed: list[str], near: str) -> None:
    shown = run("help", *typed)
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert near in shown.stderr


def test_what_is_near_nothing_names_the_list(run: Run) -> None:
    shown = run("help", "xyzzy")
    assert (shown.exit_code, "did you mean" in shown.stderr) == (2, False)
    assert "'logstore help' lists all topics" in shown.stderr


def test_a_terminal_gets_a_page_through_its_pager() -> None:
    controller, terminal = pty.openpty()
    environment = dict(os.environ) | {"PAGER": "sed s/^/paged:/", "TERM": "xterm", "COLUMNS": "60", "LINES": "24"}
    command = [sys.executable, "-m", "reconciler.cli", "help", "exit-codes"]
    ran = subprocess.Popen(command, stdin=terminal, stdout=terminal, env=environment)
    os.close(terminal)
    shown = b""
    try:
        while part := os.read(controller, 65536):
            shown += part
    except OSError:  # how Linux says that the other end of a terminal is closed
        pass
    assert ran.wait() == 0
    os.close(controller)
    lines = shown.decode().splitlines()
    assert all(line.startswith("paged:") for line in lines)
    assert max(map(len, lines)) <= 60 + len("paged:")
    assert "Exit codes" in lines[0]
