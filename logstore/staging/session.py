"""What the batches of one call of ``stage`` share: open directories, reserved names, and how a record is made."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from layout.ids import TopicId
from layout.ours import StagedRecord
from layout.topic import TopicPartition
from logstore.fs import Directory, sync_all
from logstore.log_dir import DISK_FAILURES, LogDir
from logstore.staging.candidate import Candidate
from logstore.staging.fallback_records import FallbackRecords
from logstore.staging.placement import Placement, free_name, open_staging_root

NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

_LONGEST_EVIDENCE = 4096
"""Characters of evidence that are kept, so that no record is too large for its reader."""


class StagingSession:
    """The log dir, staging root and names that the batches of one call use.

    Attributes:
        root: the staging root, open.
        parents: the directories that hold the replicas, open, by their paths below the log dir.
        promised: the names in the staging root that are reserved by this call; for many replicas all names in it.
        taken: the paths of the replicas of this call: a replica that is given twice would get two records.
        files: number of files of records that were made, or tried, so far.
        partly: where there is no room for more names, part of a batch may be staged without the rest.
    """

    def __init__(
        self,
        log_dir: LogDir,
        placement: Placement,
        fallback: FallbackRecords,
        now_ms: int,
        opened: ExitStack,
        *,
        many: bool = False,
        partly: bool = False,
    ) -> None:
        """Open or make the staging root; everything that is opened here is closed with ``opened``.

        For many replicas the names in the staging root are listed once. Nobody else takes a name meanwhile: the log dir
        is locked, and a rename onto a staged directory, which is never empty, fails.
        """
        self.log_dir, self.placement, self.fallback, self.now_ms = log_dir, placement, fallback, now_ms
        self._opened = opened
        self.root = opened.enter_context(self._staging_root())
        self.parents: dict[str, Directory] = {}
        self._listed = many
        self.promised: set[str] = set(os.listdir(self.root.descriptor)) if many else set()
        self.taken: set[str] = set()
        self.files, self.partly = 0, partly

    def _staging_root(self) -> Directory:
        """Open the staging root; where there is no room for a new directory, replicas are staged in place."""
        try:
            root = open_staging_root(self.log_dir, self.placement, make=True)
        except OSError as error:
            if self.placement is not Placement.SIBLING or error.errno not in NO_SPACE:
                raise
            self.placement = Placement.IN_PLACE
            root = open_staging_root(self.log_dir, self.placement)
        assert root is not None, "a staging root that is made is there"
        return root

    def parent(self, folder: str) -> Directory:
        """Open a directory that holds replicas, by its path below the log dir; empty for the log dir itself."""
        if folder not in self.parents:
            self.parents[folder] = self._opened.enter_context(self.log_dir.root.below(folder))
        return self.parents[folder]

    def free_name(self, partition: TopicPartition, topic_id: TopicId) -> str:
        """Reserve a free name in the staging root."""
        root = None if self._listed else self.root
        name = free_name(root, self.placement, partition, topic_id, self.promised, disk=self.log_dir.disk)
        self.promised.add(name)
        return name

    def give_back(self, move: StagingMove) -> None:
        """Release the name and the path of a replica that takes the slow path."""
        self.promised.discard(move.name)
        self.taken.discard(move.candidate.path)

    def next_number(self) -> int:
        """Give the number of the next file of records."""
        self.files += 1
        return self.files - 1

    def forget_files(self) -> None:
        """Make the removal of the files of records durable: a file that came back could name a later replica.

        Raises:
            OSError: the disk fails.
        """
        try:
            self.log_dir.disk.sync(self.root.descriptor)
        except OSError as error:
            if error.errno in DISK_FAILURES:
                raise
            self.log_dir.leave_unclean = True

    def sync(self) -> None:
        """Make all renames so far durable: sync the staging root, and every directory that lost a replica."""
        sync_all(self.log_dir.disk, [self.root, *self.parents.values()])

    def record(self, candidate: Candidate, kept: Mapping[str, int]) -> StagedRecord:
        """Make the record of a replica, with offsets from its checkpoints, else from ``kept``."""
        return StagedRecord(
            topic=candidate.partition.topic,
            partition=candidate.partition.partition,
            topic_id=candidate.topic_id or TopicId.ZERO,
            path=candidate.path,
            verdict=candidate.verdict,
            evidence=candidate.evidence[:_LONGEST_EVIDENCE],
            staged_ms=self.now_ms,
            due_ms=self.now_ms + candidate.delay_ms,
            checkpoints={**kept, **self.log_dir.checkpoints.offsets(candidate.partition)},
        )


@dataclass(slots=True)
class StagingMove:
    """A candidate on its way into the staging root."""

    candidate: Candidate
    record: StagedRecord
    parent: Directory
    former: str
    """Name in its parent while it is live."""
    inode: int
    """0: not yet known."""
    name: str
    """Name in the staging root."""
    inside: bool = False
    """The record is in the partition dir."""
    renamed: bool = False
