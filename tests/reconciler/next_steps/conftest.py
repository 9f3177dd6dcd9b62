"""Parses a command as the command line does, without running it."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from reconciler.cli import logstore
from reconciler.next_steps import PROGRAM, Command


@pytest.fixture(scope="session")
def parse() -> Callable[[Command], click.Context]:
    """Parse a command by the command line's own parser. Raises click's error where it would be refused."""

    def parsed(command: Command) -> click.Context:
        assert command.argv[0] == PROGRAM
        found = logstore.get_command(click.Context(logstore), command.verb)
        assert found is not None, command.text
        return found.make_context(command.verb, list(command.arguments))

    return parsed
