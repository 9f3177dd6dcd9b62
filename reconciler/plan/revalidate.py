"""Check every action of a plan against the disks again, under the lock; an action that no longer fits is skipped.

A replica is the same if its path, the inode of its directory and its topic ID are the same. Its data is the same if the
sum of the lengths of its files and the newest time of change are the same. A broker that was stopped after the plan was
made has trimmed its indexes, so only a change of data may be overridden. An action that was carried out before is
recognised by the present state of the disks. Source: DESIGN §6.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from layout.ids import TopicId
from logstore import LogStoreError, OfflineLogDirError
from logstore.repair import RepairStatus
from logstore.rows import VARYING, MetadataState
from logstore.scan import Folder, ScanOptions, scan_directories
from logstore.staging import Staged
from logstore.store import LogStore, Replica
from reconciler.plan.plan import Action, ActionKind
from reconciler.text import count, moment

_BYTES, _MODIFIED = VARYING.index("bytes"), VARYING.index("modified_ms")


@dataclass(frozen=True, slots=True)
class CheckedAction:
    """An action that was checked: it may be carried out, or has a status already.

    Attributes:
        action: of the plan.
        status: None: the disks are as the plan expects, and the action is to be carried out.
        detail: why the action is not carried out, one sentence.
        staged: the staged or stray replica that the action is about; None for actions on live replicas.
    """

    action: Action
    status: RepairStatus | None = None
    detail: str = ""
    staged: Staged | None = None


class Revalidation:
    """Checks the actions of one broker; staged replicas are listed once, on first use."""

    def __init__(self, store: LogStore, *, changed_data: bool = False) -> None:
        """Check through an open store, and so under its locks; ``changed_data``: the replica's data may have changed.

        The replicas must not change meanwhile: all actions are checked before the first is carried out.
        """
        self._store, self._changed_data = store, changed_data
        self._listed: dict[tuple[str, str, int | None], Staged] | None = None
        self._by_inode: dict[tuple[str, int | None], Staged] = {}

    def check(self, action: Action) -> CheckedAction:
        """Check one action."""
        reason = self._store.offline.get(action.log_dir)
        if reason is not None:
            return CheckedAction(action, RepairStatus.FAILED, reason)
        try:
            if action.kind in (ActionKind.STAGE, ActionKind.NOTE_SIGHTING):
                return self._live(action)
            if action.kind is ActionKind.WRITE_TOPIC_ID:
                return self._without_id(action)
            return self._create(action) if action.kind is ActionKind.CREATE else self._staged_or_stray(action)
        except OfflineLogDirError as error:
            return CheckedAction(action, RepairStatus.FAILED, str(error))
        except LogStoreError as error:
            return CheckedAction(action, RepairStatus.SKIPPED, str(error))

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
        return self._listed


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
