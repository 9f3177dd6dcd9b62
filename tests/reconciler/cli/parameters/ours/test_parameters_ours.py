"""What the commands for log dirs of our own take."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import click
import pytest

from reconciler.cli.commands.ours import convert as converting
from reconciler.cli.commands.ours import namespace as namespaces
from reconciler.cli.commands.ours import namespace_nodes
from reconciler.cli.frame import change_store
from reconciler.cli.parameters.ours import convert, namespace
from reconciler.sources.zookeeper import AclOperation

COMMANDS = {
    convert.command: converting.run,
    namespace.create: namespaces.create,
    namespace.delete: namespaces.delete,
    namespace.move: namespaces.move,
    namespace.rename: namespaces.rename,
    namespace.list_: namespaces.list_,
    namespace.configs: namespace_nodes.configs,
    namespace.acls: namespace_nodes.acls,
}


@pytest.mark.parametrize(
    ("command", "function"), COMMANDS.items(), ids=lambda each: each.__name__ if inspect.isfunction(each) else ""
)
def test_a_command_takes_what_it_is_carried_out_with(command: click.Command, function: Callable[..., object]) -> None:
    taken = inspect.signature(function).parameters
    of_every_change = set(inspect.signature(change_store).parameters) - {"plan"} if "how" in taken else set()
    known = set(taken) - {"how"} | of_every_change
    assert {parameter.name for parameter in command.params if parameter.expose_value} == known


def test_every_command_of_the_group_is_looked_at() -> None:
    assert set(namespace.command.commands.values()) == set(COMMANDS) - {convert.command}


def test_the_operations_of_an_acl_are_those_that_can_be_written() -> None:
    assert tuple(AclOperation) == namespace.OPERATIONS
