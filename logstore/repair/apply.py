"""Carry out a repair plan: every action is revalidated and backed up, then each file is changed atomically.

For each log dir, in this order, and why::

    1  it is locked and recovered                            so that nobody else changes it, and nothing is half done
    2  every action on a file is revalidated                 a file that changed since the plan was made is skipped
    3  one backup of all the old bytes is made durable       from here on everything can be undone
    4  each file is replaced or removed, atomically          a crash leaves some actions done, and the backup there
    5  duplicates are staged                                 each has its own record, by which restore brings it back

A crash needs no recovery of its own: apply the same plan again, and it finds what is done and does the rest. Where the
system refuses one action, the others go on; where a disk fails, the actions of the other log dirs go on.
Source: DESIGN §6.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from layout.ours import CHECKPOINT_REPAIRS, PlannedLogDir, RepairAction, RepairKind, RepairPlan
from logstore.errors import ChangeFailedError, LogStoreError, OfflineLogDirError
from logstore.fs import Disk
from logstore.journal import check_nothing_pending
from logstore.log_dir import CheckpointFiles, ExpectedIdentity, LogDir, change_files
from logstore.repair.backup import write_backup
from logstore.repair.checks import ChangedSinceError, FileRepair, RepairStatus, revalidate, stage_duplicate
from logstore.rows import Kind, MetadataState
from logstore.scan import scan
from logstore.settings import Settings
from logstore.staging import FallbackRecords
from logstore.store import recover_all

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repaired:
    """The outcome of one action; the detail is one sentence without a full stop, empty where all is well."""

    action: RepairAction
    status: RepairStatus
    detail: str = ""


@dataclass(slots=True)
class RepairOutcome:
    """The outcome of a plan."""

    results: list[Repaired] = field(default_factory=list)
    """One for each action, log dir by log dir, in the order of the plan."""
    backups: list[str] = field(default_factory=list)
    """Paths of the backups that undo it."""

    @property
    def is_complete(self) -> bool:
        """Whether everything is as the plan wants it."""
        return all(each.status in (RepairStatus.DONE, RepairStatus.ALREADY) for each in self.results)


def apply_repair(
    plan: RepairPlan, now_ms: int, *, disk: Disk | None = None, settings: Settings | None = None
) -> RepairOutcome:
    """Carry out a reviewed plan. The actions of a log dir whose disk fails are reported as failed.

    Args:
        plan: from :func:`layout.ours.parse_repair_plan`, which has checked its fingerprint.
        now_ms: in ms since 1970.
        disk: carries out the changes; None: the real file system.
        settings: how long a duplicate stays staged.

    Raises:
        LogDirInUseError: a broker runs on one of the log dirs; nothing was changed in any.
        NotALogDirError: a log dir is not the one that the plan was made for; nothing was changed in any.
        ChangeRefusedError: a change of many steps has to be finished first; nothing was changed in any.
    """
    outcome = RepairOutcome()
    with ExitStack() as opened:
        log_dirs: dict[str, LogDir] = {}
        offline: dict[str, str] = {}
        for planned in plan.log_dirs:
            try:
                log_dirs[planned.path] = opened.enter_context(_open(planned, disk or Disk()))
            except OfflineLogDirError as error:
                offline[planned.path] = str(error)
        recover_all(list(log_dirs.values()), FallbackRecords(None))
        for planned in plan.log_dirs:
            actions = [action for action in plan.actions if action.log_dir == planned.path]
            if planned.path in offline:
                outcome.results += [Repaired(each, RepairStatus.FAILED, offline[planned.path]) for each in actions]
                continue
            repair = _LogDirRepair(log_dirs[planned.path], plan.fingerprint, now_ms)
            repair.on_files([each for each in actions if each.kind is not RepairKind.STAGE_DUPLICATE])
            for action in actions:
                if action.kind is RepairKind.STAGE_DUPLICATE:
                    repair.on_duplicate(action, log_dirs, settings or Settings())
            outcome.results += [repair.results[each.path] for each in actions]
            outcome.backups += repair.backups
    return outcome


def _open(planned: PlannedLogDir, disk: Disk) -> LogDir:
    """Open a log dir of a plan, and refuse it while a change of many steps waits to be finished in it."""
    expected = ExpectedIdentity(planned.cluster_id, planned.node_id, planned.directory_id)
    log_dir = LogDir.open(planned.path, disk=disk, expected=expected)
    try:
        check_nothing_pending([log_dir])
    except BaseException:
        log_dir.close()
        raise
    return log_dir


class _LogDirRepair:
    """The repair of one log dir. Outcomes are kept by the path of the action, which is unique in a plan."""

    def __init__(self, log_dir: LogDir, fingerprint: str, now_ms: int) -> None:
        self.log_dir, self.fingerprint, self.now_ms = log_dir, fingerprint, now_ms
        self.backups: list[str] = []
        self.results: dict[str, Repaired] = {}

    def on_files(self, actions: Sequence[RepairAction]) -> None:
        """Steps 2 to 4."""
        held = _replicas_with_directory(self.log_dir) if any(action.drops for action in actions) else frozenset()
        steps = [step for action in actions if (step := self._revalidate(action, held)) is not None]
        if not steps:
            return
        try:
            kept = [step.kept for step in steps]
            self.backups.append(write_backup(self.log_dir, self.fingerprint, self.now_ms, kept))
        except LogStoreError as error:
            for step in steps:
                self._note(step.action, RepairStatus.FAILED, str(error))
            return
        failed = change_files(self.log_dir, [step.change for step in steps], "cannot be repaired")
        for step in steps:
            refusal = failed.get(step.action.path)
            status = RepairStatus.DONE if refusal is None else RepairStatus.FAILED
            self._note(step.action, status, "" if refusal is None else str(refusal))
        if any(step.action.kind in CHECKPOINT_REPAIRS for step in steps):
            self.log_dir.checkpoints = CheckpointFiles(self.log_dir.root)

    def on_duplicate(self, action: RepairAction, log_dirs: Mapping[str, LogDir], settings: Settings) -> None:
        """Step 5, for one copy."""
        with self._noting(action):
            self.log_dir.check_online()
            staged, before = stage_duplicate(self.log_dir, action, log_dirs, self.now_ms, settings)
            status = RepairStatus.ALREADY if before else RepairStatus.DONE
            self._note(action, status, f"staged as {staged.location}, from where 'logstore restore' brings it back")

    def _revalidate(self, action: RepairAction, held: frozenset[tuple[str, int]] | None) -> FileRepair | None:
        step = None
        with self._noting(action):
            self.log_dir.check_online()
            if held is None and action.drops:
                raise ChangedSinceError("not everything in the log dir can be listed, so no entry is surely stale")
            step = revalidate(self.log_dir, action, held or frozenset())
            if step is None:
                self._note(action, RepairStatus.ALREADY)
        return step

    @contextmanager
    def _noting(self, action: RepairAction) -> Iterator[None]:
        """Note why an action is not done: the disk failed, or the file is no longer what the plan expects."""
        try:
            yield
        except (ChangeFailedError, OfflineLogDirError) as error:
            self._note(action, RepairStatus.FAILED, str(error))
        except LogStoreError as error:
            self._note(action, RepairStatus.SKIPPED, str(error))
        except OSError as error:
            self._note(
                action, RepairStatus.FAILED, str(self.log_dir.failed(f"{action.path} cannot be looked at", error))
            )

    def _note(self, action: RepairAction, status: RepairStatus, detail: str = "") -> None:
        self.results[action.path] = Repaired(action, status, detail)
        place = f"{self.log_dir.path}/{action.path}"
        logger.info("repair: %s of %s: %s%s", action.kind, place, status, f", {detail}" if detail else "")


def _replicas_with_directory(log_dir: LogDir) -> frozenset[tuple[str, int]] | None:
    """List the (topic, partition) pairs with a live or a future directory; None: not every one can be known."""
    seen = scan(log_dir.path, sizes=False)
    if seen.state is not MetadataState.OK:
        return None
    rows = zip(*(seen.rows.column(name).to_pylist() for name in ("kind", "topic", "partition")), strict=True)
    held = [(topic, partition) for kind, topic, partition in rows if kind in (Kind.LIVE, Kind.FUTURE)]
    return None if any(topic is None for topic, _ in held) else frozenset(held)
