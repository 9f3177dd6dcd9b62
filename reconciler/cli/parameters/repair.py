"""The parameters of ``logstore repair``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import (
    Exit,
    Format,
    carry_out,
    metadata_option,
    output_options,
    passed_on_fallback_option,
    passed_on_options,
    without_settings,
)
from reconciler.plan import ALLOWABLE_FOR_REPAIR, REPAIRS, ActionKind

_EPILOG = """\b
Examples:
  logstore repair /disks/*/kafka --metadata /disks/1/kafka -o plan.json
  logstore repair --apply plan.json
  logstore repair --undo /disks/*/kafka/.logstore_repair.0123456789abcdef.json
  logstore repair /disks/*/kafka --adopt-topic-id orders -o plan.json

\b
What is repaired:
  write_partition_metadata   missing or damaged, where the metadata and all that lies near agree on the topic ID
  replace_topic_id           another topic ID than the metadata's, for topics that --adopt-topic-id names
  rebuild_checkpoint         an offset checkpoint that does not parse keeps its whole lines
  drop_checkpoint_entries    entries of partitions that have no directory in that log dir
  remove_leftover            a temporary file beside the whole file that it was to become
  stage_duplicate            the worse copy of a replica that is live in two log dirs, or the one that --keep does not
                             name; a purge may take it after 7 d

A topic ID that neither the file nor another replica of the topic on this broker says is taken from the metadata's word
alone. As for 'logstore plan', the metadata must then be whole, of the last day, and no older than what was applied here
before: a plan that is refused is shown with every shut gate, and the last line is the command that opens them.

\b
Never delete partition.metadata to get rid of INCONSISTENT_TOPIC_ID: that cure is of ZooKeeper's days. A KRaft broker
sets every replica without the file aside as stray, data and all.
"""


@click.command("repair", epilog=_EPILOG)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1)
@metadata_option
@output_options(Format.TABLE, Format.JSON)
@click.option(
    "--only", metavar="KIND", multiple=True, type=click.Choice([kind.value for kind in ActionKind if kind in REPAIRS]),
    help="Plan actions of this kind alone; may be given several times.",
)  # fmt: skip
@click.option(
    "--adopt-topic-id", "adopted", metavar="TOPIC", multiple=True,
    help="Declare the data on the disks to be this topic's, under the topic ID that the metadata has for it now.",
)  # fmt: skip
@click.option(
    "--keep", "kept", metavar="PATH", multiple=True,
    help="Where a replica is live in two log dirs, keep this copy, and stage the other; may be given several times.",
)  # fmt: skip
@click.option(
    "--max-age", metavar="TIME",
    help="The greatest age of metadata from whose word alone a topic ID is taken. [default: 1d]",
)  # fmt: skip
@click.option(
    "--allow", "allowed", metavar="GATE", multiple=True,
    type=click.Choice([gate.value for gate in ALLOWABLE_FOR_REPAIR]),
    help=f"Take a topic ID from its word all the same: {', '.join(ALLOWABLE_FOR_REPAIR)}.",
)  # fmt: skip
@click.option("--apply", "plan_file", metavar="PLAN", help="Carry out a plan that was reviewed.")
@click.option(
    "--any-clock", is_flag=True,
    help="With --apply: take this machine's clock although plan or disks are ahead of it.",
)  # fmt: skip
@click.option("--undo", "backups", metavar="BACKUP...", multiple=True, help="Take back what a repair changed.")
@passed_on_fallback_option
@passed_on_options
def command(**given: Any) -> Exit:
    """Repair damaged metadata and checkpoints of log dirs, from a plan that was reviewed.

    With LOG_DIR, make the plan and show it: no lock is taken, and nothing is changed. -o PLAN.json keeps it. Then
    --apply PLAN.json takes the locks, looks at everything again, backs up, and repairs; what has changed since is
    skipped. The backup lies in the log dir, and --undo puts back what it holds. The broker must be stopped for both.

    Exit code of a plan, 0: nothing is to be repaired. 1: something is. Of --apply and --undo, 0: all was done. 3:
    refused, for example because the broker runs. 4: some of it was skipped or failed; the output says why.
    """
    if given["plan_file"] is not None or given["backups"]:
        without_settings(given, "paths", "specs")
    return carry_out("repair", given)
