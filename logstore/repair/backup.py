"""Change files, each with a backup in the root of its log dir first (:mod:`layout.ours.repair_backup` has the format).

The first change of a repair waits until its backup is durable, so a backup that a crash cut short means that nothing
was changed. A backup that does not parse may therefore be overwritten; one that parses is only added to. Each file is
replaced or removed atomically. A crash needs no recovery of its own: the same repairs, checked and done again, find
what is done and do the rest. Source: DESIGN §6.
"""

from __future__ import annotations

from collections.abc import Sequence

from layout.errors import LayoutError
from layout.ours import KeptFile, RepairBackup, backup_file_name, encode_backup, merged_backups, parse_backup
from logstore.errors import ChangeRefusedError, LogStoreError, UnreadableFileError
from logstore.fs import read_small_file, replace_file, write_new_file
from logstore.log_dir import CheckpointFiles, LogDir, change_files
from logstore.repair.checks import CheckedRepair, CheckpointWithout

BACKUP_LIMIT = 1 << 29
"""Largest backup that is read, in bytes: the old bytes as base64, and the JSON around them."""

MOST_OLD_BYTES = 1 << 28
"""Most old bytes that one backup keeps; the four checkpoints of the largest broker have a fraction of that."""


def repair_files(
    log_dir: LogDir, checked: Sequence[CheckedRepair], fingerprint: str, now_ms: int
) -> tuple[str | None, dict[str, LogStoreError]]:
    """Back up files durably, all of them, and then change them. Never raises for a file.

    Args:
        log_dir: open, and so locked.
        checked: from :func:`logstore.repair.check_repair`, each path once.
        fingerprint: of the plan that the repairs belong to; the backup is named after it.
        now_ms: in ms since 1970.

    Returns:
        The path of the backup; None: it could not be written, and so nothing was changed. And the error of each file,
        by path, that was not changed.
    """
    try:
        backup = write_backup(log_dir, fingerprint, now_ms, [each.kept for each in checked])
    except LogStoreError as error:
        return None, dict.fromkeys((each.repair.path for each in checked), error)
    failed = change_files(log_dir, [each.change for each in checked], "cannot be repaired")
    if any(isinstance(each.repair.content, CheckpointWithout) for each in checked):
        log_dir.checkpoints = CheckpointFiles(log_dir.root)
    return backup, failed


def write_backup(log_dir: LogDir, fingerprint: str, now_ms: int, files: Sequence[KeptFile]) -> str:
    """Make the old bytes durable before anything changes; give the path of the backup.

    Raises:
        ChangeRefusedError: there are too many bytes, or something else has the backup's name.
        OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
    """
    name = backup_file_name(fingerprint)
    if sum(len(each.before or b"") for each in files) > MOST_OLD_BYTES:
        raise ChangeRefusedError(
            f"{log_dir.path}: more than {MOST_OLD_BYTES} bytes would have to be backed up; plan a part with --only"
        )
    identity = log_dir.identity
    backup = RepairBackup(
        fingerprint, now_ms, identity.cluster_id, identity.node_id, log_dir.directory_id or None, tuple(files)
    )
    with log_dir.changing("the backup of what is repaired cannot be written"):
        if not log_dir.root.holds(name):
            write_new_file(log_dir.disk, log_dir.root, name, encode_backup(backup), durable=True)
            return f"{log_dir.path}/{name}"
        old = _read_old(log_dir, name)
        if old is not None and old.fingerprint == fingerprint:
            backup = merged_backups(old, files)
        if backup != old:
            replace_file(log_dir.disk, log_dir.root, name, encode_backup(backup))
    return f"{log_dir.path}/{name}"


def read_backup(log_dir: LogDir, name: str) -> RepairBackup:
    """Read a backup of this log dir.

    Raises:
        ChangeRefusedError: there is no such backup, it is damaged, or it belongs to another log dir.
    """
    place = log_dir.root.path_of(name)
    try:
        data = read_small_file(name, BACKUP_LIMIT, log_dir.root.descriptor)
        if data is None:
            raise ChangeRefusedError(f"{place} is not there: what it kept was put back, or it was never made")
        backup = parse_backup(data)
    except (UnreadableFileError, LayoutError) as error:
        raise ChangeRefusedError(
            f"{place}: {error}; if the repair was cut short while it wrote this file, nothing was changed"
        ) from error
    found = (log_dir.identity.cluster_id, log_dir.identity.node_id, log_dir.directory_id or None)
    if found != (backup.cluster_id, backup.node_id, backup.directory_id):
        raise ChangeRefusedError(
            f"{place} was made for directory.id {backup.directory_id} of broker {backup.node_id}, cluster "
            f"{backup.cluster_id}, and this is {found[2]} of broker {found[1]}, cluster {found[0]}"
        )
    return backup


def _read_old(log_dir: LogDir, name: str) -> RepairBackup | None:
    """Read the backup that an earlier run left; None: a crash cut it short."""
    try:
        data = read_small_file(name, BACKUP_LIMIT, log_dir.root.descriptor)
        return None if data is None else parse_backup(data)
    except UnreadableFileError as error:
        raise ChangeRefusedError(f"{log_dir.root.path_of(name)} {error}; move it out of the way") from error
    except LayoutError:
        return None
