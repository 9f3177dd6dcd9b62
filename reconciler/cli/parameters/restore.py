"""The parameters of ``logstore restore``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import Exit, carry_out, fallback_records_option, passed_on_options

_EPILOG = """\b
Examples:
  logstore restore /disks/*/kafka --topic orders --dry-run
  logstore restore /disks/*/kafka --topic-id UXyU9i5ARn6W00ON2taeWA
  logstore restore /disk1/kafka --location ../kafka.deleting/UXyU9i5ARn6W00ON2taeWA_0
  logstore restore /disk1/kafka --location orders-3.0123456789abcdef0123456789abcdef-stray

\b
'logstore staged' lists the locations. A stray that a broker left has no record: its name says what it was, and the
broker finds its offsets anew. Where the name was cut, say what it was with --as TOPIC-PARTITION.

\b
All else comes back under the name that it had. Where its topic was renamed or moved since, 'logstore plan' takes the
new name from the metadata; by hand: --topic-id ID --as TOPIC-PARTITION, which only a replica with that ID gets.
"""


@click.command("restore", epilog=_EPILOG)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@click.option("--topic", metavar="T", help="Those of this topic, by full name.")
@click.option("--partition", type=click.IntRange(0), metavar="P", help="Those of this partition.")
@click.option("--topic-id", metavar="ID", help="Those with this topic ID.")
@click.option(
    "--location",
    "locations",
    multiple=True,
    metavar="L",
    help="This one, as 'logstore staged' has it, or by its whole path.",
)
@click.option("--all", "everything", is_flag=True, help="All that has a record; strays are named by other options.")
@click.option(
    "--as",
    "was",
    metavar="TOPIC-PARTITION",
    help="What one was: a stray whose name was cut, or, with --topic-id, a replica whose topic was renamed.",
)
@click.option("--as-stray", is_flag=True, help="Leave strays where they lie, and take their due time back.")
@click.option(
    "--metadata", "specs", metavar="SOURCE", multiple=True,
    help="Ask this metadata, as 'logstore plan' does, which log dirs the broker has, and what it should have in them. "
    "[default: the broker's own copy, where it lies in them]",
)  # fmt: skip
@click.option(
    "--without-twin", is_flag=True,
    help="Bring back what may be live in a log dir that was not given, or was staged as the worse of two copies, "
    "because the other one is gone.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print exactly what would be done, and do nothing; needs no lock.")
@fallback_records_option
@passed_on_options
def command(**given: Any) -> Exit:
    """Bring staged replicas back to where they were, with their names and checkpoint entries.

    Give every log dir of the broker: where a replica of the same partition is live in any of them, the staged one
    stays. It stays too where it may be live in a log dir that was not given, by what the broker registered, a journal
    or the metadata say. Options that choose go together: a directory is restored when all of them fit. Nothing is ever
    overwritten. No broker may run on the log dirs.

    Exit code 1: nothing of that kind is staged. Exit code 3: a log dir is in use, or nothing could be restored. Exit
    code 4: some could not be restored.
    """
    return carry_out("restore", given)
