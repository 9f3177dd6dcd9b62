"""The options ``-q`` and ``-v`` of every verb, which stand before its name or behind it and mean the same in each."""

from __future__ import annotations

import click
from click.core import ParameterSource

from reconciler.cli.settings.log_lines import Verbosity, choose_verbosity, verbosity
from reconciler.errors import UsageError

_HELP = {
    Verbosity.QUIET: "On standard error nothing but errors, and warnings that ask somebody to act.",
    Verbosity.VERBOSE: "Say on standard error what is read and done, step by step, and how long it took.",
}


def add_verbosity(command: click.Command) -> None:
    """Add both options to a command and to the commands in it, once; an option of its own by such a name is kept."""
    known = {name for parameter in command.params for name in parameter.opts}
    for which, text in _HELP.items():
        if f"--{which}" not in known:
            names = [f"-{which[0]}", f"--{which}"]
            option = click.Option(names, is_flag=True, is_eager=True, help=text, callback=_take, expose_value=False)
            command.params.append(option)
    if isinstance(command, click.Group):
        for below in command.commands.values():
            add_verbosity(below)


def _take(context: click.Context, option: click.Parameter, given: bool) -> None:
    """Heed one of the options; a setting is heeded where the command line has neither.

    Raises:
        UsageError: the other one was given too.
    """
    wanted = Verbosity(str(option.name))
    is_setting = context.get_parameter_source(wanted.value) is ParameterSource.DEFAULT_MAP
    if not given or (is_setting and verbosity() is not Verbosity.NORMAL):
        return
    if verbosity() not in (Verbosity.NORMAL, wanted):
        raise UsageError("--quiet and --verbose do not go together: leave one of them out")
    choose_verbosity(wanted)
