"""The parameters of ``logstore explain``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import (
    Exit,
    Format,
    carry_out,
    fallback_records_option,
    metadata_option,
    output_options,
    passed_on_options,
)

_EPILOG = """\b
Examples:
  logstore explain /var/lib/kafka/data/orders-0
  logstore explain /var/lib/kafka/data/lost+found
  logstore explain /disks/2/kafka/orders-0 --metadata /disks/1/kafka --format json
"""


@click.command("explain", epilog=_EPILOG)
@click.argument("path", metavar="PATH")
@click.option(
    "--log-dir", "log_dirs", multiple=True, metavar="DIR",
    help="Another log dir of the same broker: a copy of the replica in it is taken into account.",
)  # fmt: skip
@metadata_option
@output_options(Format.TABLE, Format.JSON)
@fallback_records_option
@passed_on_options
def command(**given: Any) -> Exit:
    """Explain one path: a partition dir of any kind, any other directory or file in a log dir, or a log dir.

    Tells what it is and by which rule, what state it is in, what the brokers that the log dir can belong to do with it
    at start, what the metadata says of it, and the next safe command. A copy of a replica in another log dir is seen
    where that log dir is named with --log-dir.
    """
    return carry_out("explain", given)
