"""``logstore repair``: makes a plan that somebody reviews, applies a plan, or takes one back.

Making a plan takes no lock and changes nothing. :mod:`reconciler.plan` decides what may be repaired, ``apply`` carries
out the plan, and :mod:`logstore.repair` takes it back; this module has the three ways of calling it, and the words.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from reconciler.cli.commands.apply import carry_out_plan
from reconciler.cli.frame import (
    Exit,
    Format,
    InterruptedRunError,
    check_output,
    destination,
    is_standard,
    may_be_unread,
    metadata_option,
    output_options,
    passed_on_fallback_option,
    passed_on_options,
    say,
    say_step,
    user_name,
)
from reconciler.errors import RefusedError, UsageError
from reconciler.plan import REPAIRS, ActionKind
from reconciler.text import count

if TYPE_CHECKING:
    from logstore.repair import UndoOutcome
    from reconciler.cli.frame import Inputs
    from reconciler.next_steps import Call
    from reconciler.plan import Plan, RepairChoice

_EPILOG = """\b
Examples:
  logstore repair /disks/*/kafka --metadata /disks/1/kafka -o plan.json
  logstore repair --apply plan.json
  logstore repair --undo /disks/*/kafka/.logstore_repair.0123456789abcdef.json
  logstore repair /disks/*/kafka --adopt-topic-id orders -o plan.json

\b
What is repaired:
  write_partition_metadata   missing or damaged, where the metadata and all that lies near agree on the topic ID
  replace_topic_id           another topic ID than the metadata's, for topics that --adopt-topic-id names
  rebuild_checkpoint         an offset checkpoint that does not parse keeps its whole lines
  drop_checkpoint_entries    entries of partitions that have no directory in that log dir
  remove_leftover            a temporary file beside the whole file that it was to become
  stage_duplicate            the worse copy of a replica that is live in two log dirs, or the one that --keep does not
                             name; a purge may take it after 7 d

Never delete partition.metadata to get rid of INCONSISTENT_TOPIC_ID: that cure is of ZooKeeper's days. A KRaft broker
sets every replica without the file aside as stray, data and all.
"""


@click.command("repair", epilog=_EPILOG, short_help="Plan what can be repaired; apply a plan; take it back.")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1)
@metadata_option
@output_options(Format.TABLE, Format.JSON)
@click.option(
    "--only", metavar="KIND", multiple=True, type=click.Choice([kind.value for kind in ActionKind if kind in REPAIRS]),
    help="Plan actions of this kind alone; may be given several times.",
)  # fmt: skip
@click.option(
    "--adopt-topic-id", "adopted", metavar="TOPIC", multiple=True,
    help="Declare the data on the disks to be this topic's, under the topic ID that the metadata has for it now.",
)  # fmt: skip
@click.option(
    "--keep", "kept", metavar="PATH", multiple=True,
    help="Where a replica is live in two log dirs, keep this copy, and stage the other; may be given several times.",
)  # fmt: skip
@click.option("--apply", "plan_file", metavar="PLAN", help="Carry out a plan that was reviewed.")
@click.option("--undo", "backups", metavar="BACKUP...", multiple=True, help="Take back what a repair changed.")
@passed_on_fallback_option
@passed_on_options
def command(
    *,
    paths: tuple[str, ...],
    specs: tuple[str, ...],
    form: str,
    output: str | None,
    only: tuple[str, ...],
    adopted: tuple[str, ...],
    kept: tuple[str, ...],
    plan_file: str | None,
    backups: tuple[str, ...],
    fallback_folder: str | None,
    **broker: str | None,
) -> Exit:
    """Repair damaged metadata and checkpoints of log dirs, from a plan that was reviewed.

    With LOG_DIR, make the plan and show it: no lock is taken, and nothing is changed. -o PLAN.json keeps it. Then
    --apply PLAN.json takes the locks, looks at everything again, backs up, and repairs; what has changed since is
    skipped. The backup lies in the log dir, and --undo puts back what it holds. The broker must be stopped for both.

    Exit code of a plan, 0: nothing is to be repaired. 1: something is. Of --apply and --undo, 0: all was done. 3:
    refused, for example because the broker runs. 4: some of it was skipped or failed; the output says why.
    """
    if backups:
        # The shell expands a pattern to several files, and only the first of them is the value of --undo.
        backups, paths = (*backups, *paths), ()
    if bool(paths) + (plan_file is not None) + bool(backups) != 1:
        raise UsageError("give log dirs to plan for, or --apply PLAN, or --undo BACKUP, and one of them only")
    if not paths and (specs or only or adopted or kept):
        raise UsageError(
            "--metadata, --only, --adopt-topic-id and --keep are for making a plan: a plan is applied as it is"
        )
    from reconciler.next_steps import Call

    now_ms = time.time_ns() // 1_000_000
    call = Call(paths, specs, fallback_folder, **broker)
    if paths:
        from reconciler.plan import RepairChoice

        choice = RepairChoice(
            frozenset(map(ActionKind, only)), frozenset(adopted), frozenset(map(os.path.abspath, kept))
        )
        return _make(call, choice, Format(form), output, now_ms=now_ms)
    if plan_file is not None:
        return carry_out_plan(plan_file, Format(form), output, call, made_by="repair")
    return _undo(backups, Format(form), output)


def _make(call: Call, choice: RepairChoice, form: Format, output: str | None, *, now_ms: int) -> Exit:
    from reconciler.cli.frame import sort_inputs
    from reconciler.cli.pages import show_plan
    from reconciler.next_steps import Step, step_of_undecided, step_of_unshown
    from reconciler.plan import encode_plan
    from reconciler.verdicts import NOTHING_SHOWS

    inputs = sort_inputs(call.log_dirs)
    if inputs.inventories:
        raise UsageError(f"{inputs.inventories[0]} is an inventory: a repair needs the log dirs themselves")
    check_output(Format.JSON, output, inputs.log_dirs)
    plan, undecided = _planned(inputs, call.metadata, choice, now_ms)
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
        say_step(step_of_unshown(unshown), "first")
    if undecided:
        kept = [*choice.kept, *(copies[0] for copies in undecided)]
        keeping = call.repair(only=choice.only, adopted=choice.adopted, kept=kept)
        say_step(step_of_undecided(undecided, keeping))
    return Exit.FINDINGS if plan.actions or plan.left_alone else Exit.CLEAN


def _planned(
    inputs: Inputs, specs: Sequence[str], choice: RepairChoice, now_ms: int
) -> tuple[Plan, list[tuple[str, ...]]]:
    """Make a plan; with it, the copies of each replica that is live twice, where only a person can decide."""
    from logstore.log_dir import read_identity
    from logstore.scan import scan_all
    from reconciler.cli.frame import choose_metadata, with_progress
    from reconciler.desired import by_cluster
    from reconciler.plan import PlanOrigin, RepairView, propose_repair

    identities = (read_identity(log_dir).identity for log_dir in inputs.log_dirs)
    clusters = {each.cluster_id for each in identities if each is not None and each.cluster_id}
    states = by_cluster(choose_metadata(specs, inputs, now_ms), clusters)
    observations = scan_all(inputs.log_dirs, sizes=bool(choice.kept))
    seen = list(with_progress(observations, len(inputs.log_dirs), "scanning log dirs"))
    view = RepairView.of(seen, states, choice.adopted, now_ms)
    plan, undecided = propose_repair(view, choice, PlanOrigin(now_ms, os.uname().nodename, user_name()))
    return plan, [each.paths for each in undecided]


def _undo(backups: Sequence[str], form: Format, output: str | None) -> Exit:
    from logstore import ChangeRefusedError, NotALogDirError
    from logstore.repair import undo_repair
    from reconciler.cli.pages import write_undone

    check_output(form, output, [os.path.dirname(os.path.abspath(each)) for each in backups], backups)
    outcomes: dict[str, UndoOutcome] = {}
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
            left = "what was put back so far is as it was; --undo again does the rest"
            raise InterruptedRunError(f"interrupted; {left}") from error
    with may_be_unread():
        write_undone(list(outcomes.values()), form, output)
    for backup in backups:
        if backup not in outcomes:
            say(f"{backup} is not there: what it kept was put back before, or it was never made")
        elif not outcomes[backup].backup_removed:
            say(f"{backup} stays, because not all that it holds was put back")
    is_complete = len(outcomes) == len(backups) and all(each.backup_removed for each in outcomes.values())
    return Exit.CLEAN if is_complete else Exit.PARTLY_FAILED
