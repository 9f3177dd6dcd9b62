"""The parameters of ``logstore staged``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import (
    TEXT_FORMATS,
    Exit,
    carry_out,
    fallback_records_option,
    output_options,
    passed_on_options,
)

_EPILOG = """\b
Examples:
  logstore staged /disks/*/kafka
  logstore staged /disks/*/kafka --format ndjson | jq 'select(.state == "stray")'
  logstore staged /disk1/kafka --format csv -o staged.csv
"""


@click.command("staged", epilog=_EPILOG)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@output_options(*TEXT_FORMATS)
@fallback_records_option
@passed_on_options
def command(**given: Any) -> Exit:
    """List what is staged in log dirs, and the '-stray' directories that a broker left.

    Each one says when a purge may take it, and where it would go back to. Of strays, which have no such time, the plan
    that gives them one is named. Nothing is changed, no lock is taken, and a running broker is not disturbed.

    Exit code 4: a log dir is absent or cannot be read; the others are listed.
    """
    return carry_out("staged", given)
