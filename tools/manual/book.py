"""Makes the book: README, the pages of ``logstore help`` and runbooks, each command, and the Python API, as HTML.

Sphinx does it (``conf.py``) from pages that are written into a folder first. A link that leads nowhere is a failure,
and so is a docstring that cannot be read.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from sphinx.cmd.build import build_main

from reconciler.cli.guide import RUNBOOKS, TOPICS, read_page
from tools.manual.command_pages import CommandPage, Listing, Text, command_pages
from tools.manual.reference import reference_pages

ROOT = Path(__file__).resolve().parents[2]
_GUIDE = "reconciler/cli/guide/"
_NAMED_PAGE = re.compile(rf"(?<!\[)`logstore (?:help|runbook) ({'|'.join((*TOPICS, *RUNBOOKS))})`")
_SPECIAL = re.compile(r"[\\*`|_<>:]")


def sources() -> Iterator[tuple[str, str]]:
    """Yield the path of each page in Sphinx's folder of sources, and its Markdown or reStructuredText."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = readme.replace(f"]({_GUIDE}topics)", "](topics.rst)").replace(f"]({_GUIDE}", "](/")
    yield "index.md", _linked(readme) + "\n```{toctree}\n:hidden:\n\ntopics\nrunbooks\ncommands\npython\n```\n"
    for folder, title, names in (("topics", "Topics", TOPICS), ("runbooks", "Runbooks", RUNBOOKS)):
        yield f"{folder}.rst", _contents(title, (f"{folder}/{name}" for name in names))
        for name in names:
            yield f"{folder}/{name}.md", _linked(read_page(name).text)
    commands = list(command_pages())
    yield "commands.rst", _contents("Commands", (f"commands/{page.name}" for page in commands))
    for page in commands:
        yield f"commands/{page.name}.rst", "\n".join(_command(page)) + "\n"
    reference = dict(reference_pages())
    yield "python.rst", _contents("In Python", (f"python/{name}" for name in reference))
    for name, text in reference.items():
        yield f"python/{name}.rst", text


def _linked(markdown: str) -> str:
    """Make links of the pages that a text names by the command that shows them."""
    return _NAMED_PAGE.sub(lambda found: f"[{found[0]}](/{_folder(found[1])}/{found[1]}.md)", markdown)


def _folder(name: str) -> str:
    return "topics" if name in TOPICS else "runbooks"


def _contents(title: str, pages: Iterable[str]) -> str:
    return "\n".join(
        [*_titled(title, "="), ".. toctree::", "   :maxdepth: 1", "", *(f"   {page}" for page in pages), ""]
    )


def _titled(title: str, line: str) -> list[str]:
    return [title, line * len(title), ""]


def _command(page: CommandPage) -> Iterator[str]:
    yield from _titled(page.command, "=")
    yield from _code([f"{page.command} {page.usage}"])
    yield from _texts(page.description)
    if page.options:
        yield from (*_titled("Options", "-"), f".. program:: {page.command}", "")
        for names, text in page.options:
            yield from (f".. option:: {names}", "", f"   {_escaped(text)}", "")
    if page.below:
        yield from _titled("Commands", "-")
        for command, line in page.below:
            yield from (f":doc:`{command} <{command.replace(' ', '-')}>`", f"   {_escaped(line)}", "")
    yield from _texts(page.epilog)


def _texts(texts: Iterable[Text]) -> Iterator[str]:
    for each in texts:
        if isinstance(each, Listing):
            yield from (*_titled(each.title, "-"), *_code(each.lines))
        else:
            yield from (_escaped(each), "")


def _code(lines: Iterable[str]) -> Iterator[str]:
    yield from (".. code-block:: text", "", *(f"   {line}" for line in lines), "")


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)


def build(pages: Mapping[str, str], folder: str) -> int:
    """Let Sphinx make a folder of HTML from pages, by their path; return 0, or 1 where it warned of anything."""
    with TemporaryDirectory() as work:
        for path, text in pages.items():
            (Path(work) / "pages" / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(work) / "pages" / path).write_text(text, encoding="utf-8")
        strict = ["--fail-on-warning", "--keep-going", "--nitpicky", "--fresh-env", "--quiet", "--no-color"]
        configured = ["--conf-dir", str(Path(__file__).parent), "--doctree-dir", f"{work}/trees"]
        return build_main([*strict, *configured, f"{work}/pages", folder])


def main(arguments: Sequence[str]) -> int:
    """Write the book into a folder."""
    parser = argparse.ArgumentParser(prog="tools/book", description="Writes the book as HTML.")
    parser.add_argument("folder", nargs="?", default="build/book", help="where to write it; default: build/book")
    folder = Path(parser.parse_args(arguments).folder)
    failed = build(dict(sources()), str(folder))
    if not failed:
        print(f"wrote the book: {folder.absolute()}/index.html")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
