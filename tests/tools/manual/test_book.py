"""The book: every page and every name of a door is in it, no warning is given, and its links lead somewhere."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import logstore
import reconciler
from reconciler.cli.guide import RUNBOOKS, TOPICS
from tools.manual.command_pages import command_pages

ROOT = Path(__file__).resolve().parents[3]


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own: Sphinx imports modules anew."""
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)


class Page(HTMLParser):
    """What a page of HTML has: the places in it that a link can name, its links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places.add(given.get("id", ""))
        if "href" in given:
            (self.links if tag == "a" else self.loaded).append(given["href"])
        if "src" in given:
            self.loaded.append(given["src"])


def test_the_book_has_every_page_is_built_without_a_warning_and_has_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    ran = run("-m", "tools.manual.book", tmp_path)
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", f"wrote the book: {tmp_path}/index.html\n")
    pages = {path: Page(path) for path in tmp_path.rglob("*.html")}
    wanted = {f"topics/{name}" for name in TOPICS} | {f"runbooks/{name}" for name in RUNBOOKS}
    wanted |= {f"commands/{page.name}" for page in command_pages()}
    assert {tmp_path / f"{name}.html" for name in wanted} <= set(pages)
    for door in (logstore, reconciler):
        reference = pages[tmp_path / "python" / f"{door.__name__}.html"]
        assert {f"{door.__name__}.{name}" for name in door.__all__} <= reference.places
    assert "layout.topic.TopicPartition" in pages[tmp_path / "python" / "layout.topic.html"].places
    for path, page in pages.items():
        assert not [each for each in page.loaded if "://" in each]
        for link in page.links:
            file, place = urldefrag(link)
            target = pages[(path.parent / file).resolve() if file else path]
            assert unquote(place) in target.places, f"{path}: {link}"


def test_what_leads_nowhere_and_a_docstring_that_cannot_be_read_are_failures(tmp_path: Path) -> None:
    pages = {
        "index.md": "# A\n\n[no page](b.md), [no place](c.md#d)\n\n```{toctree}\nc\ne\n```\n",
        "c.md": "# C\n",
        "e.rst": "E\n=\n\n:class:`logstore.NoSuchClass`, ``open\n",
    }
    ran = run("-c", f"import sys; from tools.manual.book import build; sys.exit(build({pages!r}, {str(tmp_path)!r}))")
    assert ran.returncode == 1
    for told in ("target not found: 'b.md'", "'d'", "logstore.NoSuchClass", "literal start-string without end-string"):
        assert told in ran.stderr
