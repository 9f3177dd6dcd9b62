"""The doctor's page: commands that are longer than a line stay commands."""

from __future__ import annotations

import subprocess

import pytest

from reconciler.cli.pages import broken, show_examination


@pytest.mark.parametrize("words", [3, 12, 60])
def test_a_long_command_is_broken_so_that_a_shell_joins_it_again(words: int) -> None:
    command = " ".join(["printf '%s\\n'".replace("'", ""), *(f"/disks/{number}/kafka" for number in range(words))])
    lines = broken(command)
    assert all(len(line) <= 80 for line in lines)
    joined = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    alone = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert joined.stdout == alone.stdout


def test_a_command_with_quotes_is_not_broken_within_a_word() -> None:
    command = f"logstore plan '{'a b ' * 40}'"
    assert broken(command) == [command]


def test_no_broker_is_an_empty_page(capsys: pytest.CaptureFixture[str]) -> None:
    show_examination([], None)
    assert capsys.readouterr().out == ""
