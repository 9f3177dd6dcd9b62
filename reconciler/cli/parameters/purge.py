"""The parameters of ``logstore purge``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import Exit, carry_out, fallback_records_option, passed_on_options
from reconciler.cli.monitoring import metrics_option

_EPILOG = """\b
Examples:
  logstore purge /disks/*/kafka --dry-run
  logstore purge /disks/*/kafka --rate 100M --unlinks 500
  logstore purge /disks/*/kafka --metadata kafka:broker-1:9092
  logstore purge /disk1/kafka --location ../kafka.deleting/UXyU9i5ARn6W00ON2taeWA_0 --before-due

\b
From cron, every ten minutes:
  */10 * * * *  root  logstore purge /disks/*/kafka --rate 100M --quiet

\b
Directories that a broker left as '-stray' have no record, so nothing says when they may go, and no purge takes them.
'logstore staged' lists them. 'logstore plan --strays' proposes a record, and so a due time, for each that is surely
unwanted; 'logstore restore' brings one back.
"""


@click.command("purge", epilog=_EPILOG)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Print exactly what would be done, and do nothing; needs no lock.")
@click.option("--rate", metavar="BYTES", help="Bytes a second for all disks together, for example 100M.")
@click.option("--unlinks", type=click.IntRange(1), metavar="N", help="Files a second for all disks together.")
@click.option(
    "--workers",
    type=click.IntRange(1, 16),
    metavar="N",
    help="Workers on each disk; each removes several files at once where it waits for the disk. [default: 2]",
)
@click.option(
    "--location",
    "locations",
    multiple=True,
    metavar="L",
    help="This one alone, as 'logstore staged' has it, or by its whole path.",
)
@click.option("--before-due", is_flag=True, help="Take it though its time has not come; only with --location.")
@click.option(
    "--metadata",
    "specs",
    metavar="SOURCE",
    multiple=True,
    help="Ask this metadata once more, as 'logstore plan' does, and keep what is wanted here again.",
)
@click.option("--keep-held", is_flag=True, help="Leave directories of which a process holds a file open.")
@fallback_records_option
@metrics_option
@passed_on_options
def command(**given: Any) -> Exit:
    """Delete what is staged in log dirs, and whose time has come. What is deleted cannot be brought back.

    Only what is due goes, and only what carries a valid record. Interrupt it at any time: the next purge goes on.

    Beside a running broker, what is staged in LOG_DIR.deleting goes all the same, and nothing of the broker's is
    touched. What is staged in the log dir itself waits until the broker is stopped: it goes first, and from then on the
    broker may be started, however long the rest takes.

    With --quiet there is no line for each directory: the sums alone.

    Exit code 1: something that is due waits for a broker to be stopped, or is wanted again, and all else is purged; or
    nothing of what --location names could be purged. Exit code 3: another 'logstore' works on what is staged there, or
    the metadata cannot be trusted. Exit code 4: something that is due could not be removed. Exit code 130: it was
    interrupted.
    """
    return carry_out("purge", given)
