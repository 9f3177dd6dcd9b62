"""``logstore completion``: what it prints is read by the shell that it is for, and asks this program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_asks_this_program(run: Run, shell: str) -> None:
    shown = run("completion", shell)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert f"_LOGSTORE_COMPLETE={shell}_complete" in shown.stdout


def test_another_shell_is_a_usage_error(run: Run) -> None:
    assert run("completion", "csh").exit_code == 2


@pytest.mark.parametrize(
    ("typed", "answer", "open_end"),
    [("logstore pre", ["preflight"], False), ("logstore audit --metadata kafka", ["kafka:", "kafka-all:"], True)],
)
def test_bash_completes_by_it_and_leaves_no_space_after_a_prefix(
    run: Run, tmp_path: Path, typed: str, answer: list[str], open_end: bool
) -> None:
    (tmp_path / "script").write_text(run("completion", "bash").stdout)
    program = tmp_path / "logstore"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m reconciler.cli "$@"\n')
    program.chmod(0o755)
    # compopt works only while somebody types, so what it is called with is noted instead.
    session = f"""
        source {tmp_path}/script
        compopt() {{ [ "$2" != nospace ] || noted=open; }}
        COMP_WORDS=({typed}) COMP_CWORD=$(( $(set -- {typed}; echo $#) - 1 ))
        _logstore_completion logstore
        printf '%s\\n' "${{COMPREPLY[@]}}"
        echo "$noted"
    """
    environment = dict(os.environ) | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": os.getcwd()}
    ran = subprocess.run(["bash", "-c", session], env=environment, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [*answer, "open" if open_end else ""]
