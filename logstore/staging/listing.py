"""Lists what lies staged in a log dir: every staged directory with its record, or with the reason why it has none.

Three places are searched: the staging directory of a log dir that is ours, the sibling of a real broker's log dir, and
the ``-stray`` directories in the log dir itself. A stray with a record was staged in place; without one, a broker left
it. One ledger says it of all directories of a place, so none of them is opened. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from operator import attrgetter
from typing import Final, NamedTuple

from layout.directory_name import (
    MAX_DIRECTORY_NAME,
    DirectoryKind,
    DirectoryName,
    parse,
    parse_staged,
)
from layout.ids import TopicId
from layout.ours import StagedRecord
from layout.topic import TopicPartition
from logstore.errors import DamagedRecordError, FailedReadError, LogStoreError
from logstore.fs import Directory
from logstore.log_dir import FallbackRecords, LogDir, LogDirView
from logstore.parallel import paused_gc
from logstore.staging.placement import Placement, name_below_log_dir, staging_roots
from logstore.staging.records import topic_id_in
from logstore.staging.root_ledger import RootLedger

BROKERS_STRAY: Final = "no record here says when it may go: a broker left it, or its record lies elsewhere"
"""The problem of a stray without a record."""


class Staged(NamedTuple):
    """A directory that waits to be purged or restored.

    Attributes:
        log_dir: path of its log dir.
        placement: where it is staged.
        name: of the directory, within its staging root.
        location: its name in a scan: the path below the log dir, with ``../`` for a sibling.
        record: None: it has no valid record.
        problem: why it has no record, one sentence; None where it has one.
        inode: of the directory, so that a swap is noticed.
        found_topic_id: from ``partition.metadata``, where there is no record; None: that has none.
        found_partition: from the name, where there is no record; None: that says nothing, or may be cut.
        unread: whether the system refused to read a file of it, so that what it is may not be known.
        may_be_partly_purged: a purge may have begun to empty it, so that it can only be purged.
        in_doubt: a line of the ledger is damaged that may have said that a purge has begun.
    """

    log_dir: str
    placement: Placement
    name: str
    location: str
    record: StagedRecord | None
    problem: str | None
    inode: int
    found_topic_id: TopicId | None = None
    found_partition: TopicPartition | None = None
    unread: bool = False
    may_be_partly_purged: bool = False
    in_doubt: bool = False

    @property
    def topic_id(self) -> TopicId | None:
        """From the record, else from ``partition.metadata``; None: neither has one. The zero ID: it had none."""
        return self.found_topic_id if self.record is None else self.record.topic_id

    @property
    def partition(self) -> TopicPartition | None:
        """From the record, else from the name; None: no record, and the name says nothing or may be cut."""
        record = self.record
        return self.found_partition if record is None else TopicPartition(record.topic, record.partition)

    @property
    def topic(self) -> str | None:
        """Full name of its topic; None: as of :attr:`partition`."""
        return None if self.partition is None else self.partition.topic

    @property
    def due_ms(self) -> int | None:
        """When a purge may delete it, in ms since 1970; None: never, for it has no record."""
        return None if self.record is None else self.record.due_ms

    def is_due(self, now_ms: int) -> bool:
        """Whether a purge may delete it: it is due, or one has begun to; never without a record."""
        return self.record is not None and (self.may_be_partly_purged or self.record.is_due(now_ms))


def list_staged(log_dir: LogDir, fallback: FallbackRecords | None = None) -> list[Staged]:
    """List everything staged in a log dir, and every stray that a broker left, sorted by location.

    Raises:
        OfflineLogDirError: the log dir is offline, or fails now.
    """
    log_dir.check_online()
    try:
        return find_staged(log_dir, fallback)
    except OSError as error:
        raise log_dir.failed("what is staged cannot be listed", error) from error


def find_staged(log_dir: LogDirView, fallback: FallbackRecords | None = None) -> list[Staged]:
    """List the same for a log dir that is only read: no lock is needed, so a broker may run on it.

    Raises:
        OSError: from the system.
    """
    with paused_gc():
        return sorted(_find_all(log_dir, fallback or FallbackRecords(None)), key=attrgetter("location"))


def _find_all(log_dir: LogDirView, fallback: FallbackRecords) -> list[Staged]:
    found: list[Staged] = []
    with closing(staging_roots(log_dir)) as roots:
        for placement, root in roots:
            inodes = root.directory_inodes()
            if not inodes:
                continue
            # Read after the names: the line of a directory is there before the directory is.
            ledger = RootLedger(log_dir, root, fallback)
            path, prefix = log_dir.path, name_below_log_dir(log_dir, placement, "-")[:-1]
            others = []
            for name, inode in inodes:
                record = ledger.regular_record(name)
                if record is None:
                    others.append((name, inode))
                else:
                    found.append(Staged(path, placement, name, prefix + name, record, None, inode))
            found += [
                read_staged(log_dir, placement, root, ledger, each)
                for each in _staged_names(others, placement)
                if ledger.is_whole(each[0].text) or root.holds(each[0].text)
            ]
    return found


def staged_names(root: Directory, placement: Placement) -> list[tuple[DirectoryName, int]]:
    """List the names in a staging root that staged directories have, each with its inode, in the order of inodes."""
    return _staged_names(root.directory_inodes(), placement)


def _staged_names(inodes: Iterable[tuple[str, int]], placement: Placement) -> list[tuple[DirectoryName, int]]:
    read = parse if placement is Placement.IN_PLACE else parse_staged
    names = ((read(name), inode) for name, inode in inodes)
    return [each for each in names if each[0].kind in (DirectoryKind.STAGED, DirectoryKind.STRAY)]


def read_staged(
    log_dir: LogDirView, placement: Placement, root: Directory, ledger: RootLedger, entry: tuple[DirectoryName, int]
) -> Staged:
    """Describe one staged directory by the ledger; it is opened only where that has no record of it.

    Args:
        log_dir: that it comes from.
        placement: of the staging root.
        root: the staging root.
        ledger: what is said of its directories.
        entry: name and inode.
    """
    name, inode = entry
    place = (log_dir.path, placement, name.text, name_below_log_dir(log_dir, placement, name.text))
    said = ledger.entry_of(name.text)
    begun, in_doubt = (False, False) if said is None else (said.may_be_partly_purged, said.in_doubt)
    topic_id, problem, unread = None, BROKERS_STRAY, False
    try:
        record = ledger.record_of(name)
    except DamagedRecordError as error:
        record, problem, unread = None, str(error), isinstance(error.__cause__, FailedReadError)
    if record is not None:
        return Staged(*place, record, None, inode, None, None, False, begun, in_doubt)
    try:
        with root.child(name.text) as directory:
            topic_id = topic_id_in(directory)
    except FileNotFoundError:
        pass
    except FailedReadError:
        unread = True
    except (OSError, LogStoreError) as error:
        inode, problem = 0, str(error)
    return Staged(*place, None, problem, inode, topic_id, _partition_of(name), unread, begun, in_doubt)


def damaged_lines(log_dir: LogDirView, fallback: FallbackRecords | None = None) -> list[str]:
    """Say which lines of a log dir's ledgers cannot be read any more, a sentence for each.

    Raises:
        OSError: from the system.
    """
    with closing(staging_roots(log_dir)) as roots:
        found = [RootLedger(log_dir, root, fallback or FallbackRecords(None)).damaged for _, root in roots]
    return sorted({sentence for each in found for sentence in each})


def _partition_of(name: DirectoryName) -> TopicPartition | None:
    """The partition in a stray's name; None for other names, and for a name that may be cut (FACTS §1.2)."""
    if name.topic is None or name.partition is None or len(name.text) >= MAX_DIRECTORY_NAME:
        return None
    return TopicPartition(name.topic, name.partition)
