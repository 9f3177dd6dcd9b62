"""Makes a man page of every command and of every topic: ``logstore-audit(1)``, ``logstore-sources(7)``.

They say what ``--help`` and ``logstore help`` say, and nothing of their own. click-man makes such pages as well, but of
groups that load all their commands, without their examples, and without escaping what roff takes for its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from reconciler.cli.guide import RUNBOOKS, TOPICS, read_page
from tools.manual.command_pages import CommandPage, Listing, Text, command_pages
from tools.manual.roff import as_it_stands, bold, escaped, from_markdown, header, section_of


def man_pages() -> Iterator[tuple[str, str]]:
    """Yield the path of each page below a folder of man pages, and its roff."""
    for command in command_pages():
        yield f"man1/{command.name}.1", "\n".join(_page(command)) + "\n"
    for name in (*TOPICS, *RUNBOOKS):
        page = read_page(name)
        lines = [*header(f"logstore-{name}", 7, _version(), page.title), *from_markdown(page.text), *_see_also([])]
        yield f"man7/logstore-{name}.7", "\n".join(lines) + "\n"


def _page(page: CommandPage) -> Iterator[str]:
    yield from header(page.name, 1, _version(), page.line)
    yield from section_of("SYNOPSIS", [f"{bold(page.command)} {escaped(page.usage)}"])
    yield from section_of("DESCRIPTION", _texts(page.description))
    yield from section_of("OPTIONS", _tagged(page.options))
    if page.below:
        yield from section_of("COMMANDS", _tagged(page.below))
    yield from _texts(page.epilog)
    yield from _see_also([command for command, _ in page.below])


def _tagged(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (line for name, text in rows for line in (".TP", bold(name), escaped(text)))


def _texts(texts: Iterable[Text]) -> Iterator[str]:
    """Yield paragraphs; a listing becomes a section."""
    for each in texts:
        if isinstance(each, Listing):
            yield from section_of(each.title.upper(), as_it_stands(each.lines))
        else:
            yield from (".PP", escaped(each))


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
