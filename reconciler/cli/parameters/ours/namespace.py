"""The parameters of ``logstore namespace`` and of the commands in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from reconciler.cli.frame import (
    TEXT_FORMATS,
    Exit,
    SuggestingGroup,
    carry_out,
    change_options,
    output_options,
    without_settings,
)

_EPILOG = """\b
Examples:
  logstore namespace create org:apache /disks/*/logstore
  logstore namespace list /disks/*/logstore --below org
  logstore namespace move orders /disks/*/logstore --to org:apache
  logstore namespace move /disks/*/logstore --from-namespace org:apache --to-namespace com:shop
  logstore namespace rename org:apache:orders org:apache:purchases /disks/*/logstore
  logstore namespace delete org /disks/*/logstore --recursive --dry-run
  logstore namespace configs zk1:2181/kafka org:apache --set retention.ms=86400000
  logstore namespace acls zk1:2181/kafka org:apache --allow User:ann All

\b
Give every log dir of the broker. A change is done in all of them or in none; if a crash cuts it short, whatever opens
them next carries it out to its end. Exit code 3: refused, and nothing was changed. configs and acls are about the
ZooKeeper of a cluster instead, which may be running.
"""


@click.group("namespace", cls=SuggestingGroup, epilog=_EPILOG)
def command() -> None:
    """Namespaces: directories for the tiers of org:apache in log dirs, with the topics in them; configs and ACLs."""


def _command(name: str, arguments: str, line: str, *more: str) -> Callable[[Callable[..., Exit]], click.Command]:
    """Make a command of the group, by its name, the arguments of its example, its line of help, and more examples."""
    title, lines = ("Examples" if more else "Example"), (arguments, *more)
    return command.command(
        name,
        epilog=f"\b\n{title}:" + "".join(f"\n  logstore namespace {name} {each}" for each in lines),
        short_help=line,
    )


@_command("create", "org:apache /disks/*/logstore --dry-run", "Create a namespace with all its tiers.")
@click.argument("namespace")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@change_options
def create(**given: Any) -> Exit:
    """Create a namespace with all its tiers: org:apache makes org and org:apache."""
    return carry_out("ours.namespace", given, "create")


@_command(
    "delete", "org /disks/*/logstore --recursive --dry-run", "Delete a namespace, empty or with all that is in it."
)
@click.argument("namespace")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@click.option("--recursive", is_flag=True, help="With all namespaces below it; the topics in them are staged.")
@click.option(
    "--delay", metavar="TIME", help="How long what is staged is kept: 4h, 7d, or ms. [default: 4h]", default=None
)
@change_options
def delete(**given: Any) -> Exit:
    """Delete a namespace that is empty, or with --recursive whatever is in it.

    Topics are staged, not deleted: 'logstore staged' lists them, and until their time is over 'logstore restore' brings
    them back, once the namespace was created again.
    """
    return carry_out("ours.namespace", given, "delete")


@_command(
    *("move", "orders /disks/*/logstore --to org:apache", "Move a topic, or a namespace with all that is in it."),
    "/disks/*/logstore --from-namespace org:apache --to-namespace com:shop",
)
@click.argument("topic", metavar="[TOPIC]", required=False)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1)
@click.option(
    *("--to", "--to-namespace", "namespace"),
    required=True,
    metavar="NAMESPACE",
    help="Where the topic goes; '' is the default one. Of a namespace: its new name.",
)
@click.option(
    "--from-namespace", metavar="NAMESPACE", default=None, help="Move this namespace; only log dirs are named then."
)
@change_options
def move(**given: Any) -> Exit:
    """Move a topic, by its full name, to another namespace.

    With --from-namespace and without TOPIC, move a whole namespace, with the namespaces below it and their topics.
    Tiers of the new name that are missing are made. Nothing is merged: where the new name is a namespace that holds
    something, or one of the two lies inside the other, nothing is moved.
    """
    if given["from_namespace"] is not None and given["topic"] is not None:
        # The first word is a log dir then.
        without_settings(given, "paths")
        given["paths"], given["topic"] = (given["topic"], *given["paths"]), None
    return carry_out("ours.namespace", given, "move")


@_command("rename", "org:apache:orders org:apache:purchases /disks/*/logstore", "Give a topic another name.")
@click.argument("topic")
@click.argument("new_topic")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@change_options
def rename(**given: Any) -> Exit:
    """Give a topic another name; both are full names."""
    return carry_out("ours.namespace", given, "rename")


@_command("list", "/disks/*/logstore --below org", "List namespaces, with what is in them.")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@click.option("--below", metavar="NAMESPACE", default="", help="Only those below this one.")
@output_options(*TEXT_FORMATS)
def list_(**given: Any) -> Exit:
    """List the namespaces of log dirs, with how many topics and replicas are in each, those below it not counted.

    Takes no lock. Exit code 1: a change is under way in a log dir, or was cut short, so the list may be half of it.
    """
    return carry_out("ours.namespace", given, "list_")


OPERATIONS = (
    *("All", "Read", "Write", "Create", "Delete", "Alter", "Describe"),
    *("ClusterAction", "DescribeConfigs", "AlterConfigs", "IdempotentWrite"),
)
"""Kafka's operations, as an ACL names them; the codec that knows them takes longer to load than click."""


def _zookeeper_options(function: Callable[..., Exit]) -> Callable[..., Exit]:
    """Add what the commands about a cluster's ZooKeeper share."""
    for decorate in (
        output_options(*TEXT_FORMATS),
        click.option(
            "--older-brokers", is_flag=True,
            help="Write though a broker does not know namespaces, or none is registered that could say so.",
        ),
        click.option("--dry-run", is_flag=True, help="Show what would hold, and write nothing."),
        click.argument("namespace"),
        click.argument("address", metavar="HOST:PORT[,...][/CHROOT]"),
    ):  # fmt: skip
        function = decorate(function)
    return function


@_command(
    *("configs", "zk1:2181/kafka org:apache", "What configs a namespace has in ZooKeeper, and changes of them."),
    "zk1:2181/kafka org:apache --set retention.ms=86400000 --remove segment.ms --dry-run",
)
@click.option("--set", "wanted", multiple=True, metavar="NAME=VALUE", help="Set this config of the namespace itself.")
@click.option("--remove", "removed", multiple=True, metavar="NAME", help="Inherit this config again.")
@_zookeeper_options
def configs(**given: Any) -> Exit:
    """Show the configs that hold for a namespace of a cluster that is kept in ZooKeeper, each with where it is from.

    A namespace's own value comes before that of the tier above it, and the cluster's default comes last. A change is
    one transaction, and is refused while a registered broker does not know namespaces, or none is registered (exit code
    3). Exit code 4: something else changed meanwhile, and nothing was written.
    """
    return carry_out("ours.namespace_nodes", given, "configs")


def _acl_option(name: str, help_text: str) -> Callable[[Callable[..., Exit]], Callable[..., Exit]]:
    operation = click.Choice(OPERATIONS)
    return click.option(name, type=(str, operation), metavar="PRINCIPAL OPERATION", multiple=True, help=help_text)


@_command(
    *("acls", "zk1:2181/kafka org:apache", "What ACLs a namespace has in ZooKeeper, and changes of them."),
    "zk1:2181/kafka org --allow User:ann All --deny User:bob Write --dry-run",
)
@_acl_option("--allow", "Add an ACL that allows a principal, such as User:ann, an operation, such as Read.")
@_acl_option("--deny", "Add an ACL that denies an operation; it counts in every tier below too.")
@_acl_option("--remove-allow", "Take away an ACL that allows.")
@_acl_option("--remove-deny", "Take away an ACL that denies.")
@_zookeeper_options
def acls(**given: Any) -> Exit:
    """Show the ACLs of a namespace of a cluster that is kept in ZooKeeper, and those above it, with which count.

    The innermost tier that has any decides what is allowed, and a Deny counts at every tier. A change is one
    transaction, and is refused while a registered broker does not know namespaces, or none is registered (exit code 3).
    Exit code 4: something else changed meanwhile, and nothing was written.
    """
    return carry_out("ours.namespace_nodes", given, "acls")
