"""A group of commands that loads each one when it is called, and lists them all without loading any.

Heavy imports (pyarrow, duckdb, rich) belong to the commands, so ``logstore --help`` costs no more than click does.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from reconciler.cli.frame.exits import sentences


class Commands(click.Group):
    """A group whose commands live in modules of their own, each in a variable called ``command``."""

    def __init__(self, *args: Any, commands_by_name: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        """Take the commands in the order of ``--help``: name → (module, one line of help)."""
        super().__init__(*args, **kwargs)
        self._modules = dict(commands_by_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which they were given."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None when there is none of that name."""
        if cmd_name not in self._modules:
            return None
        command: click.Command = importlib.import_module(self._modules[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by the lines that were given, which loads nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._modules.items()])

    def invoke(self, ctx: click.Context) -> None:
        """Run the command; what it returns is the exit code, and what it raises becomes a sentence and an exit code."""
        with sentences():
            code = super().invoke(ctx)
        ctx.exit(0 if code is None else int(code))
