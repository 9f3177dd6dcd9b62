"""README and the pages of ``logstore help``, and the fenced blocks in them, for the tests that run or check these."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from reconciler.cli.guide import RUNBOOKS, TOPICS, read_page

README = Path(__file__).resolve().parents[1] / "README.md"
PAGES = {"README": README.read_text(encoding="utf-8")} | {name: read_page(name).text for name in (*TOPICS, *RUNBOOKS)}
FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page that are written in a language."""
    return [textwrap.dedent(text) for kind, text in FENCED.findall(PAGES[page]) if kind == language]


def programs(with_text: str) -> list[str]:
    """The Python of every page that has this text."""
    return [text for page in PAGES for text in blocks(page, "python") if with_text in text]


def commands(page: str) -> list[str]:
    """The command lines of a page's shell blocks, comments left out."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [re.sub(r"\s{2,}#.*", "", line).strip() for line in lines if line.strip() and not line.startswith("#")]
