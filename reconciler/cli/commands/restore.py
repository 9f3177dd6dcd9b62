"""``logstore restore``: brings staged replicas back, and adopts strays that a broker left.

Everything is planned before anything is moved, and a dry run is the plan alone, so both print the same lines. A replica
comes back under the name that it had when it was staged, also where its topic has another one by now: no metadata is
asked for that. ``--topic-id`` and ``--as`` together give it another name; ``logstore plan`` takes it from the metadata.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layout.directory_name import MAX_PARTITION
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.topic import METADATA_DIR, TopicPartition, check_full_topic_name
from logstore import LogStoreError, NotALogDirError
from logstore.log_dir import FallbackRecords, LogDir, LogDirView, ReadOnlyLogDir, read_identity
from logstore.staging import (
    Placement,
    Restored,
    Staged,
    find_staged,
    forget_stray,
    planned_restore,
    restore,
)
from reconciler.cli.frame import (
    Exit,
    InterruptedRunError,
    OpenedLogDirs,
    check_locations,
    describe_staged,
    fallback_records,
    is_location,
    log_dirs_in,
    say_in_use,
    say_step,
    tell_of,
    warn,
)
from reconciler.errors import MetadataError, UsageError
from reconciler.next_steps import Call, Command, Step
from reconciler.text import count
from reconciler.verdicts import Verdict

if TYPE_CHECKING:
    from reconciler.cli.frame import TwinSearch
    from reconciler.desired import BrokerKey

_CHOOSE = "stage that one first, or choose one"


@dataclass(frozen=True, slots=True)
class RestoreChoice:
    """The staged directories to restore; they must match every field that is not None."""

    topic: str | None = None
    partition: int | None = None
    topic_id: TopicId | None = None
    locations: tuple[str, ...] = ()
    everything: bool = False
    was: TopicPartition | None = None
    as_stray: bool = False
    without_twin: bool = False

    @property
    def names_nothing(self) -> bool:
        """Whether the choice would match everything although ``--all`` was not given."""
        given = (self.topic, self.partition, self.topic_id, self.locations or None)
        return not self.everything and all(each is None for each in given)

    def chooses(self, staged: Staged) -> bool:
        """Whether a staged directory is chosen. A stray is chosen only by another option than ``--all``."""
        if self.everything and staged.record is None:
            return False
        known = staged.partition
        return (
            (self.topic is None or (known is not None and known.topic == self.topic))
            and (self.partition is None or (known is not None and known.partition == self.partition))
            and (self.topic_id is None or staged.topic_id == self.topic_id)
            and (not self.locations or is_location(staged.log_dir, staged.location, self.locations))
        )


@dataclass(frozen=True, slots=True)
class PlannedRestore:
    """A chosen staged directory: the place it goes to, or why it stays."""

    log_dir: LogDirView
    staged: Staged
    to: Restored | None
    problem: str | None
    as_stray: bool = False
    """It stays where it lies, and loses its due time."""

    @property
    def line(self) -> str:
        """The line that is printed below or after the log dir, by a dry run too."""
        if self.as_stray:
            return f"leave {self.staged.location} as a stray, without a due time"
        if self.to is None:
            return f"keep {self.staged.location}: {self.problem}"
        what = describe_staged(self.to.partition, self.staged.topic_id)
        return f"restore {self.staged.location} as {self.to.path}: {what}"


def run(
    *,
    paths: tuple[str, ...],
    topic: str | None,
    partition: int | None,
    topic_id: str | None,
    locations: tuple[str, ...],
    everything: bool,
    was: str | None,
    as_stray: bool,
    specs: tuple[str, ...],
    without_twin: bool,
    dry_run: bool,
    fallback_folder: str | None,
    **broker: str | None,
) -> Exit:
    """Bring staged replicas back to where they were, with their names and checkpoint entries."""
    known = None if was is None else parse_partition(was)
    wanted = RestoreChoice(topic, partition, _topic_id(topic_id), locations, everything, known, as_stray, without_twin)
    if wanted.names_nothing:
        raise UsageError("say what is to come back: --topic, --partition, --topic-id, --location, or --all")
    call = Call(paths, specs, fallback_folder, **broker)
    fallback = fallback_records(fallback_folder)
    log_dirs = log_dirs_in(paths)
    check_locations(locations, log_dirs)
    with ExitStack() as stack:
        opened = OpenedLogDirs(stack)
        views: Sequence[LogDirView]
        if dry_run:
            views = _open_read_only(log_dirs, opened, stack)
        else:
            opened.open(log_dirs, fallback)
            views = opened.log_dirs
        steps, others = _planned_restores(views, wanted, fallback, opened, specs)
        done = _carry_out_all(steps, opened.log_dirs, wanted, fallback, dry_run=dry_run)
    if not steps and views:
        code = opened.code(len(views))
        warn("nothing was chosen" if code is Exit.CLEAN else "nothing was chosen of what could be read")
        say_step(Step("see what there is", call.staged()))
        return code or Exit.FINDINGS
    if done < len(steps):
        warn(f"{count(len(steps) - done, 'directory stays', 'directories stay')} staged")
        if others is not None:
            again = _again(wanted, steps, call, others, dry_run=dry_run)
            say_step(Step("the same with every log dir of the broker", again))
        return Exit.PARTLY_FAILED if done else Exit.REFUSED
    return opened.code(len(views))


def parse_partition(text: str) -> TopicPartition:
    """Read ``orders-3``, by the topic's full name.

    Raises:
        UsageError: the text names no possible partition.
    """
    topic, _, digits = text.rpartition("-")
    if not (digits.isdecimal() and digits.isascii() and len(digits) < 11 and int(digits) <= MAX_PARTITION):
        raise UsageError(f"--as: {text!r:.80} is no partition: orders-3 is one")
    try:
        check_full_topic_name(topic)
    except LayoutError as error:
        raise UsageError(f"--as: {error}") from error
    return TopicPartition(topic, int(digits))


def _topic_id(text: str | None) -> TopicId | None:
    try:
        return None if text is None else TopicId.parse(text)
    except LayoutError as error:
        raise UsageError(f"--topic-id: {error}") from error


def _open_read_only(log_dirs: Iterable[str], opened: OpenedLogDirs, stack: ExitStack) -> list[LogDirView]:
    """Open log dirs without their locks; say of each that is in use that this is only a look."""
    views: list[LogDirView] = []
    for path in log_dirs:
        say_in_use(path)
        try:
            views.append(stack.enter_context(ReadOnlyLogDir.open(path)))
        except NotALogDirError as error:
            opened.refuse(str(error), Exit.USAGE)
    return views


def _again(
    wanted: RestoreChoice, steps: Iterable[PlannedRestore], call: Call, others: Sequence[str], *, dry_run: bool
) -> Command:
    """Return the command as it was given, with further log dirs.

    What was named by its location is named by its whole path, which is in one log dir alone, and holds in any folder.
    """
    places = [os.path.abspath(f"{step.staged.log_dir}/{step.staged.location}") for step in steps]
    return call.restore(
        topic=wanted.topic,
        partition=wanted.partition,
        topic_id=None if wanted.topic_id is None else str(wanted.topic_id),
        locations=places if wanted.locations else (),
        was=None if wanted.was is None else str(wanted.was),
        other_log_dirs=others,
        as_stray=wanted.as_stray,
        dry_run=dry_run,
    )


def _planned_restores(
    views: Sequence[LogDirView],
    wanted: RestoreChoice,
    fallback: FallbackRecords,
    opened: OpenedLogDirs,
    specs: tuple[str, ...],
) -> tuple[list[PlannedRestore], list[str] | None]:
    """Plan every restore before anything is moved, so that a dry run sees the same as a real one.

    Returns:
        The plan, and the log dirs that were not given and should be, with a blank for those whose path is not known;
        None: nothing stays for the want of one.
    """
    chosen = _chosen(views, wanted, fallback, opened)
    if wanted.was is not None and len(chosen) != 1:
        raise UsageError(f"--as says what one directory was, and {len(chosen)} were chosen: name one with --location")
    if not chosen:
        return [], None
    if wanted.as_stray:
        return [_left_as_stray(view, staged) for view, staged in chosen], None
    brokers = {view.path: _broker(view) for view in views}
    disks: dict[BrokerKey, list[LogDirView]] = defaultdict(list)
    for view in views:
        disks[brokers[view.path]].append(view)
    taken: dict[BrokerKey, dict[TopicPartition, str]] = defaultdict(dict)
    planned = [
        _planned_restore(view, staged, wanted, disks[brokers[view.path]], taken[brokers[view.path]])
        for view, staged in chosen
    ]
    if wanted.without_twin:
        return planned, None
    searches = _searches({key: [view.path for view in group] for key, group in disks.items()}, specs)
    checked = [_unless_worse(_unless_twin(step, searches[brokers[step.log_dir.path]])) for step in planned]
    for search in searches.values():
        blind = [step for step in checked if step.to is not None and searches[brokers[step.log_dir.path]] is search]
        if search.is_blind and blind:
            warn(
                f"nothing here says whether broker {search.known.broker.node} has log dirs that were not given: give "
                "all of them, because it does not start with a partition that is live in two"
            )
    stays = [
        searches[brokers[now.log_dir.path]] for was, now in zip(planned, checked, strict=True) if was.to and not now.to
    ]
    return checked, list(dict.fromkeys(path for search in stays for path in search.other_log_dirs)) if stays else None


def _chosen(
    views: Sequence[LogDirView], wanted: RestoreChoice, fallback: FallbackRecords, opened: OpenedLogDirs
) -> list[tuple[LogDirView, Staged]]:
    """List what is chosen of all that is staged, each with its log dir."""
    found = []
    for view in views:
        try:
            found += [(view, staged) for staged in find_staged(view, fallback)]
        except OSError as error:
            opened.refuse(f"{view.path}: what is staged cannot be listed: {error.strerror}", Exit.PARTLY_FAILED)
    chosen = [(view, staged) for view, staged in found if wanted.chooses(staged)]
    if wanted.everything and found and not chosen:
        left = count(len(found), "directory has", "directories have")
        warn(f"{left} no record here, and --all leaves out what has none: name one with --location")
    return chosen


def _left_as_stray(view: LogDirView, staged: Staged) -> PlannedRestore:
    if staged.placement is Placement.IN_PLACE and staged.record is not None:
        return PlannedRestore(view, staged, None, None, as_stray=True)
    return PlannedRestore(view, staged, None, "it is no stray that was given a due time")


def _searches(given: Mapping[BrokerKey, Sequence[str]], specs: tuple[str, ...]) -> dict[BrokerKey, TwinSearch]:
    """Gather what can be known of each broker's other log dirs: on the disks, and from metadata."""
    from reconciler.cli.frame import TwinSearch, find_log_dirs, say_went_back
    from reconciler.sources import load

    known = {broker: find_log_dirs(broker, paths) for broker, paths in given.items()}
    states = [state for spec in specs for state in load(spec)]
    for broker, each in known.items():
        for state in states:
            if state.identity.cluster_id in (None, broker.cluster):
                say_went_back(state, broker.cluster, each.given)
    for path in (path for each in known.values() for path in (*each.given, *each.found)):
        copy = os.path.join(path, METADATA_DIR)
        if os.path.isdir(copy):
            try:
                states += load(copy)
            except MetadataError as error:
                warn(f"which log dirs the broker has is not known from its own metadata: {error}")
    states.sort(key=lambda state: state.identity.as_of_ms or 0)
    return {
        broker: TwinSearch(each, [state for state in states if state.identity.cluster_id in (None, broker.cluster)])
        for broker, each in known.items()
    }


def _unless_twin(step: PlannedRestore, search: TwinSearch) -> PlannedRestore:
    """Keep a replica that is live, or may be, in a log dir of its broker that was not given."""
    from reconciler.cli.frame import Returning

    if step.to is None:
        return step
    twin = search.known.twin_of(step.to.path)
    if twin is not None:
        return replace(step, to=None, problem=f"{step.to.partition} is live in {twin}, which was not given: {_CHOOSE}")
    record = step.staged.record
    topic_id = None if step.staged.topic_id is None else str(step.staged.topic_id)
    why = search.why_it_stays(Returning(step.to.partition, topic_id, "" if record is None else record.verdict))
    if why is None:
        return step
    asked = ", or the cluster's --metadata" if search.is_blind else ""
    what = f"give every log dir of the broker{asked}, or --without-twin if it is live in none"
    return replace(step, to=None, problem=f"{why}; {what}")


def _unless_worse(step: PlannedRestore) -> PlannedRestore:
    """Keep a replica that was staged as the worse of two copies: nothing shows that the better one is gone."""
    if step.to is None or step.staged.record is None or step.staged.record.verdict != Verdict.DUPLICATE:
        return step
    problem = (
        "it was staged as the worse of two copies, and the better one is in no log dir that was given: give every log "
        "dir of the broker, or --without-twin if the better one is gone"
    )
    return replace(step, to=None, problem=problem)


def _broker(view: LogDirView) -> BrokerKey:
    """Identify the broker of a log dir by ``meta.properties``; log dirs without it are taken for one broker's."""
    from reconciler.desired import BrokerKey

    identity = read_identity(view.path, None).identity
    if identity is None or identity.node_id is None:
        return BrokerKey("", -1)
    return BrokerKey(identity.cluster_id or "", identity.node_id)


def _planned_restore(
    view: LogDirView,
    staged: Staged,
    wanted: RestoreChoice,
    views: Sequence[LogDirView],
    taken: dict[TopicPartition, str],
) -> PlannedRestore:
    try:
        to = planned_restore(view, staged, wanted.was, wanted.topic_id)
    except LogStoreError as error:
        return PlannedRestore(view, staged, None, str(error))
    except OSError as error:
        return PlannedRestore(view, staged, None, error.strerror or str(error))
    twin = taken.get(to.partition) or _live_elsewhere(to, views)
    if twin is not None:
        problem = f"{to.partition} would be live twice, here and in {twin}: {_CHOOSE}"
        return PlannedRestore(view, staged, None, problem)
    taken[to.partition] = f"{to.log_dir}/{to.path}"
    return PlannedRestore(view, staged, to, None)


def _live_elsewhere(to: Restored, views: Sequence[LogDirView]) -> str | None:
    """Find the same partition live in another log dir of its broker, which would not start with both (FACTS §1.7)."""
    folder, _, name = to.path.rpartition("/")
    for view in views:
        if view.path != to.log_dir:
            try:
                with view.root.below(folder) as parent:
                    if parent.holds(name):
                        return f"{view.path}/{to.path}"
            except (LogStoreError, OSError):
                continue
    return None


def _carry_out_all(
    steps: Sequence[PlannedRestore],
    log_dirs: Sequence[LogDir],
    wanted: RestoreChoice,
    fallback: FallbackRecords,
    *,
    dry_run: bool,
) -> int:
    """Restore what is planned, and print a line of each; return how many came back, or would in a dry run.

    Raises:
        InterruptedRunError: the user ended it.
    """
    done, last = 0, ""
    try:
        for step in steps:
            stays = step.to is None and not step.as_stray
            moved = not stays and (dry_run or _carry_out(step, log_dirs, wanted, fallback))
            done += moved
            if moved or stays:
                tell_of(step.staged.log_dir, [step.line], headed=step.staged.log_dir == last)
                last = step.staged.log_dir
    except KeyboardInterrupt as error:
        number = count(len(steps), "directory", "directories")
        raise InterruptedRunError(
            f"interrupted after {done} of {number}: what came back stays, and the same command does the rest"
        ) from error
    return done


def _carry_out(
    step: PlannedRestore, log_dirs: Sequence[LogDir], wanted: RestoreChoice, fallback: FallbackRecords
) -> bool:
    """Restore one directory; False: the engine refused, and the reason was said."""
    (log_dir,) = (each for each in log_dirs if each.path == step.staged.log_dir)
    try:
        if step.as_stray:
            forget_stray(log_dir, step.staged, fallback=fallback)
        else:
            restore(log_dir, step.staged, partition=wanted.was, topic_id=wanted.topic_id, fallback=fallback)
    except LogStoreError as error:
        warn(str(error))
        return False
    return True
