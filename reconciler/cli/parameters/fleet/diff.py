"""The parameters of ``logstore diff``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import Exit, Format, carry_out, output_options

_EPILOG = """\b
Examples:
  logstore diff previous latest --history /var/lib/logstore/history
  logstore diff 2026-11-24 2026-11-25 --history /var/lib/logstore/history --format json | jq '.totals.new'
  logstore diff report-of-monday/ report-of-tuesday/
"""


@click.command("diff", epilog=_EPILOG)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option(
    "--history", metavar="DIR", help="The folder or URI of 'logstore audit --history', in which OLD and NEW are runs."
)
@output_options(Format.TABLE, Format.JSON)
@click.option(
    "--limit", type=click.IntRange(0), metavar="N", help="Findings shown in a table. [default: 50 on a terminal]"
)
def command(**given: Any) -> Exit:
    """Tell what changed from one audit to another: findings that are new, gone or grown, and topics whose ID changed.

    Findings of the fleet as a whole are told where both sides have them, as all but a single Parquet file do.

    OLD and NEW are the folders of two reports, or what 'logstore audit --format json' or parquet wrote, each a path or
    a URI. With --history they may be runs: an ID, a day such as 2026-11-25 (in UTC, its last run), latest, or previous,
    which are of no time to come by the clock of this machine.

    Exit code 0: nothing new asks for action. 1: a finding came or has grown, or a topic got another ID.
    """
    return carry_out("fleet.diff", given)
