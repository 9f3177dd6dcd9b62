"""The parameters of ``logstore convert``."""

from __future__ import annotations

from typing import Any

import click

from layout.scheme import Scheme
from reconciler.cli.frame import Exit, carry_out, change_options

_EPILOG = """\b
Examples:
  logstore convert /disks/*/logstore --to by-topic-id --dry-run
  logstore convert /disks/*/logstore --to by-topic-id
  logstore convert /disks/*/logstore --to flat

\b
Schemes:
  flat          orders-0                                  as Kafka has it
  namespaced    org/apache/orders-0                       a directory for each tier of a namespace
  by-topic-id   51/517c94f62e40467e96d3438ddad69e58_0     a rename of the topic touches no data
"""


@click.command("convert", epilog=_EPILOG)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@click.option(
    "--to", "scheme", type=click.Choice([scheme.value for scheme in Scheme]), required=True, help="The new scheme."
)
@change_options
def command(**given: Any) -> Exit:
    """Convert all the log dirs of one broker to another scheme: every replica is renamed, nothing is copied.

    Give every log dir of the broker. A crash on the way is no harm: whatever opens the log dirs next carries the
    conversion out to its end. A log dir that a real broker reads is never converted.

    Exit code 3: refused, and nothing was changed; the message lists what the scheme cannot hold or what is in the way.
    4: the system refused and all was undone, or a disk failed and the rest is done at the next run.
    """
    return carry_out("ours.convert", given)
