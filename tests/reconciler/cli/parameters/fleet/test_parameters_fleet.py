"""What the commands that ask a question of a whole fleet take."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import click
import pytest

from reconciler.cli.parameters import fleet

VERBS = sorted(path.stem for path in Path(str(fleet.__file__)).parent.glob("[a-z]*.py"))


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_takes_what_it_is_carried_out_with(verb: str) -> None:
    command = import_module(f"reconciler.cli.parameters.fleet.{verb}").command
    if isinstance(command, click.Group):
        (command,) = command.commands.values()
    taken = set(inspect.signature(import_module(f"reconciler.cli.commands.fleet.{verb}").run).parameters)
    assert {parameter.name for parameter in command.params if parameter.expose_value} == taken
