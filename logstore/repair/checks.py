"""Check on the spot that a file is as a repair expects it, and work out its new bytes, before anything is changed.

A repair says where a file lies, which bytes it expects there and which it writes, both by their sum, and what the new
bytes are worked out from: a topic ID, or the old bytes. So no content of its own can come to a disk, whoever made the
repair. Where a sum differs, nothing is done, with the reason. Directories are opened component by component, along no
link. ``backup`` keeps the old bytes and changes the files.

The worse copy of a duplicate is staged by the store; here is checked that the better one is still live, under the same
topic ID, in a log dir that is locked. Source: DESIGN §3, §6; FACTS §1.7.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from layout import checkpoint, meta_properties, partition_metadata
from layout.directory_name import DirectoryKind, by_topic_id_name, parse
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.ours import BROKER_TEMPORARY, LEFTOVERS, MISSING, KeptFile, is_repairable, sum_of
from layout.scheme import Scheme
from layout.topic import NAMESPACE_SEPARATOR, TopicPartition
from logstore.errors import LogStoreError, UnreadableFileError
from logstore.fs import read_small_file
from logstore.log_dir import CHECKPOINT_LIMIT, FileChange, LogDir
from logstore.rows import Kind, MetadataState
from logstore.scan import METADATA_LIMIT, judge_metadata, scan
from logstore.store import metadata_bytes


class RepairStatus(StrEnum):
    """The outcome of an action."""

    DONE = "done"
    ALREADY = "already"
    """The disk is as the action wants it; an earlier run did it."""
    SKIPPED = "skipped"
    """The disk is not as the action expects it, so nothing was done."""
    FAILED = "failed"
    """The system refused, and nothing was done."""


class ChangedSinceError(LogStoreError):
    """Something is not as it is expected; the message is a clause."""


@dataclass(frozen=True, slots=True)
class TopicIdFile:
    """The new ``partition.metadata`` of a replica, in the form of its log dir."""

    partition: TopicPartition
    topic_id: TopicId


@dataclass(frozen=True, slots=True)
class CheckpointWithout:
    """An offset checkpoint without the entries of some partitions.

    Attributes:
        dropped: (topic, partition) of entries whose partition has no directory in the log dir.
        is_rebuilt: the file does not parse, and its good lines stay.
    """

    dropped: frozenset[tuple[str, int]]
    is_rebuilt: bool = False


@dataclass(frozen=True, slots=True)
class FileRepair:
    """One file of a log dir that is to be put right.

    Attributes:
        path: below the log dir; a repair changes only :func:`layout.ours.is_repairable` files.
        content: what the new bytes are worked out from; None: it is a leftover, and is removed.
        expects: SHA-256 of its present bytes, or ``missing``.
        writes: SHA-256 of its new bytes, or ``missing``.
        inode: of the directory that holds it; None: any.
    """

    path: str
    content: TopicIdFile | CheckpointWithout | None
    expects: str
    writes: str
    inode: int | None = None


@dataclass(frozen=True, slots=True)
class CheckedRepair:
    """A repair that may be done: its file was read again, and is as expected."""

    repair: FileRepair
    before: bytes | None
    """None: there is no file."""
    after: bytes | None
    """None: it is removed."""

    @property
    def change(self) -> FileChange:
        """The change of the file."""
        return FileChange(self.repair.path, self.after, self.repair.inode)

    @property
    def kept(self) -> KeptFile:
        """The entry of the backup."""
        return KeptFile(self.repair.path, self.before, self.repair.writes, self.repair.inode)


def check_repair(
    log_dir: LogDir, repair: FileRepair, held: Collection[tuple[str, int]] | None = ()
) -> CheckedRepair | None:
    """Read a file again, and work out its new bytes; None: it has them already.

    Args:
        log_dir: open, and so locked.
        repair: of one file.
        held: what :func:`replicas_with_directory` gives; only a repair that drops entries needs it.

    Raises:
        ChangedSinceError: the file is not as expected, or the repair makes no sense here.
        OfflineLogDirError: the log dir is no longer used.
        OSError: the disk fails.
    """
    log_dir.check_online()
    if not is_repairable(repair.path):
        raise ChangedSinceError(f"{repair.path!r:.60} is no file that a repair changes")
    folder, _, name = repair.path.rpartition("/")
    try:
        with log_dir.root.below(folder) as parent:
            if repair.inode is not None and parent.key[1] != repair.inode:
                raise ChangedSinceError(f"its directory has inode {parent.key[1]}, and {repair.inode} was planned for")
            before = read_small_file(name, CHECKPOINT_LIMIT, parent.descriptor)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ChangedSinceError("its directory is gone") from error
    except UnreadableFileError as error:
        raise ChangedSinceError(f"{name} {error}") from error
    if sum_of(before) == repair.writes:
        return None
    if sum_of(before) != repair.expects:
        expected = "missing" if repair.expects == MISSING else "other bytes"
        found = "missing" if before is None else f"{len(before)} bytes"
        raise ChangedSinceError(f"it has changed since the plan was made: {found} now, {expected} then")
    try:
        after = _new_bytes(log_dir, repair, before, held)
    except LayoutError as error:
        raise ChangedSinceError(str(error)) from error
    if sum_of(after) != repair.writes:
        raise ChangedSinceError("this release would write other bytes than the plan says: make a new plan")
    return CheckedRepair(repair, before, after)


def _new_bytes(
    log_dir: LogDir, repair: FileRepair, before: bytes | None, held: Collection[tuple[str, int]] | None
) -> bytes | None:
    """Work out the new bytes of a file; None: it is removed.

    Raises:
        ChangedSinceError: the repair makes no sense here.
        LayoutError: the old bytes do not parse.
    """
    content = repair.content
    if content is None:
        _check_leftover(log_dir, repair.path)
        return None
    if isinstance(content, TopicIdFile):
        check_home(log_dir, repair.path.rpartition("/")[0], content.partition, content.topic_id)
        return metadata_bytes(log_dir, content.partition, content.topic_id)
    if content.dropped and held is None:
        raise ChangedSinceError("not everything in the log dir can be listed, so no entry is surely stale")
    back = sorted(content.dropped & set(held or ()))
    if back:
        raise ChangedSinceError(f"{back[0][0]}-{back[0][1]} has a directory by now")
    if content.is_rebuilt:
        return checkpoint.rebuilt(before or b"", content.dropped)
    return checkpoint.pruned(before or b"", repair.path, content.dropped)


def replicas_with_directory(log_dir: LogDir) -> frozenset[tuple[str, int]] | None:
    """List the (topic, partition) pairs with a live or a future directory; None: not every one can be known."""
    seen = scan(log_dir.path, sizes=False)
    if seen.state is not MetadataState.OK:
        return None
    rows = zip(*(seen.rows.column(name).to_pylist() for name in ("kind", "topic", "partition")), strict=True)
    held = [(topic, partition) for kind, topic, partition in rows if kind in (Kind.LIVE, Kind.FUTURE)]
    return None if any(topic is None for topic, _ in held) else frozenset(held)


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


def _check_leftover(log_dir: LogDir, path: str) -> None:
    """Make sure that the file beside a leftover, which the leftover was to replace, is there and whole."""
    name = path.removesuffix(BROKER_TEMPORARY)
    if path not in LEFTOVERS:
        raise ChangedSinceError(f"{path!r:.60} is no temporary file that may be removed")
    data = read_small_file(name, CHECKPOINT_LIMIT, log_dir.root.descriptor)
    if not data:
        state = "there is no" if data is None else "there is nothing in"
        raise ChangedSinceError(f"{state} {name}, so its temporary file may be all that is left of it")
    if name == meta_properties.FILE_NAME:
        meta_properties.parse(data)
    else:
        checkpoint.parse_offsets(data, name)


def is_gone(log_dir: LogDir, path: str) -> bool:
    """Whether nothing lies at a path below a log dir. Raises OSError: the disk fails, or the path leads elsewhere."""
    try:
        return not log_dir.root.holds_below(path)
    except FileNotFoundError:
        return True


def check_worse_copy(
    log_dir: LogDir, path: str, partition: TopicPartition, topic_id: TopicId | None, expects: str
) -> None:
    """Make sure that the worse copy of a duplicate is as it was, so that it may be staged.

    The log dir is open, and so locked. ``path`` is a live directory of the partition; ``topic_id`` is in its
    ``partition.metadata``; None: none that can be read; ``expects`` is the SHA-256 of that file, or ``missing``.

    Raises:
        ChangedSinceError: it is not as it was.
    """
    check_home(log_dir, path, partition, topic_id)
    if sum_of(_metadata_of(log_dir, path)[1]) != expects:
        raise ChangedSinceError("its partition.metadata has changed since the plan was made")


def check_better_copy(log_dir: LogDir, path: str, partition: TopicPartition, inode: int, topic_id: str | None) -> None:
    """Make sure that the copy of a duplicate that stays is there as it was: live, and under the same topic ID.

    Raises:
        ChangedSinceError: it is not.
    """
    if log_dir.offline is not None:
        raise ChangedSinceError("the log dir of the copy that stays cannot be used")
    found, data = _metadata_of(log_dir, path)
    place = f"{log_dir.path}/{path}"
    if found != inode:
        raise ChangedSinceError(f"the copy that stays, {place}, is another directory by now")
    held = judge_metadata(data).topic_id
    if topic_id != (None if held is None else str(held)):
        raise ChangedSinceError(f"the copy that stays, {place}, holds topic ID {held or 'none'} by now")
    check_home(log_dir, path, partition, held)


def _metadata_of(log_dir: LogDir, path: str) -> tuple[int, bytes | None]:
    """Read the inode of a partition dir, and the bytes of its ``partition.metadata``."""
    try:
        with log_dir.root.below(path) as directory:
            return directory.key[1], read_small_file(partition_metadata.FILE_NAME, METADATA_LIMIT, directory.descriptor)
    except UnreadableFileError as error:
        raise ChangedSinceError(f"{log_dir.path}/{path}/{partition_metadata.FILE_NAME} {error}") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ChangedSinceError(f"{log_dir.path}/{path} is gone") from error
