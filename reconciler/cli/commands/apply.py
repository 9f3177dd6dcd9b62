"""``logstore apply``: carries out a plan that was reviewed, and says what was done and what comes next.

A plan of ``logstore repair`` is carried out as ``logstore repair --apply`` does it.
"""

from __future__ import annotations

import errno
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from reconciler.cli.frame import (
    Exit,
    Format,
    InterruptedRunError,
    check_output,
    fallback_records,
    fallback_records_option,
    may_be_unread,
    output_options,
    parse_duration_option,
    passed_on_options,
    say,
    say_step,
    user_name,
)
from reconciler.errors import UsageError
from reconciler.text import count, moment, size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconciler.next_steps import AppliedPlan, Call, Step
    from reconciler.plan import Action, ApplyOutcome, Plan

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
@click.option(
    "--max-age", metavar="TIME",
    help="The greatest age of the plan and of its metadata. [default: 1d for the plan, and for its metadata as much as "
    "it was planned with]",
)  # fmt: skip
@click.option("--any-clock", is_flag=True, help="Take this machine's clock although plan or disks are ahead of it.")
@fallback_records_option
@passed_on_options
def command(
    *,
    plan_file: str,
    form: str,
    output: str | None,
    changed_data: bool,
    any_host: bool,
    max_age: str | None,
    any_clock: bool,
    fallback_folder: str | None,
    **broker: str | None,
) -> Exit:
    """Carry out a plan that 'logstore plan' or 'logstore repair' made and somebody looked through.

    The broker must be stopped.

    All locks are taken first, and every line is looked at again: what has changed since is skipped, with the reason.
    Nothing is deleted; what is staged comes back with 'logstore restore' until 'logstore purge' takes it.

    Exit code 0: all is as the plan wants it. 3: refused, for example because the broker runs, and nothing was changed.
    4: some of it was skipped or failed; the output says why.
    """
    from layout.ours import is_repair_plan
    from reconciler.cli.commands.repair import carry_out_repair
    from reconciler.cli.pages import write_outcome
    from reconciler.next_steps import Call, steps_after_apply
    from reconciler.plan import ApplyOptions, apply_plan, parse_plan

    oldest_ms = None if max_age is None else parse_duration_option("--max-age", max_age)
    data = _read(plan_file)
    if is_repair_plan(data):
        given = {"--changed-data": changed_data, "--any-host": any_host, "--max-age": max_age, "--any-clock": any_clock}
        _check_unused(plan_file, given | {"--format ndjson": form == Format.NDJSON})
        return carry_out_repair(plan_file, Format(form), output, Call((), (), fallback_folder, **broker))
    plan = parse_plan(data, plan_file)
    check_output(Format(form), output, [each.path for each in plan.log_dirs], [plan_file])
    how = ApplyOptions(
        os.uname().nodename,
        user_name(),
        fallback_records=fallback_records(fallback_folder).folder,
        oldest_ms=oldest_ms,
        any_clock=any_clock,
        any_host=any_host,
        changed_data=changed_data,
    )
    call = Call((), (), fallback_folder, **broker)
    try:
        outcome = apply_plan(plan, how)
    except KeyboardInterrupt as error:
        raise InterruptedRunError(
            "interrupted; what was done is done and in the journals. The same command does the rest: "
            f"{call.apply(plan_file).text}"
        ) from error
    with may_be_unread():
        write_outcome(outcome, Format(form), output)
    _say_done(plan, outcome, call)
    for step in steps_after_apply(_applied(plan, plan_file, outcome, call)):
        say_step(step)
    return Exit.CLEAN if outcome.is_complete else Exit.PARTLY_FAILED


def _check_unused(plan_file: str, given: Mapping[str, object]) -> None:
    """Refuse options that only a plan of 'logstore plan' has a use for. Raises UsageError."""
    unused = [name for name, value in given.items() if value]
    if unused:
        raise UsageError(f"{plan_file} is a plan of 'logstore repair', which has no use for {unused[0]}: leave it out")


def _read(path: str) -> bytes:
    """Read the file of a plan. Raises UsageError: there is no such file, or it is no file that can be read."""
    from logstore import UnreadableFileError
    from logstore.fs import read_small_file

    try:
        data = read_small_file(os.path.realpath(path), PLAN_LIMIT)
    except UnreadableFileError as error:
        raise UsageError(f"{path} {error}") from error
    if data is None:
        raise UsageError(f"{path}: there is no such file; 'logstore plan' with -o {path} makes it")
    return data


def _say_done(plan: Plan, outcome: ApplyOutcome, call: Call) -> None:
    """Say what was done, and how one action is undone."""
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
        say(f"{size(sum(action.frees for action in staged))} are staged, which frees no space yet")
        say_step(_undo(staged, plan, call), "undo")


def _undo(staged: Sequence[Action], plan: Plan, call: Call) -> Step:
    """Say how the first staged replica comes back: a stray goes on being one, without a due time."""
    from layout.ids import TopicId
    from reconciler.next_steps import Step, undo_of_staging, undo_of_stray
    from reconciler.plan import ActionKind

    first = staged[0]
    others = f", and each of {count(len(staged) - 1, 'other')} as UNDO says in the plan" if len(staged) > 1 else ""
    if first.kind is ActionKind.STAGE_STRAY:
        command = undo_of_stray(first.log_dir, first.name)
        return Step(f"to leave {first.name} the stray that it was{others}", command)
    (home,) = (each for each in plan.log_dirs if each.path == first.log_dir)
    call = replace(call, log_dirs=tuple(each.path for each in plan.log_dirs if each.broker == home.broker))
    command = undo_of_staging(call, first.topic, first.partition, first.topic_id or str(TopicId.ZERO))
    return Step(f"to bring {first.replica} back{others}", command)


def _applied(plan: Plan, plan_file: str, outcome: ApplyOutcome, call: Call) -> AppliedPlan:
    from logstore.repair import RepairStatus
    from reconciler.next_steps import AppliedPlan
    from reconciler.plan import STAGING_ACTIONS

    staged = [
        each.action
        for each in outcome.results
        if each.action.kind in STAGING_ACTIONS and each.status in (RepairStatus.DONE, RepairStatus.ALREADY)
    ]
    failed = [each for each in outcome.results if each.status is RepairStatus.FAILED]
    sources = tuple(str(source["location"]) for source in plan.metadata if source.get("location"))
    call = replace(call, log_dirs=tuple(log_dir.path for log_dir in plan.log_dirs), metadata=sources)
    full = [each.action.kind in STAGING_ACTIONS for each in failed if os.strerror(errno.ENOSPC) in each.detail]
    due = moment(time.time_ns() // 1_000_000 + plan.delay_ms) if staged else None
    brokers = tuple(
        tuple(each.path for each in plan.log_dirs if each.broker == broker)
        for broker in dict.fromkeys(each.broker for each in plan.log_dirs)
    )
    return AppliedPlan(
        call,
        plan_file,
        outcome.is_complete,
        no_space=any(full),
        no_room_in_log_dir=not all(full),
        staged=len(staged),
        due=due,
        brokers=brokers,
    )
