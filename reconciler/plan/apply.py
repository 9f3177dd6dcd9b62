"""Carry out a plan: take the locks, check every action again, do what still fits, and keep a journal.

In which order, and why::

    1  the locks of all log dirs of every broker that has an action     a running broker is found before anything moves
    2  every action is checked again (``revalidate``)                   an action that no longer fits is skipped
    3  the journal, with every action under way                         an interrupted run can be found
    4  for each broker and log dir: files are backed up, and put right  staging writes checkpoints anew
    5  for each broker: stage, restore, topic IDs, create               staged replicas make room for others
    6  the journal again, with the result of each action
    7  journals of earlier runs of the plan that were cut short get their end

A plan of repairs alone may be older, and of another machine, because each file is compared byte for byte. In exchange
a change of many steps that was cut short has to be finished before it. No plan may be of the future.

A crash leaves every replica whole. To finish, apply the plan again: what was carried out is recognised and gets the
status ``already``. A run without anything to do changes nothing and writes no journal. Source: DESIGN §6.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from layout.ids import DirectoryId, TopicId
from layout.ours import RunJournal
from layout.topic import TopicPartition
from logstore import (
    STALE_DELAY,
    ChangeFailedError,
    Clock,
    LogStoreError,
    OfflineLogDirError,
    Settings,
    SystemClock,
    check_fields,
)
from logstore.fs import Disk
from logstore.journal import what_is_pending
from logstore.repair import ChangedSinceError, RepairStatus, repair_files
from logstore.staging import STAGING_BATCH_SIZE, Staged, adopt_stray, placement_of
from logstore.store import LogStore, Replica, StoreOptions
from reconciler.errors import RefusedError, UsageError
from reconciler.plan.history import UNDER_WAY, end_journals, journal_paths, read_history, write_journal
from reconciler.plan.plan import FILE_REPAIRS, Action, ActionKind, Plan, PlannedLogDir
from reconciler.plan.revalidate import (
    CheckedAction,
    Revalidation,
    StrangeLogDirError,
    clock_behind,
    status_of,
    strangers,
    too_old,
    way_back,
)
from reconciler.policy import PolicyRules

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How a plan is carried out.

    Attributes:
        host: name of this machine.
        user: who carries it out.
        clock: where the time comes from.
        disk: the primitive changes.
        fallback_records: folder on another disk for records that do not fit on their own disk; None: there is none.
        oldest_ms: the greatest age of a plan, and of the metadata that it was made from; None: a day for the plan, and
            for the metadata as much as was allowed when it was made.
        any_clock: carry out a plan although this machine's clock is behind what the plan and the disks say.
        any_host: carry out a plan that was made on a machine of another name.
        changed_data: stage a replica although its data changed after the plan was made.
        rules: of the policy file as it is now.

    Raises:
        UsageError: one is of another type, or the age is negative.
    """

    host: str
    user: str
    clock: Clock = field(default_factory=SystemClock)
    disk: Disk = field(default_factory=Disk)
    fallback_records: str | None = None
    oldest_ms: int | None = None
    any_clock: bool = False
    any_host: bool = False
    changed_data: bool = False
    rules: PolicyRules = field(default_factory=PolicyRules)

    def __post_init__(self) -> None:
        check_fields(self, UsageError, {"oldest_ms": (0, math.inf)})


@dataclass(frozen=True, slots=True)
class AppliedAction:
    """The result of one action.

    Attributes:
        action: of the plan.
        status: the result.
        detail: one sentence without a full stop, empty where all is well; for a staged replica, its new location.
    """

    action: Action
    status: RepairStatus
    detail: str = ""


@dataclass(slots=True)
class ApplyOutcome:
    """The result of a whole plan."""

    results: list[AppliedAction] = field(default_factory=list)
    """One result for each action, in the order of the plan."""
    journals: list[str] = field(default_factory=list)
    """Paths of the written journals."""
    backups: list[str] = field(default_factory=list)
    """Paths of the backups that undo the repairs of files."""
    notes: list[str] = field(default_factory=list)
    """Further remarks, one sentence each."""

    @property
    def is_complete(self) -> bool:
        """Whether every action is done, now or before."""
        return all(each.status in (RepairStatus.DONE, RepairStatus.ALREADY) for each in self.results)


def apply_plan(plan: Plan, how: ApplyOptions) -> ApplyOutcome:
    """Carry out a plan. A failing disk fails its own actions only; the others go on.

    Args:
        plan: from :func:`reconciler.plan.parse_plan`, which has checked it.
        how: the options.

    Raises:
        RefusedError: the plan was made on another machine, is too old, or was made for other log dirs, or it is one of
            repairs, and a change of many steps has to be finished first; nothing was changed.
        LogDirInUseError: a broker runs on one of the log dirs; nothing was changed.
        LogStoreError: the log dirs of a broker cannot be opened; nothing was changed. In a plan of repairs the actions
            of a broker whose disks all fail are reported as failed.
    """
    _check(plan, how)
    outcome, results = ApplyOutcome(), dict[str, AppliedAction]()
    with ExitStack() as opened:
        stores = list[LogStore]()
        for part in _by_broker(plan):
            try:
                stores.append(opened.enter_context(_opened(part, plan, how)))
            except OfflineLogDirError as error:
                if not plan.repairs_only:
                    raise
                failed = (each for each in plan.actions if each.log_dir in {log_dir.path for log_dir in part})
                results |= {each.fingerprint: AppliedAction(each, RepairStatus.FAILED, str(error)) for each in failed}
        # Until the locks were taken, somebody might have put another disk there.
        online = {each.path for store in stores for each in store.log_dirs if each.offline is None}
        _refuse([], strangers([each for each in plan.log_dirs if each.path in online], unreadable=True))
        runs = [_ApplyRun(store, plan, how, _of_store(plan, store), outcome.notes) for store in stores]
        for run in runs:
            run.check()
        try:
            for run in runs:
                run.carry_out()
        finally:
            for run in runs:
                run.finish()
                outcome.journals += run.journals
                outcome.backups += run.backups
                results.update(run.results)
    outcome.results = [results[action.fingerprint] for action in plan.actions]
    return outcome


def _check(plan: Plan, how: ApplyOptions) -> None:
    """Refuse a plan of another machine, of another time or for other log dirs, with all reasons."""
    log_dirs, reasons = [log_dir for part in _by_broker(plan) for log_dir in part], list[str]()
    if plan.repairs_only:
        reasons += (pending for each in log_dirs if (pending := what_is_pending(each.path)) is not None)
    else:
        if plan.host != how.host and not how.any_host:
            reasons.append(f"it was made on {plan.host}, and this is {how.host} (override: --any-host)")
        reasons += too_old(plan, how.clock.now_ms(), how.oldest_ms)
    if not how.any_clock:
        reasons += clock_behind(plan, how.clock.now_ms())
    _refuse(reasons, strangers(log_dirs, unreadable=plan.repairs_only))


def _refuse(reasons: Sequence[str], strange: Iterable[str]) -> None:
    strange = list(strange)
    if reasons or strange:
        kind = StrangeLogDirError if strange else RefusedError
        raise kind(f"the plan is not carried out, and nothing was changed: {'; '.join([*reasons, *strange])}")


def _by_broker(plan: Plan) -> list[list[PlannedLogDir]]:
    """Return all log dirs of each broker with an action, because a replica may be live in any of them."""
    used = {action.log_dir for action in plan.actions}
    brokers = dict.fromkeys(log_dir.broker for log_dir in plan.log_dirs if log_dir.path in used)
    return [[log_dir for log_dir in plan.log_dirs if log_dir.broker == broker] for broker in brokers]


def _opened(log_dirs: Sequence[PlannedLogDir], plan: Plan, how: ApplyOptions) -> LogStore:
    options = StoreOptions(
        clock=how.clock,
        settings=Settings({scope: {STALE_DELAY: delay_ms} for scope, delay_ms in plan.delays().items()}),
        disk=how.disk,
        fallback_records=how.fallback_records,
        placement={
            log_dir.path: placement
            for log_dir in log_dirs
            if log_dir.staging is not None and (placement := placement_of(log_dir.path, log_dir.staging)) is not None
        },
    )
    return LogStore.open([log_dir.path for log_dir in log_dirs], options)


def _of_store(plan: Plan, store: LogStore) -> list[Action]:
    paths = {*(log_dir.path for log_dir in store.log_dirs), *store.offline}
    return [action for action in plan.actions if action.log_dir in paths]


class _ApplyRun:
    """One broker's part of a plan."""

    def __init__(
        self, store: LogStore, plan: Plan, how: ApplyOptions, actions: Sequence[Action], notes: list[str]
    ) -> None:
        self.store, self.plan, self.how, self.actions, self.notes = store, plan, how, actions, notes
        self.started_ms = how.clock.now_ms()
        self.revalidation = Revalidation(store, how.rules, self.started_ms, changed_data=how.changed_data)
        self.results: dict[str, AppliedAction] = {}
        self.journals, self.backups = list[str](), list[str]()
        self.todo: list[CheckedAction] = []
        self.cut_short: list[tuple[str, RunJournal]] = []

    def check(self) -> None:
        """Do step 2: check every action again."""
        history = read_history(log_dir.path for log_dir in self.store.log_dirs)
        self.cut_short, noted = history.cut_short(self.plan.fingerprint), history.noted(self.plan.fingerprint)
        for action in self.actions:
            if action.kind is ActionKind.NOTE_SIGHTING and (action.log_dir, action.inode, action.topic_id) in noted:
                self._note(action, RepairStatus.ALREADY)
                continue
            found = self.revalidation.check(action)
            if found.status is None:
                self.todo.append(found)
            else:
                self._note(action, found.status, found.detail)

    def carry_out(self) -> None:
        """Do steps 3 to 5: write the journal, then carry out the actions."""
        if not self.todo:
            return
        self._write_journals(None)
        of_kind = {kind: [each for each in self.todo if each.action.kind is kind] for kind in ActionKind}
        self._repair_files([each for kind in ActionKind if kind in FILE_REPAIRS for each in of_kind[kind]])
        for each in of_kind[ActionKind.STAGE_DUPLICATE]:
            self._try(each, self._stage_duplicate)
        self._stage(of_kind[ActionKind.STAGE])
        one_by_one: dict[ActionKind, Callable[[CheckedAction], str]] = {
            ActionKind.STAGE_STRAY: self._give_record,
            ActionKind.RESTORE: self._restore,
            ActionKind.WRITE_TOPIC_ID: self._write_topic_id,
            ActionKind.CREATE: self._create,
            ActionKind.NOTE_SIGHTING: lambda _: "",
        }
        for kind, act in one_by_one.items():
            for each in of_kind[kind]:
                self._try(each, act)

    def finish(self) -> None:
        """Do steps 6 and 7: write the results to the journals; what an interrupt prevented counts as failed."""
        for each in self.todo:
            if each.action.fingerprint not in self.results:
                when = "before it" if each.repair is None else "before it was known to be done"
                self._note(each.action, RepairStatus.FAILED, f"the run was interrupted {when}")
        if self.todo:
            self._write_journals(self.how.clock.now_ms())
        self._end_cut_short()

    def _repair_files(self, todo: Sequence[CheckedAction]) -> None:
        """Put files right, log dir by log dir: all its old bytes are backed up before the first file is changed."""
        for log_dir in self.store.log_dirs:
            here = {each.action.name: each for each in todo if each.action.log_dir == log_dir.path}
            if not here:
                continue
            repairs = [each.repair for each in here.values() if each.repair is not None]
            backup, failed = repair_files(log_dir, repairs, self.plan.fingerprint, self.how.clock.now_ms())
            self.backups += [] if backup is None else [backup]
            for name, each in here.items():
                status = RepairStatus.FAILED if name in failed else RepairStatus.DONE
                self._note(each.action, status, str(failed.get(name, "")))

    def _stage_duplicate(self, each: CheckedAction) -> str:
        """Stage the worse copy, if the better one still stays: what was done before in this run may have moved it."""
        action = each.action
        again = self.revalidation.check(action)
        if again.status is not None:
            raise (ChangeFailedError if again.status is RepairStatus.FAILED else ChangedSinceError)(again.detail)
        topic_id = None if action.topic_id is None else TopicId.parse(action.topic_id)
        copy = Replica(action.replica, topic_id, action.log_dir, action.name, "", action.inode or 0)
        outcome = self.store.stage_copies({copy: (action.verdict, action.why)})
        if outcome.refused:
            raise ChangedSinceError(outcome.refused[0].reason)
        return way_back(outcome.staged[0])

    def _stage(self, todo: Sequence[CheckedAction]) -> None:
        """Stage log dir by log dir; after a failure, try the rest batch by batch, each with its own result."""
        for log_dir in dict.fromkeys(each.action.log_dir for each in todo):
            left = {each.action.replica: each.action for each in todo if each.action.log_dir == log_dir}
            if len(left) > STAGING_BATCH_SIZE:
                with suppress(LogStoreError):
                    self._stage_these(left)
            while left:
                batch = {replica: left.pop(replica) for replica in list(left)[:STAGING_BATCH_SIZE]}
                try:
                    self._stage_these(batch)
                except LogStoreError as error:
                    for action in batch.values():
                        self._note(action, status_of(error), str(error))

    def _stage_these(self, actions: dict[TopicPartition, Action]) -> None:
        """Stage replicas, and remove each from ``actions`` when its result is known. Raises LogStoreError."""

        def committed(batch: Sequence[Staged]) -> None:
            for staged in batch:
                assert staged.partition is not None, "a replica that was just staged has its record"
                self._note(actions.pop(staged.partition), RepairStatus.DONE, f"staged as {staged.location}")

        reasons = {replica: (action.verdict, action.why) for replica, action in actions.items()}
        for refused in self.store.stage_each(reasons, on_committed=committed).refused:
            action = actions.pop(refused.candidate.partition)
            failed = action.log_dir in self.store.offline
            self._note(action, RepairStatus.FAILED if failed else RepairStatus.SKIPPED, refused.reason)

    def _try(self, each: CheckedAction, act: Callable[[CheckedAction], str]) -> None:
        try:
            detail = act(each)
        except LogStoreError as error:
            self._note(each.action, status_of(error), str(error))
        else:
            self._note(each.action, RepairStatus.DONE, detail)

    def _give_record(self, each: CheckedAction) -> str:
        assert each.staged is not None, "the check found the stray"
        (log_dir,) = (log_dir for log_dir in self.store.log_dirs if log_dir.path == each.action.log_dir)
        reason = (each.action.verdict, each.action.why)
        adopt_stray(log_dir, each.staged, reason, self.how.clock.now_ms(), self.plan.delay_of(each.action))
        return "it has a due time where it lies"

    def _restore(self, each: CheckedAction) -> str:
        assert each.staged is not None, "the check found the staged replica"
        # The metadata has the name of the topic ID by now; what is in doubt comes back by hand alone.
        known = None if each.staged.record is not None and each.staged.in_doubt else each.action.replica
        return f"live as {self.store.restore(each.staged, known, each.staged.topic_id).path}"

    def _write_topic_id(self, each: CheckedAction) -> str:
        self.store.assign_topic_id(each.action.replica, TopicId.parse(each.action.wanted_topic_id or ""))
        return f"it holds {each.action.wanted_topic_id}"

    def _create(self, each: CheckedAction) -> str:
        action = each.action
        topic_id = None if action.wanted_topic_id is None else TopicId.parse(action.wanted_topic_id)
        (home,) = (log_dir for log_dir in self.plan.log_dirs if log_dir.path == action.log_dir)
        directory_id = None if home.directory_id is None else DirectoryId.parse(home.directory_id)
        made = self.store.create(action.replica, topic_id, directory_id=directory_id)
        return f"empty, in {made.log_dir}/{made.path}"

    def _note(self, action: Action, status: RepairStatus, detail: str = "") -> None:
        self.results[action.fingerprint] = AppliedAction(action, status, detail)
        said = f", {detail}" if detail else ""
        logger.info("%s of %s/%s: %s%s", action.kind, action.log_dir, action.name, status, said)

    def _write_journals(self, finished_ms: int | None) -> None:
        changed = {each.action.log_dir for each in self.todo}
        for log_dir in self.store.log_dirs:
            if log_dir.path not in changed or log_dir.offline is not None:
                continue
            lines = [self._line(action) for action in self.actions if action.log_dir == log_dir.path]
            who = (self.plan.fingerprint, self.how.host, self.how.user)
            metadata = tuple(self.plan.metadata)
            paths = tuple(dict.fromkeys((*(each.path for each in self.store.log_dirs), *self.store.offline)))
            journal = RunJournal(*who, self.started_ms, finished_ms, metadata, tuple(lines), paths)
            problem = write_journal(log_dir, journal)
            (path,) = journal_paths([log_dir.path], self.started_ms, self.plan.fingerprint)
            if problem is None:
                self.journals = [*dict.fromkeys([*self.journals, path])]
            elif finished_ms is not None:
                begun = path in self.journals
                self.journals = [each for each in self.journals if each != path]
                left = f"{path} says only that the run began" if begun else "nothing on the disk tells of it"
                self.notes.append(f"{problem}; {left}, so keep this report")

    def _end_cut_short(self) -> None:
        """Write the results into the journals of earlier runs of this plan that have no end."""
        found = {
            (each.log_dir, each.name, each.kind.value): self.results.get(each.fingerprint) for each in self.actions
        }

        def result_of(path: str, line: Mapping[str, Any]) -> tuple[RepairStatus, str] | None:
            result = found.get((path, str(line.get("name")), str(line.get("kind"))))
            return None if result is None else (result.status, result.detail)

        self.notes += end_journals(self.store.log_dirs, self.cut_short, self.how.clock.now_ms(), result_of)

    def _line(self, action: Action) -> dict[str, object]:
        result = self.results.get(action.fingerprint)
        evidence = {
            key: getattr(action, key)
            for key in ("kind", "name", "topic", "partition", "topic_id", "verdict", "why", "inode", "bytes")
        }
        status = UNDER_WAY if result is None else result.status.value
        return {**evidence, "status": status, "detail": "" if result is None else result.detail}
