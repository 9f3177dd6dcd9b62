"""The parameters of ``logstore preflight``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import (
    TEXT_FORMATS,
    Exit,
    broker_options,
    carry_out,
    metadata_option,
    output_options,
    passed_on_fallback_option,
    policy_option,
)

_EPILOG = """\b
Examples:
  logstore preflight /var/lib/kafka/data
  logstore preflight /disks/1/kafka /disks/2/kafka --metadata /disks/1/kafka --kafka 4.0
  logstore preflight /disks/*/kafka --kafka 3.6.2 --mode zookeeper --format json

\b
Effects, the gravest first:
  startup_aborts    the broker does not start, or halts at once
  log_dir_offline   the broker goes on without this disk
  deleted           data is deleted for ever, within about a minute
  old_records       records of a deleted topic count as those of the topic that has its name now
  renamed_to_stray  a replica is set aside with its data, and fetched anew from elsewhere, if there is an elsewhere
  replaced          a future replica takes the place of the current one, which is then deleted
  created_empty     something is made anew and empty where data was expected
  not_served        data stays as it is, and the broker does not use it
  unknown           it cannot be told from here, because of a symbolic link that is not followed, or a full disk
  note              worth knowing; nothing is lost
"""


@click.command("preflight", epilog=_EPILOG)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@metadata_option
@broker_options
@policy_option
@output_options(*TEXT_FORMATS)
@click.option("--notes/--no-notes", default=True, help="List what is merely worth knowing. [default: --notes]")
@click.option(
    "--limit", type=click.IntRange(0), metavar="N", help="Findings shown in a table. [default: 50 on a terminal]"
)
@passed_on_fallback_option
def command(**given: Any) -> Exit:
    """Tell before a broker is started whether it would start here, and what it would do to what lies here.

    The LOG_DIRs are taken for those of one broker, in the order of its log.dirs; each is taken as it is, and not
    searched for log dirs below it. Nothing is changed, and no lock is taken. With --metadata also those replicas are
    told that a broker would set aside or delete because the cluster does not want them here.

    Exit code 0: it would start, and nothing would be lost; there may be notes. 1: it would not start, or it would and
    something would be renamed, deleted, left unused, made anew, or a disk would go offline; the effect says which.
    """
    return carry_out("preflight", given)
