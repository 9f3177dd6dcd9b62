"""Recover a log dir after a crash, before anybody uses it: every change ends wholly done or wholly undone.

A log dir is recovered when its ``.logstore_unclean`` file says that it was not closed cleanly, or when the note of a
purge beside a running broker lies in its staging root. What a crash may leave, and what becomes of it::

    an intent of many steps                         is carried out to its end                          (journal)
    a live replica with a record in it              stays live; offsets are restored, the record goes  (staging)
    files of records in a staging root              each staged replica gets its record, the files go  (staging)
    a half-made move between two disks              is finished if its source is staged, else dropped  (move)
    orders-0.<32 hex>-delete, in a log dir of ours  a replica that was being created: goes             (create)
    <name>.logstore.tmp                             goes: a file that was being written
    an empty staged directory without a record      goes: a purge was about to remove it               (purge)
    checkpoint entries of staged replicas           go: the record holds them

Nothing that holds data is removed, except a copy whose original is there, and nothing that this program did not write:
a broker's own ``.tmp`` stays, because it may be all that is left of a checkpoint. A second recovery changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing

from layout import partition_metadata
from layout.directory_name import DirectoryKind, parse
from layout.ours import STAGED_RECORD, StagedRecord
from layout.topic import TopicPartition
from logstore.errors import LogStoreError, UnreadableFileError
from logstore.fs import TEMPORARY, Directory, remove_file, remove_tree
from logstore.log_dir import LogDir
from logstore.scan import Folder, list_log_dir
from logstore.staging import (
    FallbackRecords,
    Placement,
    drop_spent_note,
    find_staged,
    finish_restore,
    finish_shared_records,
    list_staged,
    record_of_live,
    restored_path,
    staging_roots,
)
from logstore.store.move import drop_record

logger = logging.getLogger(__name__)

_RECORD_DRAFT = STAGED_RECORD + TEMPORARY
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
            done += _clear_staged(log_dir, fallback)
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
    """Remove the record of every live replica that has one, and restore its offsets."""
    for place, name in _live_directories(log_dir):
        try:
            with log_dir.root.below(place.prefix.rstrip("/")) as parent, parent.child(name) as directory:
                if directory.holds(_METADATA_DRAFT):
                    remove_file(log_dir.disk, directory, _METADATA_DRAFT)
                    yield f"{place.prefix}{name}/{_METADATA_DRAFT} was never finished, and is removed"
                if drop_record(log_dir, parent, name):
                    yield f"{place.prefix}{name} was moved here, and is live"
                if not directory.holds(STAGED_RECORD):
                    continue
                record = record_of_live(log_dir, directory, f"{place.prefix}{name}")
                offsets = {} if record is None else record.checkpoints
                partition = TopicPartition("", 0)
                if record is not None:
                    partition = TopicPartition(record.topic, record.partition)
                finish_restore(log_dir, parent, name, offsets, partition)
                yield f"{place.prefix}{name} was about to be staged or restored, and is live"
        except LogStoreError as error:
            logger.warning("%s", error)  # a link or a mount point: this program never puts anything there


def _drop_drafts(log_dir: LogDir) -> Iterator[str]:
    """Remove replicas that were never finished; in a real broker's log dir the broker itself removes them."""
    for name, is_directory in log_dir.root.entries():
        if is_directory and parse(name).kind is DirectoryKind.DELETE:
            try:
                remove_tree(log_dir.disk, log_dir.root, name)
            except LogStoreError as error:
                logger.warning("%s", error)  # a mount point in it: it stays as garbage, and does not prevent opening
                continue
            log_dir.disk.sync(log_dir.root.descriptor)
            yield f"{name} was about to be created, and is removed"


def _clear_staged(log_dir: LogDir, fallback: FallbackRecords) -> Iterator[str]:
    """Finish staging, and remove staged directories that are empty and have no record: a purge had emptied them."""
    with closing(staging_roots(log_dir)) as roots:
        for placement, root in roots:
            if placement is Placement.SIBLING:
                yield from _drop_temporaries(log_dir, root)
            yield from finish_shared_records(log_dir, placement, root)
            yield from _drop_empty_in(log_dir, placement, root, fallback)
            beside = (each for each in find_staged(log_dir, fallback) if each.placement is Placement.SIBLING)
            if placement is Placement.SIBLING and drop_spent_note(log_dir.disk, root, beside):
                yield f"{root.path}: the purge beside the broker, which was cut short, is at its end"


def _drop_empty_in(log_dir: LogDir, placement: Placement, root: Directory, fallback: FallbackRecords) -> Iterator[str]:
    """Remove the empty directories of one staging root; a broker never leaves a replica without any file."""
    for name, is_directory in root.entries():
        if placement is Placement.IN_PLACE and parse(name).kind is not DirectoryKind.STRAY:
            continue
        if is_directory:
            yield from _drop_half_record(log_dir, root, name)
        if is_directory and _is_empty(root, name) and not _has_fallback_record(log_dir, fallback, name):
            log_dir.disk.rmdir(root.descriptor, name)
            log_dir.disk.sync(root.descriptor)
            yield f"{name} was purged, and its empty directory is removed"


def _drop_half_record(log_dir: LogDir, root: Directory, name: str) -> Iterator[str]:
    """Remove the record that a stray was being given; a half-written file would count as a change of its data."""
    try:
        with root.child(name) as directory:
            if directory.holds(_RECORD_DRAFT):
                remove_file(log_dir.disk, directory, _RECORD_DRAFT)
                yield f"{name}/{_RECORD_DRAFT} was never finished, and is removed"
    except LogStoreError as error:
        logger.warning("%s", error)  # a link or a mount point: this program never puts anything there


def _is_empty(root: Directory, name: str) -> bool:
    try:
        with root.child(name) as directory:
            return not list(directory.entries())
    except LogStoreError:
        return False


def _has_fallback_record(log_dir: LogDir, fallback: FallbackRecords, name: str) -> bool:
    """Whether an empty directory is a replica without files that was staged on a full disk."""
    try:
        return fallback.read(log_dir, name) is not None
    except UnreadableFileError:
        return True


def _forget_offsets_of_staged(log_dir: LogDir, fallback: FallbackRecords) -> None:
    """Remove the offsets of staged replicas from the checkpoints, except where the partition is live here again."""
    gone = []
    for staged in list_staged(log_dir, fallback):
        if staged.record is not None and staged.partition is not None and not _holds_live(log_dir, staged.record):
            gone.append(staged.partition)
    log_dir.checkpoints.take_out(gone)
    log_dir.write_checkpoints()


def _holds_live(log_dir: LogDir, record: StagedRecord) -> bool:
    """Whether the staged replica's live path is taken; whatever topic ID that replica has, the offsets are its own."""
    try:
        folder, _, name = restored_path(log_dir, record).rpartition("/")
        with log_dir.root.below(folder) as parent:
            return parent.holds(name)
    except (LogStoreError, OSError):
        return False
