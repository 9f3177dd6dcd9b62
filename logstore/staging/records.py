"""Checks the records of staged directories, and says where each leads back to.

A record is believed only where it speaks of the topic ID and partition in its directory's name, and leads back to a
path that this log dir would give to that replica. Source: DESIGN §5.
"""

from __future__ import annotations

from layout import partition_metadata
from layout.directory_name import DirectoryKind, DirectoryName, parse
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.ours import StagedRecord
from layout.scheme import Scheme, partition_path
from layout.topic import METADATA_TOPIC, TopicPartition
from logstore.errors import DamagedRecordError, FailedReadError, UnreadableFileError
from logstore.fs import Directory, read_small_file
from logstore.log_dir import LogDirView
from logstore.scan import METADATA_LIMIT, judge_metadata


def restored_path(log_dir: LogDirView, record: StagedRecord) -> str:
    """Give the path below the log dir that a staged replica returns to: its former path, or the present scheme's.

    Raises:
        DamagedRecordError: the record claims a path that is not this replica's.
    """
    topic, number, path = record.topic, record.partition, record.path
    is_its_name = path == f"{topic}-{number}" and "/" not in path and topic != METADATA_TOPIC
    if is_its_name and log_dir.scheme is Scheme.FLAT:
        return path  # the fast path, for nearly all
    partition = TopicPartition(topic, number)
    topic_id = None if record.topic_id.is_zero else record.topic_id
    if log_dir.is_ours:
        try:
            return partition_path(log_dir.scheme, partition, topic_id)
        except LayoutError as error:
            raise DamagedRecordError(f"the record's replica has no place in {log_dir.path}: {error}") from error
    # A broker's log dir may hold names that no client could create (FACTS §1.3). They come back unchanged.
    former = parse(path)
    if former.kind is not DirectoryKind.LIVE or (former.topic, former.partition) != (topic, number) or "/" in path:
        raise DamagedRecordError(
            f"the record of {str(partition)!r:.80} says that it was {path!r:.80}, another replica's place"
        )
    return path


def check_record_of(log_dir: LogDirView, folder: str, name: DirectoryName, record: StagedRecord) -> None:
    """Check a record against the name of its directory.

    Args:
        log_dir: that the replica comes from.
        folder: path of the staging root; for messages.
        name: of the directory in it.
        record: from the ledger.

    Raises:
        DamagedRecordError: the record is another replica's, or claims a path that is not this replica's.
    """
    said = (record.topic_id, record.partition)
    if name.kind is DirectoryKind.STAGED and said != (name.topic_id, name.partition):
        raise DamagedRecordError(
            f"{folder}/{name.text}: its record speaks of topic ID {record.topic_id}, partition {record.partition}"
        )
    if name.kind is DirectoryKind.STRAY and name.partition != record.partition:
        raise DamagedRecordError(f"{folder}/{name.text}: its record speaks of partition {record.partition}")
    restored_path(log_dir, record)


def topic_id_in(directory: Directory) -> TopicId | None:
    """Read the topic ID from ``partition.metadata``; None: what is there is no topic ID.

    Raises:
        FailedReadError: the system refuses to read it, so there may be one.
    """
    try:
        data = read_small_file(partition_metadata.FILE_NAME, METADATA_LIMIT, directory.descriptor)
        return judge_metadata(data).topic_id
    except FailedReadError:
        raise
    except UnreadableFileError:
        return None
