"""Every page is there, is listed, and can be told from a command."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from reconciler.cli import guide, logstore
from reconciler.cli.guide import RUNBOOKS, TOPICS, GuidePage, read_page


@pytest.mark.parametrize(("folder", "listed"), [("topics", TOPICS), ("runbooks", RUNBOOKS)])
def test_every_page_is_listed_and_every_one_that_is_listed_is_there(folder: str, listed: tuple[str, ...]) -> None:
    found = [path.stem for path in Path(guide.__path__[0], folder).glob("*.md")]
    assert sorted(found) == sorted(listed)


@pytest.mark.parametrize("name", [*TOPICS, *RUNBOOKS])
def test_a_page_begins_with_its_title(name: str) -> None:
    page = read_page(name)
    assert page.text.startswith(f"# {page.title}\n\n")
    assert 10 < len(page.title) < 64


def test_no_topic_has_the_name_of_a_command() -> None:
    assert isinstance(logstore, click.Group)
    assert not {*TOPICS, *RUNBOOKS} & set(logstore.list_commands(click.Context(logstore)))


def test_a_page_is_its_name_and_its_text() -> None:
    assert GuidePage("a", "# What it is\n\nText.\n").title == "What it is"
