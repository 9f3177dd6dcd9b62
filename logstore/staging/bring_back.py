"""Restores a staged replica: directory, name and checkpoint entries, byte for byte as they were (DESIGN §5).

In reverse order of staging: one rename, both directories are synced, the checkpoint entries are written, and only then
the ledger says *restored*. A crash in between leaves a line without its directory, and recovery finishes the restore.
``-stray`` directories that a real broker left come back in the same way. They have no record, so topic and partition
come from the directory's name, and their checkpoint entries are gone, which a broker makes up for.

The name is the one under which it was staged, unless the caller knows a newer one, by the topic ID::

    an operator, who gives no name                the former name, whatever the topic is called by now
    an operator, who gives topic ID and name      that name, if the replica holds that topic ID
    a plan, or a request of a controller          the name that the metadata has for the topic ID of the replica
    another name, without the topic ID            refused: it may be another topic's replica
    no topic ID on the disk                       the former name only: nothing else says which replica it is

Then its path, the name in ``partition.metadata`` and its checkpoint entries are those of the new name (``new_name``).
This goes for every log dir. Kafka never renames a topic, so in a real broker's log dir a name can differ only where
somebody renamed a directory by hand, and there too the topic ID says what it is. What has the former name by now, of
whatever topic ID, is left alone; what has the new one is in the way.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from layout.directory_name import live_name, parse, parse_staged
from layout.errors import LayoutError
from layout.ids import TopicId
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
from logstore.staging.new_name import give_new_name, settle_name
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


def planned_restore(
    log_dir: LogDirView, staged: Staged, partition: TopicPartition | None = None, topic_id: TopicId | None = None
) -> Restored:
    """Say what :func:`restore` would do, without doing it.

    Args:
        log_dir: holds the staged directory.
        staged: the directory to restore.
        partition: of a stray whose name may be cut; None: from the record or the name.
        topic_id: of the topic of ``partition``. A replica that holds it takes that name, whatever it was called before;
            None: the name must be the one that it had.

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
    known, path = _home(log_dir, staged, partition, topic_id)
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
    log_dir: LogDir,
    staged: Staged,
    *,
    partition: TopicPartition | None = None,
    topic_id: TopicId | None = None,
    fallback: FallbackRecords | None = None,
) -> Restored:
    """Bring a staged or stray replica back to life, durably.

    Args:
        log_dir: holds the staged directory.
        staged: from :func:`logstore.staging.list_staged`.
        partition: as for :func:`planned_restore`.
        topic_id: as for :func:`planned_restore`.
        fallback: the fallback records.

    Raises:
        OfflineLogDirError, ChangeFailedError: as for :func:`logstore.staging.run`.
        DamagedRecordError, NameTakenError, InvalidNamespaceError: as for :func:`planned_restore`.
        ChangeRefusedError: as for :func:`planned_restore`, or the directory is not the one that was listed.
    """
    with log_dir.changing(f"{staged.location} cannot be restored"):
        plan = planned_restore(log_dir, staged, partition, topic_id)
        folder, _, name = plan.path.rpartition("/")
        fallback = fallback or FallbackRecords(None)
        source = open_staging_root(log_dir, staged.placement)
        if source is None:
            raise ChangeRefusedError(f"{log_dir.path}: {staged.location} is gone")
        with source, open_replica_parent(log_dir, folder, plan.partition) as target:
            _check_same(source, staged)
            settle_name(log_dir, source, staged.name, staged.record)
            take_name_back = None
            if plan.partition != staged.partition and (staged.partition is not None or topic_id is not None):
                take_name_back = give_new_name(
                    log_dir, source, staged, plan.partition, path=plan.path, fallback=fallback
                )
            try:
                _rename(log_dir, source, staged.name, target, name)
            except OSError as error:
                if take_name_back is not None and error.errno not in DISK_FAILURES and log_dir.offline is None:
                    take_name_back(target)
                raise
            log_dir.checkpoints.give_back(plan.partition, {} if staged.record is None else staged.record.checkpoints)
            if log_dir.write_checkpoints():
                _note_restored(log_dir, source, staged, fallback)
    logger.info("%s: %s is live again as %s", log_dir.path, staged.location, plan.path)
    return plan


def _rename(log_dir: LogDir, source: Directory, staged: str, target: Directory, name: str) -> None:
    """Make a staged directory live, durably. Raises OSError: it is staged as before, or the log dir is offline."""
    rename_exclusively(log_dir.disk, source, staged, target, name)
    try:
        sync_all(log_dir.disk, [target, source])
    except OSError:
        _take_back(log_dir, source, staged, target, name)
        raise


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


def _home(
    log_dir: LogDirView, staged: Staged, partition: TopicPartition | None, topic_id: TopicId | None
) -> tuple[TopicPartition, str]:
    """Partition and path that a staged directory comes back as, from its record or its name, or from the caller."""
    record, known = staged.record, partition or staged.partition
    if known is None:
        raise DamagedRecordError(
            f"{staged.location} in {log_dir.path} cannot come back, because nothing says surely what it was "
            f"({staged.problem}): name the topic and partition, on the command line as --as TOPIC-PARTITION"
        )
    if record is not None and known == staged.partition:
        return known, restored_path(log_dir, record)
    said = parse(staged.name) if staged.placement is Placement.IN_PLACE else parse_staged(staged.name)
    if topic_id is None or topic_id.is_zero or topic_id != staged.topic_id or known.partition != said.partition:
        if staged.partition not in (None, known):
            raise ChangeRefusedError(f"{staged.location} is {staged.partition}, and not {known}")
        if known.partition != said.partition or not known.topic.startswith(said.topic or ""):
            cut = "" if said.topic is None else f" of a topic that begins with {said.topic:.80}"
            raise ChangeRefusedError(f"{staged.location} is partition {said.partition}{cut}, and not {known!s:.80}")
    try:
        if log_dir.is_ours:
            path = partition_path(log_dir.scheme, known, staged.topic_id)
        else:
            path = live_name(known.topic, known.partition)
    except LayoutError as error:
        raise ChangeRefusedError(f"{staged.location} cannot come back as {known}: {error}") from error
    if record is not None:
        restored_path(log_dir, record._replace(topic=known.topic, path=path))
    return known, path


def _check_same(root: Directory, staged: Staged) -> None:
    status = root.status(staged.name)
    if status is None or (staged.inode and status.st_ino != staged.inode):
        raise ChangeRefusedError(f"{root.path_of(staged.name)} is not what it was when it was listed: list again")
