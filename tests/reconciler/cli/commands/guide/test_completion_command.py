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


ALL = {"bash": "\x1b*", "zsh": "\x18a"}
"""Shell → the keys that put in all that may follow."""

START = {
    "bash": "",
    "zsh": """
        autoload -U compinit; compinit -u -D
        zle -C all complete-word _generic; bindkey '^Xa' all
        zstyle ':completion:all:*' insert yes; zstyle ':completion:all::::' completer _all_matches _complete
    """,
}
"""Shell → what makes it complete at all, and binds those keys."""

COMMAND = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a plan and disks, and in ``bin`` a ``logstore`` that completes as ours and notes its arguments."""
    program = tmp_path / "bin" / "logstore"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/sh
        [ -z "$_LOGSTORE_COMPLETE" ] || exec {sys.executable} -m reconciler.cli
        echo "$*" >>{tmp_path}/noted
        """
    )
    program.chmod(0o755)
    (tmp_path / "plan.json").write_text("")
    (tmp_path / "disks").mkdir()
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "PYTHONPATH": os.getcwd(), "LC_ALL": "C.UTF-8", "TERM": "dumb"}


def entered(home: Path, shell: str, keys: list[str]) -> list[str]:
    """The arguments that the program got, line by line, when somebody pressed these keys and then Enter."""
    spawn = [sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])", *COMMAND[shell]]
    lines = [*START[shell].splitlines(), f"source {home}/script", *keys, "exit", ""]
    ran = subprocess.run(
        spawn, input="\n".join(lines), cwd=home, env=environment(home), capture_output=True, text=True, check=False
    )
    assert (home / "noted").exists(), ran.stdout + ran.stderr
    return [line.strip() for line in (home / "noted").read_text().splitlines()]


@pytest.mark.parametrize("shell", ["bash", pytest.param("zsh", marks=pytest.mark.shells)])
def test_bash_and_zsh_complete_what_is_typed_and_set_no_space_after_a_prefix(run: Run, home: Path, shell: str) -> None:
    (home / "script").write_text(run("completion", shell).stdout)
    typed = {
        "logstore pre\t": "preflight",
        "logstore audit --metrics-t\t": "audit --metrics-topics",
        "logstore apply pl\t": "apply plan.json",
        f"logstore audit --metadata ka{ALL[shell]}": "audit --metadata kafka: kafka-all:",
        "logstore audit --metadata kra\tdi\t": "audit --metadata kraft:disks",
        "logstore audit --verdict mark\t": "audit --verdict marked_delete",
    }
    assert [line.removesuffix("/") for line in entered(home, shell, list(typed))] == list(typed.values())


@pytest.mark.shells
def test_fish_offers_what_may_follow(run: Run, home: Path) -> None:
    (home / "script").write_text(run("completion", "fish").stdout)
    offered = {
        "logstore pre": {"preflight"},
        "logstore audit --metrics-": {"--metrics-topics"},
        "logstore apply pl": {"plan.json"},
        "logstore audit --metadata ka": {"kafka:", "kafka-all:"},
        "logstore audit --metadata kraft:di": {"kraft:disks/"},
        "logstore audit --verdict mark": {"marked_delete"},
    }
    for typed, answer in offered.items():
        session = ["fish", "--no-config", "-c", f"source {home}/script; complete -C '{typed}'"]
        ran = subprocess.run(session, cwd=home, env=environment(home), capture_output=True, text=True, check=True)
        assert ({line.partition("\t")[0] for line in ran.stdout.splitlines()}, ran.stderr) == (answer, ""), typed
