"""The parameters of ``logstore runbook``."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

from reconciler.cli.frame import Exit, carry_out
from reconciler.cli.guide import RUNBOOKS

_EPILOG = """\b
Examples:
  logstore runbook
  logstore runbook disk-full
"""


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(each) for each in RUNBOOKS if each.startswith(incomplete)]


@click.command("runbook", epilog=_EPILOG)
@click.argument("name", metavar="[NAME]", required=False, shell_complete=_complete)
def command(**given: Any) -> Exit:
    """Show the steps out of one kind of trouble, on a terminal through its pager, or list the runbooks.

    Each command of a runbook can be pasted once the log dirs and the metadata are filled in; what is special about the
    disks at hand, 'logstore doctor' prints on the way.

    Exit code 0: shown. 2: there is no such runbook; the nearest is named.
    """
    return carry_out("guide.runbook", given)
