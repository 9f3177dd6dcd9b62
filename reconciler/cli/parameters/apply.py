"""The parameters of ``logstore apply``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import Exit, Format, carry_out, fallback_records_option, output_options, passed_on_options
from reconciler.cli.monitoring import metrics_option

_EPILOG = """\b
Examples:
  logstore apply plan.json
  logstore apply /root/plan.json --format json -o outcome.json
  logstore apply plan.json --changed-data

\b
There is no dry run: the plan is one. Applying it again is safe, and does what a crash or an interrupt left undone. Each
log dir keeps a journal of every run that changed it, .logstore_run.*.ndjson, and a backup of every file that a repair
changed, .logstore_repair.*.json, for 'logstore repair --undo'. A broker passes over both.
"""


@click.command("apply", epilog=_EPILOG)
@click.argument("plan_file", metavar="PLAN")
@output_options(Format.TABLE, Format.JSON, Format.NDJSON)
@click.option("--changed-data", is_flag=True, help="Also stage replicas whose data has changed since the plan.")
@click.option("--any-host", is_flag=True, help="Take a plan that was made on a machine of another name.")
@click.option(
    "--max-age", metavar="TIME",
    help="The greatest age of the plan and of its metadata. [default: 1d for the plan, and for its metadata as much as "
    "it was planned with]",
)  # fmt: skip
@click.option("--any-clock", is_flag=True, help="Take this machine's clock although plan or disks are ahead of it.")
@fallback_records_option
@metrics_option
@passed_on_options
def command(**given: Any) -> Exit:
    """Carry out a plan that 'logstore plan' or 'logstore repair' made and somebody looked through.

    The broker must be stopped.

    All locks are taken first, and every line is looked at again: what has changed since is skipped, with the reason.
    Nothing is deleted; what is staged comes back with 'logstore restore' until 'logstore purge' takes it.

    Exit code 0: all is as the plan wants it. 3: refused, for example because the broker runs, and nothing was changed.
    4: some of it was skipped or failed; the output says why.
    """
    return carry_out("apply", given)
