"""Judges whether a staged directory may be purged, by the rules of the purge and by its record; nothing is changed.

Its record in the ledger must be valid, its own, and due, or a purge must have begun with it. Directories that a broker
left have no record, so no purge takes them. Source: DESIGN §5.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from layout.directory_name import DirectoryKind, DirectoryName
from layout.ours import StagedRecord
from logstore.arguments import check_fields
from logstore.errors import DamagedRecordError, InvalidArgumentError, UnsafePathError
from logstore.fs import Directory
from logstore.log_dir import FileHolder, LogDirView
from logstore.purge.report import KeepReason, KeptDirectory
from logstore.purge.throttle import Throttle
from logstore.staging import BROKERS_STRAY, Placement, RootLedger, Staged, name_below_log_dir, read_staged

STEP_BYTES: Final = 1 << 30
"""Bytes of a file that are removed at once, by default."""

_DEEPEST = 32
"""Levels of directories below a staged directory. Kafka makes none; thousands would use up all descriptors."""


@dataclass(slots=True)
class PurgeRules:
    """The parameters of a purge, the same for all directories.

    Attributes:
        now_ms: the present time, in ms since 1970; directories that are due by then may go.
        throttle: None: no limit.
        cancel: set to stop the purge.
        step_bytes: larger files are truncated in steps of this size.
        only: selects directories; None: all.
        veto: says why a directory that may go stays all the same, one clause; None: it goes.
        before_due: delete what is not due yet too.
        keep_held: keep directories of which a process holds a file open.
        progress: called with the directories and bytes removed since the last call, from several threads.
        placements: the places that are looked at; None: all.

    Raises:
        InvalidArgumentError: a value is of another type, or no step of a file would remove anything.
    """

    now_ms: int
    throttle: Throttle | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    step_bytes: int = STEP_BYTES
    only: Callable[[Staged], bool] | None = None
    veto: Callable[[Staged], str | None] | None = None
    before_due: bool = False
    keep_held: bool = False
    progress: Callable[[int, int], None] | None = None
    placements: frozenset[Placement] | None = None

    def __post_init__(self) -> None:
        check_fields(self, InvalidArgumentError, {"step_bytes": (1, math.inf)})


RemovalResult: TypeAlias = tuple[int, int, str | None, bool, bool, bool, list[tuple[int, str, int]]]
"""Files and bytes that were removed, problem, cancelled, touched, removed, and held, as in :class:`DueDirectory`."""


@dataclass(slots=True)
class DueDirectory:
    """A directory that may be purged, and what was removed of it so far."""

    name: str
    inode: int
    record: StagedRecord | None
    """None: the directory is empty."""
    files: int = 0
    bytes: int = 0
    problem: str | None = None
    """Why it could not be removed whole; None: nothing went wrong."""
    cancelled: bool = False
    touched: bool = False
    """Something of it is removed, or may be."""
    removed: bool = False
    """It is gone."""
    was_begun: bool = False
    """An earlier purge may have touched it."""
    held: list[tuple[int, str, int]] = field(default_factory=list)
    """Inode, name and bytes of files that processes hold open."""

    @property
    def result(self) -> RemovalResult:
        """What became of it, in values that pass between processes."""
        return self.files, self.bytes, self.problem, self.cancelled, self.touched, self.removed, self.held

    @result.setter
    def result(self, result: RemovalResult) -> None:
        self.files, self.bytes, self.problem, self.cancelled, self.touched, self.removed, self.held = result


class StagingRoot:
    """One staging root, whose directories are judged one by one.

    Attributes:
        holders: inode of a file → the processes that hold it open; empty until the caller sets it.
    """

    def __init__(
        self, log_dir: LogDirView, placement: Placement, root: Directory, rules: PurgeRules, ledger: RootLedger
    ) -> None:
        """Take an open staging root, and what the ledgers say of it."""
        self.log_dir, self.placement, self.root = log_dir, placement, root
        self.rules, self.ledger = rules, ledger
        self._prefix = name_below_log_dir(log_dir, placement, "-")[:-1]
        self.holders: Mapping[int, tuple[FileHolder, ...]] = {}

    def judge(self, name: DirectoryName, inode: int) -> DueDirectory | KeptDirectory | None:
        """Judge whether a staged directory may go; None: ``only`` does not select it, or it is gone.

        Raises:
            OSError: it cannot be read.
        """
        rules, text = self.rules, name.text
        try:
            record = self.ledger.record_of(name)
        except DamagedRecordError as error:
            return self._without_record(name, inode, str(error))
        if record is None:
            return None if rules.only else self._kept(text, KeepReason.NO_RECORD, BROKERS_STRAY)
        if rules.only is not None and not rules.only(self._staged(name, inode)):
            return None
        entry = self.ledger.entry_of(text)
        was_begun = entry is not None and entry.may_be_partly_purged
        # What a purge has begun cannot come back, so the next one goes on, although it was begun before its time.
        if not (rules.before_due or was_begun or record.is_due(rules.now_ms)):
            return self._kept(text, KeepReason.NOT_DUE, "its time has not come", record.due_ms)
        if rules.veto is not None and (reason := rules.veto(self._staged(name, inode))) is not None:
            return self._kept(text, KeepReason.WANTED, reason, record.due_ms)
        return DueDirectory(text, inode, record, was_begun=was_begun)

    def kept_in_use(self, due: DueDirectory) -> KeptDirectory | None:
        """Keep a directory of which a process holds a file open, where the rules say so; None: it may go."""
        if not (self.rules.keep_held and self.holders and due.record is not None):
            return None
        try:
            with self.root.child(due.name) as directory:
                held = measure_removal(directory, self.holders).held
        except (FileNotFoundError, UnsafePathError):
            return None  # the removal says what is wrong with it
        holders = {str(process) for each in held for process in self.holders[each[0]]}
        if not holders:
            return None
        reason = f"held open by {', '.join(sorted(holders))}"
        return self._kept(due.name, KeepReason.IN_USE, reason, due.record.due_ms)

    def _without_record(self, name: DirectoryName, inode: int, problem: str) -> DueDirectory | KeptDirectory | None:
        """Keep a directory without a valid record, unless it is empty: nothing is lost with that."""
        if name.kind is DirectoryKind.STAGED:
            try:
                with self.root.child(name.text) as directory:
                    if not os.listdir(directory.descriptor):
                        return DueDirectory(name.text, inode, None)
            except FileNotFoundError:
                return None
        if self.rules.only is not None:
            return None
        damaged = name.text in self.ledger or self.ledger.damaged or self.ledger.problem is not None
        return self._kept(name.text, KeepReason.DAMAGED_RECORD if damaged else KeepReason.NO_RECORD, problem)

    def _kept(self, name: str, why: KeepReason, reason: str, due_ms: int | None = None) -> KeptDirectory:
        return KeptDirectory(self.location(name), why, reason, due_ms)

    def location(self, name: str) -> str:
        """Give the name of a directory of this staging root in a scan."""
        return self._prefix + name

    def _staged(self, name: DirectoryName, inode: int) -> Staged:
        return read_staged(self.log_dir, self.placement, self.root, self.ledger, (name, inode))


def measure_removal(
    directory: Directory, holders: Mapping[int, tuple[FileHolder, ...]], depth: int = 0
) -> DueDirectory:
    """Measure what a removal would free: files, bytes, and files that processes hold. Nothing is changed.

    Raises:
        UnsafePathError: it contains a mount point, or directories that are nested too deep.
        OSError: from the system.
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
        else:
            status = entry.stat(follow_symlinks=False)
            total.files += 1
            total.bytes += weight_of(status)
            if status.st_ino in holders:
                total.held.append((status.st_ino, entry.name, weight_of(status)))
    return total


def weight_of(status: os.stat_result) -> int:
    """Give the bytes that unlinking frees: all allocated ones, or none while the file has another name."""
    return status.st_blocks * 512 if status.st_nlink == 1 else 0


def check_depth(depth: int) -> None:
    """Refuse a directory that lies too many levels below a staged directory.

    Raises:
        UnsafePathError: it lies too deep.
    """
    if depth > _DEEPEST:
        raise UnsafePathError(f"its directories are nested more than {_DEEPEST} deep, which no broker does")
