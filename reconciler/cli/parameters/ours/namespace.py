"""The parameters of ``logstore namespace`` and of the commands in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from reconciler.cli.frame import TEXT_FORMATS, Exit, SuggestingGroup, carry_out, change_options, output_options

_EPILOG = """\b
Examples:
  logstore namespace create org:apache /disks/*/logstore
  logstore namespace list /disks/*/logstore --below org
  logstore namespace move orders /disks/*/logstore --to org:apache
  logstore namespace move /disks/*/logstore --from-namespace org:apache --to-namespace com:shop
  logstore namespace rename org:apache:orders org:apache:purchases /disks/*/logstore
  logstore namespace delete org /disks/*/logstore --recursive --dry-run

\b
Give every log dir of the broker. A change is done in all of them or in none; if a crash cuts it short, whatever opens
them next carries it out to its end. Exit code 3: refused, and nothing was changed.
"""


@click.group("namespace", cls=SuggestingGroup, epilog=_EPILOG)
def command() -> None:
    """Namespaces of log dirs: directories for the tiers of org:apache, with the topics in them."""


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
@click.argument("topic", metavar="[TOPIC]")
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
