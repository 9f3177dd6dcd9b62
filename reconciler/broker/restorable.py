"""Find the staged replicas that a request wants live again. Nothing is changed."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import NamedTuple

from layout.directory_name import DirectoryName, parse, parse_staged
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.scheme import partition_path
from layout.topic import TopicPartition
from logstore import ChangeFailedError, KafkaError, LogStoreError, NameTakenError, OfflineLogDirError
from logstore.log_dir import LogDir
from logstore.staging import Placement, Restored, Staged, planned_restore
from logstore.store import LogStore

logger = logging.getLogger(__name__)


class Found(NamedTuple):
    """The staged replica to restore, or the problem that prevents it; neither: an empty replica may be created."""

    staged: Staged | None = None
    back: Restored | None = None
    problem: KafkaError | None = None


def candidates(
    store: LogStore, wanted: Iterable[tuple[TopicPartition, TopicId]]
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


def first_restorable(
    store: LogStore, at: TopicPartition, found: Iterable[Staged], vacated: Collection[tuple[str, str]] = ()
) -> Found:
    """Choose the first candidate that can be restored.

    The log says why a candidate cannot be. A disk that fails is a problem, and so is one that refuses to say what a
    candidate is: the data is still there, and the next request may restore it.

    Args:
        store: that lists the candidates.
        at: the partition that is wanted.
        found: from :func:`candidates`.
        vacated: log dir and path of live replicas that the request stages before.
    """
    log_dirs = {each.path: each for each in store.log_dirs}
    for staged in found:
        if staged.unread:
            logger.error("%s: %s is not brought back: the disk refuses to read it", staged.log_dir, staged.location)
            return Found(problem=KafkaError.KAFKA_STORAGE_ERROR)
        try:
            return Found(staged, _planned(log_dirs[staged.log_dir], staged, at, vacated))
        except OSError as error:
            logger.error("%s: %s is not brought back: %s", staged.log_dir, staged.location, error.strerror)
            return Found(problem=KafkaError.KAFKA_STORAGE_ERROR)
        except (LogStoreError, LayoutError) as error:
            logger.warning("%s: %s is not brought back: %s", staged.log_dir, staged.location, error)
            if isinstance(error, OfflineLogDirError | ChangeFailedError):
                return Found(problem=error.kafka_error)
    return Found()


def _planned(log_dir: LogDir, staged: Staged, at: TopicPartition, vacated: Collection[tuple[str, str]]) -> Restored:
    try:
        return planned_restore(log_dir, staged, at)
    except NameTakenError:
        path = partition_path(log_dir.scheme, at, staged.topic_id)
        if (log_dir.path, path) not in vacated:
            raise
        return Restored(at, log_dir.path, path)


def _may_be(at: TopicPartition, named: DirectoryName) -> bool:
    return named.partition == at.partition and at.topic.startswith(named.topic or "")
