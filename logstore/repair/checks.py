"""Revalidate the actions of a repair plan on the spot, before anything is changed.

For an action on a file, its new bytes are worked out here, from the topic ID or from the bytes that are there, and must
have the check sum that the plan promised. An action whose file is not as the plan expects it is skipped, with the
reason. Directories are opened component by component, along no link. ``apply`` makes the backup and changes the file.

For a duplicate, the plan has decided which copy is the better one. The worse copy is staged only while the better one
is still live, under the same topic ID, in a log dir that is locked. Source: DESIGN §3, §6; FACTS §1.7.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from layout import checkpoint, meta_properties, partition_metadata
from layout.directory_name import DirectoryKind, by_topic_id_name, parse
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.ours import (
    BROKER_TEMPORARY,
    CHECKPOINT_REPAIRS,
    MISSING,
    KeptCopy,
    KeptFile,
    RepairAction,
    RepairKind,
    sum_of,
)
from layout.scheme import Scheme
from layout.topic import NAMESPACE_SEPARATOR, TopicPartition
from logstore.errors import LogStoreError, UnreadableFileError
from logstore.fs import read_small_file
from logstore.log_dir import CHECKPOINT_LIMIT, FileChange, LogDir
from logstore.scan import METADATA_LIMIT, judge_metadata
from logstore.settings import STALE_DELAY, Settings
from logstore.staging import Candidate, Staged, list_staged, stage
from logstore.store import metadata_bytes


class RepairStatus(StrEnum):
    """The outcome of an action."""

    DONE = "done"
    ALREADY = "already"
    """The file is as the plan wants it; an earlier run did the action."""
    SKIPPED = "skipped"
    """The file is not as the plan expects it, so nothing was done."""
    FAILED = "failed"
    """The system refused, and nothing was done."""


class ChangedSinceError(LogStoreError):
    """Something is not as the plan expects it; the message is a clause."""


@dataclass(frozen=True, slots=True)
class FileRepair:
    """A change of one file that may be done: the file was read again, and is as the plan expects it."""

    action: RepairAction
    before: bytes | None
    """None: there is no file."""
    after: bytes | None
    """None: it is removed."""

    @property
    def change(self) -> FileChange:
        """The change of the file."""
        return FileChange(self.action.path, self.after, self.action.inode)

    @property
    def kept(self) -> KeptFile:
        """The entry of the backup."""
        return KeptFile(self.action.path, self.before, self.action.writes, self.action.inode)


def revalidate(log_dir: LogDir, action: RepairAction, held: Collection[tuple[str, int]]) -> FileRepair | None:
    """Read the file of an action again, and work out its new bytes; None: it has them already.

    Args:
        log_dir: open, and so locked.
        action: of any kind but ``stage_duplicate``.
        held: (topic, partition) of every replica with a live or a future directory here.

    Raises:
        ChangedSinceError: the file is not as the plan expects it, or the action makes no sense here.
        OSError: the disk fails.
    """
    folder, _, name = action.path.rpartition("/")
    try:
        with log_dir.root.below(folder) as parent:
            if action.inode is not None and parent.key[1] != action.inode:
                raise ChangedSinceError(f"its directory has inode {parent.key[1]}, and {action.inode} was planned for")
            before = read_small_file(name, CHECKPOINT_LIMIT, parent.descriptor)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ChangedSinceError("its directory is gone") from error
    except UnreadableFileError as error:
        raise ChangedSinceError(f"{name} {error}") from error
    if sum_of(before) == action.writes:
        return None
    if sum_of(before) != action.expects:
        expected = "missing" if action.expects == MISSING else "other bytes"
        found = "missing" if before is None else f"{len(before)} bytes"
        raise ChangedSinceError(f"it has changed since the plan was made: {found} now, {expected} then")
    after = _new_bytes(log_dir, action, before, held)
    if sum_of(after) != action.writes:
        raise ChangedSinceError("this release would write other bytes than the plan says: make a new plan")
    return FileRepair(action, before, after)


def _new_bytes(
    log_dir: LogDir, action: RepairAction, before: bytes | None, held: Collection[tuple[str, int]]
) -> bytes | None:
    """Work out the new bytes of a file; None: it is removed. Raises ChangedSinceError as :func:`revalidate`."""
    try:
        if action.kind is RepairKind.REMOVE_LEFTOVER:
            _check_target(log_dir, action.path.removesuffix(BROKER_TEMPORARY))
            return None
        if action.kind in CHECKPOINT_REPAIRS:
            back = sorted(action.dropped & set(held))
            if back:
                raise ChangedSinceError(f"{back[0][0]}-{back[0][1]} has a directory by now")
            if action.kind is RepairKind.REBUILD_CHECKPOINT:
                return checkpoint.rebuilt(before or b"", action.dropped)
            return checkpoint.pruned(before or b"", action.path, action.dropped)
        partition, topic_id = replica_of(action)
        check_home(log_dir, action.path.rpartition("/")[0], partition, topic_id)
        return metadata_bytes(log_dir, partition, topic_id or TopicId.ZERO)
    except LayoutError as error:
        raise ChangedSinceError(str(error)) from error


def replica_of(action: RepairAction) -> tuple[TopicPartition, TopicId | None]:
    """The partition and the topic ID that an action is about."""
    topic_id = None if action.topic_id is None else TopicId.parse(action.topic_id)
    return TopicPartition(action.topic or "", action.partition or 0), topic_id


def check_home(log_dir: LogDir, path: str, partition: TopicPartition, topic_id: TopicId | None) -> None:
    """Make sure that a directory is a live one of a partition, by its name and its place.

    Raises:
        ChangedSinceError: it is not.
    """
    if log_dir.scheme is Scheme.BY_TOPIC_ID:
        fits = topic_id is not None and by_topic_id_name(topic_id, partition.partition) == path
    else:
        folder, _, name = path.rpartition("/")
        read = parse(name)
        tiers = folder.replace("/", NAMESPACE_SEPARATOR)
        fits = (read.kind, read.topic, read.partition, tiers) == (
            *(DirectoryKind.LIVE, partition.local_topic, partition.partition),
            partition.namespace,
        )
        fits = fits and (not folder or log_dir.scheme is Scheme.NAMESPACED)
    if not fits:
        raise ChangedSinceError(
            f"{path} is no live directory of {partition} in a log dir whose scheme is {log_dir.scheme}"
        )


def _check_target(log_dir: LogDir, name: str) -> None:
    """Make sure that the file beside a leftover, which the leftover was to replace, is there and whole."""
    data = read_small_file(name, CHECKPOINT_LIMIT, log_dir.root.descriptor)
    if not data:
        state = "there is no" if data is None else "there is nothing in"
        raise ChangedSinceError(f"{state} {name}, so its temporary file may be all that is left of it")
    if name == meta_properties.FILE_NAME:
        meta_properties.parse(data)
    else:
        checkpoint.parse_offsets(data, name)


DUPLICATE = "DUPLICATE"
"""The verdict in the record of a staged duplicate, as the comparison calls it."""


def stage_duplicate(
    log_dir: LogDir, action: RepairAction, log_dirs: Mapping[str, LogDir], now_ms: int, settings: Settings
) -> tuple[Staged, bool]:
    """Stage the worse copy of a duplicate.

    Args:
        log_dir: that holds the copy.
        action: of the kind ``stage_duplicate``.
        log_dirs: all log dirs of the plan that are open, by path.
        now_ms: in ms since 1970.
        settings: how long the copy stays staged.

    Returns:
        The staged copy, and whether an earlier run had staged it.

    Raises:
        ChangedSinceError: one of the two copies is not as the plan says.
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
    candidate = Candidate(action.path, partition, topic_id, DUPLICATE, action.evidence, delay_ms, action.inode)
    outcome = stage(log_dir, [candidate], now_ms)
    if outcome.refused:
        raise ChangedSinceError(outcome.refused[0].reason)
    return outcome.staged[0], False


def _check_kept(keeps: KeptCopy | None, partition: TopicPartition, log_dirs: Mapping[str, LogDir]) -> None:
    """Make sure that the better copy is still there, as it was when the plan was made."""
    log_dir = None if keeps is None else log_dirs.get(keeps.log_dir)
    if keeps is None or log_dir is None or log_dir.offline is not None:
        raise ChangedSinceError("the log dir of the copy that stays cannot be used")
    inode, data = _metadata_of(log_dir, keeps.path)
    place = f"{keeps.log_dir}/{keeps.path}"
    if inode != keeps.inode:
        raise ChangedSinceError(f"the copy that stays, {place}, is another directory by now")
    topic_id = judge_metadata(data).topic_id
    if keeps.topic_id != (None if topic_id is None else str(topic_id)):
        raise ChangedSinceError(f"the copy that stays, {place}, holds topic ID {topic_id or 'none'} by now")
    check_home(log_dir, keeps.path, partition, topic_id)


def _metadata_of(log_dir: LogDir, path: str) -> tuple[int, bytes | None]:
    """Read the inode of a partition dir, and the bytes of its ``partition.metadata``."""
    try:
        with log_dir.root.below(path) as directory:
            return directory.key[1], read_small_file(partition_metadata.FILE_NAME, METADATA_LIMIT, directory.descriptor)
    except UnreadableFileError as error:
        raise ChangedSinceError(f"{log_dir.path}/{path}/{partition_metadata.FILE_NAME} {error}") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ChangedSinceError(f"{log_dir.path}/{path} is gone") from error
