"""Notes which staged directories a purge may have begun to empty, so that half a replica is never restored.

A purge that is cut short leaves directories with their records and only some of their files. Such a directory can only
be purged. So before the first file is removed, the file ``.logstore_purging`` says up to which due time any directory
may be partly gone. At an orderly end the note is reduced to the names of the directories that are partly gone, or
removed. It lies where the lock of the purge is: in the log dir, in which a broker ignores plain files; or in the
staging root beside it, which is purged also while a broker runs, and speaks of what is staged there alone. On a disk
without room for the note a purge goes on without it: a full disk must be cleanable, and the delay of what is due is
over.
"""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from layout import json_text
from layout.errors import LayoutError
from layout.scheme import PURGE_NOTE_FILE
from logstore.errors import FailedReadError, UnreadableFileError, UnsafePathError
from logstore.fs import TEMPORARY, Directory, Disk, read_small_file, remove_file, replace_file
from logstore.log_dir import LogDirView
from logstore.staging.listing import Staged
from logstore.staging.placement import Placement, open_staging_root, placements

logger = logging.getLogger(__name__)

EVERYTHING_DUE: Final = (1 << 63) - 1
"""A due time later than all others: for a purge that also deletes what is not due yet."""

_LIMIT = 1 << 26
_SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class PurgeNote:
    """The staged directories that a purge may have begun to empty.

    Attributes:
        due_by_ms: every directory that was due by this time, in ms since 1970; None: only ``directories``.
        directories: location → time of staging, which distinguishes a later directory of the same name.
        unread: why the system refuses to read the note, a clause; None: it was read, or it is damaged.
    """

    due_by_ms: int | None = None
    directories: Mapping[str, int] = field(default_factory=dict, hash=False)
    unread: str | None = None

    def covers(self, staged: Staged) -> bool:
        """Whether a staged directory may be partly gone."""
        if staged.record is None:
            return False
        by_time = self.due_by_ms is not None and staged.record.due_ms <= self.due_by_ms
        return by_time or self.directories.get(staged.location) == staged.record.staged_ms


def read_note_about(log_dir: LogDirView, staged: Staged) -> tuple[PurgeNote, str]:
    """Read the note that may speak of a staged directory; with the path of the directory where it belongs.

    Raises:
        OSError: the staging root cannot be opened.
    """
    if staged.placement is not Placement.SIBLING:
        return read_purge_note(log_dir.root), log_dir.path
    root = open_staging_root(log_dir, staged.placement)
    if root is None:
        return PurgeNote(), log_dir.path
    with root:
        return read_purge_note(root), root.path


def drop_spent_note(disk: Disk, home: Directory, staged: Iterable[Staged]) -> bool:
    """Remove the note of a purge that was cut short where it covers nothing any more; False: there is none, or it does.

    Args:
        disk: the primitive changes.
        home: as for :func:`begin_purge`.
        staged: all of which the note may speak.

    Raises:
        OSError: from the system.
    """
    note = read_purge_note(home)
    if not home.holds(PURGE_NOTE_FILE) or note.unread is not None or any(map(note.covers, staged)):
        return False
    remove_file(disk, home, PURGE_NOTE_FILE)
    return True


def was_purged_beside(log_dir: LogDirView) -> bool:
    """Whether a purge of the staging root beside a log dir was cut short, of which the log dir itself says nothing.

    Raises:
        OSError: the staging root cannot be opened.
    """
    if Placement.SIBLING not in placements(log_dir):
        return False
    try:
        root = open_staging_root(log_dir, Placement.SIBLING)
    except (UnsafePathError, LayoutError):
        return False  # nothing of ours can lie there
    if root is None:
        return False
    with root:
        return root.holds(PURGE_NOTE_FILE) or root.holds(PURGE_NOTE_FILE + TEMPORARY)


def read_purge_note(home: Directory) -> PurgeNote:
    """Read the note in a log dir or a sibling staging root. An unreadable one means that all may be partly gone."""
    try:
        data = read_small_file(PURGE_NOTE_FILE, _LIMIT, home.descriptor)
        if data is None:
            return PurgeNote()
        fields = json_text.parse_object(data, PURGE_NOTE_FILE)
    except FailedReadError as error:
        return PurgeNote(EVERYTHING_DUE, unread=str(error))
    except (UnreadableFileError, LayoutError):
        return PurgeNote(EVERYTHING_DUE)
    due_by_ms, directories = fields.get("due_by_ms"), fields.get("directories")
    if (
        fields.get("schema_version") != _SCHEMA_VERSION
        or not (due_by_ms is None or isinstance(due_by_ms, int))
        or not isinstance(directories, dict)
        or not all(isinstance(staged_ms, int) for staged_ms in directories.values())
    ):
        return PurgeNote(EVERYTHING_DUE)
    return PurgeNote(due_by_ms, directories)


def begin_purge(disk: Disk, home: Directory, due_by_ms: int) -> PurgeNote:
    """Note durably, before anything is removed, that every directory due by then may be partly gone.

    Args:
        disk: the primitive changes.
        home: the log dir, or for what is staged beside it the staging root.
        due_by_ms: in ms since 1970.

    Returns:
        The former note.

    Raises:
        OSError: the note cannot be written, for another reason than lack of space.
    """
    former = read_purge_note(home)
    try:
        _write(disk, home, PurgeNote(max(due_by_ms, former.due_by_ms or 0), former.directories))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        logger.warning(
            "%s: there is no room to note that a purge is under way: if it is cut short, do not restore what is due",
            home.path,
        )
    return former


def end_purge(disk: Disk, home: Directory, left: PurgeNote) -> None:
    """Note which directories are still partly gone; where none is, remove the note.

    Raises:
        OSError: from the system; the former note stays, which covers more than it needs to.
    """
    if left.due_by_ms is None and not left.directories:
        remove_file(disk, home, PURGE_NOTE_FILE)
    else:
        _write(disk, home, left)


def _write(disk: Disk, home: Directory, note: PurgeNote) -> None:
    fields = {
        "schema_version": _SCHEMA_VERSION,
        "due_by_ms": note.due_by_ms,
        "directories": dict(note.directories),
    }
    replace_file(disk, home, PURGE_NOTE_FILE, (json.dumps(fields) + "\n").encode("ascii"))
