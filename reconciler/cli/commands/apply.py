"""``logstore apply``: carries out a plan that was reviewed, and says what was done and what comes next."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from reconciler.cli.frame import (
    Exit,
    Format,
    InterruptedRunError,
    check_output,
    fallback_records,
    fallback_records_option,
    output_options,
    parse_duration_option,
    say,
    user_name,
)
from reconciler.errors import UsageError
from reconciler.text import count, quoted, size

if TYPE_CHECKING:
    from reconciler.plan import ApplyOutcome, Plan

PLAN_LIMIT = 1 << 30
"""The largest plan that is read, in bytes; an action takes about a thousand."""

_EPILOG = """\b
Examples:
  logstore apply plan.json
  logstore apply /root/plan.json --format json -o outcome.json
  logstore apply plan.json --changed-data

\b
There is no dry run: the plan is one. Applying it again is safe, and does what a crash or an interrupt left undone. Each
log dir keeps a journal of every run that changed it, .logstore_run.*.ndjson, which a broker passes over.
"""


@click.command("apply", epilog=_EPILOG, short_help="Carry out a plan that was reviewed; what has changed is skipped.")
@click.argument("plan_file", metavar="PLAN")
@output_options(Format.TABLE, Format.JSON, Format.NDJSON)
@click.option("--changed-data", is_flag=True, help="Also stage replicas whose data has changed since the plan.")
@click.option("--any-host", is_flag=True, help="Take a plan that was made on a machine of another name.")
@click.option("--max-age", default="1d", show_default=True, metavar="TIME", help="The greatest age of the plan.")
@fallback_records_option
def command(
    *,
    plan_file: str,
    form: str,
    output: str | None,
    changed_data: bool,
    any_host: bool,
    max_age: str,
    fallback_folder: str | None,
) -> Exit:
    """Carry out a plan that 'logstore plan' made and somebody looked through. The broker must be stopped.

    All locks are taken first, and every line is looked at again: what has changed since is skipped, with the reason.
    Nothing is deleted; what is staged comes back with 'logstore restore' until 'logstore purge' takes it.

    Exit code 0: all is as the plan wants it. 3: refused, for example because the broker runs, and nothing was changed.
    4: some of it was skipped or failed; the output says why.
    """
    from reconciler.cli.pages import write_outcome
    from reconciler.plan import ApplyOptions, apply_plan

    oldest_ms = parse_duration_option("--max-age", max_age)
    plan = read_plan(plan_file)
    check_output(Format(form), output, [each.path for each in plan.log_dirs], [plan_file])
    how = ApplyOptions(
        os.uname().nodename,
        user_name(),
        fallback_records=fallback_records(fallback_folder).folder,
        oldest_ms=oldest_ms,
        any_host=any_host,
        changed_data=changed_data,
    )
    try:
        outcome = apply_plan(plan, how)
    except KeyboardInterrupt as error:
        raise InterruptedRunError(
            f"interrupted; what was done is done and in the journals. Next: logstore apply {quoted(plan_file)} does "
            "the rest"
        ) from error
    write_outcome(outcome, Format(form), output)
    _say_next(plan, outcome)
    return Exit.CLEAN if outcome.is_complete else Exit.PARTLY_FAILED


def read_plan(path: str) -> Plan:
    """Read a plan.

    Raises:
        UsageError: there is no such file.
        RefusedError: the file is no plan, or was changed otherwise than by taking out lines.
    """
    from logstore import UnreadableFileError
    from logstore.fs import read_small_file
    from reconciler.plan import parse_plan

    try:
        data = read_small_file(os.path.realpath(path), PLAN_LIMIT)
    except UnreadableFileError as error:
        raise UsageError(f"{path} {error}") from error
    if data is None:
        raise UsageError(f"{path}: there is no such file; logstore plan LOG_DIR... -o {path} makes it")
    return parse_plan(data, path)


def _say_next(plan: Plan, outcome: ApplyOutcome) -> None:
    from logstore.repair import RepairStatus
    from reconciler.plan import STAGING_ACTIONS

    for note in outcome.notes:
        say(note)
    for journal in outcome.journals:
        say(f"journal: {journal}")
    by_status = {status: [each for each in outcome.results if each.status is status] for status in RepairStatus}
    counts = [f"{count(len(found))} {status}" for status, found in by_status.items() if found]
    say(f"{count(len(outcome.results), 'action')}: {', '.join(counts) or 'nothing to do'}")
    staged = [each.action for each in by_status[RepairStatus.DONE] if each.action.kind in STAGING_ACTIONS]
    if staged:
        log_dirs = " ".join(map(quoted, dict.fromkeys(action.log_dir for action in staged)))
        given_back = size(sum(action.frees for action in staged))
        say(f"{given_back} are staged, which frees no space yet. Next, when they are due: logstore purge {log_dirs}")
        say(f"to take it back: logstore restore {log_dirs} --all, or one alone by the undo of its line in the plan")
    if by_status[RepairStatus.SKIPPED] or by_status[RepairStatus.FAILED]:
        paths = " ".join(quoted(log_dir.path) for log_dir in plan.log_dirs)
        say(f"for what was skipped or failed, see why above. Next: logstore plan {paths} makes a new plan")
