"""Recover a log dir after a crash, before anybody uses it: every change ends wholly done or wholly undone.

A log dir is recovered when its ``.logstore_unclean`` file says that it was not closed cleanly. What a crash may leave,
and what becomes of it::

    an intent of many steps                         is carried out to its end                          (journal)
    a line of the ledger, and the replica is live   it stays live; its offsets are restored            (staging)
    a staged replica that gets another name         it is staged under one of the two                  (staging)
    torn lines of a ledger                          are made empty                                     (log_dir)
    a half-made move between two disks              is finished if its source is staged, else dropped  (move)
    orders-0.<32 hex>-delete, in a log dir of ours  a replica that was being created: goes             (create)
    <name>.logstore.tmp                             goes: a file that was being written
    an empty directory that a purge had emptied     goes                                               (purge)
    checkpoint entries of staged replicas           go: the line holds them

Nothing that holds data is removed, except a copy whose original is there, and nothing that this program did not write:
a broker's own ``.tmp`` stays, because it may be all that is left of a checkpoint. A second recovery changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import closing

from layout import partition_metadata
from layout.directory_name import DirectoryKind, parse
from layout.ids import TopicId
from layout.ours import LedgerEvent, StagedRecord
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore.errors import ChangeRefusedError, LogStoreError
from logstore.fs import TEMPORARY, Directory, remove_file, remove_tree
from logstore.journal import is_namespace_dir
from logstore.log_dir import NO_SPACE, FallbackRecords, LogDir
from logstore.scan import Folder, list_log_dir, read_metadata_file, scan_live
from logstore.staging import (
    Placement,
    RootLedger,
    list_staged,
    note_event,
    restored_path,
    settle_live,
    settle_name,
    staged_names,
    staging_roots,
    topic_id_in,
)
from logstore.store.move import drop_record

logger = logging.getLogger(__name__)

_METADATA_DRAFT = partition_metadata.FILE_NAME + TEMPORARY


def recover(log_dir: LogDir, fallback: FallbackRecords | None = None) -> list[str]:
    """Recover one log dir, so that nothing in it is half done; give one sentence for each thing that was done.

    Intents and moves between disks concern several log dirs: :func:`logstore.store.recover_all` finishes them.

    Raises:
        OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses; what was done so far stays done.
    """
    done: list[str] = []
    fallback = fallback or FallbackRecords(None)
    with log_dir.changing("what a crash left cannot be sorted out"):
        log_dir.leave_unclean = False  # from here on it is unclean again only where a step says so, or fails
        try:
            done += _drop_temporaries(log_dir, log_dir.root)
            done += _keep_live(log_dir)
            if log_dir.is_ours:
                done += _drop_drafts(log_dir)
            done += _settle_staged(log_dir, fallback)
            _forget_offsets_of_staged(log_dir, fallback)
        except BaseException:
            log_dir.leave_unclean = True
            raise
    for sentence in done:
        logger.warning("%s: %s", log_dir.path, sentence)
    return done


def _drop_temporaries(log_dir: LogDir, folder: Directory) -> Iterator[str]:
    for name in sorted(folder.plain_files()):
        if name.endswith(TEMPORARY):
            remove_file(log_dir.disk, folder, name)
            yield f"{name} was left by a write that did not finish, and is removed"


def _live_directories(log_dir: LogDir) -> Iterator[tuple[Folder, str]]:
    """Iterate over every directory that a scan would call live, as its folder and its name."""
    listing = list_log_dir(log_dir.path, log_dir.scheme if log_dir.is_ours else None)
    for place in listing.places:
        for name in place.names:
            if place.parse(name).kind is DirectoryKind.LIVE:
                yield place, name


def _keep_live(log_dir: LogDir) -> Iterator[str]:
    """Finish what was being written into live replicas: a topic ID, the record of a move."""
    for place, name in _live_directories(log_dir):
        try:
            with log_dir.root.below(place.prefix.rstrip("/")) as parent, parent.child(name) as directory:
                if directory.holds(_METADATA_DRAFT):
                    is_done = settle_live(log_dir, directory, place.prefix + name)
                    end = "is done" if is_done else "is removed"
                    yield f"{place.prefix}{name}/{_METADATA_DRAFT} was never finished, and {end}"
                if drop_record(log_dir, parent, name):
                    yield f"{place.prefix}{name} was moved here, and is live"
        except LogStoreError as error:
            logger.warning("%s", error)  # a link or a mount point: this program never puts anything there


def _drop_drafts(log_dir: LogDir) -> Iterator[str]:
    """Remove replicas that were never finished; in a real broker's log dir the broker itself removes them."""
    for name, is_directory in log_dir.root.entries():
        # A tier of a namespace may have such a name, and holds replicas.
        if is_directory and parse(name).kind is DirectoryKind.DELETE and not is_namespace_dir(log_dir.root, name):
            try:
                remove_tree(log_dir.disk, log_dir.root, name)
            except LogStoreError as error:
                logger.warning("%s", error)  # a mount point in it: it stays as garbage, and does not prevent opening
                continue
            log_dir.disk.sync(log_dir.root.descriptor)
            yield f"{name} was about to be created, and is removed"


def _settle_staged(log_dir: LogDir, fallback: FallbackRecords) -> Iterator[str]:
    """Make the ledgers say what is so, and remove the directories that a purge had emptied."""
    with closing(staging_roots(log_dir)) as roots:
        there = {name for _, root in roots for name in root.directories()}
    with closing(staging_roots(log_dir)) as roots:
        for placement, root in roots:
            if placement is not Placement.IN_PLACE:
                yield from _drop_temporaries(log_dir, root)
            try:
                log_dir.ledgers.find(root)  # which overwrites what a crash tore
            except ChangeRefusedError as error:
                log_dir.leave_unclean = True
                logger.warning("what is staged in %s is left as it is: %s", root.path, error)
                continue
            ledger = RootLedger(log_dir, root, fallback)
            yield from _settle_names(log_dir, root, ledger)
            yield from _keep_unstaged(log_dir, root, there, ledger, fallback)
            yield from _drop_empty(log_dir, placement, root, ledger)


def _settle_names(log_dir: LogDir, root: Directory, ledger: RootLedger) -> Iterator[str]:
    """Finish or drop what was being written into staged replicas: the names that their topics have by now."""
    for name, record in ledger.staged():
        try:
            if settle_name(log_dir, root, name, record):
                yield f"{name} was about to be restored under another name, and is staged as {record.topic}"
        except LogStoreError as error:
            logger.warning("%s", error)  # a link or a mount point: this program never puts anything there


def _keep_unstaged(
    log_dir: LogDir, root: Directory, there: Collection[str], ledger: RootLedger, fallback: FallbackRecords
) -> Iterator[str]:
    """Give the offsets back to replicas that are live and of which a ledger says that they are staged.

    A replica that was staged under another name meanwhile is no longer live; its first line is over as well.

    ``there``: the names in all staging roots of the log dir, for the ledger on another disk speaks of all of them.
    """
    said = list(ledger.staged())
    staged = {(record.topic, record.partition, record.topic_id) for name, record in said if name in there}
    live, over, is_complete = list[str](), list[str](), False
    for name, record in said:
        if name in there:
            continue
        who = (record.topic, record.partition, record.topic_id)
        by_now = None if who in staged else _live_partition(log_dir, record)
        if by_now is not None and not is_complete:
            staged, is_complete = staged | _staged_in_others(log_dir, root, fallback), True
        if who in staged:
            over.append(name)
        elif by_now is not None:
            log_dir.checkpoints.give_back(by_now, record.checkpoints)
            live.append(name)
    if over:
        note_event(log_dir, root, fallback, LedgerEvent.RESTORED, over, durable=True)
    if live and log_dir.write_checkpoints():
        try:
            note_event(log_dir, root, fallback, LedgerEvent.RESTORED, live, durable=True)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            log_dir.leave_unclean = True  # there may be space for it next time
            return
        # By now the ledger says that it is restored, and one of two ledgers may have said so before.
        first = next(record for name, record in said if name == live[0])
        others = f", and so are {len(live) - 1} others" if len(live) > 1 else ""
        yield f"{first.path} was about to be staged or restored, and is live{others}"


def _staged_in_others(log_dir: LogDir, root: Directory, fallback: FallbackRecords) -> set[tuple[str, int, TopicId]]:
    """What lies in the other staging roots: what lives under its name is another replica, with offsets of its own."""
    with closing(staging_roots(log_dir)) as roots:
        return {
            (record.topic, record.partition, record.topic_id)
            for _, other in roots
            if other.key != root.key
            for name, record in RootLedger(log_dir, other, fallback).staged()
            if other.holds(name)
        }


def _live_partition(log_dir: LogDir, record: StagedRecord) -> TopicPartition | None:
    """Find the replica of a record where it would be restored to; None: nothing lies there, or another one of its name.

    Under the scheme by-topic-id it lies there under the name that its topic has by now, which its file says.
    """
    try:
        with log_dir.root.below(restored_path(log_dir, record)) as directory:
            if (topic_id_in(directory) or TopicId.ZERO) != record.topic_id:
                return None
            found = read_metadata_file(directory=directory.descriptor).found
    except (FileNotFoundError, NotADirectoryError, LogStoreError):
        return None
    if log_dir.scheme is Scheme.BY_TOPIC_ID and found is not None and found.topic is not None:
        return TopicPartition(found.topic, record.partition)
    return TopicPartition(record.topic, record.partition)


def _drop_empty(log_dir: LogDir, placement: Placement, root: Directory, ledger: RootLedger) -> Iterator[str]:
    """Remove the empty directories that a purge was about to remove."""
    for name, _ in staged_names(root, placement):
        entry = ledger.entry_of(name.text)
        if entry is not None and entry.may_be_partly_purged and _is_empty(root, name.text):
            log_dir.disk.rmdir(root.descriptor, name.text)
            log_dir.disk.sync(root.descriptor)
            yield f"{name.text} was purged, and its empty directory is removed"


def _is_empty(root: Directory, name: str) -> bool:
    try:
        with root.child(name) as directory:
            return not list(directory.entries())
    except LogStoreError:
        return False


def _forget_offsets_of_staged(log_dir: LogDir, fallback: FallbackRecords) -> None:
    """Remove the offsets of staged replicas from the checkpoints, except where the partition is live here again."""
    gone = [
        staged.partition
        for staged in list_staged(log_dir, fallback)
        if staged.record is not None and staged.partition is not None and not _holds_live(log_dir, staged.record)
    ]
    if log_dir.scheme is Scheme.BY_TOPIC_ID and any(map(log_dir.checkpoints.offsets, gone)):
        # A topic that was re-created lies by another ID, so the path of the staged one does not tell.
        live = _live_partitions(log_dir)
        gone = [each for each in gone if (each.topic, each.partition) not in live]
    log_dir.checkpoints.take_out(gone)
    log_dir.write_checkpoints()


def _live_partitions(log_dir: LogDir) -> set[tuple[str, int]]:
    (found,) = scan_live([log_dir.path], jobs=0)
    return {replica[:2] for replica in found.replicas}


def _holds_live(log_dir: LogDir, record: StagedRecord) -> bool:
    """Whether the staged replica's live path is taken; whatever topic ID that replica has, the offsets are its own."""
    try:
        return log_dir.root.holds_below(restored_path(log_dir, record))
    except (LogStoreError, OSError):
        return False
