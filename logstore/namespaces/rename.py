"""Plan to give a topic another name or namespace: every replica of it in every log dir changes, or none.

A move to another namespace is a rename, since the namespace is the first part of a topic's full name. Changes on disk
(KIP516-13)::

    flat           orders-0 → purchases-0                   one rename for each replica
    namespaced     orders-0 → org/apache/orders-0           the same; the namespace must have been created
    by-topic-id    nothing moves                            the name stands in partition.metadata alone

Under every scheme the offset checkpoints are rewritten, because their entries go by name, and so is
``partition.metadata`` where it holds the topic's name, which it does only in log dirs that are ours. A
``partition.metadata`` that is damaged or names another topic stays as it is; ``logstore.repair`` mends it. Staged
replicas keep the name under which they were staged until they are restored (``logstore.staging.bring_back``): who knows
the topic's new name gives it to them then, by the topic ID.

In a real broker's log dir no topic is renamed. One rename for each replica would do there as well, but the cluster's
metadata would still hold the old name: at its next start the broker would take the replicas for stray, rename them to
stray directories, and fetch all their data again (FACTS §1.7).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from layout import partition_metadata
from layout.directory_name import DirectoryKind, parse
from layout.errors import InvalidNameError
from layout.ours import Rename, RenameEntries, Rewrite, step_text
from layout.partition_metadata import Form
from layout.scheme import Scheme, check_namespace_fits, partition_path
from layout.topic import METADATA_TOPIC, Namespace, TopicPartition, check_full_topic_name, namespace_of
from logstore.errors import ChangeRefusedError, NameTakenError, UnknownReplicaError, UnreadableFileError
from logstore.fs import read_small_file
from logstore.journal import check_no_tier, is_namespace_dir
from logstore.log_dir import LogDir
from logstore.namespaces.namespaces import check_exists
from logstore.namespaces.plan import (
    ChangePlanner,
    PlannedChange,
    check_all_online,
    check_no_duplicates,
    check_ours,
    moved_replica,
    reading_log_dir,
)
from logstore.scan import METADATA_LIMIT, judge_metadata
from logstore.store import OpenStore, Replica


def plan_move(store: OpenStore, topic: str, namespace: str) -> PlannedChange:
    """Plan to move a topic to another namespace; empty: the default one. Raises as :func:`plan_rename`."""
    local = TopicPartition(topic, 0).local_topic
    return plan_rename(store, topic, Namespace.parse(namespace).full_name(local))


def plan_rename(store: OpenStore, topic: str, new_topic: str) -> PlannedChange:
    """Plan to give a topic another name.

    Both are full names; all log dirs of the store must be online.

    Raises:
        InvalidNameError: the new name breaks the rules, or the scheme cannot hold it.
        InvalidNamespaceError: the namespace of the new name was not created.
        UnknownReplicaError: there is no such topic here.
        NameTakenError: there is a topic of the new name, or something lies where a replica would go; if that is a
            namespace, it is the subclass NamespaceClashError.
        ChangeRefusedError: a log dir is a real broker's; or a replica is live in two log dirs, or being moved between
            disks.
        OfflineLogDirError: a log dir is offline.
    """
    check_full_topic_name(new_topic)
    if TopicPartition(new_topic, 0).local_topic == METADATA_TOPIC:
        raise InvalidNameError(f"{new_topic} is KRaft's own log, and no topic can be called that")
    check_ours(store, "renaming or moving a topic")
    check_all_online(store, f"renaming {topic}")
    replicas = sorted((each for each in store.replicas() if each.partition.topic == topic), key=_order)
    if not replicas:
        raise UnknownReplicaError(f"no log dir of this store has a live replica of topic {topic}")
    if topic == new_topic:
        raise NameTakenError(f"topic {topic} has that name already")
    if any(each.partition.topic == new_topic for each in store.replicas()):
        raise NameTakenError(f"there is a topic {new_topic} already: nothing is ever merged")
    check_no_duplicates(store, [topic, new_topic])
    planner = ChangePlanner("rename-topic", f"rename topic {topic} to {new_topic}")
    for log_dir in store.log_dirs:
        own = [replica for replica in replicas if replica.log_dir == log_dir.path]
        with reading_log_dir(log_dir, f"{topic} cannot be renamed"):
            # The copy may lie where the topic has no replica yet, and would go live there under the old name.
            check_not_on_its_way(log_dir, {topic}, {"", *(each.path.rpartition("/")[0] for each in own[:1])})
            if own:
                _plan_in(planner, store, log_dir, own, new_topic)
    return planner.planned()


def _plan_in(
    planner: ChangePlanner, store: OpenStore, log_dir: LogDir, replicas: list[Replica], new_topic: str
) -> None:
    """Add the steps of one log dir."""
    namespace = namespace_of(new_topic)
    check_exists(log_dir, namespace)
    if namespace and log_dir.scheme is Scheme.NAMESPACED:
        check_namespace_fits(log_dir.path, Namespace.parse(namespace))
    topic = replicas[0].partition.topic
    renames, rewrites = list[Rename](), list[Rewrite]()
    for replica in replicas:
        partition = TopicPartition(new_topic, replica.partition.partition)
        path = partition_path(log_dir.scheme, partition, replica.topic_id)
        if path != replica.path:
            check_no_tier(store.log_dirs, partition)
            _check_free(log_dir, path)
            renames.append(Rename(0, replica.path, path))
        rewrites += rewritten(log_dir, replica, partition, path)
        planner.replicas.append((replica, moved_replica(replica, partition, path)))
    planner.add(log_dir, *renames, *rewrites, RenameEntries(0, topic, new_topic))


def rewritten(
    log_dir: LogDir, replica: Replica, partition: TopicPartition, path: str, *, always: bool = False
) -> list[Rewrite]:
    """Plan the step that brings a replica's ``partition.metadata`` up to date; an empty list: nothing is to be done.

    Args:
        log_dir: that holds the replica.
        replica: as it is now.
        partition: its name after the change.
        path: its path below the log dir after the change.
        always: rewrite the file also where it holds no name yet, because the new path will not hold the name.
    """
    try:
        file = f"{replica.path}/{partition_metadata.FILE_NAME}"
        data = read_small_file(file, METADATA_LIMIT, log_dir.root.descriptor)
        if replica.topic_id is not None and not replica.topic_id.is_zero:
            new = partition_metadata.encode_json(replica.topic_id, partition.topic, partition.partition)
            if data == new:
                return []  # true of nearly all of 100,000 replicas, so this comes before the file is parsed
    except UnreadableFileError:
        return []
    found = judge_metadata(data).found
    if data is None or found is None or partition_metadata.contradiction(found, *_pair(replica.partition)):
        return []
    if found.form is Form.SHIPPED and not always:
        return []
    new = partition_metadata.encode_json(found.topic_id, partition.topic, partition.partition)
    return (
        [Rewrite(0, f"{path}/{partition_metadata.FILE_NAME}", step_text(data), step_text(new))] if data != new else []
    )


def check_not_on_its_way(log_dir: LogDir, topics: Collection[str], folders: Iterable[str]) -> None:
    """Refuse while a replica of a topic is being moved from another disk, or its move waits for a disk to be back.

    Args:
        log_dir: in which the copy may lie.
        topics: full names.
        folders: where to look, as paths below the log dir.

    Raises:
        ChangeRefusedError: such a copy lies there.
        OSError: the system refuses to look.
    """
    local = {TopicPartition(topic, 0).local_topic for topic in topics}
    for folder in folders:
        with log_dir.root.below(folder) as parent:
            names = [parse(name) for name, is_directory in parent.entries() if is_directory]
            for name in names:
                is_copy = name.kind is DirectoryKind.FUTURE and name.topic in local
                if is_copy and not is_namespace_dir(parent, name.text):
                    raise ChangeRefusedError(f"{log_dir.path} holds {name.text}: let that move between disks end first")


def _check_free(log_dir: LogDir, path: str) -> None:
    if log_dir.root.holds_below(path):
        raise NameTakenError(f"{log_dir.path}/{path} is there already; nothing is ever overwritten")


def _pair(partition: TopicPartition) -> tuple[str, int]:
    return partition.topic, partition.partition


def _order(replica: Replica) -> tuple[str, int]:
    return replica.log_dir, replica.partition.partition
