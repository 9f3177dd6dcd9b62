"""Stages the worse copy of a replica that is live in two log dirs, once both are seen to be what the plan says.

Which copy is the better one was decided when the plan was made; here nothing is staged unless the one that stays is
still there, live, under the same topic ID, in a log dir that is held under its lock. Source: DESIGN §3; FACTS §1.7.
"""

from __future__ import annotations

from collections.abc import Mapping

from layout import partition_metadata
from layout.errors import LayoutError
from layout.ours import KeptCopy, RepairAction, sum_of
from layout.topic import TopicPartition
from logstore.errors import UnreadableFileError
from logstore.fs import read_small_file
from logstore.log_dir import LogDir
from logstore.repair.repair_step import ChangedSinceError, check_home, replica_of
from logstore.scan import METADATA_LIMIT
from logstore.settings import STALE_DELAY, Settings
from logstore.staging import Candidate, Staged, list_staged, stage

VERDICT = "DUPLICATE"
"""As the comparison calls it; stands in the record of what is staged."""


def stage_duplicate(
    log_dir: LogDir, action: RepairAction, log_dirs: Mapping[str, LogDir], now_ms: int, settings: Settings
) -> tuple[Staged, bool]:
    """Stage a copy; what is staged now, and whether an earlier run did it.

    Args:
        log_dir: that holds the copy.
        action: of the kind ``stage_duplicate``.
        log_dirs: all that the plan opened, by path.
        now_ms: in ms since 1970.
        settings: how long it stays staged.

    Raises:
        ChangedSinceError: either copy is not what the plan says.
        OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
    """
    partition, topic_id = replica_of(action)
    folder, _, name = action.path.rpartition("/")
    try:
        with log_dir.root.below(folder) as parent:
            gone = not parent.holds(name)
    except FileNotFoundError:
        gone = True
    if gone:
        for staged in list_staged(log_dir):
            if staged.partition == partition and staged.inode == action.inode and staged.record is not None:
                return staged, True
        raise ChangedSinceError("it is gone")
    check_home(log_dir, action.path, partition, topic_id)
    _check_kept(action.keeps, partition, log_dirs)
    data = _metadata_of(log_dir, action.path)[1]
    if sum_of(data) != action.expects:
        raise ChangedSinceError("its partition.metadata has changed since the plan was made")
    delay_ms = settings.of(partition.topic, STALE_DELAY)
    candidate = Candidate(action.path, partition, topic_id, VERDICT, action.evidence, delay_ms, action.inode)
    outcome = stage(log_dir, [candidate], now_ms)
    if outcome.refused:
        raise ChangedSinceError(outcome.refused[0].reason)
    return outcome.staged[0], False


def _check_kept(keeps: KeptCopy | None, partition: TopicPartition, log_dirs: Mapping[str, LogDir]) -> None:
    """Make sure that the better copy is there, as it was when the plan was made."""
    log_dir = None if keeps is None else log_dirs.get(keeps.log_dir)
    if keeps is None or log_dir is None or log_dir.offline is not None:
        raise ChangedSinceError("the log dir of the copy that stays cannot be used")
    inode, data = _metadata_of(log_dir, keeps.path)
    place = f"{keeps.log_dir}/{keeps.path}"
    if inode != keeps.inode:
        raise ChangedSinceError(f"the copy that stays, {place}, is another directory by now")
    try:
        topic_id = None if data is None else partition_metadata.parse(data).topic_id
    except LayoutError:
        topic_id = None
    if keeps.topic_id != (None if topic_id is None else str(topic_id)):
        raise ChangedSinceError(f"the copy that stays, {place}, holds topic ID {topic_id or 'none'} by now")
    check_home(log_dir, keeps.path, partition, topic_id)


def _metadata_of(log_dir: LogDir, path: str) -> tuple[int, bytes | None]:
    """Inode of a partition dir, and its ``partition.metadata``."""
    try:
        with log_dir.root.below(path) as directory:
            return directory.key[1], read_small_file(partition_metadata.FILE_NAME, METADATA_LIMIT, directory.descriptor)
    except UnreadableFileError as error:
        raise ChangedSinceError(f"{log_dir.path}/{path}/{partition_metadata.FILE_NAME} {error}") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ChangedSinceError(f"{log_dir.path}/{path} is gone") from error
