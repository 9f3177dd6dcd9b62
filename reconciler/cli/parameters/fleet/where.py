"""The parameters of ``logstore where``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import (
    TEXT_FORMATS,
    Exit,
    carry_out,
    fallback_records_option,
    metadata_option,
    output_options,
    scan_options,
)

_EPILOG = """\b
Examples:
  logstore where orders /srv/inventories/*.parquet
  logstore where Ogo1Z1cKS8WeUM7jCukeWA inventories/*.parquet --metadata kafka:broker-1:9092
  logstore where org:apache:orders-7 /disks/*/kafka --format ndjson | jq 'select(.wanted_on == [])'
"""


@click.command("where", epilog=_EPILOG)
@click.argument("asked", metavar="TOPIC")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@metadata_option
@click.option(
    "--history",
    metavar="DIR",
    help="The folder or URI of 'logstore audit --history': since when a copy is a finding there.",
)
@output_options(*TEXT_FORMATS)
@scan_options
@fallback_records_option
def command(**given: Any) -> Exit:
    """Tell where a topic lies, on which disks, since when, and who wants it there.

    TOPIC is a topic with its namespace, a topic ID, or a partition such as orders-0. LOG_DIR is an inventory that
    'logstore scan --format parquet' wrote, of which only the parts are read that may hold the topic; a folder of
    inventories; or a log dir. Give the inventories of many days: the newest scan of a log dir says what lies there,
    and the older ones since when, as do the audits of a --history. With --metadata each copy gets the verdict that
    'logstore audit' gives.

    Exit code 0: found, and nobody has to act. 1: not found anywhere, or a copy is not as the metadata wants it. 4: an
    inventory or a log dir cannot be read.
    """
    return carry_out("fleet.where", given)
