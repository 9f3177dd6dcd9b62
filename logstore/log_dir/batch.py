"""Small files of one log dir replaced together; where the system refuses, one by one, each with its own error."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from logstore.errors import LogStoreError, UnreadableFileError
from logstore.fs import Batch, Directory, read_small_file, remove_file, replace_file
from logstore.log_dir.checkpoints import CHECKPOINT_LIMIT
from logstore.log_dir.log_dir import DISK_FAILURES, LogDir
from logstore.tunables import FILES_AT_ONCE, FILES_SYNCED_ALONE

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file and the bytes that it shall hold.

    Attributes:
        path: of the file, below the log dir.
        data: its new bytes; None: remove it.
        inode: of the directory that holds it; None: any.
    """

    path: str
    data: bytes | None
    inode: int | None = None


def change_files(log_dir: LogDir, changes: Sequence[FileChange], what: str) -> dict[str, LogStoreError]:
    """Make files hold new bytes, durably. Never raises for a file: the answer holds the errors, by path.

    A file that is not in the answer is done. One in the answer holds its old bytes, unless the disk itself failed.

    The log dir is open, and so under its lock; ``changes`` has each path once; ``what`` names the change in messages:
    ``cannot be repaired``.
    """
    failed: dict[str, LogStoreError] = {}
    for start in range(0, len(changes), FILES_AT_ONCE):
        some = changes[start : start + FILES_AT_ONCE]
        if len(some) > FILES_SYNCED_ALONE and log_dir.offline is None:
            try:
                with (
                    log_dir.changing(f"{some[0].path} and {len(some) - 1} more {what}"),
                    Batch(log_dir.disk, log_dir.root) as batch,
                ):
                    for change in some:
                        _parent(batch, change)
                    batch.replace([(change.path, change.data) for change in some])
                continue
            except LogStoreError as error:
                logger.warning("%s; trying one by one", error)
        for change in some:
            try:
                with log_dir.changing(f"{change.path} {what}"), Batch(log_dir.disk, log_dir.root) as batch:
                    change_file(log_dir, _parent(batch, change), change.path.rpartition("/")[2], change.data)
            except LogStoreError as error:
                failed[change.path] = error
    return failed


def change_file(log_dir: LogDir, parent: Directory, name: str, data: bytes | None) -> None:
    """Make one file hold new bytes, or remove it; either succeeds, or changes nothing.

    Raises:
        OSError: nothing was changed; or the disk fails.
    """
    try:
        if data is None:
            remove_file(log_dir.disk, parent, name)
        else:
            replace_file(log_dir.disk, parent, name, data)
    except OSError as error:
        if error.errno in DISK_FAILURES or not _holds(parent, name, data):
            raise
        # Only the last sync failed: the file is changed, and a power cut may undo that.
        logger.warning("%s: %s is changed, and may change back (%s)", parent.path, name, error.strerror)


def _parent(batch: Batch, change: FileChange) -> Directory:
    """Open the directory of a file, along no link; raise OSError where it is gone or replaced."""
    parent = batch.parent(change.path)
    if change.inode is not None and parent.key[1] != change.inode:
        raise FileNotFoundError(2, "the directory is another one by now", parent.path)
    return parent


def _holds(parent: Directory, name: str, data: bytes | None) -> bool:
    try:
        return read_small_file(name, CHECKPOINT_LIMIT, parent.descriptor) == data
    except UnreadableFileError:
        return False
