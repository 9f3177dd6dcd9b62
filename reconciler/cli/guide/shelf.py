"""Finds the pages, which lie beside this module as Markdown and go with it into the wheel.

The first line of a page is its title, as ``# TITLE``, which ``logstore help`` lists. Loads nothing but the standard
library.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

TOPICS = (
    *("first-look", "cure", "fleet", "watching", "operate", "sources", "verdicts", "exit-codes", "install", "spark"),
    *("library", "simulator", "namespaces", "compatibility", "proposals", "house"),
)
"""The topics of ``logstore help``, in the order in which it lists them; none has the name of a command."""

RUNBOOKS = (
    *("disk-full", "broker-does-not-start", "strays-after-reassignment", "id-drift-after-restore"),
    "zookeeper-to-kraft",
)
"""The runbooks of ``logstore runbook``, in the order in which it lists them."""


@dataclass(frozen=True, slots=True)
class GuidePage:
    """One page, as it was written."""

    name: str
    text: str
    """Markdown: headings, paragraphs, lists, tables and fenced code, each of which names its language."""

    @property
    def title(self) -> str:
        """What the page is about, in one line."""
        return self.text.partition("\n")[0].removeprefix("# ")


def read_page(name: str) -> GuidePage:
    """Read the page of a topic or a runbook."""
    folder = "topics" if name in TOPICS else "runbooks"
    return GuidePage(name, (files(__package__) / folder / f"{name}.md").read_text(encoding="utf-8"))
