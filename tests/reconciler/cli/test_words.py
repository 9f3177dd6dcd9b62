"""What people read names nothing that they do not have: the documents of this project lie on no one else's machine."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from reconciler.cli import logstore
from reconciler.preflight.rules import RULES
from reconciler.verdicts import ADVICE
from reconciler.verdicts.advice import FLEET_ADVICE

ROOT = Path(__file__).parents[3]
UNKNOWN_TO_USERS = re.compile(r"\bFACTS\b|\bDESIGN\b|\bKIPS\b|\bUSERS\b|\bSTYLE\b|\bHOUSE\b|§|\brows? \d|KIP\d+-\d")


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command, and every command of a group, by the words that call it."""
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, (*words, name))


def texts(module: ast.Module) -> Iterator[str]:
    """The texts of a module that its program may show: all but the docstrings, which only those who read it see."""
    alone = {id(each.value) for each in ast.walk(module) if isinstance(each, ast.Expr)}
    for each in ast.walk(module):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in alone:
            yield each.value


@pytest.mark.parametrize("words", list(commands(logstore)), ids=" ".join)
def test_no_help_names_a_document_that_the_user_does_not_have(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(logstore, [*words, "--help"])
    assert shown.exit_code == 0
    assert UNKNOWN_TO_USERS.search(shown.output) is None, shown.output


@pytest.mark.parametrize("words", [words for words in commands(logstore) if words], ids=" ".join)
def test_every_help_shows_a_command_that_exists(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(logstore, [*words, "--help"]).output
    assert re.search(rf"Examples?:\n(.*\n)*?\s+logstore {' '.join(words)} ", shown), shown


@pytest.mark.parametrize("package", ["layout", "logstore", "reconciler"])
def test_no_text_of_the_program_names_one(package: str) -> None:
    named = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if UNKNOWN_TO_USERS.search(text)
    ]
    assert named == []


GUIDE = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "reconciler/cli/guide").rglob("*.md"))


@pytest.mark.parametrize("page", ["reconciler/audit/report/report.html.jinja", "README.md", *GUIDE])
def test_no_page_names_one(page: str) -> None:
    assert UNKNOWN_TO_USERS.search((ROOT / page).read_text(encoding="utf-8")) is None


def test_what_is_to_be_installed_is_what_the_project_asks_for() -> None:
    # The project itself is on no index, so that a message that named it would name a command that fails.
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = {match[1]: re.findall(r'"([^"]+)"', match[2]) for match in re.finditer(r"(\w+) = \[(.*)\]\n", project)}
    said = [
        shlex.split(command)
        for path in (ROOT / "reconciler").rglob("*.py")
        for command in re.findall(r"pip install ((?:'[^']+' ?)+)", path.read_text(encoding="utf-8"))
    ]
    connect = [each.replace("pyspark>", "pyspark[connect]>") for each in extras["spark"]]
    assert sorted(said) == sorted([extras["zookeeper"], extras["admin"], extras["spark"], connect])


def test_no_advice_and_no_rule_names_one() -> None:
    advice = [*ADVICE.values(), *FLEET_ADVICE.values()]
    said = [text for each in advice for text in (each.meaning, each.why)]
    assert [text for text in [*said, *RULES] if UNKNOWN_TO_USERS.search(text)] == []
