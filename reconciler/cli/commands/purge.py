"""``logstore purge``: deletes for ever what is staged and due; a dry run prints the same lines as a real run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from layout.directory_name import DirectoryKind, parse
from logstore import Clock, NotALogDirError, SystemClock
from logstore.log_dir import FallbackRecords, LogDir, ReadOnlyLogDir, StagingBeside, read_identity
from logstore.purge import PURGE_WORKERS, LogDirPurge, PurgeRules, Throttle, planned_purge, purge
from logstore.staging import Placement, Staged
from reconciler.cli.frame import (
    Exit,
    OpenedLogDirs,
    check_locations,
    describe_staged,
    fallback_records,
    is_location,
    log_dirs_in,
    parse_rate,
    read_policy,
    say,
    say_in_use,
    say_step,
    show_busy,
    tell_of,
    warn,
    why_in_use,
)
from reconciler.cli.monitoring import MetricsFile, PurgeProgress
from reconciler.cli.settings import Level, Verbosity, verbosity
from reconciler.cli.signals import on_signals
from reconciler.errors import UsageError
from reconciler.metrics import read_purge
from reconciler.next_steps import Call, Step, step_of_strays
from reconciler.text import count, listed, moment, size

if TYPE_CHECKING:
    from reconciler.cli.frame import SecondLook
    from reconciler.policy import PolicyRules

Result = TypeVar("Result")


def run(
    *,
    paths: tuple[str, ...],
    dry_run: bool,
    rate: str | None,
    unlinks: int | None,
    workers: int | None,
    locations: tuple[str, ...],
    before_due: bool,
    specs: tuple[str, ...],
    keep_held: bool,
    fallback_folder: str | None,
    metrics_path: str | None,
    **broker: str | None,
) -> Exit:
    """Delete what is staged in log dirs, and whose time has come. What is deleted cannot be brought back."""
    if before_due and not locations:
        raise UsageError("--before-due takes what may still be wanted: name each one with --location")
    clock = SystemClock()
    rules = PurgeRules(
        clock.now_ms(),
        throttle=_throttle(clock, rate, unlinks),
        only=_one_of(locations) if locations else None,
        before_due=before_due,
        keep_held=keep_held,
    )
    fallback = fallback_records(fallback_folder)
    log_dirs, call = log_dirs_in(paths), Call(paths, specs, fallback_folder, **broker)
    check_locations(locations, log_dirs)
    metrics = MetricsFile(metrics_path, "purge", log_dirs)
    if metrics_path is not None and not dry_run:
        rules.progress = PurgeProgress(metrics_path)
    kept = _KeptByPolicy(read_policy(call.policy), rules.now_ms)
    look: SecondLook | None = None
    if specs:
        from reconciler.cli.frame import ask_again  # which loads Arrow

        look = ask_again(call, fallback)
    if specs or kept.rules.path:
        rules.veto = lambda staged: kept.veto(staged) or (None if look is None else look.veto(staged))
    with ExitStack() as stack:
        opened = OpenedLogDirs(stack)
        if dry_run:
            reports = _plan(log_dirs, rules, fallback, opened)
        else:
            opened.open(log_dirs, fallback, beside=True)
            reports = _purge(opened, rules, fallback, workers)
            reports.sort(key=lambda report: list(map(os.path.abspath, log_dirs)).index(report.log_dir))
    metrics.take(read_purge, reports, _brokers(log_dirs), dry_run=dry_run)
    for report in reports:
        _print_report(report, kept, dry_run=dry_run)
    say_unseen(reports)
    wanted, unsure = ([], []) if look is None else (_of_kept(reports, look.steps), _of_kept(reports, look.unsure))
    _say_ways_on(wanted, reports, call)
    for step in dict.fromkeys(unsure):
        say_step(step, level=Level.WARNING)
    waiting = bool(wanted or unsure) or any(report.waiting for report in reports)
    if any(report.cancelled for report in reports):
        return metrics.written(Exit.INTERRUPTED)
    done = any(report.purged or report.failures for report in reports)
    if locations and not (dry_run or waiting or done):
        _say_nothing(locations, kept, call, before_due=before_due, missed=len(log_dirs) - len(reports))
        waiting = True
    failed = any(not report.is_whole for report in reports)
    code = Exit.PARTLY_FAILED if failed else opened.code(len(reports))
    return metrics.written(Exit.FINDINGS if waiting and code is Exit.CLEAN else code)


def _brokers(log_dirs: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Say which broker each log dir belongs to, by its ``meta.properties``; those that name none are left out."""
    brokers = {}
    for path in map(os.path.abspath, log_dirs):
        identity = read_identity(path).identity
        if identity is not None and identity.node_id is not None:
            brokers[path] = (identity.cluster_id or "", identity.node_id)
    return brokers


def _throttle(clock: Clock, rate: str | None, unlinks: int | None) -> Throttle | None:
    if rate is None and unlinks is None:
        return None
    return Throttle(clock, bytes_per_s=None if rate is None else parse_rate(rate), unlinks_per_s=unlinks)


@dataclass(slots=True)
class _KeptByPolicy:
    """What the policy keeps of all that is due, by log dir and location."""

    rules: PolicyRules
    now_ms: int
    places: set[tuple[str, str]] = field(default_factory=set)

    def veto(self, staged: Staged) -> str | None:
        """Say why a staged directory that is due stays; None: no rule keeps it."""
        why = self.rules.forbids_removal(staged.topic, self.now_ms)
        if why is not None:
            self.places.add((staged.log_dir, staged.location))
        return None if why is None else f"the policy keeps it: {why}"


_FROM_WHEN = "see what is staged, and from when on a purge may take it; --before-due takes it now"


def _say_nothing(locations: tuple[str, ...], kept: _KeptByPolicy, call: Call, *, before_due: bool, missed: int) -> None:
    """Say why nothing of what was named was purged; ``missed``: so many log dirs could not be opened."""
    if kept.places:
        warn(f"nothing was purged: the policy {call.policy} keeps {listed(sorted(name for _, name in kept.places))}")
        say_step(Step("see what is held, and until when", call.check_policy()))
        return
    here = "in what could be opened" if missed > 0 else "here"
    not_due, why = ("", "see what is staged") if before_due else (", or is not due", _FROM_WHEN)
    warn(f"nothing was purged: {listed(locations)} is not staged {here} with a record{not_due}")
    say_step(Step(why, call.staged()))


def _of_kept(reports: Sequence[LogDirPurge], steps: Mapping[tuple[str, str], Step]) -> list[Step]:
    """List the steps, by log dir and location, for directories that are due and were kept."""
    places = [(report.log_dir, kept.location) for report in reports for kept in report.kept]
    return [steps[place] for place in places if place in steps]


def _say_ways_on(wanted: Iterable[Step], reports: Sequence[LogDirPurge], call: Call) -> None:
    """Say how what is wanted again comes back, and name the plan that gives strays of a broker a due time."""
    for step in wanted:
        say_step(step, "wanted again", Level.WARNING)
    kept = [each.location for report in reports for each in report.kept if each.why == "no-record"]
    strays = sum(parse(os.path.basename(location)).kind is DirectoryKind.STRAY for location in kept)
    if strays:
        say_step(step_of_strays(strays, call))


def _one_of(locations: tuple[str, ...]) -> Callable[[Staged], bool]:
    return lambda staged: is_location(staged.log_dir, staged.location, locations)


def _plan(
    log_dirs: Iterable[str], rules: PurgeRules, fallback: FallbackRecords, opened: OpenedLogDirs
) -> list[LogDirPurge]:
    reports = []
    for path in log_dirs:
        try:
            with ReadOnlyLogDir.open(path) as log_dir:
                reports.append(planned_purge(log_dir, rules, fallback, beside=say_in_use(path)))
        except NotALogDirError as error:
            opened.refuse(str(error), Exit.USAGE)
        except OSError as error:
            opened.refuse(f"{path}: what is staged cannot be listed: {error.strerror}", Exit.PARTLY_FAILED)
    return reports


def _purge(
    opened: OpenedLogDirs, rules: PurgeRules, fallback: FallbackRecords, workers: int | None
) -> list[LogDirPurge]:
    """Purge the log dirs themselves first, under Kafka's own lock, and then what is staged beside them without it."""

    def part(log_dirs: Sequence[LogDir | StagingBeside], *placements: Placement) -> list[LogDirPurge]:
        chosen = replace(rules, placements=frozenset(placements))
        return list(
            purge(log_dirs, chosen, workers=workers or PURGE_WORKERS, fallback=fallback, may_fork=True).log_dirs
        )

    def work() -> list[LogDirPurge]:
        inside = part([*opened.log_dirs, *opened.beside], Placement.INSIDE, Placement.IN_PLACE)
        reports = {report.log_dir: report for report in inside}
        opened.keep_beside()
        for report in part([*opened.log_dirs, *opened.beside], Placement.SIBLING):
            reports[report.log_dir].add(report)
        return list(reports.values())

    return until_interrupted(work, rules.cancel) if opened.log_dirs or opened.beside else []


def until_interrupted(work: Callable[[], Result], cancel: threading.Event) -> Result:
    """Do some work in a thread; an interrupt cancels it, and the work ends in an orderly way before this returns.

    The handler only sets the event. Raised as an exception, an interrupt could hit any line of this thread. This thread
    never waits for the event, and sets it once, so it cannot hold the lock of the event when the handler sets it.
    """
    is_asked = False

    def stop(_: int) -> None:
        nonlocal is_asked
        if not is_asked:
            is_asked = True  # before the event is set, because the next signal may come in the middle of that
            cancel.set()

    with on_signals(stop), ThreadPoolExecutor(1) as pool, show_busy("purging"):
        return pool.submit(work).result()


def _print_report(report: LogDirPurge, kept: _KeptByPolicy, *, dry_run: bool) -> None:
    """Print the lines that a dry run prints too to standard output, and the facts of a real run to standard error."""
    lines = [] if verbosity() is Verbosity.QUIET else _lines(report)
    sums = f"{count(len(report.purged), 'directory', 'directories')}"
    sums += f", {size(sum(purged.bytes for purged in report.purged))}"
    if report.not_due:
        sums += f"; {count(report.not_due)} not due, the next at {moment(report.next_due_ms)}"
    held = sum(path == report.log_dir for path, _ in kept.places)
    sums += f"; {count(held)} due and kept by the policy" if held else ""
    tell_of(report.log_dir, [*lines, sums])
    if report.waiting:
        waiting = count(report.waiting, "directory that is due lies", "directories that are due lie")
        refused = why_in_use(report.log_dir) or f"{report.log_dir} was in use until now: purge again"
        warn(f"{waiting} in the log dir itself, and nothing is purged there: {refused}")
    for failure in report.failures:
        warn(f"{report.log_dir}: {failure}")
    if report.error is not None:
        warn(report.error)
    if report.held:
        holders = listed(sorted({str(held.process) for held in report.held}))
        files = count(len({held.name for held in report.held}), "file")
        open_files = f"{size(report.held_open_bytes)} in {files} held open by {holders}"
        say(f"{report.log_dir}: {open_files}: that space returns when the process lets go")
    if not dry_run and report.freed_bytes is not None:
        say(f"{report.log_dir}: {freed_text(report.freed_bytes, report.expected_bytes)}")
    if report.cancelled:
        warn(f"{report.log_dir}: interrupted before all that is due was purged; the next purge goes on")


def say_unseen(reports: Sequence[LogDirPurge]) -> None:
    """Name the processes that could not be looked into, once for all log dirs, and what can be done about it."""
    unseen = sorted({str(process) for report in reports for process in report.unseen_processes})
    if unseen:
        many = count(len(unseen), "process", "processes")
        advice = "" if os.geteuid() == 0 else "; root may look into them"
        say(f"{many} could not be looked into, and may hold files open: {listed(unseen)}{advice}")


def freed_text(freed: int, expected: int) -> str:
    """Describe the change of the free space; meanwhile others may have written more than a purge has freed."""
    if freed < 0:
        return f"{size(expected)} expected, and {size(-freed)} less free than before: others write to the file system"
    return f"{size(freed)} freed, {size(expected)} expected, as the file system counts it"


def _lines(report: LogDirPurge) -> list[str]:
    lines = [
        f"purge {purged.location}: "
        + (
            "empty already"
            if purged.record is None
            else f"{describe_staged(purged.partition, purged.record.topic_id)}, {count(purged.files, 'file')}, "
            f"{size(purged.bytes)}, due {moment(purged.record.due_ms)}"
        )
        for purged in report.purged
    ]
    lines += [f"keep {kept.location}: {kept.reason}" for kept in report.kept]
    return lines
