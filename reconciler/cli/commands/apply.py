"""``logstore apply``: carries out a plan that was reviewed, and says what was done and what comes next.

``logstore repair --apply`` is the same (:func:`carry_out_plan`), without the options that no repair has a use for.
"""

from __future__ import annotations

import errno
import os
import shlex
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from layout.ids import TopicId
from logstore import ChangeRefusedError, NotALogDirError, UnreadableFileError
from logstore.fs import read_small_file
from logstore.repair import RepairStatus
from reconciler.cli.frame import (
    Exit,
    Format,
    InterruptedRunError,
    check_output,
    fallback_records,
    may_be_unread,
    parse_duration_option,
    read_policy,
    say,
    say_step,
    user_name,
    warn,
)
from reconciler.cli.monitoring import MetricsFile
from reconciler.cli.pages import write_outcome
from reconciler.errors import RefusedError, UsageError
from reconciler.metrics import read_apply
from reconciler.next_steps import (
    AppliedPlan,
    Call,
    Step,
    steps_after_apply,
    steps_after_repair,
    undo_of_staging,
    undo_of_stray,
)
from reconciler.plan import (
    STAGING_ACTIONS,
    Action,
    ActionKind,
    ApplyOptions,
    ApplyOutcome,
    Plan,
    StrangeLogDirError,
    apply_plan,
    parse_plan,
)
from reconciler.text import count, moment, quoted, size

PLAN_LIMIT = 1 << 30
"""The largest plan that is read, in bytes; an action takes about a thousand."""


def run(
    *,
    plan_file: str,
    form: str,
    output: str | None,
    changed_data: bool,
    any_host: bool,
    max_age: str | None,
    any_clock: bool,
    fallback_folder: str | None,
    metrics_path: str | None,
    **broker: str | None,
) -> Exit:
    """Carry out a plan that 'logstore plan' or 'logstore repair' made and somebody looked through."""
    oldest_ms = None if max_age is None else parse_duration_option("--max-age", max_age)
    return carry_out_plan(
        plan_file,
        Format(form),
        output,
        Call((), (), fallback_folder, **broker),
        oldest_ms=oldest_ms,
        any_clock=any_clock,
        any_host=any_host,
        changed_data=changed_data,
        metrics_path=metrics_path,
    )


def carry_out_plan(
    plan_file: str,
    form: Format,
    output: str | None,
    call: Call,
    *,
    made_by: str = "plan",
    metrics_path: str | None = None,
    **how: Any,
) -> Exit:
    """Carry out a plan, and say what was done, how it is taken back and what comes next.

    Args:
        plan_file: path of the plan.
        form: of the report.
        output: file of the report; None: standard output.
        call: how the command was called; the plan says for which log dirs and with which metadata it was made.
        made_by: the verb that makes such plans, for messages.
        metrics_path: of the file for metrics; None: none are asked for.
        how: fields of :class:`reconciler.plan.ApplyOptions` that a plan of repairs alone has no use for.

    Raises:
        UsageError: there is no such file, or an option has no use for it.
        RefusedError: the file is no such plan, or nothing may be changed now.
    """
    plan = parse_plan(_read(plan_file, made_by), plan_file)
    if plan.repairs_only:
        _check_unused(plan_file, {name: value for name, value in how.items() if name != "any_clock"})
    check_output(form, output, [each.path for each in plan.log_dirs], [plan_file])
    metrics = MetricsFile(metrics_path, "apply", [each.path for each in plan.log_dirs])
    folder = fallback_records(call.fallback).folder
    # A hold that was laid since counts, so the file is read again that the plan was made with.
    call = replace(call, policy=call.policy or plan.policy.get("policy_file"))
    rules = read_policy(call.policy)
    options = ApplyOptions(os.uname().nodename, user_name(), fallback_records=folder, rules=rules, **how)
    with _refusals(plan, plan_file, _of_plan(call, plan)):
        outcome = apply_plan(plan, options)
    metrics.take(read_apply, outcome)
    undo, steps = _undos(plan, outcome, call), _next_steps(plan, plan_file, outcome, call)
    with may_be_unread():
        write_outcome(outcome, form, output, undo, steps)
    _say_done(outcome)
    for step in undo:
        say_step(step, "undo")
    for step in steps:
        say_step(step)
    return metrics.written(Exit.CLEAN if outcome.is_complete else Exit.PARTLY_FAILED)


@contextmanager
def _refusals(plan: Plan, plan_file: str, call: Call) -> Iterator[None]:
    """Turn an error that keeps the engine from beginning into a refusal, and say what an interruption leaves."""
    try:
        yield
    except (ChangeRefusedError, NotALogDirError) as error:
        raise RefusedError(str(error)) from error
    except StrangeLogDirError as error:
        raise RefusedError(f"{error}. See what is there now, and what comes first: {call.doctor().text}") from error
    except KeyboardInterrupt as error:
        again = call.apply_repair(plan_file) if plan.repairs_only else call.apply(plan_file)
        backed_up = ", with a backup in the log dir" if plan.repairs_only else ""
        raise InterruptedRunError(
            f"interrupted; what was done is done and in the journals{backed_up}. The same command does the rest: "
            f"{again.text}"
        ) from error


def _check_unused(plan_file: str, how: Mapping[str, object]) -> None:
    """Refuse options that this plan of repairs has no use for. Raises UsageError."""
    unused = [name for name, value in how.items() if value is not None and value is not False]
    if unused:
        option = "--max-age" if unused[0] == "oldest_ms" else f"--{unused[0].replace('_', '-')}"
        raise UsageError(f"{plan_file} is a plan of 'logstore repair', which has no use for {option}: leave it out")


def _read(path: str, made_by: str) -> bytes:
    """Read the file of a plan. Raises UsageError: there is no such file, or it is no file that can be read."""
    try:
        data = read_small_file(os.path.realpath(path), PLAN_LIMIT)
    except UnreadableFileError as error:
        raise UsageError(f"{path} {error}") from error
    if data is None:
        raise UsageError(f"{path}: there is no such file; 'logstore {made_by}' with -o {path} makes it")
    return data


def _done(outcome: ApplyOutcome, kinds: Collection[ActionKind]) -> list[Action]:
    """List the actions of some kinds that this run carried out."""
    return [each.action for each in outcome.results if each.status is RepairStatus.DONE and each.action.kind in kinds]


def _say_done(outcome: ApplyOutcome) -> None:
    """Say what was done."""
    for note in outcome.notes:
        warn(note)
    for journal in outcome.journals:
        say(f"journal: {journal}")
    by_status = {status: [each for each in outcome.results if each.status is status] for status in RepairStatus}
    counts = [f"{count(len(found))} {status}" for status, found in by_status.items() if found]
    say(f"{count(len(outcome.results), 'action')}: {', '.join(counts) or 'nothing to do'}")
    if staged := _done(outcome, STAGING_ACTIONS):
        say(f"{size(sum(action.frees for action in staged))} are staged, which frees no space yet")


def _undos(plan: Plan, outcome: ApplyOutcome, call: Call) -> list[Step]:
    """Say how it is undone: the repairs of files all at once, and of the rest one action."""
    steps, staged = list[Step](), _done(outcome, STAGING_ACTIONS)
    if outcome.backups:
        worse = len(_done(outcome, [ActionKind.STAGE_DUPLICATE]))
        stays = f"; the worse copy of {count(worse, 'replica')} stays staged" if worse else ""
        steps.append(Step(f"to put the files back as they were{stays}", call.undo_repair(outcome.backups)))
    return [*steps, _undo(staged, plan, call)] if staged else steps


def _undo(staged: Sequence[Action], plan: Plan, call: Call) -> Step:
    """Say how the first staged replica comes back: a stray goes on being one, without a due time."""
    first = staged[0]
    # Where the records lie is said when a plan is applied, so its UNDO cannot name it.
    folder = "" if call.fallback is None else f", with --spare-records {quoted(call.fallback)}"
    like = f", and each of {count(len(staged) - 1, 'other')} as UNDO says in the plan{folder}"
    others = like if len(staged) > 1 else ""
    if first.kind is ActionKind.STAGE_STRAY:
        command = undo_of_stray(first.log_dir, first.name)
        return Step(f"to leave {first.name} the stray that it was{others}", command)
    (home,) = (each for each in plan.log_dirs if each.path == first.log_dir)
    call = replace(call, log_dirs=tuple(each.path for each in plan.log_dirs if each.broker == home.broker))
    command = undo_of_staging(call, first.topic, first.partition, first.topic_id or str(TopicId.ZERO))
    return Step(f"to bring {first.replica} back{others}", command)


def _next_steps(plan: Plan, plan_file: str, outcome: ApplyOutcome, call: Call) -> tuple[Step, ...]:
    call = _of_plan(call, plan)
    if plan.repairs_only or not plan.log_dirs:
        return steps_after_repair(call, complete=outcome.is_complete)
    return steps_after_apply(_applied(plan, plan_file, outcome, call))


def _of_plan(call: Call, plan: Plan) -> Call:
    """Return the call with the log dirs and the metadata of the plan."""
    sources = tuple(str(source["location"]) for source in plan.metadata if source.get("location"))
    return replace(call, log_dirs=tuple(log_dir.path for log_dir in plan.log_dirs), metadata=sources)


def _applied(plan: Plan, plan_file: str, outcome: ApplyOutcome, call: Call) -> AppliedPlan:
    staged = [
        each.action
        for each in outcome.results
        if each.action.kind in STAGING_ACTIONS and each.status in (RepairStatus.DONE, RepairStatus.ALREADY)
    ]
    failed = [each for each in outcome.results if each.status is RepairStatus.FAILED]
    full = [each.action.kind in STAGING_ACTIONS for each in failed if os.strerror(errno.ENOSPC) in each.detail]
    # What an earlier run staged is due by its own record.
    earlier = len(staged) > len(_done(outcome, STAGING_ACTIONS))
    due = moment(time.time_ns() // 1_000_000 + min(map(plan.delay_of, staged))) if staged and not earlier else None
    brokers = tuple(
        tuple(each.path for each in plan.log_dirs if each.broker == broker)
        for broker in dict.fromkeys(each.broker for each in plan.log_dirs)
    )
    noted = [each.action.log_dir for each in outcome.results if each.action.kind is ActionKind.NOTE_SIGHTING]
    apart = plan.policy.get("apart_ms", "")
    return AppliedPlan(
        call,
        plan_file,
        outcome.is_complete,
        no_space=any(full),
        no_room_in_log_dir=not all(full),
        staged=len(staged),
        due=due,
        brokers=brokers,
        noted=tuple(noted),
        noted_until=moment(time.time_ns() // 1_000_000 + int(apart)) if apart.isdecimal() and len(apart) < 19 else None,
        options=_options(plan),
    )


def _options(plan: Plan) -> tuple[str, ...]:
    """Return the options with which a plan of several sightings was made, word by word; empty: it says none."""
    try:
        return tuple(shlex.split(plan.policy.get("as_typed", "")))
    except ValueError:
        return ()  # the plan was not written by this program
