"""Looks at every line of a plan again, on the spot and under the lock: what has changed since is skipped, and says so.

What makes a replica the same one is its path, the inode of its directory, and its topic ID. What makes its data the
same is the sum of its files' lengths and the newest time of change in it; a broker that was stopped meanwhile trims its
indexes, so that alone may be overridden. A line that was carried out before is recognised by what lies there now.
Source: DESIGN §6.
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
    """A line that was looked at: it may be carried out, or has a status already.

    Attributes:
        action: the line.
        status: None: it is as the plan expects it, and is to be carried out.
        detail: why it is not, one sentence.
        staged: what lies aside, of actions on that.
    """

    action: Action
    status: RepairStatus | None = None
    detail: str = ""
    staged: Staged | None = None


class Revalidation:
    """Looks at the lines of one broker; what lies staged is listed once, when it is first asked for."""

    def __init__(self, store: LogStore, *, changed_data: bool = False) -> None:
        """Look through an open store, and so under its locks; ``changed_data``: other data of the same replica will do.

        What is looked at must not be changed meanwhile: all lines are looked at before the first is carried out.
        """
        self._store, self._changed_data = store, changed_data
        self._listed: dict[tuple[str, str, int | None], Staged] | None = None
        self._by_inode: dict[tuple[str, int | None], Staged] = {}

    def look(self, action: Action) -> CheckedAction:
        """Look at one line."""
        reason = self._store.offline.get(action.log_dir)
        if reason is not None:
            return CheckedAction(action, RepairStatus.FAILED, reason)
        try:
            if action.kind in (ActionKind.STAGE, ActionKind.NOTE_SIGHTING):
                return self._live(action)
            if action.kind is ActionKind.WRITE_TOPIC_ID:
                return self._without_id(action)
            return self._create(action) if action.kind is ActionKind.CREATE else self._aside(action)
        except OfflineLogDirError as error:
            return CheckedAction(action, RepairStatus.FAILED, str(error))
        except LogStoreError as error:
            return CheckedAction(action, RepairStatus.SKIPPED, str(error))

    def _live(self, action: Action) -> CheckedAction:
        """A live replica that is to be staged; of a stray, a note needs no more than that it is still there."""
        if action.kind is ActionKind.NOTE_SIGHTING and self._aside_as(action) is not None:
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
        # One that is live under another ID may be about to be staged; where it is not, the engine refuses.
        return CheckedAction(action)

    def _aside(self, action: Action) -> CheckedAction:
        """What is staged or stray, and is to come back or to be given a record."""
        staged = self._aside_as(action)
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

    def _aside_as(self, action: Action) -> Staged | None:
        return self._staged().get((action.log_dir, action.name, action.inode))

    def _staged(self) -> dict[tuple[str, str, int | None], Staged]:
        """What lies aside, by log dir, location and inode."""
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
    """How the data differs from what the plan says, as a clause; None: not at all, or the plan says nothing."""
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
