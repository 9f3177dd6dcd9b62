"""Whether a staged directory may go, by the rules of a purge and by what lies in it; nothing is changed here.

A directory is judged through an open descriptor: whether its record is valid, speaks of it, and is due. Those that
a broker left have no record, and nothing says when they may go. Source: DESIGN §5.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from layout.directory_name import DirectoryKind, DirectoryName
from layout.ours import STAGED_RECORD, StagedRecord
from layout.topic import TopicPartition
from logstore.errors import DamagedRecordError, UnsafePathError
from logstore.fs import Directory
from logstore.log_dir import FileHolder, LogDirView
from logstore.purge.report import KeepReason, KeptDirectory
from logstore.purge.throttle import Throttle
from logstore.staging import Placement, RecordReader, Staged, name_below_log_dir

STEP_BYTES: Final = 1 << 30
"""Bytes of a file that go at once, where nothing else is asked for."""

_DEEPEST = 32
"""Levels of directories in a staged one. Kafka makes none; a tree of thousands would use up all descriptors."""


@dataclass(slots=True)
class PurgeRules:
    """What a purge was asked for, the same for all directories.

    Attributes:
        now_ms: what is due at this time may go.
        throttle: how fast; None: as fast as it goes.
        cancel: set to stop it.
        step_bytes: larger files are truncated in steps of this.
        only: whether a directory is meant at all; None: every one is.
        before_due: take what is not due yet too.
        keep_held: leave directories alone of which a process holds a file.
        progress: told how many directories and bytes went since the last call; called from several threads.
    """

    now_ms: int
    throttle: Throttle | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    step_bytes: int = STEP_BYTES
    only: Callable[[Staged], bool] | None = None
    before_due: bool = False
    keep_held: bool = False
    progress: Callable[[int, int], None] | None = None


@dataclass(slots=True)
class DueDirectory:
    """A directory that may go, and what was removed of it so far."""

    name: str
    inode: int
    record: StagedRecord | None
    """None: it is empty already."""
    files: int = 0
    bytes: int = 0
    problem: str | None = None
    """Why it could not be emptied; None: it was."""
    cancelled: bool = False
    touched: bool = False
    """Something of it is gone, or about to go."""
    held: list[tuple[int, str, int]] = field(default_factory=list)
    """Inode, name and bytes of files that processes hold."""


@dataclass(slots=True)
class PrefetchedDirectory:
    """What somebody who looked ahead found in a directory that is due: plain files alone, small, and nobody's else."""

    inode: int
    names: list[str]
    """Of all files but the record."""
    weights: list[int]
    """The bytes that each gives back."""
    record: StagedRecord


class StagingRoot:
    """The staged directories of one staging root, looked at one by one; nothing is changed.

    Attributes:
        holders: inode of a file → the processes that hold it; filled in by whoever knows.
    """

    def __init__(
        self, log_dir: LogDirView, placement: Placement, root: Directory, rules: PurgeRules, reader: RecordReader
    ) -> None:
        """Take an open staging root."""
        self.log_dir, self.placement, self.root = log_dir, placement, root
        self.rules, self._reader = rules, reader
        self._prefix = name_below_log_dir(log_dir, placement, "-")[:-1]
        self.holders: Mapping[int, tuple[FileHolder, ...]] = {}

    def judge(self, directory: Directory, name: DirectoryName) -> DueDirectory | KeptDirectory | None:
        """Whether a staged directory may go; None: it is not meant.

        Raises:
            OSError: it cannot be read.
        """
        rules, text, inode = self.rules, name.text, directory.key[1]
        try:
            record = self._reader.read(directory, name)
        except DamagedRecordError as error:
            return self._without_record(directory, name, str(error))
        if record is None:
            return (
                None
                if rules.only
                else self._kept(text, KeepReason.NO_RECORD, "a broker left it; nothing says when it may go")
            )
        if rules.only is not None and not rules.only(self._staged(name, inode, record)):
            return None
        if not (rules.before_due or record.is_due(rules.now_ms)):
            return self.not_due(text, record.due_ms)
        if rules.keep_held and self.holders:
            holders = {
                str(process)
                for held in measure_removal(directory, self.holders).held
                for process in self.holders[held[0]]
            }
            if holders:
                return self._kept(text, KeepReason.IN_USE, f"held open by {', '.join(sorted(holders))}", record.due_ms)
        return DueDirectory(text, inode, record)

    def _without_record(
        self, directory: Directory, name: DirectoryName, problem: str
    ) -> DueDirectory | KeptDirectory | None:
        """One whose record is no use stays; an empty one that we staged is what the last step of a purge leaves."""
        names = os.listdir(directory.descriptor)
        if not names and name.kind is DirectoryKind.STAGED:
            return DueDirectory(name.text, directory.key[1], None)
        if self.rules.only is not None:
            return None
        return self._kept(
            name.text, KeepReason.DAMAGED_RECORD if STAGED_RECORD in names else KeepReason.NO_RECORD, problem
        )

    def not_due(self, name: str, due_ms: int) -> KeptDirectory:
        """A directory that waits for its time."""
        return self._kept(name, KeepReason.NOT_DUE, "its time has not come", due_ms)

    def _kept(self, name: str, why: KeepReason, reason: str, due_ms: int | None = None) -> KeptDirectory:
        return KeptDirectory(self.location(name), why, reason, due_ms)

    def location(self, name: str) -> str:
        """How a scan calls a directory of this staging root."""
        return self._prefix + name

    def _staged(self, name: DirectoryName, inode: int, record: StagedRecord) -> Staged:
        partition = TopicPartition(record.topic, record.partition)
        return Staged(
            log_dir=self.log_dir.path,
            placement=self.placement,
            name=name.text,
            location=self.location(name.text),
            record=record,
            problem=None,
            topic_id=record.topic_id,
            partition=partition,
            inode=inode,
        )


def measure_removal(
    directory: Directory, holders: Mapping[int, tuple[FileHolder, ...]], depth: int = 0
) -> DueDirectory:
    """What a removal would give back: files, bytes, and what processes hold of them. Nothing is changed.

    Raises:
        UnsafePathError: there is a mount point in it, or directories nested too deep.
        OSError: the system refuses.
    """
    check_depth(depth)
    total = DueDirectory("", directory.key[1], None)
    with os.scandir(directory.descriptor) as found:
        entries = list(found)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            with directory.child(entry.name) as inner:
                below = measure_removal(inner, holders, depth + 1)
            total.files += below.files
            total.bytes += below.bytes
            total.held += below.held
        elif depth or entry.name != STAGED_RECORD:
            status = entry.stat(follow_symlinks=False)
            total.files += 1
            total.bytes += weight_of(status)
            if status.st_ino in holders:
                total.held.append((status.st_ino, entry.name, weight_of(status)))
    return total


def weight_of(status: os.stat_result) -> int:
    """What unlinking gives back: allocated bytes, or nothing while the file has another name."""
    return status.st_blocks * 512 if status.st_nlink == 1 else 0


def check_depth(depth: int) -> None:
    """Refuse a directory that lies too many levels down in a staged one.

    Raises:
        UnsafePathError: it does.
    """
    if depth > _DEEPEST:
        raise UnsafePathError(f"its directories are nested more than {_DEEPEST} deep, which no broker does")
