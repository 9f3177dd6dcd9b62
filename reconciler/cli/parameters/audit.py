"""The parameters of ``logstore audit``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import (
    TEXT_FORMATS,
    Exit,
    Format,
    carry_out,
    fallback_records_option,
    metadata_option,
    output_options,
    passed_on_options,
    scan_options,
)
from reconciler.cli.monitoring import metrics_option, metrics_topics_option
from reconciler.verdicts import Verdict

_EPILOG = """\b
Examples:
  logstore audit /disks/*/kafka --metadata /disks/1/kafka
  logstore audit inventories/*.parquet --metadata kraft:snapshot.checkpoint --report report/
  logstore audit s3://bucket/inventories/ --metadata kafka:broker-1:9092
  logstore audit inventories/ --metadata kafka:broker-1:9092 --history /var/lib/logstore/history --incremental
  logstore audit /disks/*/kafka --format json | jq '.disk_bytes.STRAY'
"""

ACCEPTED = ("own-metadata", "inventory-age", "not-reported", "doubt")
"""The values of ``reconciler.audit.Accepted``, which takes long to import."""


@click.command("audit", epilog=_EPILOG)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@metadata_option
@output_options(*TEXT_FORMATS, Format.PARQUET)
@click.option(
    "--report",
    metavar="FOLDER",
    help="Leave findings.parquet, topics.parquet, summary.json and report.html, also at a URI with nothing there yet.",
)
@click.option(
    "--history",
    metavar="DIR",
    help="Append findings, totals and topics of this run to the Parquet tables in this folder, or at this URI.",
)
@click.option(
    "--history-days", type=click.IntRange(1), metavar="N",
    help="With --history: keep the runs of N days, today's too, and remove older ones.",
)  # fmt: skip
@click.option(
    "--incremental", is_flag=True,
    help="With --history: judge again only brokers whose inventories or metadata changed since the last run, and keep "
    "the findings of the others. The findings are those of a whole audit.",
)  # fmt: skip
@click.option("--all", "all_rows", is_flag=True, help="List the replicas that are OK as well.")
@click.option("--previous", metavar="FOLDER", help="The --report of an earlier audit: finds topics whose ID changed.")
@click.option(
    "--verdict", "chosen", metavar="VERDICT", multiple=True, type=click.Choice(list(Verdict), case_sensitive=False),
    help="Show findings of this verdict alone; may be given several times. The exit code speaks of all.",
)  # fmt: skip
@click.option(
    "--accept", "accepted", metavar="WHAT", multiple=True, type=click.Choice(ACCEPTED),
    help="Count this as no reason to act: own-metadata (of a stopped broker, as in a backup), inventory-age, "
    "not-reported (brokers without an inventory), or doubt (findings in doubt). It stays listed; may be given several "
    "times.",
)  # fmt: skip
@click.option(
    "--inventory-gap", metavar="SPAN", default="24h", show_default=True,
    help="An inventory that is older or younger than the metadata by more is a finding.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(0), metavar="N", help="Findings shown in a table. [default: 50 on a terminal]"
)
@scan_options
@click.option(
    "--memory",
    metavar="SIZE",
    help="What the join may use, for example 4GB; more goes to disk. With --spark: the heap of its driver.",
)
@click.option("--spark", is_flag=True, help="Join with Spark instead of on this machine alone.")
@click.option("--master", metavar="URL", help="With --spark: the cluster to run on. [default: this machine]")
@fallback_records_option
@metrics_option
@metrics_topics_option
@passed_on_options
def command(**given: Any) -> Exit:
    """Compare log dirs with the cluster's metadata, and give each replica a verdict.

    LOG_DIR is a log dir, a folder of brokers' disks, or an inventory that 'logstore scan --format parquet' wrote; log
    dirs are grouped into brokers by their meta.properties. No broker and no Java is needed, and nothing is changed.

    Inventories may also be given as a folder, a pattern in quotes, a URI of a file, a folder or a pattern (s3://,
    gs://, abfs://, hdfs://, file://), or @FILE with one of these in each line. The newest scan of each log dir counts.
    Those in a store are copied to $TMPDIR first, or into --report for a cluster of Spark, which needs no connector.
    -o, --report and --history take a URI too. For a cluster of Spark --report is a folder that its executors see, or a
    URI in a store that Spark has a connector for, such as s3a://.

    logstore-spark-audit is this command with --spark, as a job, and takes the same options. --jobs does not go with
    --spark, which lists trees on all cores that it has. Where Spark runs already, as under spark-submit or with
    SPARK_REMOTE, neither --master nor --memory does: spark-submit has its own --master and --driver-memory.

    A finding is in doubt where the metadata is older than what it condemns, or an inventory older than the metadata
    that misses something in it: the column doubt says which, and the totals count these apart.

    Exit code 0: nobody has to act. 1: there are findings, in doubt or not. 3: metadata or an inventory cannot be
    trusted. 4: something was found that cannot be read, or the history could not be written.
    """
    return carry_out("audit", given)
