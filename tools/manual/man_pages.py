"""Makes a man page of every command and of every topic: ``logstore-audit(1)``, ``logstore-sources(7)``.

They say what ``--help`` and ``logstore help`` say, and nothing of their own. click-man makes such pages as well, but of
groups that load all their commands, without their examples, and without escaping what roff takes for its own.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from inspect import cleandoc
from pathlib import Path

import click

from reconciler.cli import logstore
from reconciler.cli.guide import RUNBOOKS, TOPICS, read_page
from tools.manual.roff import as_it_stands, bold, escaped, from_markdown, header, section_of

_AS_IT_STANDS = "\b"
"""By this a text of click says that a paragraph is not filled."""


def man_pages() -> Iterator[tuple[str, str]]:
    """Yield the path of each page below a folder of man pages, and its roff."""
    context = click.Context(logstore, info_name="logstore", **logstore.context_settings)
    yield from _commands(context, "Look after the disks of Kafka-style brokers.")
    for name in (*TOPICS, *RUNBOOKS):
        page = read_page(name)
        lines = [*header(f"logstore-{name}", 7, _version(), page.title), *from_markdown(page.text), *_see_also([])]
        yield f"man7/logstore-{name}.7", "\n".join(lines) + "\n"


def _commands(context: click.Context, line: str) -> Iterator[tuple[str, str]]:
    """Yield the page of a command, and of each below it."""
    below = list(_below(context))
    name = context.command_path.replace(" ", "-")
    yield f"man1/{name}.1", "\n".join(_page(context, name, line, [each.command_path for each, _ in below])) + "\n"
    for each, its_line in below:
        yield from _commands(each, its_line)


def _below(context: click.Context) -> Iterator[tuple[click.Context, str]]:
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None, name
            yield click.Context(command, parent=context, info_name=name), command.get_short_help_str(200)


def _page(context: click.Context, name: str, line: str, below: Sequence[str]) -> Iterator[str]:
    command = context.command
    yield from header(name, 1, _version(), line)
    usage = escaped(" ".join(command.collect_usage_pieces(context)))
    yield from section_of("SYNOPSIS", [f"{bold(context.command_path)} {usage}"])
    yield from section_of("DESCRIPTION", _paragraphs(cleandoc(command.help or "")))
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    options = [record for record in records if record is not None and record[1]]
    yield from section_of("OPTIONS", (line for names, text in options for line in (".TP", bold(names), escaped(text))))
    if isinstance(command, click.Group):
        lines = [(each.command_path, line) for each, line in _below(context)]
        yield from section_of("COMMANDS", (part for path, line in lines for part in (".TP", bold(path), escaped(line))))
    yield from _paragraphs(cleandoc(command.epilog or ""))
    yield from _see_also(below)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text of click; one that is not filled and has a title becomes a section."""
    for paragraph in re.split(r"\n\s*\n", text):
        kept = paragraph.startswith(_AS_IT_STANDS)
        first, *lines = paragraph.removeprefix(_AS_IT_STANDS).lstrip("\n").splitlines() or [""]
        if kept and lines and first.endswith(":"):
            yield from section_of(
                first.removesuffix(":").upper(), as_it_stands(cleandoc("\n".join(lines)).splitlines())
            )
        elif first:
            yield from (".PP", escaped(" ".join([first, *lines])))


def _see_also(commands: Sequence[str]) -> Iterator[str]:
    pages = [("logstore", 1), *((each.replace(" ", "-"), 1) for each in commands)]
    pages += [(f"logstore-{topic}", 7) for topic in (*TOPICS, *RUNBOOKS)]
    yield from section_of("SEE ALSO", [", ".join(f"{bold(name)}({section})" for name, section in pages)])


def _version() -> str:
    return version("kafka-logstore")


def main(arguments: Sequence[str]) -> int:
    """Write all pages below a folder."""
    parser = argparse.ArgumentParser(prog="tools/man", description="Writes the man pages of commands and topics.")
    parser.add_argument("folder", nargs="?", default="build/man", help="where to write them; default: build/man")
    folder = Path(parser.parse_args(arguments).folder)
    pages = dict(man_pages())
    for path, text in pages.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    print(f"wrote {len(pages)} man pages below {folder}: MANPATH={folder.absolute()} man logstore")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
