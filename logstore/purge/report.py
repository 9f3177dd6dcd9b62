"""Reports what a purge did or would do: what was deleted, what stayed and why, and how much space was freed.

Values only. Source: DESIGN §5; USERS, pains 5, 6 and 8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from layout.ours import StagedRecord
from layout.topic import TopicPartition
from logstore.log_dir import FileHolder, UnseenProcess


class KeepReason(StrEnum):
    """Why a directory stays."""

    NOT_DUE = "not-due"
    NO_RECORD = "no-record"
    """It has no due time: a broker left it, or its record is gone."""
    DAMAGED_RECORD = "damaged-record"
    """Its record does not parse, or is another replica's."""
    WANTED = "wanted"
    """It is due, and whoever purges has a reason to keep it, such as that it is wanted again."""
    IN_USE = "in-use"
    """A process holds files of it open, and the rules of the purge keep directories that are in use."""


@dataclass(frozen=True, slots=True)
class KeptDirectory:
    """A directory that a purge leaves where it is."""

    location: str
    """Its name in a scan of the log dir."""
    why: KeepReason
    reason: str
    """One sentence."""
    due_ms: int | None = None
    """When a purge may delete it, in ms since 1970; None: never."""


class Purged(NamedTuple):
    """A directory that is deleted, or in a dry run would be."""

    location: str
    record: StagedRecord | None
    """None: the directory was empty, as an interrupted purge may leave it."""
    files: int
    bytes: int
    """Expected to be freed: allocated bytes of all files that have no other name elsewhere."""

    @property
    def partition(self) -> TopicPartition | None:
        """The partition, by the topic's full name; None without a record."""
        return None if self.record is None else TopicPartition(self.record.topic, self.record.partition)


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file without a name, whose space is freed when the last process closes it."""

    process: FileHolder
    name: str
    """Location of its directory, and the name that the file had."""
    inode: int
    bytes: int


@dataclass(slots=True)
class LogDirPurge:
    """The result for one log dir.

    Attributes:
        log_dir: its path.
        purged: the directories that are deleted, durably.
        kept: the directories that stay, except those that are not due yet.
        not_due: number of directories that are not due yet.
        waiting: number of directories that are due and wait, because they lie in the log dir itself, which is in use.
        next_due_ms: the earliest due time among these, in ms since 1970; None: there are none.
        failures: a sentence for each directory that could not be removed whole; the next purge tries again.
        partly_bytes: bytes removed from directories that still exist.
        freed_bytes: growth of the file system's free space, to which others write as well; None: not measured.
        held: files that processes still hold open.
        unseen_processes: the processes that could not be inspected, so that ``held`` may lack files.
        cancelled: the purge was stopped before everything due was deleted.
        error: why the purge of this log dir ended early; None: it did not.
    """

    log_dir: str
    purged: list[Purged] = field(default_factory=list)
    kept: list[KeptDirectory] = field(default_factory=list)
    not_due: int = 0
    waiting: int = 0
    next_due_ms: int | None = None
    failures: list[str] = field(default_factory=list)
    partly_bytes: int = 0
    freed_bytes: int | None = None
    held: list[HeldFile] = field(default_factory=list)
    unseen_processes: tuple[UnseenProcess, ...] = ()
    cancelled: bool = False
    error: str | None = None

    @property
    def expected_bytes(self) -> int:
        """Bytes that the file system should have freed."""
        return self.partly_bytes + sum(purged.bytes for purged in self.purged)

    @property
    def held_open_bytes(self) -> int:
        """Bytes of these that are freed only when processes close files; a file that several hold counts once."""
        return sum({held.name: held.bytes for held in self.held}.values())

    @property
    def is_whole(self) -> bool:
        """Whether everything due was deleted."""
        return not (self.failures or self.cancelled or self.error)

    def add(self, other: LogDirPurge) -> None:
        """Take in the result of another part of the same log dir."""
        dates = [ms for ms in (self.next_due_ms, other.next_due_ms) if ms is not None]
        freed = [number for number in (self.freed_bytes, other.freed_bytes) if number is not None]
        self.purged = sorted([*self.purged, *other.purged], key=lambda purged: purged.location)
        self.kept = sorted([*self.kept, *other.kept], key=lambda kept: kept.location)
        self.not_due += other.not_due
        self.waiting += other.waiting
        self.next_due_ms = min(dates, default=None)
        self.failures = sorted([*self.failures, *other.failures])
        self.partly_bytes += other.partly_bytes
        self.freed_bytes = sum(freed) if freed else None
        self.held = sorted([*self.held, *other.held], key=lambda held: (held.name, held.process.pid))
        self.unseen_processes = tuple(dict.fromkeys((*self.unseen_processes, *other.unseen_processes)))
        self.cancelled |= other.cancelled
        self.error = self.error or other.error

    def keep(self, kept: KeptDirectory) -> None:
        """Take in a directory that stays."""
        if kept.why is not KeepReason.NOT_DUE:
            self.kept.append(kept)
            return
        self.not_due += 1
        if kept.due_ms is not None and (self.next_due_ms is None or kept.due_ms < self.next_due_ms):
            self.next_due_ms = kept.due_ms


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """The results for all log dirs, in the order in which they were given."""

    log_dirs: tuple[LogDirPurge, ...]

    @property
    def directories(self) -> int:
        """Number of deleted directories."""
        return sum(len(each.purged) for each in self.log_dirs)

    @property
    def expected_bytes(self) -> int:
        """Bytes that the disks should have freed."""
        return sum(each.expected_bytes for each in self.log_dirs)

    @property
    def next_due_ms(self) -> int | None:
        """The earliest due time of all log dirs, in ms since 1970; None: nothing waits to be due."""
        return min((each.next_due_ms for each in self.log_dirs if each.next_due_ms is not None), default=None)

    @property
    def is_whole(self) -> bool:
        """Whether everything due was deleted in all log dirs."""
        return all(each.is_whole for each in self.log_dirs)
