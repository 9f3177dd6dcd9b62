"""What every new replica needs: its place, and its ``partition.metadata``; and the topic ID of one that has none.

How replicas are made so that a crash leaves a whole one or none is told in ``create_many``. Source: KIP516-2,
KIP516-11, KIP37-3; FACTS §2.1.
"""

from __future__ import annotations

from layout import partition_metadata
from layout.ids import TopicId
from layout.scheme import MARKER_FILE, Scheme, namespace_path
from layout.topic import Namespace, TopicPartition
from logstore.directory import Directory
from logstore.durable import make_directory, replace_file
from logstore.errors import InvalidNamespaceError
from logstore.log_dir import LogDir


def write_topic_id(log_dir: LogDir, path: str, partition: TopicPartition, topic_id: TopicId) -> None:
    """Give a replica without a topic ID the one that the controller says it has (KIP516-11); durable.

    Raises:
        OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
    """
    with log_dir.changing(f"{partition} cannot be given a topic ID"), log_dir.root.below(path) as directory:
        data = metadata_bytes(log_dir, partition, topic_id)
        replace_file(log_dir.disk, directory, partition_metadata.FILE_NAME, data)


def metadata_bytes(log_dir: LogDir, partition: TopicPartition, topic_id: TopicId) -> bytes:
    """What ``partition.metadata`` holds: the shipped form for a real broker, all four fields in ours (KIP516-2)."""
    if not log_dir.is_ours:
        return partition_metadata.encode(topic_id)
    return partition_metadata.encode_json(topic_id, partition.topic, partition.partition)


def open_home(log_dir: LogDir, folder: str, partition: TopicPartition) -> Directory:
    """Open the directory that holds a replica: the log dir, the last tier of its namespace, or the prefix of its ID.

    The prefix directory of the by-topic-id scheme is made at need; tiers are made by creating a namespace.

    Raises:
        InvalidNamespaceError: the namespace was not created.
        OSError: the system refuses.
    """
    if log_dir.scheme is Scheme.BY_TOPIC_ID:
        with log_dir.root.below("") as root:
            return root.child(folder) if root.holds(folder) else make_directory(log_dir.disk, root, folder)
    try:
        home = log_dir.root.below(folder)
        if not folder or home.holds(MARKER_FILE):
            return home
        home.close()  # a partition dir whose name reads like a tier's
    except (FileNotFoundError, NotADirectoryError):
        pass
    raise InvalidNamespaceError(
        f"namespace {partition.namespace} was not created in {log_dir.path} "
        f"({namespace_path(Namespace.parse(partition.namespace))} is no tier there): create it first"
    )
