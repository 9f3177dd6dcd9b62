"""The parameters of ``logstore scan``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import Exit, Format, carry_out, fallback_records_option, output_options, scan_options
from reconciler.cli.monitoring import metrics_option

_EPILOG = """\b
Examples:
  logstore scan /var/lib/kafka/data
  logstore scan /disks/*/kafka --format ndjson | jq 'select(.kind == "stray")'
  logstore scan /disks/*/kafka --format parquet -o "$(hostname).parquet"
  logstore scan /disks/*/kafka -o s3://bucket/inventories/
"""


@click.command("scan", epilog=_EPILOG)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@output_options(*Format)
@scan_options
@fallback_records_option
@metrics_option
@click.option("--limit", type=click.IntRange(0), metavar="N", help="Rows shown of each log dir in a table.")
def command(**given: Any) -> Exit:
    """Tell what lies in log dirs: replicas with their topic IDs, and everything else.

    LOG_DIR is a log dir, a folder of brokers' disks, or an inventory that another scan wrote. Nothing is changed, and a
    running broker is not disturbed. Parquet and Arrow files are inventories, which 'logstore audit' reads.

    With -o FOLDER/ or a URI (s3://, gs://, abfs://, hdfs://, file://) that ends in / each broker gets an inventory
    below it: cluster=ID/day=DATE/broker=N/scan-MS-LOG_DIRS.parquet. Endpoint, region and credentials come from the
    environment (AWS_ENDPOINT_URL, AWS_REGION, AWS_PROFILE) or from the URI, as in ?endpoint_override=HOST:PORT.

    Exit code 4: a log dir is absent, or empty as where its disk is not mounted, or cannot be read; the others were
    scanned.
    """
    return carry_out("scan", given)
