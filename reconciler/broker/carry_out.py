"""Carry out the changes of control requests on a store, and return the error number of each failure.

Nothing is decided here. ``logstore`` makes each change safe by itself, so a request that was handled in part, because a
disk or the machine failed, is finished by sending it again. Source: KIP516-5 to -7, KIP516-11; FACTS §4.2.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from layout.directory_name import DirectoryName, parse, parse_staged
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import ChangeFailedError, KafkaError, LogStoreError, OfflineLogDirError
from logstore.staging import Placement, Staged
from logstore.store import Entry, Replica
from reconciler.broker.judgement import PartitionKey
from reconciler.broker.replica_store import ReplicaStore

logger = logging.getLogger(__name__)


def stage(
    store: ReplicaStore,
    reasons: Mapping[PartitionKey, tuple[str, str]],
    entries: Mapping[PartitionKey, Entry],
    setting: str,
) -> set[PartitionKey]:
    """Stage live replicas, with one barrier for many of them; a failing disk does not hold up the others.

    Args:
        store: of the broker.
        reasons: replica → verdict and evidence.
        entries: live replicas, with their log dirs.
        setting: name of the delay setting that counts.

    Returns:
        The staged replicas; the log says why others are not staged.
    """
    by_log_dir: dict[str, dict[TopicPartition, tuple[str, str]]] = {}
    for key, reason in reasons.items():
        by_log_dir.setdefault(entries[key].log_dir, {})[TopicPartition(*key)] = reason
    for log_dir, wanted in by_log_dir.items():
        try:
            for refused in store.stage_each(wanted, setting=setting).refused:
                logger.warning("%s: %s is not staged: %s", log_dir, refused.candidate.partition, refused.reason)
        except LogStoreError as error:
            logger.error("%s: %d replicas should be staged, and not all of them are: %s", log_dir, len(wanted), error)
    left = store.entries() if reasons else {}
    return {key for key in reasons if key not in left}


def stage_copies(store: ReplicaStore, copies: Mapping[Replica, tuple[str, str]], setting: str) -> None:
    """Stage the given copies of partitions that are live twice; a failing disk does not hold up the others."""
    by_log_dir: dict[str, dict[Replica, tuple[str, str]]] = {}
    for copy, reason in copies.items():
        by_log_dir.setdefault(copy.log_dir, {})[copy] = reason
    for log_dir, wanted in by_log_dir.items():
        try:
            for refused in store.stage_copies(wanted, setting=setting).refused:
                logger.warning(
                    "%s: a copy of %s is not staged: %s", log_dir, refused.candidate.partition, refused.reason
                )
        except LogStoreError as error:
            logger.error("%s: %d copies should be staged, and not all of them are: %s", log_dir, len(wanted), error)


def candidates(
    store: ReplicaStore, wanted: Iterable[tuple[TopicPartition, TopicId]]
) -> dict[TopicPartition, list[Staged]] | None:
    """Find staged and stray replicas under each wanted topic ID and partition, the last staged one first.

    A directory whose topic ID a disk refuses to say is a candidate by its name: it may be the replica that is wanted.

    Returns:
        None: a disk cannot be listed, so any of the replicas may be staged on it.
    """
    looked_for: dict[tuple[TopicId | None, int | None], TopicPartition] = {}
    looked_for |= {(topic_id, at.partition): at for at, topic_id in wanted}
    found: dict[TopicPartition, list[Staged]] = {}
    try:
        listed = store.staged() if looked_for else []
    except LogStoreError as error:
        logger.error("what is staged cannot be listed, so nothing is brought back: %s", error)
        return None
    for staged in listed:
        named = (parse if staged.placement is Placement.IN_PLACE else parse_staged)(staged.name)
        if staged.topic_id is None and staged.unread and named.topic_id is None:
            # A stray's name has no topic ID, and of a long topic only the beginning.
            places = [at for at in looked_for.values() if _may_be(at, named)]
        else:
            topic_id = named.topic_id if staged.topic_id is None and staged.unread else staged.topic_id
            at = None if topic_id is None else looked_for.get((topic_id, named.partition))
            places = [] if at is None or staged.partition not in (None, at) else [at]
        for at in places:
            found.setdefault(at, []).append(staged)
    for several in found.values():
        several.sort(key=lambda staged: -1 if staged.record is None else staged.record.staged_ms, reverse=True)
    return found


def _may_be(at: TopicPartition, named: DirectoryName) -> bool:
    return named.partition == at.partition and at.topic.startswith(named.topic or "")


def restore_first(store: ReplicaStore, at: TopicPartition, found: Iterable[Staged]) -> KafkaError | None:
    """Restore the first possible candidate; None: no candidate can be restored, so an empty replica may be created.

    The log says why a candidate is not restored. A disk that fails or is full is an error, and so is one that refuses
    to say what a candidate is: the data is still there, and the next request may restore it.
    """
    for staged in found:
        if staged.unread:
            logger.error("%s: %s is not brought back: the disk refuses to read it", staged.log_dir, staged.location)
            return KafkaError.KAFKA_STORAGE_ERROR
        try:
            store.restore(staged, at)
        except (LogStoreError, LayoutError) as error:
            logger.warning("%s: %s is not brought back: %s", staged.log_dir, staged.location, error)
            if isinstance(error, OfflineLogDirError | ChangeFailedError):
                return error.kafka_error
        else:
            return KafkaError.NONE
    return None


def create(store: ReplicaStore, wanted: Mapping[TopicPartition, TopicId | None]) -> dict[TopicPartition, KafkaError]:
    """Create empty replicas; return the answer for each."""
    answers = {}
    for at, made in (store.create_many(wanted) if wanted else {}).items():
        answers[at] = KafkaError.NONE
        if isinstance(made, LogStoreError | LayoutError):
            logger.error("%s is not created: %s", at, made)
            answers[at] = made.kafka_error if isinstance(made, LogStoreError) else KafkaError.INVALID_TOPIC_EXCEPTION
    return answers


def write_topic_ids(store: ReplicaStore, wanted: Mapping[TopicPartition, TopicId]) -> dict[TopicPartition, KafkaError]:
    """Write the controller's topic IDs for replicas that have none (KIP516-11); return the answer for each."""
    answers = {}
    for at, given in (store.assign_topic_ids(wanted) if wanted else {}).items():
        answers[at] = KafkaError.NONE
        if isinstance(given, LogStoreError):
            logger.error("%s is not given topic ID %s: %s", at, wanted[at], given)
            answers[at] = given.kafka_error
    return answers
