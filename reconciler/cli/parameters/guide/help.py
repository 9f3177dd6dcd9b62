"""The parameters of ``logstore help``."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

from reconciler.cli.frame import Exit, carry_out
from reconciler.cli.guide import TOPICS

_EPILOG = """\b
Examples:
  logstore help
  logstore help sources
  logstore help namespace create
"""


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    commands = ctx.find_root().command
    names = (*TOPICS, *(commands.list_commands(ctx) if isinstance(commands, click.Group) else ()))
    return [] if ctx.params.get("words") else [CompletionItem(each) for each in names if each.startswith(incomplete)]


@click.command("help", epilog=_EPILOG)
@click.argument("words", metavar="[TOPIC]...", nargs=-1, shell_complete=_complete)
def command(**given: Any) -> Exit:
    """Show the page of a topic, on a terminal through its pager, or list the topics where none is named.

    TOPIC is one of those that are listed, or a command, whose --help is shown.

    Exit code 0: shown. 2: there is no such topic; the nearest is named.
    """
    return carry_out("guide.help", given)
