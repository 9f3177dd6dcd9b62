"""Find the files of ``__cluster_metadata-0`` by their names, and open them (FACTS §7.1, §7.2).

00000000000000020475-0000000026.checkpoint   a snapshot: everything below offset 20475, the last of it of epoch 26
00000000000000000000.log                     a segment of the log, named by its first offset
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from layout.errors import InvalidNameError
from layout.segment_name import FileKind, MetadataSnapshotName, parse, parse_metadata_snapshot
from layout.topic import METADATA_DIR
from reconciler.errors import MetadataError


class SnapshotFile(NamedTuple):
    """A finished snapshot; compares by (epoch, offset)."""

    name: MetadataSnapshotName
    path: str


class SegmentFile(NamedTuple):
    """One file of the log; compares by base offset."""

    base_offset: int
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class MetadataFiles:
    """The files of a metadata directory.

    Attributes:
        snapshots: the finished snapshots, newest first.
        segments: of the log, in order.
        problems: names that stop a controller, one sentence each.
    """

    snapshots: Sequence[SnapshotFile]
    segments: Sequence[SegmentFile]
    problems: Sequence[str]


def find_metadata_dir(path: str) -> str:
    """Find the metadata directory that a path means: itself, or the one in a log dir.

    Raises:
        MetadataError: neither. A directory of another name does not count, because the log of any topic looks like it.
    """
    inside = os.path.join(path, METADATA_DIR)
    if os.path.isdir(inside):
        return inside
    if os.path.basename(os.path.abspath(path)) != METADATA_DIR:
        raise MetadataError(f"{path} is no KRaft metadata: a {METADATA_DIR} directory, or a log dir that holds one")
    return path


def list_files(folder: str) -> MetadataFiles:
    """List the snapshots and the segments of a metadata directory.

    Raises:
        MetadataError: the directory cannot be listed.
    """
    snapshots, segments, problems = [], [], []
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry.name, entry.path, _size(entry)) for entry in entries if entry.is_file())
    except OSError as error:
        raise MetadataError(f"{folder} cannot be listed: {error.strerror or error}") from error
    for file_name, path, size in found:
        try:
            snapshot = parse_metadata_snapshot(file_name)
        except InvalidNameError as error:
            problems.append(f"{path} is passed over: {error}")
            continue
        segment = parse(file_name)
        if snapshot is not None and not (snapshot.partial or snapshot.deleted):
            snapshots.append(SnapshotFile(snapshot, path))
        elif segment.kind is FileKind.LOG and segment.transient is None and segment.offset is not None and size >= 0:
            segments.append(SegmentFile(segment.offset, path, size))
    return MetadataFiles(sorted(snapshots, reverse=True), sorted(segments), problems)


def _size(entry: os.DirEntry[str]) -> int:
    """The size of a file, or -1 when the controller that owns it has just renamed or removed it."""
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return -1


def name_snapshot(path: str) -> SnapshotFile:
    """Make a snapshot of its own path.

    Raises:
        MetadataError: the name is not that of a finished snapshot, and only the name holds its offset and epoch.
    """
    file_name = os.path.basename(path)
    try:
        name = parse_metadata_snapshot(file_name)
    except InvalidNameError as error:
        raise MetadataError(f"{path}: the offset and the epoch of a snapshot stand in its name: {error}") from error
    if name is None or name.partial or name.deleted:
        raise MetadataError(f"{path} is no finished snapshot: a <20 digits>-<10 digits>.checkpoint file is expected")
    return SnapshotFile(name, path)


@contextmanager
def open_file(path: str) -> Iterator[tuple[BinaryIO, int]]:
    """Open a plain file for reading; yield it with its present size. Any OSError during the reading becomes our error.

    Raises:
        MetadataError: it cannot be opened or read, or is not a plain file.
    """
    try:
        # Without O_NONBLOCK, a named pipe of that name would block the caller for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise MetadataError(f"{path} is no plain file")
            yield file, status.st_size
    except OSError as error:
        raise MetadataError(f"{path} cannot be read: {error.strerror or error}") from error
