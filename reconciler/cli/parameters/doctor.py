"""The parameters of ``logstore doctor``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import (
    Exit,
    Format,
    broker_options,
    carry_out,
    fallback_records_option,
    metadata_option,
    output_options,
    policy_option,
)

_EPILOG = """\b
Examples:
  logstore doctor /disks/*/kafka --metadata kafka:broker-1:9092
  logstore doctor /var/lib/kafka/data
  logstore doctor /disks/*/kafka --metadata /var/lib/kafka/metadata/__cluster_metadata-0 --format json

\b
Give all log dirs of the broker, in the order of its log.dirs. Where the broker does not run, give the metadata of one
that does, or of a controller: the copy in its own log dirs ends when it stopped.
"""


@click.command("doctor", epilog=_EPILOG)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@metadata_option
@broker_options
@policy_option
@output_options(Format.TABLE, Format.JSON)
@fallback_records_option
def command(**given: Any) -> Exit:
    """Say what is wrong with the disks of a broker, in which order it is put right, and what to paste first.

    Looks at all there is: what lies on the disks, what the metadata wants there, whether the broker would start, what
    is staged, who holds the locks, and how much room is left. Takes no lock and changes nothing; each command that it
    prints has every option that it needs.

    Exit code 0: nobody has to act. 1: there is something to do or to look at. 3: the metadata cannot be trusted.
    """
    return carry_out("doctor", given)
