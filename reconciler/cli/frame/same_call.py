"""The call of a command as it was given, to be printed once more with other options."""

from __future__ import annotations

from collections.abc import Collection

import click
from click.core import ParameterSource


def is_given(context: click.Context, name: str) -> bool:
    """Whether a parameter was given, on the command line or by a setting."""
    return context.get_parameter_source(name) not in (ParameterSource.DEFAULT, None)


def words_of_call(context: click.Context, without: Collection[str] = ()) -> tuple[str, ...]:
    """Return the words of a call behind the name of its command: arguments, and each option that was given.

    ``without``: options that are left out, by their long names.
    """
    words: list[str] = []
    for parameter in context.command.params:
        # An option that only stands for another one has no value of its own.
        name = parameter.name or ""
        option = max(parameter.opts, key=len)
        if name not in context.params or not is_given(context, name) or option in without:
            continue
        value = context.params[name]
        for each in value if isinstance(value, tuple) else [value]:
            if isinstance(parameter, click.Argument):
                words.append(str(each))
            elif isinstance(each, bool):
                words.append(option if each else max(parameter.secondary_opts, key=len))
            else:
                words += [option, str(each)]
    return tuple(words)
