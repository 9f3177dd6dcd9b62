"""The four offset checkpoints of a log dir: read for a scan, and kept up to date with the replicas (FACTS §2.4).

A checkpoint that is missing or has 0 bytes is normal. A damaged one is reported with its effect on a broker, and counts
as empty. It is left exactly as it is, for ``repair``: its entries of other replicas are not ours to drop.

A running broker rewrites the files every 5 or 60 s, and meanwhile they name replicas that are gone. So while the log
dir's lock is held, no entry is reported as an orphan.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from layout import checkpoint
from layout.errors import BrokerEffect, DamagedFileError
from layout.topic import TopicPartition
from logstore.errors import ChangeRefusedError, UnreadableFileError
from logstore.fs import Directory, Disk, read_small_file, replace_file, when_refused
from logstore.log_dir.lock import find_lock_holder
from logstore.rows import Kind, MetadataState, Row, plain_row

CHECKPOINT_LIMIT = 1 << 27
"""Bytes: 300,000 entries with topics of the longest name take 80 MB."""


@dataclass(slots=True)
class OffsetCheckpoints:
    """The content of the four files, as a scan sees it."""

    entries: dict[str, dict[tuple[str, int], int]] = field(default_factory=dict)
    """File → (topic, partition) → offset; only files that hold entries."""
    damaged: list[Row] = field(default_factory=list)
    """A row for each file that cannot be used."""
    in_use: bool = False
    """Whether the log dir's lock was held, so that the entries may be out of date."""

    @property
    def recovery_points(self) -> dict[tuple[str, int], int]:
        """(topic, partition) → recovery point, a lower bound of the log end offset."""
        return self.entries.get(checkpoint.RECOVERY_POINT_CHECKPOINT, {})

    def orphans(self, held: Container[tuple[str, int]]) -> Iterator[Row]:
        """Yield a row for each entry without a replica, file by file; none while the log dir is in use.

        ``held``: the (topic, partition) of each replica in the log dir.
        """
        if self.in_use:
            return
        for file, entries in self.entries.items():
            for (topic, partition), offset in entries.items():
                if (topic, partition) not in held:
                    problem = f"{file} names a partition that has no directory here"
                    yield plain_row(
                        file,
                        Kind.CHECKPOINT_ENTRY,
                        topic=topic,
                        partition=partition,
                        problem=problem,
                        end_offset=offset,
                    )


def read_offset_checkpoints(log_dir: str) -> OffsetCheckpoints:
    """Read the four files of a log dir, and look whether it is in use. Never raises."""
    # The lock is checked first: the files of a broker that stops in between are right.
    in_use = find_lock_holder(log_dir, search=False) is not None
    found = _read_files(log_dir)
    found.in_use = in_use
    return found


def _read_files(log_dir: str) -> OffsetCheckpoints:
    """Read the four files of a log dir. Never raises."""
    found = OffsetCheckpoints()
    for file in checkpoint.OFFSET_CHECKPOINTS:
        try:
            data = read_small_file(f"{log_dir}/{file}", CHECKPOINT_LIMIT)
            entries = checkpoint.parse_offsets(data, file) if data else {}
        except UnreadableFileError as error:
            problem = when_refused(f"{file} {error}")
            found.damaged.append(_damaged_row(file, MetadataState.UNREADABLE, problem))
        except DamagedFileError as error:
            forgiven = error.effect is BrokerEffect.NONE
            effect = checkpoint.AFTER_A_BAD_NUMBER[file] if forgiven else str(error.effect)
            found.damaged.append(_damaged_row(file, MetadataState.MALFORMED, f"{error}; {effect}"))
        else:
            if entries:
                found.entries[file] = entries
    return found


def _damaged_row(file: str, state: MetadataState, problem: str) -> Row:
    return plain_row(file, Kind.CHECKPOINT_ENTRY, metadata_state=state, problem=problem)


Offsets: TypeAlias = Mapping[str, int]
"""Checkpoint file → the offset that it holds for one partition."""


class CheckpointFiles:
    """The four files of an open log dir, kept in memory and written back whole. Not thread-safe.

    A file is written, as a broker writes it, only when its entries changed. A damaged file is never written.
    """

    def __init__(self, root: Directory) -> None:
        """Read the files. A missing one is empty."""
        found = _read_files(root.path)  # whoever opens a log dir holds its lock, and need not look for the holder
        self._root = root
        self._entries = {file: found.entries.get(file, {}) for file in checkpoint.OFFSET_CHECKPOINTS}
        self.damaged = frozenset(str(row[0]) for row in found.damaged)
        """Files that do not parse, and are left alone."""
        self._changed: set[str] = set()

    def offsets(self, partition: TopicPartition) -> dict[str, int]:
        """Give the offsets of one partition: file → offset."""
        key = (partition.topic, partition.partition)
        return {file: entries[key] for file, entries in self._entries.items() if entries and key in entries}

    def entries(self, file: str) -> Mapping[tuple[str, int], int]:
        """Give all entries of one file: (topic, partition) → offset."""
        return self._entries[file]

    def take_out(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the entries of partitions, in memory until :meth:`write`."""
        filled = [(file, entries) for file, entries in self._entries.items() if entries]
        for partition in partitions if filled else ():
            for file, entries in filled:
                if entries.pop((partition.topic, partition.partition), None) is not None:
                    self._changed.add(file)

    def give_back(self, partition: TopicPartition, offsets: Offsets) -> None:
        """Enter offsets for a partition, except where a file has a newer one already.

        Nothing is entered for a topic that no checkpoint can hold: it was never there, whatever a record says.
        """
        key = (partition.topic, partition.partition)
        if not _can_be_entered(partition, offsets):
            return
        for file, offset in offsets.items():
            if key not in self._entries[file]:
                self._entries[file][key] = offset
                self._changed.add(file)

    def update(self, file: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Enter offsets in one file, over older ones, as a broker does periodically.

        Raises:
            ChangeRefusedError: the file is unknown, or damaged and left for ``repair``; a checkpoint cannot hold a
                topic; or an offset has more than 64 bits. Nothing was entered.
        """
        if file not in self._entries or file in self.damaged:
            why = "is damaged: repair it first" if file in self.damaged else "is no offset checkpoint"
            raise ChangeRefusedError(f"{file!r:.60} in {self._root.path} {why}")
        for at, offset in offsets.items():
            if not _can_be_entered(at, {file: offset}):
                raise ChangeRefusedError(f"{str(at)!r:.60} with offset {offset!r:.30} cannot stand in {file}")
        self._entries[file].update({(at.topic, at.partition): offset for at, offset in offsets.items()})
        self._changed.add(file)

    def rename(self, topics: Mapping[str, str]) -> None:
        """Rename topics: old full name → new full name. The order of entries stays."""
        for file, entries in self._entries.items():
            if any(topic in topics for topic, _ in entries):
                renamed = {(topics.get(topic, topic), number): offset for (topic, number), offset in entries.items()}
                self._entries[file] = renamed
                self._changed.add(file)

    @property
    def behind(self) -> bool:
        """Whether some changes are not on disk yet."""
        return bool(self._changed - self.damaged)

    def write(self, disk: Disk) -> None:
        """Write the changed files, each one whole and durable.

        Raises:
            OSError: of the first file that cannot be written; it and the following files stay marked as changed.
        """
        for file in sorted(self._changed):
            if file not in self.damaged:
                replace_file(disk, self._root, file, checkpoint.encode_offsets(self._entries[file]))
            self._changed.discard(file)


def _can_be_entered(partition: TopicPartition, offsets: Offsets) -> bool:
    """Say whether a reader could parse an entry: no white space, valid UTF-8, offsets of 64 bits."""
    topic = partition.topic
    if not topic or any(character.isspace() for character in topic) or not topic.isprintable():
        return False
    return all(-(1 << 63) <= offset < 1 << 63 for offset in offsets.values())
