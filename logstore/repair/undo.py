"""Undo a repair: every file that still holds what the repair wrote gets its old bytes again.

The backup in the log dir's root says what each file held. A file that has changed since, or whose directory is another
one by now, stays as it is, with the reason, and then the backup stays as well. When every file has its old bytes,
durably, the backup is removed. After a crash the backup is still there, and a second undo does the rest. Duplicates
that were staged are no part of an undo: ``restore`` brings them back. Source: DESIGN §6.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from layout.ours import KeptFile, is_backup_name, sum_of
from logstore.errors import ChangeRefusedError, LogStoreError, UnreadableFileError
from logstore.fs import Batch, Disk, read_small_file, remove_file
from logstore.journal import check_nothing_pending
from logstore.log_dir import CHECKPOINT_LIMIT, FallbackRecords, FileChange, LogDir, change_files
from logstore.repair.backup import read_backup
from logstore.repair.checks import RepairStatus
from logstore.store import recover_all

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Undone:
    """The outcome for one file; the detail is one sentence without a full stop, empty where all is well."""

    path: str
    """Below the log dir."""
    status: RepairStatus
    detail: str = ""


@dataclass(slots=True)
class UndoOutcome:
    """The outcome of undoing one backup."""

    log_dir: str
    results: list[Undone] = field(default_factory=list)
    """One for each file, the last change first."""
    backup_removed: bool = False
    """Every file has its old bytes."""


def undo_repair(path: str, *, disk: Disk | None = None) -> UndoOutcome:
    """Put back the files that a repair changed.

    ``path``: of the backup, in the root of its log dir; ``disk`` carries out the changes; None: the real file system.

    Raises:
        LogDirInUseError: a broker runs on the log dir.
        NotALogDirError: the backup does not lie in a log dir.
        ChangeRefusedError: the file is no backup, is damaged, or belongs to another log dir; or a change of many steps
            has to be finished first.
        OfflineLogDirError, ChangeFailedError: the log dir cannot be opened, or the backup cannot be removed.
    """
    folder, name = os.path.split(os.path.abspath(path))
    if not is_backup_name(name):
        raise ChangeRefusedError(f"{path} is not named as the backup of a repair is: .logstore_repair.<digits>.json")
    with LogDir.open(folder, disk=disk) as log_dir:
        check_nothing_pending([log_dir])
        recover_all([log_dir], FallbackRecords(None))
        backup = read_backup(log_dir, name)
        outcome = UndoOutcome(log_dir.path)
        outcome.results = _put_back(log_dir, list(reversed(backup.files)))
        if all(each.status in (RepairStatus.DONE, RepairStatus.ALREADY) for each in outcome.results):
            with log_dir.changing(f"{name} cannot be removed"), Batch(log_dir.disk, log_dir.root) as batch:
                # Where the last sync of a change was refused, a power cut may take the old bytes away again.
                batch.sync(file.path.rpartition("/")[0] for file in backup.files)
                remove_file(log_dir.disk, log_dir.root, name)
            outcome.backup_removed = True
    return outcome


def _put_back(log_dir: LogDir, files: Sequence[KeptFile]) -> list[Undone]:
    """Put back every file that still holds what the repair wrote; give the outcome of each, in the order given."""
    found = {file.path: _revalidate(log_dir, file) for file in files}
    changes = [FileChange(file.path, file.before, file.inode) for file in files if found[file.path] is None]
    failed = change_files(log_dir, changes, "cannot be put back")
    for change in changes:
        error = failed.get(change.path)
        status = RepairStatus.DONE if error is None else RepairStatus.FAILED
        found[change.path] = Undone(change.path, status, "" if error is None else str(error))
        logger.info("%s: undo of %s: %s", log_dir.path, change.path, status)
    return [undone for undone in found.values() if undone is not None]


def _revalidate(log_dir: LogDir, file: KeptFile) -> Undone | None:
    """Read a file again; give the outcome where nothing is to be done, and None where it must be put back."""
    folder, _, name = file.path.rpartition("/")
    try:
        with log_dir.root.below(folder) as parent:
            if file.inode is not None and parent.key[1] != file.inode:
                return Undone(file.path, RepairStatus.SKIPPED, "its directory is another one by now")
            now = read_small_file(name, CHECKPOINT_LIMIT, parent.descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return Undone(file.path, RepairStatus.SKIPPED, "its directory is gone")
    except UnreadableFileError as error:
        return Undone(file.path, RepairStatus.SKIPPED, f"{name} {error}")
    except LogStoreError as error:
        return Undone(file.path, RepairStatus.SKIPPED, str(error))
    except OSError as error:
        return Undone(file.path, RepairStatus.FAILED, str(log_dir.failed(f"{file.path} cannot be looked at", error)))
    if now == file.before:
        return Undone(file.path, RepairStatus.ALREADY)
    return (
        None
        if sum_of(now) == file.after
        else Undone(file.path, RepairStatus.SKIPPED, "it has changed since the repair")
    )
