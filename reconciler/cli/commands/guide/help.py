"""``logstore help``: shows the page of a topic, or the ``--help`` of a command."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

import click

from reconciler.cli.frame import Exit, open_page, show_text
from reconciler.cli.guide import RUNBOOKS, TOPICS, as_text, read_page
from reconciler.errors import UsageError


def run(*, words: tuple[str, ...]) -> Exit:
    """Show a page, the help of a command, or the list of topics."""
    if not words:
        list_pages("Topics", TOPICS, "'logstore help TOPIC' shows one of them, or what a command does.")
        return Exit.CLEAN
    found = _help_of_command(words)
    if found is not None:
        show_text(lambda width, styled: found)
        return Exit.CLEAN
    name = words[0].lower()
    if words[1:] or name not in (*TOPICS, *RUNBOOKS):
        raise UsageError(f"there is no topic {' '.join(words)!r}{_meant(words)}; 'logstore help' lists all topics")
    show_page(name)
    return Exit.CLEAN


def show_page(name: str) -> None:
    """Show the page of a topic or a runbook."""
    text = read_page(name).text
    show_text(lambda width, styled: as_text(text, width, styled=styled))


def list_pages(kind: str, names: Sequence[str], last: str) -> None:
    """List pages by their names and titles, and say how one is shown."""
    width = max(map(len, names))
    with open_page(None) as page:
        page.line(kind, "bold")
        for name in names:
            page.line(f"  {name:<{width}}  {read_page(name).title}", whole=True)
        page.line()
        page.line(last)


def _help_of_command(words: Sequence[str]) -> str | None:
    """Write the ``--help`` of the command that the words call; None: they call none."""
    context = click.get_current_context().find_root()
    for word in words:
        group = context.command
        below = group.get_command(context, word) if isinstance(group, click.Group) else None
        if below is None:
            return None
        context = click.Context(below, parent=context, info_name=word)
    return f"{context.get_help()}\n"


def _meant(words: Sequence[str]) -> str:
    near = list(_near(words[0].lower()))
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _near(word: str) -> Iterator[str]:
    """Yield names that are spelled alike; where there are none, topics whose titles have the word."""
    group = click.get_current_context().find_root().command
    commands = group.list_commands(click.get_current_context()) if isinstance(group, click.Group) else []
    near = difflib.get_close_matches(word, [*TOPICS, *RUNBOOKS, *commands])
    yield from near or (name for name in TOPICS if word in read_page(name).title.lower())
