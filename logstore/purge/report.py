"""What a purge did, or would do: what went, what stayed and why, how much space was expected and how much came back.

Values only. Source: DESIGN §5; USERS, pains 5, 6 and 8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from layout.ours import StagedRecord
from layout.topic import TopicPartition
from logstore.log_dir import FileHolder


class KeepReason(StrEnum):
    """Why a directory stays."""

    NOT_DUE = "not-due"
    NO_RECORD = "no-record"
    """Nothing says when it may go: a broker left it, or its record is gone."""
    DAMAGED_RECORD = "damaged-record"
    """It has a record that does not parse, or that speaks of something else."""
    IN_USE = "in-use"
    """A process holds files of it open, and the purge was told to leave such directories alone."""


@dataclass(frozen=True, slots=True)
class KeptDirectory:
    """A directory that a purge leaves where it is."""

    location: str
    """How a scan of its log dir calls it."""
    why: KeepReason
    reason: str
    """One sentence."""
    due_ms: int | None = None
    """When a purge may take it, in ms since 1970; None: never."""


@dataclass(frozen=True, slots=True)
class Purged:
    """A directory that is gone for ever, or in a dry run would be."""

    location: str
    record: StagedRecord | None
    """None: an empty directory that an interrupted purge had left."""
    files: int
    bytes: int
    """What the disk should get back: allocated bytes of all files that have no other name elsewhere."""

    @property
    def partition(self) -> TopicPartition | None:
        """What it was, by the topic's full name; None where there was no record any more."""
        return None if self.record is None else TopicPartition(self.record.topic, self.record.partition)


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file whose name is gone, and whose space stays taken until a process lets go."""

    process: FileHolder
    name: str
    """Location of its directory, and the file's own name."""
    inode: int
    bytes: int


@dataclass(slots=True)
class LogDirPurge:
    """What became of one log dir.

    Attributes:
        log_dir: its path.
        purged: directories that are gone, durably.
        kept: those that stay, other than because they are not due.
        not_due: how many wait for their time.
        next_due_ms: the earliest due time among those, in ms since 1970; None: nothing waits.
        failures: a sentence for each directory that could not be removed whole; the next purge tries again.
        partly_bytes: what was removed of directories that are not gone yet.
        freed_bytes: by how much the file system's free space grew; None: not measured. Others write to it as well.
        held: files that processes still hold open.
        unseen_processes: how many processes could not be looked into, so that ``held`` may lack some.
        cancelled: it was stopped before all that was due was gone.
        error: why nothing more could be done in this log dir; None: nothing stood in the way.
    """

    log_dir: str
    purged: list[Purged] = field(default_factory=list)
    kept: list[KeptDirectory] = field(default_factory=list)
    not_due: int = 0
    next_due_ms: int | None = None
    failures: list[str] = field(default_factory=list)
    partly_bytes: int = 0
    freed_bytes: int | None = None
    held: list[HeldFile] = field(default_factory=list)
    unseen_processes: int = 0
    cancelled: bool = False
    error: str | None = None

    @property
    def expected_bytes(self) -> int:
        """What the file system should have got back."""
        return self.partly_bytes + sum(purged.bytes for purged in self.purged)

    @property
    def held_open_bytes(self) -> int:
        """What of that it gets back only when processes let go; a file that several hold counts once."""
        return sum({held.name: held.bytes for held in self.held}.values())

    @property
    def is_whole(self) -> bool:
        """Whether all that was due is gone."""
        return not (self.failures or self.cancelled or self.error)

    def keep(self, kept: KeptDirectory) -> None:
        """Count a directory that stays."""
        if kept.why is not KeepReason.NOT_DUE:
            self.kept.append(kept)
            return
        self.not_due += 1
        if kept.due_ms is not None and (self.next_due_ms is None or kept.due_ms < self.next_due_ms):
            self.next_due_ms = kept.due_ms


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What became of all log dirs, in the order in which they were given."""

    log_dirs: tuple[LogDirPurge, ...]

    @property
    def directories(self) -> int:
        """How many directories are gone."""
        return sum(len(each.purged) for each in self.log_dirs)

    @property
    def expected_bytes(self) -> int:
        """What the disks should have got back."""
        return sum(each.expected_bytes for each in self.log_dirs)

    @property
    def next_due_ms(self) -> int | None:
        """When there is something to do again, in ms since 1970; None: nothing waits."""
        return min((each.next_due_ms for each in self.log_dirs if each.next_due_ms is not None), default=None)

    @property
    def is_whole(self) -> bool:
        """Whether all that was due is gone, everywhere."""
        return all(each.is_whole for each in self.log_dirs)
