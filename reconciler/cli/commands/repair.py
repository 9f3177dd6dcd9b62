"""``logstore repair``: makes a plan that somebody reviews, applies a plan, or takes one back.

Making a plan takes no lock and changes nothing. :mod:`reconciler.plan` decides what may be repaired, ``apply`` carries
out the plan, and :mod:`logstore.repair` takes it back; this module has the three ways of calling it, and the words.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace

import click

from logstore import ChangeRefusedError, NotALogDirError
from logstore.log_dir import read_identity
from logstore.repair import UndoOutcome, undo_repair
from logstore.scan import scan_all
from reconciler.cli.commands.apply import carry_out_plan
from reconciler.cli.commands.plan import show_refused
from reconciler.cli.frame import (
    Exit,
    Format,
    Inputs,
    InterruptedRunError,
    check_output,
    choose_metadata,
    destination,
    is_standard,
    may_be_unread,
    parse_duration_option,
    read_policy,
    say,
    say_problems,
    say_step,
    sort_log_dirs,
    user_name,
    warn,
    warn_unfinished,
    with_progress,
)
from reconciler.cli.pages import show_plan, write_undone
from reconciler.cli.settings import Level
from reconciler.desired import by_cluster
from reconciler.errors import RefusedError, UsageError
from reconciler.next_steps import Call, Step, step_of_undecided, step_of_unshown
from reconciler.plan import (
    ActionKind,
    Gate,
    GatesShutError,
    Plan,
    PlanOrigin,
    Policy,
    RepairChoice,
    RepairView,
    encode_plan,
    propose_repair,
    read_history,
)
from reconciler.policy import PolicyRules
from reconciler.text import count
from reconciler.verdicts import NOTHING_SHOWS


def run(
    *,
    paths: tuple[str, ...],
    specs: tuple[str, ...],
    form: str,
    output: str | None,
    only: tuple[str, ...],
    adopted: tuple[str, ...],
    kept: tuple[str, ...],
    max_age: str | None,
    allowed: tuple[str, ...],
    plan_file: str | None,
    backups: tuple[str, ...],
    any_clock: bool,
    fallback_folder: str | None,
    **broker: str | None,
) -> Exit:
    """Repair damaged metadata and checkpoints of log dirs, from a plan that was reviewed."""
    if backups:
        # The shell expands a pattern to several files, and only the first of them is the value of --undo.
        backups, paths = (*backups, *paths), ()
    if bool(paths) + (plan_file is not None) + bool(backups) != 1:
        raise UsageError("give log dirs to plan for, or --apply PLAN, or --undo BACKUP, and one of them only")
    opened = [] if max_age is None else ["--max-age", max_age]
    opened += [word for gate in allowed for word in ("--allow", gate)]
    if not paths and (specs or only or adopted or kept or opened):
        raise UsageError(
            "--metadata, --only, --adopt-topic-id, --keep, --max-age and --allow are for making a plan: a plan is "
            "applied as it is"
        )
    if any_clock and plan_file is None:
        raise UsageError("--any-clock goes with --apply")
    now_ms = time.time_ns() // 1_000_000
    call = Call(paths, specs, fallback_folder, **broker, opened=shlex.join(opened) or None)
    if paths:
        rules = read_policy(call.policy)
        choice = RepairChoice(
            frozenset(map(ActionKind, only)),
            frozenset(adopted),
            frozenset(map(os.path.abspath, kept)),
            rules,
            _policy(rules, max_age, allowed),
        )
        return _make(call, choice, Format(form), output, now_ms=now_ms)
    if plan_file is not None:
        return carry_out_plan(plan_file, Format(form), output, call, made_by="repair", any_clock=any_clock)
    return _undo(backups, Format(form), output, call)


def _policy(rules: PolicyRules, max_age: str | None, allowed: Sequence[str]) -> Policy:
    policy = Policy.cautious().with_numbers(rules)
    if max_age is not None:
        policy = replace(policy, oldest_ms=parse_duration_option("--max-age", max_age))
    return replace(policy, allowed=frozenset(map(Gate, allowed)))


def _make(call: Call, choice: RepairChoice, form: Format, output: str | None, *, now_ms: int) -> Exit:
    inputs = sort_log_dirs(call.log_dirs, ": a repair needs the log dirs themselves")
    check_output(Format.JSON, output, inputs.log_dirs)
    try:
        plan, undecided = _planned(inputs, call.metadata, choice, now_ms)
    except GatesShutError as error:
        return show_refused(error, click.get_current_context(), form, output, call)
    if form is Format.JSON or output is not None:
        with destination(output) as out:
            out.write(encode_plan(plan))
    if form is Format.TABLE and output != "-":
        show_plan(plan, nothing="There is nothing that can be repaired.")
    if plan.actions:
        say(f"{count(len(plan.actions), 'action')} planned, and nothing was changed")
        if is_standard(output):
            command = call.repair(only=choice.only, adopted=choice.adopted, kept=choice.kept)
            step = Step("keep this plan, to apply it", command)
        else:
            step = Step("look through the plan, stop the broker, and apply it", call.apply_repair(str(output)))
        say_step(step)
    unshown = sum(NOTHING_SHOWS in action.why for action in plan.actions)
    if unshown:
        say_step(step_of_unshown(unshown), "first", Level.WARNING)
    if undecided:
        kept = [*choice.kept, *(copies[0] for copies in undecided)]
        keeping = call.repair(only=choice.only, adopted=choice.adopted, kept=kept)
        say_step(step_of_undecided(undecided, keeping), level=Level.WARNING)
    return Exit.FINDINGS if plan.actions or plan.left_alone else Exit.CLEAN


def _planned(
    inputs: Inputs, specs: Sequence[str], choice: RepairChoice, now_ms: int
) -> tuple[Plan, list[tuple[str, ...]]]:
    """Make a plan; with it, the copies of each replica that is live twice, where only a person can decide."""
    identities = (read_identity(log_dir).identity for log_dir in inputs.log_dirs)
    clusters = {each.cluster_id for each in identities if each is not None and each.cluster_id}
    given = choose_metadata(specs, inputs, now_ms)
    say_problems(given)
    warn_unfinished(inputs.log_dirs)
    states = by_cluster(given, clusters)
    observations = scan_all(inputs.log_dirs, sizes=bool(choice.kept))
    seen = list(with_progress(observations, len(inputs.log_dirs), "scanning log dirs"))
    view = RepairView.of(seen, states, choice.adopted, now_ms)
    history = read_history(view.log_dirs)
    for sentence in history.unreadable:
        warn(sentence)
    origin = PlanOrigin(now_ms, os.uname().nodename, user_name())
    plan, undecided = propose_repair(view, choice, origin, history.memory())
    return plan, [each.paths for each in undecided]


def _undo(backups: Sequence[str], form: Format, output: str | None, call: Call) -> Exit:
    check_output(form, output, [os.path.dirname(os.path.abspath(each)) for each in backups], backups)
    outcomes: dict[str, UndoOutcome] = {}
    again = call.undo_repair(backups).text
    for number, backup in enumerate(backups, 1):
        try:
            outcomes[backup] = undo_repair(backup)
        except (ChangeRefusedError, NotALogDirError) as error:
            # An undo of several that was cut short has removed the first of them, and the same command does the rest;
            # a single one that is not there, or none of several, is refused.
            was_undone = isinstance(error, ChangeRefusedError) and not os.path.lexists(backup)
            if not was_undone or (number == len(backups) and not outcomes):
                raise RefusedError(str(error)) from error
        except KeyboardInterrupt as error:
            left = f"what was put back so far is as it was. The same command does the rest: {again}"
            raise InterruptedRunError(f"interrupted; {left}") from error
    with may_be_unread():
        write_undone(list(outcomes.values()), form, output)
    for backup in backups:
        if backup not in outcomes:
            warn(f"{backup} is not there: what it kept was put back before, or it was never made")
        elif not outcomes[backup].backup_removed:
            warn(f"{backup} stays, because not all that it holds was put back")
    is_complete = len(outcomes) == len(backups) and all(each.backup_removed for each in outcomes.values())
    return Exit.CLEAN if is_complete else Exit.PARTLY_FAILED
