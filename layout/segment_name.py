"""Build and read the names of files in a partition dir: their kind, their offset, and whether they are leftovers.

::

    00000000000000000042.log                                    segment, named by its base offset, 20 digits
    00000000000000000042.index  .timeindex  .txnindex           its offset, time and transaction index
    00000000000000000042.snapshot                               producer snapshot: the state before that offset
    leader-epoch-checkpoint   partition.metadata                formats of their own
    00000000000000000100-0000000003.checkpoint                  metadata snapshot, end offset and epoch: only in
    quorum-state                                                __cluster_metadata-0, as this one
    remote_log_snapshot                                         tiered storage, 3.6 and 3.7
    ….deleted  ….cleaned  ….swap  ….part  ….tmp                 transient: an operation that did not finish

A broker leaves any other file alone. It reads numbers as Java does, so ``٤٢.log``, which a broker under an Arabic
locale writes, is offset 42 (FACTS §12). Source: FACTS §1.9, §7.2, §12.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from layout import checkpoint, partition_metadata, quorum_state
from layout.errors import InvalidNameError, NumberFormatError
from layout.java_text import parse_java_int

_MAX_OFFSET = (1 << 63) - 1
_MAX_EPOCH = (1 << 31) - 1


class FileKind(StrEnum):
    """The kind of a file in a partition dir, by its name alone; the values of the first six are suffixes."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"
    METADATA_SNAPSHOT = ".checkpoint"
    LEADER_EPOCH_CHECKPOINT = checkpoint.LEADER_EPOCH_CHECKPOINT
    PARTITION_METADATA = partition_metadata.FILE_NAME
    QUORUM_STATE = quorum_state.FILE_NAME
    REMOTE_LOG_SNAPSHOT = "remote_log_snapshot"
    OTHER = "other"


class Transient(StrEnum):
    """The suffix of a file that is being added or removed."""

    DELETED = ".deleted"
    """Awaits removal; deleted at the next load, a metadata snapshot after 60 s."""
    CLEANED = ".cleaned"
    """Output of a compaction or a split that was not committed; deleted at the next load."""
    SWAP = ".swap"
    """Committed output that has not yet got its name; completed at the next load, or deleted when uncommitted."""
    PART = ".part"
    """A metadata snapshot that was being written; deleted at the next load."""
    TMP = ".tmp"
    """A small text file that was being written; never read, and overwritten by the next write."""


class SegmentFileName(NamedTuple):
    """A file's name, read.

    Attributes:
        text: the name.
        kind: of the name without its transient suffix.
        offset: base offset of a segment and its indexes; exclusive end offset of a snapshot; else None.
        epoch: of a metadata snapshot; else None.
        transient: the transient suffix, if any.
        problem: why a broker that loads the partition would fail on the name, one sentence without a full stop; else
            None.
    """

    text: str
    kind: FileKind
    offset: int | None = None
    epoch: int | None = None
    transient: Transient | None = None
    problem: str | None = None


class MetadataSnapshotName(NamedTuple):
    """The name of a metadata snapshot: it holds the records before ``offset``, the last of them of ``epoch``.

    Names compare by (epoch, offset), so the greatest is the latest (FACTS §7.2).
    """

    epoch: int
    offset: int
    partial: bool = False
    """Whether the snapshot is being written: ``.checkpoint.part``."""
    deleted: bool = False
    """Whether the snapshot awaits removal: ``.checkpoint.deleted``."""


_BY_OFFSET = (
    FileKind.LOG,
    FileKind.OFFSET_INDEX,
    FileKind.TIME_INDEX,
    FileKind.TRANSACTION_INDEX,
    FileKind.PRODUCER_SNAPSHOT,
)
_SUFFIXES = (*_BY_OFFSET, FileKind.METADATA_SNAPSHOT)
_WHOLE_NAMES = frozenset(FileKind) - {FileKind.OTHER, *_SUFFIXES}
_NO_OFFSET = "the name up to its first '.' is no offset, and a broker that loads this partition does not start"


def parse(text: str) -> SegmentFileName:
    """Read the name of a plain file in a partition dir. Never raises.

    A broker reads the offset of each segment, index and producer snapshot, and of every file with ``.cleaned`` or
    ``.swap``. It stops when the name up to the first ``.`` is no 64-bit integer, which is the ``problem`` of such a
    name. It deletes a ``.deleted`` file whatever the rest of the name is. FACTS §1.9 says so of segments and indexes;
    for snapshots, ``.cleaned`` and ``.swap`` it follows, because their offsets are compared.
    """
    transient = next((each for each in Transient if text.endswith(each)), None)
    kind = _kind_of(text.removesuffix(transient or ""))
    names_offset = transient in (Transient.CLEANED, Transient.SWAP)
    if kind is FileKind.METADATA_SNAPSHOT and not names_offset:
        return _metadata_snapshot(text, transient)
    offset = problem = None
    if kind in _BY_OFFSET or names_offset:
        try:
            offset = parse_java_int(text.partition(".")[0], 64)
        except NumberFormatError:
            problem = _NO_OFFSET if transient is None or names_offset else None
    return SegmentFileName(text, kind, offset, None, transient, problem)


def parse_metadata_snapshot(text: str) -> MetadataSnapshotName | None:
    """Read the name of a metadata snapshot as Kafka does; None: the name does not have the suffix of one.

    The suffix decides; then characters 0 to 19 are the offset and 21 to 30 the epoch, whatever else there is.

    Raises:
        InvalidNameError: the suffix is there and the numbers are not. In ``__cluster_metadata-0`` such a file stops a
            broker, for example a ``bootstrap.checkpoint`` that was put there by hand.
    """
    partial, deleted = text.endswith(".checkpoint.part"), text.endswith(".checkpoint.deleted")
    if not (partial or deleted or text.endswith(".checkpoint")):
        return None
    try:
        return MetadataSnapshotName(parse_java_int(text[21:31]), parse_java_int(text[:20], 64), partial, deleted)
    except NumberFormatError as error:
        raise InvalidNameError(
            f"{text!r:.80} does not begin with 20 digits, a separator and 10 digits: it names no metadata snapshot; "
            "a broker does not start while it is in __cluster_metadata-0"
        ) from error


def filename_prefix(offset: int) -> str:
    """The name of the files at an offset, up to the suffix: 20 digits.

    Raises:
        InvalidNameError: ``offset`` is not between 0 and the greatest 64-bit integer.
    """
    if not 0 <= offset <= _MAX_OFFSET:
        raise InvalidNameError(f"{offset} is no offset: 0 to {_MAX_OFFSET} is expected")
    return f"{offset:020d}"


def segment_file_name(offset: int, kind: FileKind) -> str:
    """The name of a segment, of one of its indexes, or of a producer snapshot.

    Raises:
        InvalidNameError: ``offset`` is out of range, or files of this kind are not named by an offset alone.
    """
    if kind not in _BY_OFFSET:
        raise InvalidNameError(f"files of kind {kind} are not named by an offset alone")
    return filename_prefix(offset) + kind


def metadata_snapshot_name(offset: int, epoch: int) -> str:
    """The name of a complete metadata snapshot, which contains the records before ``offset``.

    Raises:
        InvalidNameError: ``offset`` is no 64-bit or ``epoch`` no 32-bit number from 0 on.
    """
    if not 0 <= epoch <= _MAX_EPOCH:
        raise InvalidNameError(f"{epoch} is no epoch: 0 to {_MAX_EPOCH} is expected")
    return f"{filename_prefix(offset)}-{epoch:010d}{FileKind.METADATA_SNAPSHOT}"


def _kind_of(plain: str) -> FileKind:
    """The kind of a name without its transient suffix."""
    if plain in _WHOLE_NAMES:
        return FileKind(plain)
    return next((kind for kind in _SUFFIXES if plain.endswith(kind)), FileKind.OTHER)


def _metadata_snapshot(text: str, transient: Transient | None) -> SegmentFileName:
    """Read a name with the suffix of a metadata snapshot; without its numbers it is of the kind ``OTHER``."""
    try:
        snapshot = parse_metadata_snapshot(text)
    except InvalidNameError:
        snapshot = None
    if snapshot is None:
        return SegmentFileName(text, FileKind.OTHER, transient=transient)
    return SegmentFileName(text, FileKind.METADATA_SNAPSHOT, snapshot.offset, snapshot.epoch, transient)
