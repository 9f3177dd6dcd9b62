"""Find the staged replicas that a request may want live again, and how each would come back. Nothing is changed."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from layout.directory_name import DirectoryName, parse, parse_staged
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.scheme import partition_path
from layout.topic import TopicPartition
from logstore import ChangeFailedError, KafkaError, LogStoreError, NameTakenError, OfflineLogDirError
from logstore.log_dir import LogDir
from logstore.staging import Placement, Staged, planned_restore
from logstore.store import LogStore
from reconciler.broker.memory import PartitionKey

logger = logging.getLogger(__name__)


class RestorableReplica(NamedTuple):
    """A staged replica, and how it would come back.

    Attributes:
        staged: from the store's list.
        path: where it would be live, below its log dir.
        taken: why it cannot come back as long as that path is taken; empty: the path is free.
        problem: why nobody knows whether it can come back; None: it can. The data is still there, and a later request
            may restore it.
    """

    staged: Staged
    path: str = ""
    taken: str = ""
    problem: KafkaError | None = None


def find_restorable(
    store: LogStore, wanted: Mapping[PartitionKey, TopicId]
) -> dict[PartitionKey, Sequence[RestorableReplica]]:
    """Find the staged and stray replicas of partitions under their topic IDs, the last staged one first.

    Under which name a replica was staged does not matter: its topic may have been renamed meanwhile, or its namespace
    moved, and it comes back under the name that is wanted. A directory whose topic ID a disk refuses to say counts by
    its name: it may be the replica that is wanted. The log says of each replica that cannot come back why. What comes
    after the first that can is not looked at.

    Args:
        store: of the broker.
        wanted: partition, by full name and number → the topic ID under which it is wanted.

    Returns:
        For each partition its replicas; nothing at all if a disk cannot be listed.
    """
    if not wanted:
        return {}
    try:
        listed = store.staged()
    except LogStoreError as error:
        logger.error("what is staged cannot be listed, so nothing is brought back: %s", error)
        return {}
    by_id: dict[tuple[TopicId, int | None], PartitionKey] = {}
    by_id |= {(topic_id, partition): (topic, partition) for (topic, partition), topic_id in wanted.items()}
    found: dict[PartitionKey, list[Staged]] = {}
    for staged in listed:
        for key in _partitions_of(staged, by_id):
            found.setdefault(key, []).append(staged)
    log_dirs = {each.path: each for each in store.log_dirs}
    restorable: dict[PartitionKey, Sequence[RestorableReplica]] = dict.fromkeys(wanted, ())
    for key, several in found.items():
        several.sort(key=lambda staged: -1 if staged.record is None else staged.record.staged_ms, reverse=True)
        restorable[key] = _look_at_each(log_dirs, several, TopicPartition(*key), wanted[key])
    return restorable


def choose_restorable(
    found: Sequence[RestorableReplica], vacated: Collection[tuple[str, str]]
) -> tuple[RestorableReplica | None, list[str]]:
    """Choose the first replica whose path is free by then; say of those before it why they cannot come back. Pure.

    ``found``: of one partition, from :func:`find_restorable`; ``vacated``: log dir and path of live replicas that are
    staged before.
    """
    passed_over = list[str]()
    for each in found:
        if not each.taken or (each.staged.log_dir, each.path) in vacated:
            return each, passed_over
        passed_over.append(f"{each.staged.log_dir}: {each.staged.location} is not brought back: {each.taken}")
    return None, passed_over


def _partitions_of(staged: Staged, by_id: Mapping[tuple[TopicId, int | None], PartitionKey]) -> list[PartitionKey]:
    named = (parse if staged.placement is Placement.IN_PLACE else parse_staged)(staged.name)
    unknown = staged.topic_id is None and staged.unread
    if unknown and named.topic_id is None:
        # A stray's name has no topic ID, and of a long topic only the beginning.
        return [key for key in by_id.values() if _may_be(key, named)]
    topic_id = named.topic_id if unknown else staged.topic_id
    key = None if topic_id is None else by_id.get((topic_id, named.partition))
    return [] if key is None else [key]


def _may_be(key: PartitionKey, named: DirectoryName) -> bool:
    return named.partition == key[1] and key[0].startswith(named.topic or "")


def _look_at_each(
    log_dirs: Mapping[str, LogDir], several: Sequence[Staged], at: TopicPartition, topic_id: TopicId
) -> list[RestorableReplica]:
    found = []
    for staged in several:
        looked_at = _look_at(log_dirs[staged.log_dir], staged, at, topic_id)
        if looked_at is not None:
            found.append(looked_at)
            if not looked_at.taken:
                break
    return found


def _look_at(log_dir: LogDir, staged: Staged, at: TopicPartition, topic_id: TopicId) -> RestorableReplica | None:
    """Say how a staged replica would come back; None: it cannot."""
    unread = KafkaError.KAFKA_STORAGE_ERROR
    if staged.unread:
        logger.error("%s: %s is not brought back: the disk refuses to read it", staged.log_dir, staged.location)
        return RestorableReplica(staged, problem=unread)
    try:
        return RestorableReplica(staged, planned_restore(log_dir, staged, at, topic_id).path)
    except NameTakenError as error:
        return RestorableReplica(staged, partition_path(log_dir.scheme, at, staged.topic_id), str(error))
    except OSError as error:
        logger.error("%s: %s is not brought back: %s", staged.log_dir, staged.location, error.strerror)
        return RestorableReplica(staged, problem=unread)
    except (LogStoreError, LayoutError) as error:
        logger.warning("%s: %s is not brought back: %s", staged.log_dir, staged.location, error)
        if isinstance(error, OfflineLogDirError | ChangeFailedError):
            return RestorableReplica(staged, problem=error.kafka_error)
        return None
