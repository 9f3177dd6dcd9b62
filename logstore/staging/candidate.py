"""A replica that is to be staged, its check just before that, and the outcome."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field

from layout import partition_metadata
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore.arguments import check_fields
from logstore.errors import InvalidArgumentError
from logstore.fs import READ_FLAGS, Directory
from logstore.scan import read_metadata_file
from logstore.staging.listing import Staged
from logstore.tunables import FIRST_READ_BYTES


@dataclass(frozen=True, slots=True)
class Candidate:
    """A live replica that is to be staged, and what is known of it; ``revalidate`` checks that just before.

    Attributes:
        path: of the partition dir below its log dir.
        partition: by the topic's full name.
        topic_id: from its ``partition.metadata``; None: that holds no readable ID.
        verdict: of the comparison, for which it is staged.
        evidence: the sentence that explains the verdict.
        delay_ms: how long a purge must leave it alone.
        inode: of the partition dir when it was seen; None: not known.

    Raises:
        InvalidArgumentError: a value is of another type. What no record can hold, ``stage`` refuses.
    """

    path: str
    partition: TopicPartition
    topic_id: TopicId | None
    verdict: str
    evidence: str
    delay_ms: int
    inode: int | None = None

    def __post_init__(self) -> None:
        # A broker stages 100,000 replicas at once: the annotations are asked only where something is wrong.
        if not (
            isinstance(self.path, str)
            and isinstance(self.partition, TopicPartition)
            and (self.topic_id is None or isinstance(self.topic_id, TopicId))
            and isinstance(self.verdict, str)
            and isinstance(self.evidence, str)
            and type(self.delay_ms) is int
            and (self.inode is None or type(self.inode) is int)
        ):
            check_fields(self, InvalidArgumentError)


@dataclass(frozen=True, slots=True)
class Refused:
    """A candidate that was left where it is, and the reason, one sentence."""

    candidate: Candidate
    reason: str


@dataclass(slots=True)
class StagingOutcome:
    """The result for the candidates of one call."""

    staged: list[Staged] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)


def unchanged_inode(candidate: Candidate, parent: Directory, name: str) -> int | None:
    """Give the inode of a candidate that is surely as it was seen; None: only :func:`revalidate` can say.

    The directory is not opened, so it may be swapped meanwhile. The caller compares the inode again after the rename.

    Args:
        candidate: as the caller saw it.
        parent: the open directory that holds it.
        name: of its directory there.
    """
    if candidate.topic_id is None:
        return None
    try:
        status = os.stat(name, dir_fd=parent.descriptor, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode) or status.st_dev != parent.device:
            return None
        file = os.open(f"{name}/{partition_metadata.FILE_NAME}", READ_FLAGS, dir_fd=parent.descriptor)
        try:
            data = os.read(file, FIRST_READ_BYTES)
        finally:
            os.close(file)
    except OSError:
        return None
    is_same = candidate.inode is None or candidate.inode == status.st_ino
    return status.st_ino if is_same and data == _metadata_like(data, candidate.partition, candidate.topic_id) else None


def _metadata_like(data: bytes, partition: TopicPartition, topic_id: TopicId) -> bytes:
    """Write ``partition.metadata`` in the form that some bytes begin as, JSON or the shipped one."""
    if data.startswith(b"{"):
        return partition_metadata.encode_json(topic_id, partition.topic, partition.partition)
    return partition_metadata.encode(topic_id)


def revalidate(candidate: Candidate, directory: Directory) -> str | None:
    """Compare a directory with the candidate, and give the first difference as a clause; None: there is none.

    Args:
        candidate: as the caller saw it.
        directory: open, at the candidate's path.
    """
    if candidate.inode is not None and candidate.inode != directory.key[1]:
        return f"its inode is {directory.key[1]} and was {candidate.inode}, so it is another directory"
    found = read_metadata_file(directory=directory.descriptor).topic_id
    if found != candidate.topic_id:
        return f"its topic ID is {found or 'not readable'}, and {candidate.topic_id or 'none'} was expected"
    return None
