"""Gives a staged replica the name that its topic has by now, just before it is restored.

A topic may be renamed, or its namespace moved, while a replica of it is staged or its broker is down. The topic ID says
which replica it is, whatever it was called (KIP516-13, KIP37-3). In which order, and why::

    1  the checkpoints are written, without entries of the new name     what an earlier topic of that name left there
    2  partition.metadata is written anew, as a draft beside it         only where it holds the name of the topic
    3  a second *staged* line holds the record with the new name        from here on it is staged under that name
    4  the draft takes the place of the file                            and then it is restored as any other

After a crash before step 3 it is staged under its former name, and the draft means nothing; after it, the draft is
finished: recovery does that, and so does a restore (:func:`settle_name`). What fails is undone in the same order. Where
that fails too, the log dir goes offline, and the replica is staged, whole, under one of its two names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from layout import partition_metadata
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.ours import StagedRecord
from layout.partition_metadata import Form
from layout.scheme import Scheme, partition_path
from layout.topic import TopicPartition
from logstore.errors import LogStoreError, UnreadableFileError
from logstore.fs import TEMPORARY, Directory, read_small_file, remove_file, sync_all, write_new_file
from logstore.log_dir import DISK_FAILURES, FallbackRecords, LogDir
from logstore.scan import METADATA_LIMIT, judge_metadata
from logstore.staging.listing import Staged
from logstore.staging.root_ledger import note_new_name

_DRAFT = partition_metadata.FILE_NAME + TEMPORARY


def give_new_name(
    log_dir: LogDir,
    root: Directory,
    staged: Staged,
    partition: TopicPartition,
    *,
    path: str,
    fallback: FallbackRecords,
) -> Callable[[Directory], None]:
    """Rename a staged replica, durably; return what takes the name back. A failure leaves its former name.

    Where the restore fails after that, call it with the directory that the replica should have gone to.

    Args:
        log_dir: that may be changed.
        root: the staging root.
        staged: the replica.
        partition: its name from now on; the number is the same.
        path: where a restore takes it, below the log dir.
        fallback: the fallback records.

    Raises:
        OSError, LogStoreError: it cannot be renamed.
    """
    former = staged.record
    if former is not None:
        note_new_name(log_dir, root, fallback, staged.name, former)  # refused here where no ledger speaks of it
        log_dir.checkpoints.take_out([partition])
        log_dir.checkpoints.write(log_dir.disk)
    before = _read(root, staged.name, partition_metadata.FILE_NAME)
    after = _renamed_metadata(log_dir, staged, partition, before)
    enter = partial(_enter, log_dir, root, staged.name, fallback=fallback)
    record = None if former is None else former._replace(topic=partition.topic, path=path)

    def take_back(home: Directory | None = None) -> None:
        try:
            if home is not None:
                sync_all(log_dir.disk, [root, home])  # nothing may be live under a name that no line has
            enter(record=former, metadata=None if after is None else before)
        except (OSError, LogStoreError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            log_dir.go_offline(
                f"{log_dir.path}: {staged.location} could be neither restored as {partition} nor get its former name "
                f"back ({reason}); the log dir is offline, and opening it again sorts it out"
            )

    try:
        enter(record=record, metadata=after)
    except (OSError, LogStoreError) as error:
        if not isinstance(error, OSError) or error.errno not in DISK_FAILURES:
            take_back()
        raise
    return take_back


def settle_name(log_dir: LogDir, root: Directory, name: str, record: StagedRecord | None) -> bool:
    """Finish the draft of a change of name that a crash cut short, or remove it; False: there is none.

    Args:
        log_dir: that may be changed.
        root: the staging root.
        name: of the staged directory.
        record: what the ledger says of it; None: nothing.

    Raises:
        OSError: the system refuses.
    """
    draft = _read(root, name, _DRAFT)
    if draft is None:
        return False
    found = judge_metadata(draft).found
    with root.child(name) as directory:
        if found is None or record is None or not _names(found, record):
            remove_file(log_dir.disk, directory, _DRAFT)
        else:
            _take_draft(log_dir, directory)
    return True


def settle_live(log_dir: LogDir, directory: Directory, path: str) -> bool:
    """Finish or remove such a draft in a replica that is live by now; False: it was removed.

    A power cut may take back the last step after a process that was killed had done it, and the next one has restored
    the replica meanwhile: then the draft has the name of the path, and the file another one for the same topic ID.

    Args:
        log_dir: that may be changed.
        directory: of the replica, open, with a draft in it.
        path: of the replica, below the log dir.

    Raises:
        OSError: the system refuses.
    """
    draft, data = (_read(directory, ".", file) for file in (_DRAFT, partition_metadata.FILE_NAME))
    found, now = judge_metadata(draft).found, judge_metadata(data).found
    if found is None or now is None or found.topic is None or found.partition is None:
        is_name = False
    elif log_dir.scheme is Scheme.BY_TOPIC_ID:
        is_name = False  # its path does not tell, and the draft may be of a rename that was undone
    else:
        at = TopicPartition(found.topic, found.partition)
        is_name = found.topic_id == now.topic_id and _path(log_dir, at, found.topic_id) == path
    if is_name:
        _take_draft(log_dir, directory)
    else:
        remove_file(log_dir.disk, directory, _DRAFT)
    return is_name


def _path(log_dir: LogDir, partition: TopicPartition, topic_id: TopicId) -> str:
    try:
        return partition_path(log_dir.scheme, partition, topic_id)
    except LayoutError:
        return ""


def _names(found: partition_metadata.PartitionMetadata, record: StagedRecord) -> bool:
    named = (found.topic_id, found.topic, found.partition)
    return named == (record.topic_id, record.topic, record.partition)


def _enter(
    log_dir: LogDir,
    root: Directory,
    name: str,
    *,
    record: StagedRecord | None,
    metadata: bytes | None,
    fallback: FallbackRecords,
) -> None:
    """Steps 2 to 4: give a staged directory a record and its file these bytes; None: each stays as it is."""
    with root.child(name) as directory:
        is_new = metadata is not None and _read(root, name, partition_metadata.FILE_NAME) != metadata
        if is_new and metadata is not None:
            log_dir.disk.sync(directory.descriptor)  # a draft that took the file's place must not come back
            write_new_file(log_dir.disk, directory, _DRAFT, metadata, durable=True)
        if record is not None:
            note_new_name(log_dir, root, fallback, name, record)
        if is_new:
            _take_draft(log_dir, directory)
        elif directory.holds(_DRAFT):
            remove_file(log_dir.disk, directory, _DRAFT)


def _take_draft(log_dir: LogDir, directory: Directory) -> None:
    log_dir.disk.rename(directory.descriptor, _DRAFT, directory.descriptor, partition_metadata.FILE_NAME)
    log_dir.disk.sync(directory.descriptor)


def _renamed_metadata(log_dir: LogDir, staged: Staged, partition: TopicPartition, data: bytes | None) -> bytes | None:
    """Write ``partition.metadata`` with another name; None: it holds no name, is a broker's, or is left to repair.

    Under the by-topic-id scheme nothing else says the name, so there it gets one.
    """
    found = None if data is None else judge_metadata(data).found
    if found is None or not log_dir.is_ours or found.topic_id != staged.topic_id:
        return None
    if found.form is Form.SHIPPED and log_dir.scheme is not Scheme.BY_TOPIC_ID:
        return None
    if found.partition not in (None, partition.partition):
        return None
    return partition_metadata.encode_json(found.topic_id, partition.topic, partition.partition)


def _read(root: Directory, name: str, file: str) -> bytes | None:
    """Read a small file of a staged directory; None: there is none, or it cannot be read."""
    try:
        return read_small_file(f"{name}/{file}", METADATA_LIMIT, root.descriptor)
    except UnreadableFileError:
        return None
