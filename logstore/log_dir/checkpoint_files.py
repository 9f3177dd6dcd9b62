"""The four offset checkpoints of a log dir, kept in step with its replicas (FACTS §2.4).

They are held in memory while the log dir is open and written back whole, as a broker writes them, and only those that
changed. A file that does not parse is left exactly as it is, for ``repair``: what it says of other replicas is not ours
to drop. Thread safety is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from layout import checkpoint
from layout.topic import TopicPartition
from logstore.errors import ChangeRefusedError
from logstore.fs import Directory, Disk, replace_file
from logstore.log_dir.offset_checkpoints import read_offset_checkpoints

Offsets: TypeAlias = Mapping[str, int]
"""Checkpoint file → the offset that it holds for one partition."""


class CheckpointFiles:
    """What the files of one log dir say, and which of them must be written again."""

    def __init__(self, root: Directory) -> None:
        """Read the files. A missing one is empty."""
        found = read_offset_checkpoints(root.path)
        self._root = root
        self._entries = {file: found.entries.get(file, {}) for file in checkpoint.OFFSET_CHECKPOINTS}
        self.damaged = frozenset(str(row[0]) for row in found.damaged)
        """Files that are left alone."""
        self._changed: set[str] = set()

    def offsets(self, partition: TopicPartition) -> dict[str, int]:
        """What the files hold for one partition."""
        key = (partition.topic, partition.partition)
        return {file: entries[key] for file, entries in self._entries.items() if key in entries}

    def entries(self, file: str) -> Mapping[tuple[str, int], int]:
        """All entries of one file: (topic, partition) → offset."""
        return self._entries[file]

    def take_out(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the entries of partitions; :meth:`write` makes it so on disk."""
        for partition in partitions:
            for file, entries in self._entries.items():
                if entries.pop((partition.topic, partition.partition), None) is not None:
                    self._changed.add(file)

    def give_back(self, partition: TopicPartition, offsets: Offsets) -> None:
        """Enter offsets for a partition, except where a file has one already, which then is the newer one.

        A topic that cannot stand in a checkpoint never stood there, whatever a record says; nothing is entered for it.
        """
        key = (partition.topic, partition.partition)
        if not _can_stand(partition, offsets):
            return
        for file, offset in offsets.items():
            if key not in self._entries[file]:
                self._entries[file][key] = offset
                self._changed.add(file)

    def update(self, file: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Enter offsets in one file, over whatever was there: what a broker does with its periodic checkpoints.

        Raises:
            ChangeRefusedError: no such file, or one that is damaged and left for ``repair``; a topic that cannot stand
                in it, or an offset beyond 64 bits. Nothing was entered.
        """
        if file not in self._entries or file in self.damaged:
            why = "is damaged: repair it first" if file in self.damaged else "is no offset checkpoint"
            raise ChangeRefusedError(f"{file!r:.60} in {self._root.path} {why}")
        for at, offset in offsets.items():
            if not _can_stand(at, {file: offset}):
                raise ChangeRefusedError(f"{str(at)!r:.60} with offset {offset!r:.30} cannot stand in {file}")
        self._entries[file].update({(at.topic, at.partition): offset for at, offset in offsets.items()})
        self._changed.add(file)

    def rename(self, topics: Mapping[str, str]) -> None:
        """Give the entries of some topics another topic name: full name → full name. Their order stays."""
        for file, entries in self._entries.items():
            if any(topic in topics for topic, _ in entries):
                renamed = {(topics.get(topic, topic), number): offset for (topic, number), offset in entries.items()}
                self._entries[file] = renamed
                self._changed.add(file)

    @property
    def behind(self) -> bool:
        """Whether the disk does not yet say what the memory does."""
        return bool(self._changed - self.damaged)

    def write(self, disk: Disk) -> None:
        """Write the files that changed, each one whole and durable.

        Raises:
            OSError: the first that cannot be written; it and those after it are still to be written.
        """
        for file in sorted(self._changed):
            if file not in self.damaged:
                replace_file(disk, self._root, file, checkpoint.encode_offsets(self._entries[file]))
            self._changed.discard(file)


def _can_stand(partition: TopicPartition, offsets: Offsets) -> bool:
    """Whether a reader could take an entry apart again: no white space, real UTF-8, offsets of 64 bits."""
    topic = partition.topic
    if not topic or any(character.isspace() for character in topic) or not topic.isprintable():
        return False
    return all(-(1 << 63) <= offset < 1 << 63 for offset in offsets.values())
