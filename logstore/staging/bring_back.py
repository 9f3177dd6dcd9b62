"""Restores a staged replica: directory, name and checkpoint entries, byte for byte as they were (DESIGN §5).

In reverse order of staging: one rename, both directories are synced, the checkpoint entries are written, and only then
the ledger says *restored*. A crash in between leaves a line without its directory, and recovery finishes the restore.
``-stray`` directories that a real broker left come back in the same way. They have no record, so topic and partition
come from the directory's name, and their checkpoint entries are gone, which a broker makes up for.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from layout.directory_name import live_name, parse, parse_staged
from layout.errors import LayoutError
from layout.ours import LedgerEvent
from layout.scheme import LEDGER_FILE, MARKER_FILE, Scheme, partition_path
from layout.topic import TopicPartition
from logstore.errors import (
    ChangeRefusedError,
    DamagedRecordError,
    InvalidNamespaceError,
    LogStoreError,
    NameTakenError,
)
from logstore.fs import Directory, rename_exclusively, sync_all
from logstore.log_dir import DISK_FAILURES, FallbackRecords, LogDir, LogDirView, open_replica_parent
from logstore.staging.listing import Staged
from logstore.staging.placement import Placement, open_staging_root
from logstore.staging.records import restored_path
from logstore.staging.root_ledger import note_event

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Restored:
    """A replica that is live again."""

    partition: TopicPartition
    log_dir: str
    path: str
    """Where it lies, below its log dir."""


def planned_restore(log_dir: LogDirView, staged: Staged, partition: TopicPartition | None = None) -> Restored:
    """Say what :func:`restore` would do, without doing it.

    Args:
        log_dir: holds the staged directory.
        staged: the directory to restore.
        partition: of a stray whose name may be cut; None: from the record or the name.

    Raises:
        DamagedRecordError: neither record nor name says for certain which partition it was.
        NameTakenError: the path of the replica is taken.
        InvalidNamespaceError: its namespace was deleted.
        ChangeRefusedError: a purge may have emptied it in part, or it is another partition than ``partition``.
        OSError: from the system.
    """
    if staged.may_be_partly_purged:
        raise ChangeRefusedError(
            f"a purge that was cut short may have emptied {staged.location} in part, and the next one goes on: it can "
            "only be purged"
        )
    if staged.in_doubt and partition is None:
        raise ChangeRefusedError(
            f"{staged.location} is left where it is: a line in {LEDGER_FILE} beside it cannot be read, which may have "
            "said that a purge had begun to empty it; look into it, and name its topic and partition if it is whole"
        )
    if staged.record is not None:
        if partition is not None and partition != staged.partition:
            raise ChangeRefusedError(f"{staged.location} is {staged.partition}, and not {partition}")
        known, path = (
            TopicPartition(staged.record.topic, staged.record.partition),
            restored_path(log_dir, staged.record),
        )
    else:
        known, path = _adopted(log_dir, staged, partition)
    folder, _, name = path.rpartition("/")
    try:
        with log_dir.root.below(folder) as parent:
            if log_dir.scheme is Scheme.NAMESPACED and folder and not parent.holds(MARKER_FILE):
                raise FileNotFoundError(folder)  # a replica's directory, which only looks like a namespace directory
            if parent.holds(name):
                raise NameTakenError(
                    f"{staged.location} cannot come back as {path}: that is there already in {log_dir.path}; stage it "
                    "first, or leave this one staged"
                )
    except FileNotFoundError as error:
        if log_dir.scheme is Scheme.NAMESPACED:
            raise InvalidNamespaceError(
                f"{staged.location} cannot come back: its namespace {known.namespace} was deleted; create it first"
            ) from error
    return Restored(known, log_dir.path, path)


def restore(
    log_dir: LogDir, staged: Staged, *, partition: TopicPartition | None = None, fallback: FallbackRecords | None = None
) -> Restored:
    """Bring a staged or stray replica back to life, durably.

    Args:
        log_dir: holds the staged directory.
        staged: from :func:`logstore.staging.list_staged`.
        partition: as for :func:`planned_restore`.
        fallback: the fallback records.

    Raises:
        OfflineLogDirError, ChangeFailedError: as for :func:`logstore.staging.run`.
        DamagedRecordError, NameTakenError, InvalidNamespaceError: as for :func:`planned_restore`.
        ChangeRefusedError: as for :func:`planned_restore`, or the directory is not the one that was listed.
    """
    with log_dir.changing(f"{staged.location} cannot be restored"):
        plan = planned_restore(log_dir, staged, partition)
        folder, _, name = plan.path.rpartition("/")
        source = open_staging_root(log_dir, staged.placement)
        if source is None:
            raise ChangeRefusedError(f"{log_dir.path}: {staged.location} is gone")
        with source, open_replica_parent(log_dir, folder, plan.partition) as target:
            _check_same(source, staged)
            rename_exclusively(log_dir.disk, source, staged.name, target, name)
            try:
                sync_all(log_dir.disk, [target, source])
            except OSError:
                _take_back(log_dir, source, staged.name, target, name)
                raise
            log_dir.checkpoints.give_back(plan.partition, {} if staged.record is None else staged.record.checkpoints)
            if log_dir.write_checkpoints():
                _note_restored(log_dir, source, staged, fallback or FallbackRecords(None))
    logger.info("%s: %s is live again as %s", log_dir.path, staged.location, plan.path)
    return plan


def _note_restored(log_dir: LogDir, source: Directory, staged: Staged, fallback: FallbackRecords) -> None:
    """Say in the ledger that a replica is live again. Where that fails, the next open does it. Raises OSError."""
    try:
        note_event(log_dir, source, fallback, LedgerEvent.RESTORED, [staged.name], durable=False)
    except (OSError, LogStoreError) as error:
        if isinstance(error, OSError) and error.errno in DISK_FAILURES:
            raise
        log_dir.leave_unclean = True
        logger.warning("%s: %s is live again, and %s cannot say so", log_dir.path, staged.location, LEDGER_FILE)


def _take_back(log_dir: LogDir, source: Directory, staged: str, target: Directory, name: str) -> None:
    """Stage a replica again that is not durably live; where that fails too, the log dir goes offline."""
    try:
        log_dir.disk.rename(target.descriptor, name, source.descriptor, staged)
    except OSError as error:
        log_dir.go_offline(
            f"{log_dir.path}: {name} could be neither restored nor staged again ({error.strerror}); the log dir is "
            "offline, and opening it again sorts it out"
        )


def _adopted(log_dir: LogDirView, staged: Staged, partition: TopicPartition | None) -> tuple[TopicPartition, str]:
    """Partition and path of a directory without a record, from its name or from the caller."""
    if staged.problem is not None and staged.partition is None and partition is None:
        raise DamagedRecordError(
            f"{staged.location} in {log_dir.path} cannot come back, because nothing says surely what it was "
            f"({staged.problem}): name the topic and partition"
        )
    known = partition or staged.partition
    assert known is not None
    if staged.partition is not None and known != staged.partition:
        raise ChangeRefusedError(f"{staged.location} is {staged.partition}, and not {known}")
    said = parse(staged.name) if staged.placement is Placement.IN_PLACE else parse_staged(staged.name)
    if known.partition != said.partition or not known.topic.startswith(said.topic or ""):
        cut = "" if said.topic is None else f" of a topic that begins with {said.topic:.80}"
        raise ChangeRefusedError(f"{staged.location} is partition {said.partition}{cut}, and not {known!s:.80}")
    try:
        if not log_dir.is_ours:
            return known, live_name(known.topic, known.partition)
        return known, partition_path(log_dir.scheme, known, staged.topic_id)
    except LayoutError as error:
        raise ChangeRefusedError(f"{staged.location} cannot come back as {known}: {error}") from error


def _check_same(root: Directory, staged: Staged) -> None:
    status = root.status(staged.name)
    if status is None or (staged.inode and status.st_ino != staged.inode):
        raise ChangeRefusedError(f"{root.path_of(staged.name)} is not what it was when it was listed: list again")
