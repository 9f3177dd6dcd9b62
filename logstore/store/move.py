"""Move a replica from one disk of a broker to another: copy, verify, swap; never two live copies (KIP516-3).

::

    1  the files are copied into orders-0.<32 hex>-delete on the target       a crash leaves a draft, which goes
    2  it gets its record and the name orders-0.<32 hex>-future               the copy is whole, and the source is live
    3  the source is staged                                                   from here on the move can only be finished
    4  the copy gets its live name, and its record goes                       the move is done

Kafka renames the copy before the source, so that a crash between the two leaves a broker that does not start (FACTS
§1.7, §1.8). Here the source is staged first. After a crash a copy whose source is live is dropped, and a copy whose
source is not live is made live; while the source's log dir is offline, neither is known, and the copy waits.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from layout.directory_name import MAX_DIRECTORY_NAME, DirectoryKind, delete_name, future_name, parse
from layout.errors import DamagedFileError
from layout.ids import TopicId
from layout.ours import MOVE_RECORD, MoveRecord, encode_move_record, parse_move_record
from layout.scheme import partition_path
from layout.topic import TopicPartition
from logstore.errors import (
    ChangeRefusedError,
    LogStoreError,
    NameTakenError,
    OfflineLogDirError,
    UnreadableFileError,
)
from logstore.fs import (
    Directory,
    Progress,
    copy_replica,
    read_small_file,
    remove_file,
    remove_tree,
    rename_exclusively,
    sync_all,
    write_new_file,
)
from logstore.journal import log_dir_key
from logstore.log_dir import DISK_FAILURES, FallbackRecords, LogDir, open_replica_parent
from logstore.staging import Candidate, Staged, restore, stage
from logstore.store.index import Replica

logger = logging.getLogger(__name__)

RECORD_LIMIT = 1 << 16
_SPARE_BYTES = 1 << 20
"""Bytes that must be free on the target besides the copy itself, for directories and the record."""


def move_replica(
    source: LogDir,
    target: LogDir,
    replica: Replica,
    now_ms: int,
    delay_ms: int,
    *,
    fallback: FallbackRecords | None = None,
    progress: Progress | None = None,
) -> Staged:
    """Move a replica to another log dir. Nobody may write to it meanwhile.

    Args:
        source: log dir that has the replica.
        target: log dir of the same broker that gets the replica.
        replica: that is moved.
        now_ms: in ms since 1970.
        delay_ms: how long the original stays staged.
        fallback: the fallback records.
        progress: called with the number of bytes copied; may wait, to hold the copy to a rate.

    Returns:
        The original, which is staged.

    Raises:
        ChangeRefusedError: the replica does not fit, holds something that no replica holds, or changed meanwhile;
            nothing was changed.
        NameTakenError: its path is taken in the target.
        OfflineLogDirError, ChangeFailedError: a disk fails, or the system refuses.
    """
    path = partition_path(target.scheme, replica.partition, replica.topic_id)
    record = MoveRecord(
        topic=replica.partition.topic,
        partition=replica.partition.partition,
        topic_id=replica.topic_id or TopicId.ZERO,
        source_log_dir=log_dir_key(source),
        source_path=replica.path,
        path=path,
        checkpoints=source.checkpoints.offsets(replica.partition),
    )
    what = f"{replica.partition} cannot be moved to {target.path}"
    folder, _, name = path.rpartition("/")
    with target.changing(what, marked=True), open_replica_parent(target, folder, replica.partition) as home:
        if home.holds(name):
            raise NameTakenError(f"{home.path_of(name)} is there already; nothing is ever overwritten")
        future = _copy_whole(source, target, replica, record, progress)
        evidence = f"moved to {target.path}"
        candidate = Candidate(replica.path, replica.partition, replica.topic_id, "MOVED", evidence, delay_ms)
        try:
            original = _stage_original(source, candidate, now_ms, fallback)
        except LogStoreError:
            if source.offline is None:
                _drop(target, future)
            target.leave_unclean |= source.offline is not None  # the copy may be the only one left
            raise
        try:
            _go_live(target, future, home, record)
        except OSError as error:
            if error.errno not in DISK_FAILURES:
                _take_back(source, target, original, future, fallback)
            raise
    return original


def recover_moves(log_dirs: Sequence[LogDir]) -> list[str]:
    """Finish or drop every move that a crash cut short; give one sentence for each.

    A log dir whose disk fails meanwhile goes offline, and its copies wait.

    ``log_dirs``: all of the store, each already recovered by itself.

    Raises:
        ChangeFailedError: the system refuses.
    """
    done = list[str]()
    by_key = {log_dir_key(log_dir): log_dir for log_dir in log_dirs}
    for log_dir in log_dirs:
        if log_dir.was_unclean and log_dir.offline is None:
            with suppress(OfflineLogDirError), log_dir.changing("a move cannot be finished"):
                done.extend(_recover_copies(log_dir, by_key))
    for sentence in done:
        logger.warning("%s", sentence)
    return done


def drop_record(log_dir: LogDir, parent: Directory, name: str) -> bool:
    """Remove the record of a move from a live replica, once its name is durable; False: it has none.

    Without its record, a copy that a crash gives its future name again would be taken for a broker's own move.

    Raises:
        OSError: the system refuses.
    """
    with parent.child(name) as directory:
        record = _record_in(directory)
        if record is None and not directory.holds(MOVE_RECORD):
            return False
        sync_all(log_dir.disk, [parent, log_dir.root])
        if record is not None:
            log_dir.checkpoints.give_back(_partition(record), record.checkpoints)
            if not log_dir.write_checkpoints():
                return True  # until its offsets are written, only the record holds them
        remove_file(log_dir.disk, directory, MOVE_RECORD)
    return True


def _copy_whole(source: LogDir, target: LogDir, replica: Replica, record: MoveRecord, progress: Progress | None) -> str:
    """Do steps 1 and 2, and give the name of the whole copy. A failure leaves nothing of the copy."""
    if source.is_ours != target.is_ours:
        raise ChangeRefusedError(f"{source.path} and {target.path}: one is a real broker's, and the other is ours")
    unique = target.disk.unique()
    names = (replica.partition.local_topic, replica.partition.partition, unique)
    draft, future = delete_name(*names), future_name(*names)
    if len(future) > MAX_DIRECTORY_NAME:
        raise ChangeRefusedError(
            f"{replica.partition} has a name that is too long to be moved: as a future replica it would have "
            f"{len(future)} characters, and {MAX_DIRECTORY_NAME} are the most (a broker cannot move it either)"
        )
    disk, root = target.disk, target.root
    with source.root.below(replica.path) as original:
        _check_room(original, target)
        disk.mkdir(root.descriptor, draft)
        try:
            with root.child(draft) as copy:
                copy_replica(original, copy, disk, progress=progress)
                write_new_file(disk, copy, MOVE_RECORD, encode_move_record(record), durable=True)
            disk.rename(root.descriptor, draft, root.descriptor, future)
            disk.sync(root.descriptor)
        except BaseException:
            with suppress(OSError):
                if root.holds(future):
                    _drop(target, future)
                else:
                    remove_tree(disk, root, draft)
            raise
    return future


def _stage_original(source: LogDir, original: Candidate, now_ms: int, fallback: FallbackRecords | None) -> Staged:
    """Do step 3."""
    outcome = stage(source, [original], now_ms, fallback=fallback)
    if outcome.refused:
        raise ChangeRefusedError(outcome.refused[0].reason)
    return outcome.staged[0]


def _go_live(target: LogDir, future: str, home: Directory, record: MoveRecord) -> None:
    """Do step 4. Once the copy has its live name the move is done; the next open does what fails after that."""
    name = record.path.rpartition("/")[2]
    rename_exclusively(target.disk, target.root, future, home, name)
    try:
        drop_record(target, home, name)
    except OSError as error:
        if error.errno in DISK_FAILURES:
            raise
        target.leave_unclean = True
        logger.warning("%s: the end of the move of %s is put off (%s)", target.path, record.path, error.strerror)


def _take_back(source: LogDir, target: LogDir, original: Staged, future: str, fallback: FallbackRecords | None) -> None:
    """Undo a move whose last step was refused; if the undo fails as well, the next open finishes the move."""
    target.leave_unclean = True
    try:
        restore(source, original, fallback=fallback)
        _drop(target, future)
    except (OSError, LogStoreError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        target.go_offline(f"{target.path}: a move to it could be neither finished nor undone ({reason}); open it again")


def _drop(target: LogDir, future: str) -> None:
    """Remove a copy, after it was durably made a draft again.

    While it is being removed under its future name, a crash could leave it without its record, and it would be taken
    for a broker's own move; or with its record and without other files, and it would be taken for a whole copy.
    """
    disk, root = target.disk, target.root
    draft = f"{future.removesuffix('-future')}-delete"
    disk.rename(root.descriptor, future, root.descriptor, draft)
    disk.sync(root.descriptor)
    remove_tree(disk, root, draft)
    disk.sync(root.descriptor)


def _recover_copies(log_dir: LogDir, log_dirs: Mapping[str, LogDir]) -> Iterator[str]:
    for future, is_directory in log_dir.root.entries():
        if not is_directory or parse(future).kind is not DirectoryKind.FUTURE:
            continue
        with log_dir.root.child(future) as copy:
            record = _record_in(copy)
        if record is None:
            continue  # a broker's own move
        partition, source = _partition(record), log_dirs.get(record.source_log_dir)
        is_live = None if source is None else is_source_live(source, record.source_path)
        if source is None or is_live is None:
            logger.warning("%s: %s waits until %s can be opened", log_dir.path, future, record.source_log_dir)
            log_dir.leave_unclean = True
        elif is_live:
            _drop(log_dir, future)
            yield f"{partition} stays in {source.path}: its move to {log_dir.path} was cut short, and the copy goes"
        else:
            folder, _, name = record.path.rpartition("/")
            with open_replica_parent(log_dir, folder, partition) as home:
                if home.holds(name):
                    logger.warning("%s: %s stays, because %s is there already", log_dir.path, future, record.path)
                    continue
                _go_live(log_dir, future, home, record)
            yield f"{partition} is moved from {source.path} to {log_dir.path}, as a crash had left to be done"


def is_source_live(source: LogDir, path: str) -> bool | None:
    """Whether the source of a copy is live; None: its disk does not say, now or since it failed."""
    if source.offline is not None:
        return None
    try:
        return source.root.holds_below(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno not in DISK_FAILURES:
            raise
        source.failed(f"{path} cannot be looked for", error)
        return None


def _record_in(directory: Directory) -> MoveRecord | None:
    """Read the record of a copy; None: there is none that can be read, so it is not a copy of ours."""
    try:
        data = read_small_file(MOVE_RECORD, RECORD_LIMIT, directory.descriptor)
        return None if data is None else parse_move_record(data)
    except (UnreadableFileError, DamagedFileError):
        return None


def _partition(record: MoveRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _check_room(original: Directory, target: LogDir) -> None:
    """Refuse a copy for which the target's disk has no room, before anything is written."""
    needed = sum(
        status.st_blocks * 512 for name in original.plain_files() if (status := original.status(name)) is not None
    )
    room = os.fstatvfs(target.root.descriptor)
    free = room.f_bavail * room.f_frsize
    if needed + _SPARE_BYTES > free:
        raise ChangeRefusedError(
            f"{original.path} needs {needed} bytes, and {target.path} has {free} free: make room there first"
        )
