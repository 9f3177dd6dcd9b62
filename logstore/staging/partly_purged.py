"""Notes which staged directories a purge may have begun to empty, so that half a replica is never restored.

A purge that is cut short leaves directories with their records and only some of their files. Such a directory can only
be purged. So before the first file is removed, the file ``.logstore_purging`` in the log dir says up to which due time
any directory may be partly gone. At an orderly end the note is reduced to the names of the directories that are partly
gone, or removed. A broker ignores plain files, so the note may lie in any log dir. On a disk without room for the note
a purge goes on without it: a full disk must be cleanable, and the delay of what is due is over.
"""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from layout import json_text
from layout.errors import LayoutError
from layout.scheme import PURGE_NOTE_FILE
from logstore.errors import FailedReadError, UnreadableFileError
from logstore.fs import read_small_file, remove_file, replace_file
from logstore.log_dir import LogDir, LogDirView
from logstore.staging.listing import Staged

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


def read_purge_note(log_dir: LogDirView) -> PurgeNote:
    """Read the note of a log dir. An unreadable note means that every directory may be partly gone."""
    try:
        data = read_small_file(PURGE_NOTE_FILE, _LIMIT, log_dir.root.descriptor)
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


def begin_purge(log_dir: LogDir, due_by_ms: int) -> PurgeNote:
    """Note durably, before anything is removed, that every directory due by then may be partly gone.

    Returns:
        The former note.

    Raises:
        OSError: the note cannot be written, for another reason than lack of space.
    """
    former = read_purge_note(log_dir)
    try:
        _write(log_dir, PurgeNote(max(due_by_ms, former.due_by_ms or 0), former.directories))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        logger.warning(
            "%s: there is no room to note that a purge is under way: if it is cut short, do not restore what is due",
            log_dir.path,
        )
    return former


def end_purge(log_dir: LogDir, left: PurgeNote) -> None:
    """Note which directories are still partly gone; where none is, remove the note.

    Raises:
        OSError: from the system; the former note stays, which covers more than it needs to.
    """
    if left.due_by_ms is None and not left.directories:
        remove_file(log_dir.disk, log_dir.root, PURGE_NOTE_FILE)
    else:
        _write(log_dir, left)


def _write(log_dir: LogDir, note: PurgeNote) -> None:
    fields = {
        "schema_version": _SCHEMA_VERSION,
        "due_by_ms": note.due_by_ms,
        "directories": dict(note.directories),
    }
    replace_file(log_dir.disk, log_dir.root, PURGE_NOTE_FILE, (json.dumps(fields) + "\n").encode("ascii"))
