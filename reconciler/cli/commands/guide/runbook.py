"""``logstore runbook``: shows the steps out of one kind of trouble."""

from __future__ import annotations

import difflib

from reconciler.cli.commands.guide.help import list_pages, show_page
from reconciler.cli.frame import Exit
from reconciler.cli.guide import RUNBOOKS
from reconciler.errors import UsageError


def run(*, name: str | None) -> Exit:
    """Show a runbook, or list all of them."""
    if name is None:
        list_pages("Runbooks", RUNBOOKS, "'logstore runbook NAME' shows the steps of one of them.")
        return Exit.CLEAN
    if name not in RUNBOOKS:
        near = [each for each in RUNBOOKS if name in each] or difflib.get_close_matches(name, RUNBOOKS, cutoff=0.4)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(f"there is no runbook {name!r}{hint}; 'logstore runbook' lists all of them")
    show_page(name)
    return Exit.CLEAN
