"""Completion of paths in a shell, for every parameter that its own help calls something on a disk."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

ON_DISK = frozenset({"LOG_DIR...", "PATH", "PLAN", "REQUEST", "SOURCE", "FILE", "DIR", "FOLDER", "BACKUP..."})
"""What ``--help`` calls the values that are paths, or may be."""


class PathText(click.types.StringParamType):
    """A text as it stands, which the shell completes as a path."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave the completion to the shell, which knows paths better."""
        return [CompletionItem(incomplete, type="file")]


def complete_paths(command: click.Command) -> None:
    """Let a shell complete the paths among the parameters of a command, and of the commands in it."""
    for parameter in command.params:
        if parameter.type is click.STRING and parameter.metavar in ON_DISK:
            parameter.type = PathText()
    if isinstance(command, click.Group):
        for below in command.commands.values():
            complete_paths(below)
