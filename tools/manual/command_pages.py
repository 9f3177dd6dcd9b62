"""Reads from click what the page of a command says, for whatever renders it: a man page, or a page of the book."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import cleandoc

import click

from reconciler.cli import logstore

_AS_IT_STANDS = "\b"
"""By this a text of click says that a paragraph is not filled."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines that are not filled, under a title: examples, most of all."""

    title: str
    lines: Sequence[str]


Text = str | Listing
"""A paragraph that is filled, or lines that are not."""


@dataclass(frozen=True, slots=True)
class CommandPage:
    """What ``--help`` says of one command."""

    command: str
    """As it is typed: ``logstore namespace create``."""

    line: str
    """What it does, in one line."""

    usage: str
    """Its options and arguments, as they follow the command."""

    description: Sequence[Text]
    options: Sequence[tuple[str, str]]
    """Names and values of an option → what it does."""

    below: Sequence[tuple[str, str]]
    """The commands in it, as they are typed → what each does in one line."""

    epilog: Sequence[Text]

    @property
    def name(self) -> str:
        """The name of its page: ``logstore-namespace-create``."""
        return self.command.replace(" ", "-")


def command_pages() -> Iterator[CommandPage]:
    """Yield the page of ``logstore`` and of each command in it, a group before what is in it."""
    context = click.Context(logstore, info_name="logstore", **logstore.context_settings)
    yield from _pages(context, "Look after the disks of Kafka-style brokers.")


def _pages(context: click.Context, line: str) -> Iterator[CommandPage]:
    command, below = context.command, list(_below(context))
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    yield CommandPage(
        context.command_path,
        line,
        " ".join(command.collect_usage_pieces(context)),
        tuple(_texts(cleandoc(command.help or ""))),
        tuple(record for record in records if record is not None and record[1]),
        tuple((each.command_path, its_line) for each, its_line in below),
        tuple(_texts(cleandoc(command.epilog or ""))),
    )
    for each, its_line in below:
        yield from _pages(each, its_line)


def _below(context: click.Context) -> Iterator[tuple[click.Context, str]]:
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None, name
            yield click.Context(command, parent=context, info_name=name), command.get_short_help_str(200)


def _texts(text: str) -> Iterator[Text]:
    """Yield the paragraphs of a text of click; one that is not filled and has a title is a listing."""
    for paragraph in re.split(r"\n\s*\n", text):
        kept = paragraph.startswith(_AS_IT_STANDS)
        first, *lines = paragraph.removeprefix(_AS_IT_STANDS).lstrip("\n").splitlines() or [""]
        if kept and lines and first.endswith(":"):
            yield Listing(first.removesuffix(":"), cleandoc("\n".join(lines)).splitlines())
        elif first:
            yield " ".join([first, *lines])
