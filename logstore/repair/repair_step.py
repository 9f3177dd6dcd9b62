"""One action of a repair plan on one file: looked at again on the spot, and turned into the bytes that will be there.

Whatever is not as the plan expects it is skipped, with the reason. The new bytes are worked out here, from the topic ID
or from the bytes that are there, and must have the check sum that the plan promised. Directories are opened component
by component, along no link. Backups, and the change itself, are left to ``repair``. Source: DESIGN §6.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from layout import checkpoint, checkpoint_salvage, meta_properties
from layout.directory_name import DirectoryKind, by_topic_id_name, parse
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.ours import CHECKPOINT_REPAIRS, MISSING, KeptFile, RepairAction, RepairKind, sum_of
from layout.scheme import Scheme
from layout.topic import NAMESPACE_SEPARATOR, TopicPartition
from logstore.errors import LogStoreError, UnreadableFileError
from logstore.fs import TEMPORARY, read_small_file
from logstore.log_dir import CHECKPOINT_LIMIT, FileChange, LogDir
from logstore.store import metadata_bytes


class RepairStatus(StrEnum):
    """What became of an action."""

    DONE = "done"
    ALREADY = "already"
    """It lies there as the plan wants it; an earlier run did it."""
    SKIPPED = "skipped"
    """It is not as the plan expects it, so nothing was done."""
    FAILED = "failed"
    """The system refused, and nothing was done."""


class ChangedSinceError(LogStoreError):
    """Something is not as the plan expects it; the message is a clause."""


@dataclass(frozen=True, slots=True)
class FileStep:
    """A change of one file that may be done: it was looked at, and is as the plan expects it."""

    action: RepairAction
    before: bytes | None
    """None: there is no file."""
    after: bytes | None
    """None: it is removed."""

    @property
    def change(self) -> FileChange:
        """What is to be done."""
        return FileChange(self.action.path, self.after, self.action.inode)

    @property
    def kept(self) -> KeptFile:
        """What the backup has to hold."""
        return KeptFile(self.action.path, self.before, self.action.writes, self.action.inode)


def looked_at(log_dir: LogDir, action: RepairAction, held: Collection[tuple[str, int]]) -> FileStep | None:
    """Look at the file of an action; None: it is as the plan wants it already.

    Args:
        log_dir: open, and so under its lock.
        action: of any kind but ``stage_duplicate``.
        held: (topic, partition) of everything that has a live or a future directory here.

    Raises:
        ChangedSinceError: it is not as the plan expects it, or the action makes no sense here.
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
    return FileStep(action, before, after)


def _new_bytes(
    log_dir: LogDir, action: RepairAction, before: bytes | None, held: Collection[tuple[str, int]]
) -> bytes | None:
    """What the file will hold. Raises ChangedSinceError where the action makes no sense here."""
    try:
        if action.kind is RepairKind.REMOVE_LEFTOVER:
            _check_target(log_dir, action.path.removesuffix(TEMPORARY))
            return None
        if action.kind in CHECKPOINT_REPAIRS:
            back = sorted(action.dropped & set(held))
            if back:
                raise ChangedSinceError(f"{back[0][0]}-{back[0][1]} has a directory by now")
            if action.kind is RepairKind.REBUILD_CHECKPOINT:
                return checkpoint_salvage.rebuilt(before or b"", action.dropped)
            return checkpoint_salvage.pruned(before or b"", action.path, action.dropped)
        partition, topic_id = replica_of(action)
        check_home(log_dir, action.path.rpartition("/")[0], partition, topic_id)
        return metadata_bytes(log_dir, partition, topic_id or TopicId.ZERO)
    except LayoutError as error:
        raise ChangedSinceError(str(error)) from error


def replica_of(action: RepairAction) -> tuple[TopicPartition, TopicId | None]:
    """The replica that an action speaks of."""
    topic_id = None if action.topic_id is None else TopicId.parse(action.topic_id)
    return TopicPartition(action.topic or "", action.partition or 0), topic_id


def check_home(log_dir: LogDir, path: str, partition: TopicPartition, topic_id: TopicId | None) -> None:
    """Make sure that a directory is a live one of that partition, by its name and where it lies.

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
    """Make sure that the file which a leftover was to become is there and whole."""
    data = read_small_file(name, CHECKPOINT_LIMIT, log_dir.root.descriptor)
    if not data:
        state = "there is no" if data is None else "there is nothing in"
        raise ChangedSinceError(f"{state} {name}, so its temporary file may be all that is left of it")
    if name == meta_properties.FILE_NAME:
        meta_properties.parse(data)
    else:
        checkpoint.parse_offsets(data, name)
