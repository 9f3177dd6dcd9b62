"""The parameters of ``logstore reconcile``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import Exit, Format, carry_out, fallback_records_option, output_options

_ALLOWABLE = ("cluster", "broker", "empty", "clock", "absent", "sole-copy", "no-id", "internal", "epoch", "create")

_EPILOG = """\b
Examples:
  logstore reconcile request.json /disks/*/logstore --cluster-id MkU3OEVBNTcwNTJENDM2Qg --dry-run
  logstore reconcile request.json /disks/*/logstore --cluster-id MkU3OEVBNTcwNTJENDM2Qg
  logstore reconcile wire:capture.bin /disks/*/logstore --allow cluster --broker-epoch 77 --format json
  tail -1 controller.log | logstore reconcile - /disks/*/logstore --allow cluster --dry-run

\b
                          FULL              INCREMENTAL       UNSPECIFIED
  another topic ID        stage, create     stage, create     103, nothing moves
  not wanted here         stage             nothing           nothing
  no topic ID             write it          write it          write it
  missing                 create, or bring back what is staged under its ID (UNSPECIFIED: create);
                          what is not new in the request is created with --allow create alone

\b
Give every log dir of the broker: what lies on one that is left out looks missing, and is made anew.
What is refused names its override:
  --max-share, --max-count      gates that are numbers
  --allow GATE                  cluster, broker, empty, clock, absent, sole-copy, no-id, internal, epoch, create
"""


@click.command("reconcile", epilog=_EPILOG)
@click.argument("request_spec", metavar="REQUEST")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@output_options(Format.TABLE, Format.JSON)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing; takes the locks all the same.")
@click.option("--node-id", type=click.IntRange(0), metavar="N", help="The broker. [default: as the log dirs say]")
@click.option(
    "--cluster-id", "cluster", metavar="ID", help="In which the request was sent: a request does not say it itself."
)
@click.option(
    "--broker-epoch", type=click.IntRange(-1), default=-1, metavar="N",
    help="Of the broker's registration: an earlier request is refused. [default: of the last one carried out here]",
)  # fmt: skip
@click.option(
    "--delay", metavar="TIME",
    help="How long what is staged can come back. [default: 4h for what is stale, 1m for what is deleted]",
)  # fmt: skip
@click.option("--max-share", default="30%", show_default=True, metavar="SHARE", help="Of the broker's replicas.")
@click.option("--max-count", type=click.IntRange(0), default=1000, show_default=True, help="Of the broker's replicas.")
@click.option(
    "--internal", multiple=True, metavar="PATTERN",
    help="Topics that are internal beside Kafka's own, which begin with __. It replaces the default ones: repeat them. "
    "[default: as for 'logstore plan']",
)  # fmt: skip
@click.option(
    "--allow", "allowed", metavar="GATE", multiple=True, type=click.Choice(_ALLOWABLE),
    help=f"Open a gate: {', '.join(_ALLOWABLE)}.",
)  # fmt: skip
@fallback_records_option
def command(**given: Any) -> Exit:
    """Handle one LeaderAndIsr or StopReplica request, as the broker of these log dirs would. It must be stopped.

    REQUEST is JSON or the bytes of a connection, told apart by looking; request:FILE and wire:FILE say which, and -
    reads standard input. All locks are taken, the request is rehearsed, and what it would stage is held to the gates
    that a plan is held to. Nothing is deleted: what is staged comes back with 'logstore restore'. Each log dir keeps a
    journal of the request, .logstore_run.*.ndjson, and no request of an older controller or broker is carried out
    after it; nor does one touch a replica whose own records are of a later leader.

    Exit code 0: every partition is answered with 0. 1: a dry run found something to do. 3: refused, and nothing was
    changed: a bad request, another broker's disks, a broker that runs, a gate that is shut, a stale epoch. 4: some
    partition is answered with an error.
    """
    return carry_out("reconcile", given)
