"""Check a plan again before it is carried out: its time, its log dirs, and under the lock every action.

An action that no longer fits is skipped.

A replica is the same if its path, the inode of its directory and its topic ID are the same. Its data is the same if the
sum of the lengths of its files and the newest time of change are the same. A broker that was stopped after the plan was
made has trimmed its indexes, so only a change of data may be overridden. A file that is to be put right is the same if
its bytes have the sum that the plan names. An action that was carried out before is recognised by the present state of
the disks. Source: DESIGN §6.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layout import meta_properties
from layout.ids import TopicId
from logstore import ChangeFailedError, LogStoreError, OfflineLogDirError
from logstore.log_dir import ExpectedIdentity, LogDir, read_identity
from logstore.repair import (
    ChangedSinceError,
    CheckedRepair,
    CheckpointWithout,
    FileRepair,
    RepairStatus,
    TopicIdFile,
    check_better_copy,
    check_repair,
    check_worse_copy,
    is_gone,
    replicas_with_directory,
)
from logstore.rows import VARYING, MetadataState
from logstore.scan import Folder, ScanOptions, is_closed, scan_directories
from logstore.staging import Staged
from logstore.store import LogStore, Replica
from reconciler.errors import RefusedError
from reconciler.plan.history import read_history
from reconciler.plan.plan import (
    CHECKPOINT_REPAIRS,
    FILE_REPAIRS,
    TOPIC_ID_REPAIRS,
    Action,
    ActionKind,
    Plan,
    PlannedLogDir,
)
from reconciler.plan.policy import DAY_MS, HOUR_MS, why_forbidden
from reconciler.policy import PolicyRules
from reconciler.text import age, count, moment
from reconciler.verdicts import CLOCK_TOLERANCE_MS

_BYTES, _MODIFIED = VARYING.index("bytes"), VARYING.index("modified_ms")


@dataclass(frozen=True, slots=True)
class CheckedAction:
    """An action that was checked: it may be carried out, or has a status already.

    Attributes:
        action: of the plan.
        status: None: the disks are as the plan expects, and the action is to be carried out.
        detail: why the action is not carried out, one sentence.
        staged: the staged or stray replica that the action is about; None for actions on live replicas.
        repair: the file that is put right, with its old and its new bytes; None for other actions.
    """

    action: Action
    status: RepairStatus | None = None
    detail: str = ""
    staged: Staged | None = None
    repair: CheckedRepair | None = None


class Revalidation:
    """Checks the actions of one broker; staged replicas are listed once, on first use."""

    def __init__(
        self, store: LogStore, rules: PolicyRules | None = None, now_ms: int = 0, *, changed_data: bool = False
    ) -> None:
        """Check through an open store, and so under its locks.

        The replicas must not change meanwhile: all actions are checked before the first is carried out.

        ``rules``: of the policy file as it is now, which may have a hold that the plan does not know; None: there is no
        file; ``now_ms``: since 1970; ``changed_data``: the replica's data may have changed.
        """
        self._store, self._changed_data = store, changed_data
        self._rules, self._now_ms = rules or PolicyRules(), now_ms
        self._listed: dict[tuple[str, str, int | None], Staged] | None = None
        self._by_inode: dict[tuple[str, int | None], Staged] = {}
        self._whole: dict[tuple[str, int], Staged] = {}
        self._held: dict[str, frozenset[tuple[str, int]] | None] = {}

    def check(self, action: Action) -> CheckedAction:
        """Check one action."""
        forbidden = why_forbidden(self._rules, action, self._now_ms)
        if forbidden is not None:
            return CheckedAction(action, RepairStatus.SKIPPED, f"the policy forbids it: {forbidden}")
        reason = self._store.offline.get(action.log_dir)
        if reason is not None:
            return CheckedAction(action, RepairStatus.FAILED, reason)
        try:
            if action.kind in (ActionKind.STAGE, ActionKind.NOTE_SIGHTING):
                return self._live(action)
            if action.kind is ActionKind.WRITE_TOPIC_ID:
                return self._without_id(action)
            if action.kind in FILE_REPAIRS:
                return self._file(action)
            if action.kind is ActionKind.STAGE_DUPLICATE:
                return self._duplicate(action)
            return self._create(action) if action.kind is ActionKind.CREATE else self._staged_or_stray(action)
        except LogStoreError as error:
            return CheckedAction(action, status_of(error), str(error))
        except OSError as error:
            failed = self._log_dir(action.log_dir).failed(f"{action.name} cannot be looked at", error)
            return CheckedAction(action, RepairStatus.FAILED, str(failed))

    def _log_dir(self, path: str) -> LogDir:
        """Return an open log dir of the store. Raises ChangedSinceError: it is none, or could not be opened."""
        for log_dir in self._store.log_dirs:
            if log_dir.path == path:
                return log_dir
        raise ChangedSinceError(f"{path} cannot be used")

    def _file(self, action: Action) -> CheckedAction:
        """Check a file that is to be put right; the entries that go are looked up only where some do."""
        log_dir = self._log_dir(action.log_dir)
        held: frozenset[tuple[str, int]] | None = frozenset()
        if action.drops:
            if log_dir.path not in self._held:
                self._held[log_dir.path] = replicas_with_directory(log_dir)
            held = self._held[log_dir.path]
        found = check_repair(log_dir, _file_repair(action), held)
        return CheckedAction(action, RepairStatus.ALREADY) if found is None else CheckedAction(action, repair=found)

    def _duplicate(self, action: Action) -> CheckedAction:
        """Check the worse copy of a duplicate, and the better one."""
        log_dir, keeps = self._log_dir(action.log_dir), action.keeps
        if is_gone(log_dir, action.name):
            self._staged()
            staged = self._by_inode.get((action.log_dir, action.inode))
            if staged is not None and staged.partition == action.replica:
                return CheckedAction(action, RepairStatus.ALREADY, way_back(staged))
            return CheckedAction(action, RepairStatus.SKIPPED, "it is gone")
        topic_id = None if action.topic_id is None else TopicId.parse(action.topic_id)
        check_worse_copy(log_dir, action.name, action.replica, topic_id, action.expects or "")
        assert keeps is not None, "a plan names the copy that stays"
        check_better_copy(self._log_dir(keeps.log_dir), keeps.name, action.replica, keeps.inode, keeps.topic_id)
        return CheckedAction(action)

    def _live(self, action: Action) -> CheckedAction:
        """Check a live replica that is to be staged; for a note about a stray it is enough that the stray exists."""
        if action.kind is ActionKind.NOTE_SIGHTING and self._find_staged(action) is not None:
            return CheckedAction(action)
        replica = self._store.find(action.replica)
        if replica is None or not _is_there(replica, action):
            return self._gone(action)
        if _text(replica.topic_id) != action.topic_id:
            return _skipped(action, f"it holds topic ID {replica.topic_id or 'none'} by now")
        changed = None if self._changed_data else _data_changed(action)
        return CheckedAction(action) if changed is None else _skipped(action, changed)

    def _gone(self, action: Action) -> CheckedAction:
        self._staged()
        staged = self._by_inode.get((action.log_dir, action.inode))
        if staged is not None and staged.partition == action.replica:
            return CheckedAction(action, RepairStatus.ALREADY, f"staged as {staged.location}")
        return _skipped(action, "no such replica is there any more, or it is another directory by now")

    def _without_id(self, action: Action) -> CheckedAction:
        replica = self._store.find(action.replica)
        if replica is None or not _is_there(replica, action):
            return _skipped(action, "no such replica is there any more, or it is another directory by now")
        if _text(replica.topic_id) == action.wanted_topic_id:
            return CheckedAction(action, RepairStatus.ALREADY)
        if replica.metadata_state != MetadataState.MISSING:
            held = replica.topic_id or f"a partition.metadata that is {replica.metadata_state}"
            return _skipped(action, f"it holds {held} by now")
        return CheckedAction(action)

    def _create(self, action: Action) -> CheckedAction:
        replica = self._store.find(action.replica)
        if replica is not None and _text(replica.topic_id) == action.wanted_topic_id:
            return CheckedAction(action, RepairStatus.ALREADY)
        if action.wanted_topic_id is not None:
            self._staged()
            staged = self._whole.get((action.wanted_topic_id, action.partition))
            if staged is not None:
                return _skipped(action, f"{staged.log_dir} has it as {staged.location} by now, with its records")
            names = self._store.names_of(TopicId.parse(action.wanted_topic_id))
            others = [name for name in names if name != action.topic]
            if others:
                return _skipped(action, f"its topic is live here as {others[0]} by now")
        # A replica under another topic ID may be about to be staged; if it is not, the engine refuses the creation.
        return CheckedAction(action)

    def _staged_or_stray(self, action: Action) -> CheckedAction:
        """Check a staged or stray replica that is to be restored or to get a record."""
        staged = self._find_staged(action)
        if staged is None:
            replica = self._store.find(action.replica)
            back = action.kind is ActionKind.RESTORE and replica is not None and replica.inode in (0, action.inode)
            if back and replica is not None and _text(replica.topic_id) == action.topic_id:
                return CheckedAction(action, RepairStatus.ALREADY, f"live as {replica.path}")
            return _skipped(action, "it does not lie there any more, or is another directory by now")
        if action.kind is ActionKind.STAGE_STRAY and staged.record is not None:
            return CheckedAction(action, RepairStatus.ALREADY)
        if _text(staged.topic_id) != action.topic_id:
            return _skipped(action, f"it holds topic ID {staged.topic_id or 'none'} by now")
        changed = None if self._changed_data else _data_changed(action)
        return CheckedAction(action, staged=staged) if changed is None else _skipped(action, changed)

    def _find_staged(self, action: Action) -> Staged | None:
        return self._staged().get((action.log_dir, action.name, action.inode))

    def _staged(self) -> dict[tuple[str, str, int | None], Staged]:
        """Return staged and stray replicas by log dir, location and inode."""
        if self._listed is None:
            listed = self._store.staged()
            self._listed = {(each.log_dir, each.location, each.inode): each for each in listed}
            self._by_inode = {(each.log_dir, each.inode): each for each in listed if each.record is not None}
            for each in listed:
                if each.partition is not None and not each.may_be_partly_purged:
                    self._whole[str(each.topic_id), each.partition.partition] = each
        return self._listed


class StrangeLogDirError(RefusedError):
    """A log dir is not the one that a plan was made for, or may not be read to see whether it is."""


def strangers(log_dirs: Sequence[PlannedLogDir], *, unreadable: bool) -> Iterator[str]:
    """Yield a reason against each log dir that is not the one of the plan.

    Args:
        log_dirs: of the plan.
        unreadable: let one pass whose disk fails; it is offline, and each of its actions is reported as failed.
    """
    for log_dir in log_dirs:
        if is_closed(log_dir.path, meta_properties.FILE_NAME):
            yield (
                f"this user may not read {log_dir.path}, so nothing tells whether it is the log dir that it was made "
                "for: become the broker's own user, or root"
            )
            continue
        found = read_identity(log_dir.path, ExpectedIdentity(log_dir.cluster_id, log_dir.node_id, log_dir.directory_id))
        if found.state is not MetadataState.OK and not (unreadable and found.state is MetadataState.UNREADABLE):
            yield f"{log_dir.path} is not the log dir that it was made for: {found.problem}"


def too_old(plan: Plan, now_ms: int, oldest_ms: int | None) -> Iterator[str]:
    """Yield reasons against a plan that is too old, or whose metadata has become too old since.

    ``oldest_ms``: the greatest age that the operator allows; None: a day, and for the metadata what the plan allowed.
    """
    most_ms = DAY_MS if oldest_ms is None else oldest_ms
    old_ms = now_ms - plan.created_ms
    if old_ms > most_ms:
        yield f"it is {age(old_ms)} old, and {age(most_ms)} is the most (override: --max-age {old_ms // HOUR_MS + 1}h)"
    allowed = plan.policy.get("max_age_ms", "")
    if oldest_ms is None and not allowed.isdecimal():
        return  # it was planned for metadata of any age
    most_ms = int(allowed) if oldest_ms is None else oldest_ms
    for source in plan.metadata:
        as_of = source.get("timestamp_ms", "")
        old_ms = now_ms - int(as_of) if as_of.isdecimal() else 0
        if old_ms > most_ms:
            yield (
                f"{source.get('location')}, from which it was made, is {age(old_ms)} old by now, and {age(most_ms)} is "
                f"the most (override: --max-age {old_ms // HOUR_MS + 1}h)"
            )


def clock_behind(plan: Plan, now_ms: int) -> Iterator[str]:
    """Yield reasons against this machine's clock: no plan is of a later time, and nothing that one to stage knows is.

    What is staged under a clock that is behind would be due too early, and a plan of a later time was made under
    one that is wrong, or was not made here at all.
    """
    newest = _newest(plan) if plan.needs_clock else (0, "")
    for ms, what in [(plan.created_ms, "it"), newest]:
        if ms > now_ms + CLOCK_TOLERANCE_MS:
            yield (
                f"{what} is of {moment(ms)}, which is {age(ms - now_ms)} in the future: set this machine's clock, "
                f"which says {moment(now_ms)} (override: --any-clock)"
            )


def _newest(plan: Plan) -> tuple[int, str]:
    """Return the newest time that the plan and the journals know, in ms since 1970, and of what it is."""
    written = read_history(log_dir.path for log_dir in plan.log_dirs).memory().written
    times = [(ms, f"the newest journal in {path}") for path, ms in written.items()]
    for each in plan.actions:
        times.append((max(each.modified_ms or 0, each.created_ms or 0), f"{each.log_dir}/{each.name}"))
    if plan.repairs_only:  # a plan of another kind was held to the gate of its metadata's time as it was made
        dated = [each for each in plan.metadata if each.get("timestamp_ms", "").isdecimal()]
        times += [(int(each["timestamp_ms"]), f"{each.get('location')}, from which it was made,") for each in dated]
    return max(times, default=(0, ""))


def status_of(error: LogStoreError) -> RepairStatus:
    """Return failed if the system refused the change, and skipped if the disks are not as the plan expects."""
    return RepairStatus.FAILED if isinstance(error, ChangeFailedError | OfflineLogDirError) else RepairStatus.SKIPPED


def way_back(staged: Staged) -> str:
    """Say where the worse copy of a duplicate lies, and how it comes back."""
    return f"staged as {staged.location}, from where 'logstore restore' brings it back"


def _file_repair(action: Action) -> FileRepair:
    """Return what an action does to a file, as the engine takes it."""
    content: TopicIdFile | CheckpointWithout | None = None
    if action.kind in TOPIC_ID_REPAIRS:
        content = TopicIdFile(action.replica, TopicId.parse(action.wanted_topic_id or ""))
    elif action.kind in CHECKPOINT_REPAIRS:
        content = CheckpointWithout(action.dropped, action.kind is ActionKind.REBUILD_CHECKPOINT)
    return FileRepair(action.name, content, action.expects or "", action.writes or "", action.inode)


def _is_there(replica: Replica, action: Action) -> bool:
    return (replica.log_dir, replica.path, replica.inode) == (action.log_dir, action.name, action.inode)


def _text(topic_id: TopicId | None) -> str | None:
    return None if topic_id is None or topic_id.is_zero else str(topic_id)


def _skipped(action: Action, why: str) -> CheckedAction:
    return CheckedAction(action, RepairStatus.SKIPPED, f"{why}: make a new plan")


def _data_changed(action: Action) -> str | None:
    """Return how the data differs from the plan, as a clause; None: it does not, or the plan does not say."""
    if action.bytes is None:
        return None
    folder, _, name = posixpath.normpath(f"{action.log_dir}/{action.name}").rpartition("/")
    rows = scan_directories(ScanOptions(sizes=True), Folder("", f"{folder}/"), [(name, action.inode or 0)])
    if not rows:
        return "it is gone"
    size, modified = rows[0][_BYTES], rows[0][_MODIFIED]
    if (size, modified) == (action.bytes, action.modified_ms):
        return None
    now = f"{count(size, 'byte') if isinstance(size, int) else 'no bytes that can be counted'}"
    when = moment(modified if isinstance(modified, int) else None)
    return (
        f"its data has changed: {now}, last at {when}, and {count(action.bytes, 'byte')} at "
        f"{moment(action.modified_ms)} when the plan was made (override: --changed-data)"
    )
