"""``logstore plan``: turns verdicts into actions, held to the gates, as a file that somebody reviews.

Takes no lock and changes nothing. :mod:`reconciler.plan` decides which actions are allowed; this module has the order
in which things are read.
"""

from __future__ import annotations

import os
import shlex
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

import click

from layout.topic import TopicPartition
from logstore import LogStoreError
from logstore.log_dir import FallbackRecords, LogDirView, ReadOnlyLogDir
from logstore.scan import scan_all
from logstore.staging import Placement, choose_placement, placements, staging_path
from reconciler.cli.frame import (
    Exit,
    Format,
    Inputs,
    Returning,
    TwinSearch,
    check_output,
    choose_metadata,
    destination,
    fallback_records,
    find_log_dirs,
    forbidden_in,
    is_given,
    is_standard,
    parse_duration_option,
    parse_share,
    parse_size,
    read_policy,
    say,
    say_problems,
    say_step,
    sort_log_dirs,
    user_name,
    warn,
    warn_unfinished,
    why_in_use,
    with_progress,
    words_of_call,
)
from reconciler.cli.monitoring import MetricsFile
from reconciler.cli.pages import show_plan
from reconciler.cli.settings import Level
from reconciler.desired import BrokerKey
from reconciler.errors import RefusedError
from reconciler.metrics import Readings, read_judged, read_metadata, read_plan
from reconciler.next_steps import PLAN_FILE, Call, Command, Step, step_of_fleet, step_of_unshown
from reconciler.plan import (
    STAGING_ACTIONS,
    ActionKind,
    Gate,
    GatesShutError,
    Plan,
    PlanChoice,
    PlanOrigin,
    PlanView,
    Policy,
    encode_plan,
    make_plan,
    read_history,
)
from reconciler.text import count, listed, size
from reconciler.verdicts import NOTHING_SHOWS, Verdict, broker_of

_SAID_BY_THE_PLAN = ("paths", "--metadata", "--output", "--format")
"""Parameters of a call that its plan says already, and those of what is written."""


def run(
    *,
    paths: tuple[str, ...],
    specs: tuple[str, ...],
    form: str,
    output: str | None,
    topics: tuple[str, ...],
    verdicts: tuple[Verdict, ...],
    need: str | None,
    strays: bool,
    strays_without_id: bool,
    refetched: tuple[str, ...],
    sightings: int,
    apart: str,
    delay: str,
    staging: str | None,
    max_age: str,
    max_share: str,
    max_count: int,
    internal: tuple[str, ...],
    allowed: tuple[str, ...],
    fallback_folder: str | None,
    metrics_path: str | None,
    most_topics: int,
    **broker: str | None,
) -> Exit:
    """Compare log dirs with the cluster's metadata, and plan what to do about it. Nothing is changed."""
    policy = Policy(
        parse_duration_option("--max-age", max_age),
        0.3,
        parse_share(max_share),
        max_count,
        frozenset(map(Gate, allowed)),
    )
    rules, context = read_policy(broker["policy"]), click.get_current_context()
    choice = PlanChoice(
        policy.with_numbers(rules, [name for name in rules.gates if is_given(context, name)]),
        parse_duration_option("--delay", delay),
        topics,
        frozenset(verdicts),
        None if need is None else parse_size(need),
        strays,
        sightings,
        parse_duration_option("--apart", apart),
        internal,
        strays_without_id,
        frozenset(refetched),
        rules,
        shlex.join(words_of_call(context, _SAID_BY_THE_PLAN)),
    )
    inputs = sort_log_dirs(paths, ": a plan needs the log dirs themselves")
    check_output(Format.JSON, output, inputs.log_dirs)
    metrics = MetricsFile(metrics_path, "plan", inputs.log_dirs)
    now_ms = time.time_ns() // 1_000_000
    fallback = fallback_records(fallback_folder)
    view = _view(inputs, specs, choice, now_ms, fallback=fallback, staging=staging, metrics=metrics)
    metrics.take(_read_view, view, now_ms, most_topics)
    call = Call(paths, specs, fallback_folder, **broker)
    try:
        plan = _planned(view, choice, now_ms)
    except GatesShutError as error:
        metrics.take(read_plan, error.plan, [refusal.gate for refusal in error.refusals])
        return metrics.written(show_refused(error, context, Format(form), output, call, log_dirs=inputs.log_dirs))
    metrics.take(read_plan, plan)
    _show(plan, Format(form), output)
    _say_sum(plan, choice)
    _say_steps(plan, output, call)
    return metrics.written(Exit.FINDINGS if plan.actions else Exit.CLEAN)


def _read_view(readings: Readings, view: PlanView, now_ms: int, most_topics: int) -> None:
    """Take in what a plan is made from, as metrics."""
    read_judged(readings, view.judged_of, most_topics)
    for state in view.states.values():
        read_metadata(readings, state.identity, now_ms)


def show_refused(
    error: GatesShutError,
    context: click.Context,
    form: Format,
    output: str | None,
    call: Call,
    *,
    log_dirs: Sequence[str] = (),
) -> Exit:
    """Show a refused plan and every shut gate, and write no file that could be applied.

    Where this user may not read one of the ``log_dirs``, no gate is to be opened, but another user has to ask.
    """
    if form is Format.TABLE and output != "-":
        show_plan(error.plan)
    for refusal in error.refusals:
        warn(f"refused: {refusal.reason}")
    kept = "" if output is None else f", and nothing is written to {output}"
    warn(f"no plan is made{kept}; it would have {count(len(error.plan.actions), 'action')}")
    options = [refusal.option for refusal in error.refusals if refusal.option is not None]
    step: Step | None = Step("to plan all the same", command_that_opens(context, options))
    if len(options) < len(error.refusals):
        step = step_of_fleet("DUPLICATE_DIRECTORY_ID", call)
    closed = next(filter(None, map(forbidden_in, log_dirs)), None)
    if closed is not None:
        why = f"this user may not read {closed}: become the broker's own user, or root, and plan again"
        step = Step(why, command_that_opens(context, ()))
    if step is not None:
        say_step(step, level=Level.WARNING)
    return Exit.REFUSED


def command_that_opens(context: click.Context, options: Iterable[tuple[str, str]]) -> Command:
    """Make the command of this call with further options.

    Args:
        context: of the call.
        options: each an option and its value; of the numbers for one option the greatest counts.
    """
    found = list(dict.fromkeys(options))
    numbers = {option: max(_number(value) for each, value in found if each == option) for option, _ in found}
    added = dict.fromkeys(pair if pair[0] == "--allow" else (pair[0], numbers[pair[0]][1]) for pair in found)
    words = words_of_call(context, numbers.keys() - {"--allow"})
    return Command(str(context.command.name), (*words, *(word for pair in added for word in pair)))


def _number(value: str) -> tuple[int, str]:
    """Return the number in the value of an option such as ``60%``, and the value; a gate has none."""
    digits = value.rstrip("%h")
    return int(digits) if digits.isdecimal() else 0, value


def _planned(view: PlanView, choice: PlanChoice, now_ms: int) -> Plan:
    history = read_history(view.log_dirs)
    for sentence in history.unreadable:
        warn(sentence)
    return make_plan(view, choice, PlanOrigin(now_ms, os.uname().nodename, user_name()), history.memory())


def _view(
    inputs: Inputs,
    specs: Sequence[str],
    choice: PlanChoice,
    now_ms: int,
    *,
    fallback: FallbackRecords,
    staging: str | None,
    metrics: MetricsFile,
) -> PlanView:
    states = choose_metadata(specs, inputs, now_ms)
    say_problems(states)
    warn_unfinished(inputs.log_dirs)
    began = time.monotonic()
    scanned = scan_all(inputs.log_dirs, fallback=fallback)
    seen = list(with_progress(scanned, len(inputs.log_dirs), "scanning log dirs"))
    metrics.take(Readings.scanned, time.monotonic() - began)
    any_cluster = Gate.CLUSTER in choice.policy.allowed
    roots = _staging_roots([each.log_dir for each in seen], staging)
    view = PlanView.of(seen, roots, states, now_ms, any_cluster=any_cluster)
    view.elsewhere = _live_elsewhere(view)
    return view


def _live_elsewhere(view: PlanView) -> dict[tuple[str, str], str]:
    """Say of each replica that could come back why it may be live in a log dir of its broker that was not given."""
    given: dict[BrokerKey, list[str]] = defaultdict(list)
    for log_dir in view.trusted:
        given[log_dir.broker].append(log_dir.path)
    searches: dict[BrokerKey, TwinSearch] = {}
    found = {}
    for judged in view.judged:
        row, wanted = judged.observed, judged.wanted
        if row is None or wanted is None or judged.verdict not in (Verdict.STAGED, Verdict.STAGED_DUE, Verdict.STRAY):
            continue
        broker, name = broker_of(row), TopicPartition(wanted["topic"], wanted["partition"])
        if broker not in searches:
            states = [view.states[broker.cluster]] if broker.cluster in view.states else []
            searches[broker] = TwinSearch(find_log_dirs(broker, given[broker]), states)
        twin = searches[broker].known.twin_of(str(name))
        why = searches[broker].why_it_stays(Returning(name, row["topic_id"], ""))
        why = why if twin is None else f"{name} is live in {twin}, which was not given"
        if why is not None:
            found[row["log_dir"], row["name"]] = why
    return found


def _staging_roots(log_dirs: Sequence[str], asked: str | None) -> dict[str, str]:
    """Find where the replicas of the log dirs would be staged.

    Raises:
        RefusedError: they cannot be staged in the requested place.
    """
    staging: dict[str, str] = {}
    for path in log_dirs:
        try:
            with ReadOnlyLogDir.open(path) as log_dir:
                staging[path] = staging_path(log_dir, _placement(log_dir, asked))
        except (LogStoreError, OSError):
            continue  # the scan has a row with the problem of this log dir
    return staging


def _placement(log_dir: LogDirView, asked: str | None) -> Placement:
    chosen = choose_placement(log_dir)
    if asked is None or asked == chosen or asked not in placements(log_dir):
        return chosen  # one of our own log dirs has only one place
    if asked == Placement.IN_PLACE:
        return Placement.IN_PLACE
    raise RefusedError(
        f"{log_dir.path}: nothing can be staged in {staging_path(log_dir, Placement.SIBLING)}: it is another file "
        "system, no directory, or not ours to make. Leave out --staging, and replicas are staged in place"
    )


def _show(plan: Plan, form: Format, output: str | None) -> None:
    if form is Format.JSON or output is not None:
        with destination(output) as out:
            out.write(encode_plan(plan))
    if form is Format.TABLE and output != "-":
        show_plan(plan)


def _say_steps(plan: Plan, output: str | None, call: Call) -> None:
    unshown = sum(NOTHING_SHOWS in action.why for action in plan.actions)
    if unshown:
        say_step(step_of_unshown(unshown), "first", Level.WARNING)
    if plan.actions:
        say_step(_following(click.get_current_context(), output, call))


def _following(context: click.Context, output: str | None, call: Call) -> Step:
    if is_standard(output):
        return Step("keep this plan, to apply it", command_that_opens(context, [("--output", PLAN_FILE)]))
    return Step("look through the plan, and apply it", call.apply(str(output)))


def _say_sum(plan: Plan, choice: PlanChoice) -> None:
    if not plan.actions:
        left = "no action is planned; what is left alone has the command that comes next beside it"
        say(left if plan.left_alone else "there is nothing to do")
        return
    had = sum(action.frees for action in plan.actions if action.kind in STAGING_ACTIONS)
    if choice.need is not None and had < choice.need:
        warn(f"{size(choice.need)} are needed, and no more than {size(had)} can be had safely")
    held = [path for path in dict.fromkeys(each.path for each in plan.log_dirs) if why_in_use(path) is not None]
    if held:
        warn(
            f"a broker runs on {listed(held)}: stop it and plan again, or apply with --changed-data, because what it "
            "still writes makes the data differ from what is planned for"
        )
    _say_if_too_new(plan)
    say(f"{count(len(plan.actions), 'action')} planned, and nothing was changed")


def _say_if_too_new(plan: Plan) -> None:
    """Warn of ``-stray`` names where a broker may be too old to know them (FACTS §1.3); 3.7 gives a directory ID."""
    staged = {action.log_dir for action in plan.actions if action.kind is ActionKind.STAGE}
    of_unknown_age = (each for each in plan.log_dirs if each.directory_id is None)
    in_place = [each.path for each in of_unknown_age if each.path in staged and each.staging == each.path]
    if in_place:
        warn(
            f"staged in place, as -stray: {listed(in_place)}. A broker before 3.6.1 does not know that form, and would "
            "not start: for such a broker take --staging sibling, or restore or purge what is staged before its start"
        )
