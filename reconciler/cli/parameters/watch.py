"""The parameters of ``logstore watch``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import Exit, carry_out, metadata_option
from reconciler.cli.monitoring import metrics_listen_option

_EPILOG = """\b
Examples:
  logstore watch /disks/*/kafka --metadata /disks/1/kafka
  logstore watch /disks/*/kafka | jq -c 'select(.after == "STALE_ID")'
  logstore watch /disks/*/kafka --initial --for 0            # once: all that is not OK now
  logstore watch /disks/*/kafka --metrics-listen 9477 > /dev/null
"""


@click.command("watch", epilog=_EPILOG)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@metadata_option
@click.option("--json", is_flag=True, expose_value=False, help="As always: a line is JSON.")
@click.option("--initial", is_flag=True, help="Begin with all verdicts that are not OK.")
@click.option(
    "--interval", type=click.FloatRange(1), default=300.0, show_default=True, metavar="SECONDS",
    help="Read everything again so often; finds what gives no event, such as a change inside a partition dir.",
)  # fmt: skip
@click.option("--for", "seconds", type=click.FloatRange(0), metavar="SECONDS", help="End after so long.")
@metrics_listen_option
def command(**given: Any) -> Exit:
    """Watch log dirs and the cluster's metadata, and write a line for each verdict that changes.

    LOG_DIR is a log dir or a folder of brokers' disks; log dirs that appear later in such a folder are not watched.
    Nothing is changed, no lock is taken, and a running broker is not disturbed. A log dir that goes away is ABSENT
    until it is back, and so is what was in it.

    A line has schema_version, time_ms, log_dir, name, cluster_id, broker, topic, partition, disk_topic_id,
    metadata_topic_id, before, after, bytes, disk_bytes, evidence and doubt. "before" is empty for what was not there,
    "after" for what is gone. Where a replica is nowhere and was nowhere, log_dir and name are null. "bytes" adds up the
    lengths of files, "disk_bytes" what is allocated for them, as tables of other commands show and 'du' does. "doubt"
    is that of an audit: CHANGED_SINCE_METADATA, where what the metadata condemns is younger than it.

    Ctrl-C ends it. Exit code 0: it was ended. 3: the metadata cannot be trusted.
    """
    return carry_out("watch", given)
