"""The parameters of ``logstore plan``."""

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
from reconciler.cli.monitoring import metrics_option, metrics_topics_option
from reconciler.next_steps import REFETCH, WITHOUT_ID
from reconciler.plan import ALLOWABLE, INTERNAL_TOPICS
from reconciler.verdicts import Verdict

_EPILOG = """\b
Examples:
  logstore plan /disks/*/kafka --metadata /disks/1/kafka -o plan.json
  logstore plan /disks/*/kafka --metadata SRC --topic 'clicks*' --verdict NOT_ASSIGNED -o plan.json
  logstore plan /disks/3/kafka --metadata SRC --need 200G --strays -o plan.json
  logstore plan /disks/*/kafka --metadata SRC --max-share 60% --allow internal -o plan.json

\b
A plan is read before it is applied: each action stands on a line of its own, and lines may be taken out. A plan that is
refused is shown with every shut gate, and is not kept; the last line is the command that opens the gates:
  --max-age, --max-share, --max-count      gates that are numbers
  --allow GATE                             the others: what is wrong with the metadata (cluster, broker, empty, time,
                                           incomplete, went-back, shrunk), with this machine (clock, absent, log-dir),
                                           or with what it would stage (newer, uncommitted, sole-copy, live-copy,
                                           no-id, internal)

\b
A replica is newer than the metadata when it was made or written to after its last record, or less than 2 s before: the
clocks of two machines may differ by so much. Metadata that is read again later settles it.
"""


@click.command("plan", epilog=_EPILOG)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@metadata_option
@output_options(Format.TABLE, Format.JSON)
@click.option("--topic", "topics", multiple=True, metavar="PATTERN", help="Plan for these topics alone, as 'click*'.")
@click.option(
    "--verdict", "verdicts", metavar="VERDICT", multiple=True, type=click.Choice(list(Verdict), case_sensitive=False),
    help="Plan for findings of this verdict alone; may be given several times.",
)  # fmt: skip
@click.option("--need", metavar="SIZE", help="Plan the cheapest safe set that gives back so much, for example 200G.")
@click.option("--strays", is_flag=True, help="Give a due time to replicas that a broker set aside and nobody wants.")
@click.option(
    WITHOUT_ID, "strays_without_id", is_flag=True,
    help="With --strays: also one without a topic ID, where a replica lives in its place whose data is in sync, "
    "here or on the broker that leads it.",
)  # fmt: skip
@click.option(
    REFETCH, "refetched", metavar="TOPIC", multiple=True,
    help="Stage replicas of this topic whose partition.metadata is missing or damaged, where another broker leads in "
    "sync: the broker fetches them anew. For those of which repair says that no topic ID is certain.",
)  # fmt: skip
@click.option(
    "--sightings", type=click.IntRange(1, 100), default=1, show_default=True, metavar="N",
    help="Stage only what N plans saw unwanted, each by later metadata; until then it is noted in the journal.",
)  # fmt: skip
@click.option(
    "--apart", default="1h", show_default=True, metavar="TIME", help="The least time between two sightings that count."
)
@click.option("--delay", default="7d", show_default=True, metavar="TIME", help="How long what is staged can come back.")
@click.option(
    "--staging", type=click.Choice(["sibling", "in-place"]), metavar="PLACE",
    help="Where a broker's replicas are staged: sibling, in LOG_DIR.deleting, or in-place, as -stray, with which no "
    "broker before 3.6.1 starts. [default: sibling, where that can be]",
)  # fmt: skip
@click.option("--max-age", default="1d", show_default=True, metavar="TIME", help="The greatest age of the metadata.")
@click.option(
    "--max-share", default="30%", show_default=True, metavar="SHARE",
    help="Of a broker's replicas, how many may look unwanted, picked or not.",
)  # fmt: skip
@click.option(
    "--max-count", type=click.IntRange(0), default=1000, show_default=True,
    help="How many replicas of a broker may look unwanted, picked or not.",
)  # fmt: skip
@click.option(
    "--internal", multiple=True, default=INTERNAL_TOPICS, show_default=True, metavar="PATTERN",
    help="Topics that are internal beside Kafka's own, which begin with __. It replaces the default ones: repeat them.",
)  # fmt: skip
@click.option(
    "--allow", "allowed", metavar="GATE", multiple=True, type=click.Choice([gate.value for gate in ALLOWABLE]),
    help=f"Open a gate: {', '.join(ALLOWABLE)}.",
)  # fmt: skip
@fallback_records_option
@metrics_option
@metrics_topics_option
@passed_on_options
def command(**given: Any) -> Exit:
    """Compare log dirs with the cluster's metadata, and plan what to do about it. Nothing is changed.

    What nobody wants is staged, what is staged and wanted comes back, a missing topic ID is written where it is
    certain. -o PLAN.json keeps the plan, and 'logstore apply PLAN.json' carries it out. What is damaged or doubled is
    for 'logstore repair'.

    Exit code 0: no action is planned. 1: there are actions. 3: refused; the message has the numbers and the override.
    """
    return carry_out("plan", given)
