"""Says which staged directories a purge may have begun to empty, so that no half of a replica is ever brought back.

A purge that is cut short leaves directories with their records, and less in them than there was; such a one can only be
purged. So before the first file goes, ``.logstore_purging`` in the log dir says up to which due time that may be so of
everything; an orderly end leaves the names of those that are partly gone, or no note at all. A broker passes over plain
files, so it may lie in any log dir. On a disk that has no room for it a purge goes on without: it must be possible to
clean a full disk, and what is due has had its time.
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
from logstore.errors import UnreadableFileError
from logstore.fs import read_small_file, remove_file, replace_file
from logstore.log_dir import LogDir, LogDirView
from logstore.staging.listing import Staged

logger = logging.getLogger(__name__)

EVERYTHING_DUE: Final = (1 << 63) - 1
"""A due time that nothing lies behind: for a purge that was told to take what is not due."""

_LIMIT = 1 << 26
_SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class PurgeNote:
    """What a purge may have begun to empty.

    Attributes:
        due_by_ms: whatever was due by then, in ms since 1970; None: nothing but what is named.
        directories: location → when it was staged, which tells it from a later one of the same name.
    """

    due_by_ms: int | None = None
    directories: Mapping[str, int] = field(default_factory=dict, hash=False)

    def covers(self, staged: Staged) -> bool:
        """Whether a staged directory may be partly gone."""
        if staged.record is None:
            return False
        by_time = self.due_by_ms is not None and staged.record.due_ms <= self.due_by_ms
        return by_time or self.directories.get(staged.location) == staged.record.staged_ms


def read_purge_note(log_dir: LogDirView) -> PurgeNote:
    """The note in a log dir. One that cannot be read says that anything may be partly gone."""
    try:
        data = read_small_file(PURGE_NOTE_FILE, _LIMIT, log_dir.root.descriptor)
        if data is None:
            return PurgeNote()
        fields = json_text.parse_object(data, PURGE_NOTE_FILE)
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
    """Note durably, before anything goes, that whatever is due by then may be partly gone; what was noted before.

    Raises:
        OSError: it cannot be written for another reason than lack of space.
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
    """Note what is left partly gone; where nothing is, the note goes.

    Raises:
        OSError: as the system gives it; then more is noted than need be.
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
