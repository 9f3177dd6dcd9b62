"""Makes replicas: a partition dir with its ``partition.metadata``, all at once or not at all.

The directory is made under a name that Kafka itself deletes at its next start, ``orders-0.<32 hex>-delete``, gets its
file, and is renamed when all in it is durable. So a crash leaves a whole replica or none, in a real broker's log dir as
well as in ours. Source: KIP516-2, KIP516-11; FACTS §1.2, §2.1.
"""

from __future__ import annotations

import uuid
from contextlib import suppress

from layout import partition_metadata
from layout.directory_name import delete_name
from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.scheme import MARKER_FILE, Scheme, check_namespace_fits, namespace_path, partition_path
from layout.topic import METADATA_TOPIC, Namespace, TopicPartition
from logstore.directory import Directory
from logstore.durable import make_directory, move, remove_tree, replace_file, sync_all, write_new_file
from logstore.errors import InvalidNamespaceError, NameTakenError
from logstore.log_dir import LogDir


def create_replica(log_dir: LogDir, partition: TopicPartition, topic_id: TopicId | None) -> str:
    """Make an empty replica, durably, and give its path below the log dir.

    Args:
        log_dir: where it goes.
        partition: by the topic's full name.
        topic_id: that goes into its ``partition.metadata``; None: it gets none, as before Kafka 2.8.

    Raises:
        InvalidNameError: the name breaks the rules, or the scheme cannot hold it.
        InvalidIdError: the topic ID is the zero ID.
        InvalidNamespaceError: its namespace was not created.
        NameTakenError: something of its name is there.
        OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
    """
    if partition.local_topic == METADATA_TOPIC:
        raise InvalidNameError(f"{METADATA_TOPIC} is KRaft's own log: no scan would take {partition} for a replica")
    path = partition_path(log_dir.scheme, partition, topic_id)
    data = None if topic_id is None else metadata_bytes(log_dir, partition, topic_id)
    if partition.namespace:
        check_namespace_fits(log_dir.path, Namespace.parse(partition.namespace))
    folder, _, name = path.rpartition("/")
    with log_dir.changing(f"{partition} cannot be created"), open_home(log_dir, folder, partition) as parent:
        if parent.holds(name):
            raise NameTakenError(f"{parent.path_of(name)} is there already; nothing is ever overwritten")
        draft = delete_name(partition.local_topic, partition.partition, uuid.uuid4().hex)
        disk, root = log_dir.disk, log_dir.root
        # Entries of an earlier replica of that name go first, for the new one must never be found with them.
        log_dir.checkpoints.take_out([partition])
        log_dir.write_checkpoints()
        disk.mkdir(root.descriptor, draft)
        try:
            if data is not None:
                with root.child(draft) as directory:
                    write_new_file(disk, directory, partition_metadata.FILE_NAME, data, durable=True)
            move(disk, root, draft, parent, name)
        except OSError:
            with suppress(OSError):
                remove_tree(disk, root, draft)
            raise
        try:
            sync_all(disk, [parent, root])
        except OSError:
            _take_back(log_dir, parent, name, draft)
            raise
    return path


def _take_back(log_dir: LogDir, parent: Directory, name: str, draft: str) -> None:
    """Make a draft again of what is not durably live, and remove it; where that fails too, the disk goes offline.

    Its file goes only when it is durably a draft: a crash may lose the way back alone, and a live replica has its file.
    """
    disk, root = log_dir.disk, log_dir.root
    try:
        disk.rename(parent.descriptor, name, root.descriptor, draft)
    except OSError as error:
        log_dir.go_offline(
            f"{log_dir.path}: {name} could be neither created nor removed ({error.strerror}); the log dir is offline, "
            "and opening it again sorts it out"
        )
        return
    with suppress(OSError):  # a draft goes at the next open
        sync_all(disk, [root, parent])
        remove_tree(disk, root, draft)


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
