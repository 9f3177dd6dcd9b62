"""Help while a command is typed: the nearest name where one does not exist, and what a shell completes.

What other programs call something of ours counts as near: ``version``, ``-V`` and ``--ndjson``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
from click.shell_completion import CompletionItem


class SuggestingGroup(click.Group):
    """A group that names the nearest command where the one that was typed does not exist."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is named first, or say which one may be meant."""
        name, commands = args[0], self.list_commands(ctx)
        if name in commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        near = [_OTHER_WORDS[name]] if name in _OTHER_WORDS else difflib.get_close_matches(name, commands)
        raise click.UsageError(f"No such command {name!r}.{_did_you_mean(near)}", ctx)


_OTHER_WORDS = {"version": "--version", "-V": "--version"}
"""What other programs call an option of ours → the option."""


_NOT_A_CHOICE = re.compile(r"'(.*)' is not one of ")


@contextmanager
def options_suggested() -> Iterator[None]:
    """Suggest what may be meant by an unknown option, or by an unknown value of one.

    click compares the spellings of options alone, and takes --csv for --sizes; of values it lists all.
    """
    try:
        yield
    except click.NoSuchOption as error:
        options = [] if error.ctx is None else error.ctx.command.params
        known = {name: option for option in options for name in option.opts}
        chosen = getattr(getattr(known.get("--format"), "type", None), "choices", ())
        other = _OTHER_WORDS.get(error.option_name, "")
        near = error.possibilities or []
        if error.option_name.removeprefix("--") in chosen:
            near = [f"--format {error.option_name.removeprefix('--')}"]
        elif other in known:
            near = [other]
        message = f"No such option {error.option_name!r}.{_did_you_mean(near)}"
        raise click.NoSuchOption(error.option_name, message, ctx=error.ctx) from error
    except click.BadParameter as error:
        given = _NOT_A_CHOICE.match(error.message)
        if given is None or not isinstance(kind := getattr(error.param, "type", None), click.Choice):
            raise
        values = {str(getattr(each, "value", each)).casefold(): each for each in kind.choices}
        near = difflib.get_close_matches(given[1].casefold().replace("_", "-"), values)
        near = near or difflib.get_close_matches(given[1].casefold().replace("-", "_"), values)
        raise click.BadParameter(f"{error.message}{_did_you_mean(near)}", error.ctx, error.param) from error


def _did_you_mean(near: Sequence[str]) -> str:
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


ON_DISK = frozenset({"LOG_DIR...", "PATH", "PLAN", "REQUEST", "SOURCE", "FILE", "DIR", "FOLDER", "BACKUP..."})
"""What ``--help`` calls the values that are paths, or may be."""


class PathText(click.types.StringParamType):
    """A text as it stands, which the shell completes as a path."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave the completion to the shell, which knows paths better."""
        return [CompletionItem(incomplete, type="file")]


class SourceText(PathText):
    """A metadata source as it stands: the prefix of a kind is completed here, and a path by the shell."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the prefixes that may be meant, after a word that leaves the rest to the shell."""
        from reconciler.sources import SOURCES

        prefixes = [f"{kind.scheme}:" for kind in SOURCES]
        near = [CompletionItem(each) for each in prefixes if each.startswith(incomplete) and each != incomplete]
        return [*super().shell_complete(ctx, param, incomplete), *near]


def complete_paths(command: click.Command) -> None:
    """Let a shell complete the paths among the parameters of a command, and of the commands in it."""
    for parameter in command.params:
        if parameter.type is click.STRING and parameter.metavar in ON_DISK:
            parameter.type = SourceText() if parameter.metavar == "SOURCE" else PathText()
    if isinstance(command, click.Group):
        for below in command.commands.values():
            complete_paths(below)
