"""A replica's records, in its own directory; a crash may lose what was appended and not flushed.

They lie in one segment, ``00000000000000000000.log``, and in memory, from where they are read. When the first records
are deleted, the others are written to a new segment that is named after its first offset, as all of Kafka's are, and
the old one is removed once the new one is durable: of two segments, the older one has all. Every change goes through
the log dir's own :class:`~logstore.fs.Disk`, below the replica's directory. The directory is opened anew for each
change, so that a replica that was staged meanwhile is never written to. As in Kafka, appending syncs nothing;
:meth:`ReplicaLog.flush` does, and moves the recovery point. Source: FACTS §1.9, §2.4.

Each record is a line of text::

    5d0c3a2e 0 1 1700000000000 UXyU9i5ARn6W00ON2taeWA order 17
    checksum, offset, leader epoch, timestamp or -1, topic ID or -, value

The checksum is a CRC-32 of the rest of the line; it shows which lines a crash tore. The topic ID tells a record of a
deleted topic from a record of a topic that was made again under its name.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate

from layout.checkpoint import HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.segment_name import FileKind, segment_file_name
from layout.segment_name import parse as parse_segment_name
from logstore.fs import Directory, Disk
from logstore.log_dir import LogDir
from logstore.store import Replica
from reconciler.simulator.kernel import Record

SEGMENT_FILE = segment_file_name(0, FileKind.LOG)
"""The only segment of a replica of which no record was deleted."""

_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class ReplicaLog:
    """The records of one live replica.

    Attributes:
        replica: the store's entry when the log was opened.
        start: the first offset that was not deleted.
        epochs: leader epochs and the offsets at which they began.
        recovery_point: the first offset that may not be on the disk yet.
        checkpointed: the high watermark that the log dir's checkpoint holds, or 0.
        torn: how many bytes at the end were no whole record, after a crash; they are cut off.
    """

    def __init__(self, log_dir: LogDir, replica: Replica) -> None:
        """Read the records, and cut off what a crash tore.

        Raises:
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        self.replica = replica
        self._log_dir = log_dir
        self._cut = False  # whether a cut was made that may not be durable yet
        self._entry_synced = False  # whether the segment's directory entry is known to be durable
        with log_dir.changing(f"the records of {replica.partition} cannot be read"), self._directory() as directory:
            self.start, *left = _base_offsets(directory.plain_files()) or [0]
            for base in left:
                log_dir.disk.unlink(directory.descriptor, segment_file_name(base, FileKind.LOG))
            data = _read_segment(directory, self._segment_name)
            self._records, self._ends = decode_records(data, self.start)
            self.torn = len(data) - self._size
            if self.torn:
                with self._segment(directory) as descriptor:
                    log_dir.disk.truncate(descriptor, self._size)
                    log_dir.disk.sync(descriptor)
        self.epochs = EpochStarts(self._records)
        offsets = log_dir.checkpoints.offsets(replica.partition)
        self.recovery_point = max(self.start, min(self.end, offsets.get(RECOVERY_POINT_CHECKPOINT, 0)))
        self.checkpointed = max(self.start, min(self.end, offsets.get(HIGH_WATERMARK_CHECKPOINT, 0)))

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.start + len(self._records)

    @property
    def log_dir(self) -> str:
        """The path of its log dir."""
        return self._log_dir.path

    def read(self, start: int, end: int) -> tuple[Record, ...]:
        """The records from one offset up to another, without the latter, as far as they were not deleted."""
        return tuple(self._records[max(0, start - self.start) : max(0, end - self.start)])

    def append(self, records: Sequence[Record]) -> None:
        """Append records: all or none of them, unless a crash interrupts it.

        Raises:
            ValueError: their offsets do not continue the log.
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        if [record.offset for record in records] != list(range(self.end, self.end + len(records))):
            raise ValueError(f"{self.replica.partition} ends at {self.end}: records are appended there, one by one")
        lines = [encode_record(record) for record in records]
        with self._changing("appended to") as (directory, disk), self._segment(directory) as descriptor:
            os.lseek(descriptor, self._size, os.SEEK_SET)
            try:
                disk.write(descriptor, b"".join(lines))
            except OSError:
                # Cut off the bytes that were written; if that fails too, the checksums show that they are torn.
                with suppress(OSError):
                    disk.truncate(descriptor, self._size)
                raise
        for record, line in zip(records, lines, strict=True):
            self._ends.append(self._size + len(line))
            self._records.append(record)
            self.epochs.assign(record.leader_epoch, record.offset)

    def truncate(self, end: int) -> bool:
        """Cut off the records from an offset on, and return whether there were any.

        Raises:
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        if end >= self.end:
            return False
        if end < self.start:
            self.restart(end)
            return True
        kept = end - self.start
        length = self._ends[kept - 1] if kept > 0 else 0
        with self._changing("truncated") as (directory, disk), self._segment(directory) as descriptor:
            disk.truncate(descriptor, length)
        del self._records[kept:], self._ends[kept:]
        self.epochs.cut(end)
        # Durable records may have been cut off; the next flush makes the cut itself durable.
        self.recovery_point = min(self.recovery_point, end)
        self._cut = True
        return True

    def delete_before(self, start: int) -> bool:
        """Delete the records before an offset, and return whether there were any.

        Raises:
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        if not self.start < start <= self.end:
            return False
        self._replace(start, self._records[start - self.start :])
        self.epochs.delete_before(start)
        return True

    def restart(self, start: int) -> None:
        """Drop all records, and begin anew at an offset, because the leader has no records before it or after it.

        Raises:
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        self._replace(start, [])
        self.epochs.cut(0)

    def older_than(self, time_ms: int, end: int) -> int:
        """The offset after the records at the beginning, up to an offset, that are from before a time."""
        found = self.start
        for record in self.read(self.start, end):
            if not 0 <= record.timestamp_ms < time_ms:
                break
            found = record.offset + 1
        return found

    def flush(self) -> bool:
        """Make all records durable, and return whether there was anything to do.

        Raises:
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        if not self._cut and self.recovery_point == self.end:
            return False
        with self._changing("flushed") as (directory, disk), self._segment(directory) as descriptor:
            disk.sync(descriptor)
            if not self._entry_synced:
                disk.sync(directory.descriptor)
        self.recovery_point, self._cut, self._entry_synced = self.end, False, True
        return True

    def _replace(self, start: int, records: Sequence[Record]) -> None:
        """Write records to a segment of another name, durably, and remove the present one."""
        lines, old = [encode_record(record) for record in records], self._segment_name
        new = segment_file_name(start, FileKind.LOG)
        with self._changing("shortened at its beginning") as (directory, disk):
            if new != old:
                _write_new(disk, directory, new, b"".join(lines))
                with suppress(FileNotFoundError):  # nothing was written to it yet
                    disk.unlink(directory.descriptor, old)
                disk.sync(directory.descriptor)
            else:
                with self._segment(directory) as descriptor:
                    disk.truncate(descriptor, 0)
                    disk.sync(descriptor)
        self.start, self._records = start, list(records)
        self._ends = list(accumulate(map(len, lines)))
        self.recovery_point, self._cut, self._entry_synced = self.end, False, True

    @property
    def _segment_name(self) -> str:
        return segment_file_name(self.start, FileKind.LOG)

    @property
    def _size(self) -> int:
        return self._ends[-1] if self._ends else 0

    @contextmanager
    def _changing(self, what: str) -> Iterator[tuple[Directory, Disk]]:
        with self._log_dir.changing(f"{self.replica.partition} cannot be {what}"), self._directory() as directory:
            yield directory, self._log_dir.disk

    def _directory(self) -> Directory:
        return self._log_dir.root.below(self.replica.path)

    @contextmanager
    def _segment(self, directory: Directory) -> Iterator[int]:
        """The segment, opened for writing; created if there is none."""
        disk = self._log_dir.disk
        try:
            descriptor = disk.open_to_change(directory.descriptor, self._segment_name)
        except FileNotFoundError:
            descriptor = disk.create(directory.descriptor, self._segment_name)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _write_new(disk: Disk, directory: Directory, name: str, data: bytes) -> None:
    """Write a new file durably; where that fails, as on a full disk, it goes again."""
    descriptor = disk.create(directory.descriptor, name)
    try:
        disk.write(descriptor, data)
        disk.sync(descriptor)
        disk.sync(directory.descriptor)
    except OSError:
        with suppress(OSError):
            disk.unlink(directory.descriptor, name)
        raise
    finally:
        os.close(descriptor)


def records_in(path: str) -> list[Record]:
    """Read the records of a replica from its directory, as the broker would at its next start; none if there are none.

    Raises:
        OSError: the directory or its segment cannot be read.
    """
    for base in _base_offsets(os.listdir(path))[:1]:
        with open(f"{path}/{segment_file_name(base, FileKind.LOG)}", "rb") as file:
            return decode_records(file.read(), base)[0]
    return []


def _base_offsets(names: Iterable[str]) -> list[int]:
    """The first offsets of the segments among some files, sorted."""
    found = (parse_segment_name(name) for name in names)
    plain = (each for each in found if each.kind is FileKind.LOG and each.transient is None)
    return sorted(each.offset for each in plain if each.offset is not None)


def _read_segment(directory: Directory, name: str) -> bytes:
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=directory.descriptor)
    except FileNotFoundError:
        return b""
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


_NO_ID = "-"


def encode_record(record: Record) -> bytes:
    """Encode a record as a line.

    Raises:
        ValueError: the value holds a line break, which would end the record too early.
    """
    if "\n" in record.value:
        raise ValueError(f"{record.value!r:.60} holds a line break, and a record is one line: leave it out")
    topic_id = _NO_ID if record.topic_id is None else str(record.topic_id)
    text = f"{record.offset} {record.leader_epoch} {record.timestamp_ms} {topic_id} {record.value}".encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


def decode_records(data: bytes, start: int = 0) -> tuple[list[Record], list[int]]:
    """Read a segment's records from its first offset on, as far as they are whole and their offsets continue.

    Returns:
        The records, and for each the position after its line; the bytes after the last one are torn.
    """
    records: list[Record] = []
    ends: list[int] = []
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        record = _decode_line(data[position:end])
        if record is None or record.offset != start + len(records):
            break
        position = end + 1
        records.append(record)
        ends.append(position)
    return records, ends


def _decode_line(line: bytes) -> Record | None:
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    try:
        offset, epoch, timestamp_ms, topic_id, value = text.decode().split(" ", 4)
        parsed = None if topic_id == _NO_ID else TopicId.parse(topic_id)
        return Record(int(offset), int(epoch), parsed, value, int(timestamp_ms))
    except (ValueError, LayoutError):
        return None


UNDEFINED = -1
"""No epoch, and the offset that goes with it."""


class EpochStarts:
    """Which leader epoch began at which offset of a log; by it a follower finds where its log left its leader's.

    Kafka keeps it in ``leader-epoch-checkpoint``; here it is in memory, and is made again from the records. A leader
    also notes an epoch in which it has not written yet. Source: FACTS §2.5; KIP-101 and KIP-279, which amends it.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        """Find the epochs of a log's records."""
        self._starts: list[tuple[int, int]] = []
        for record in records:
            self.assign(record.leader_epoch, record.offset)

    @property
    def last(self) -> int:
        """The newest epoch; -1: there is no epoch."""
        return self._starts[-1][0] if self._starts else UNDEFINED

    @property
    def last_start(self) -> int:
        """The first offset of the newest epoch; -1: there is no epoch."""
        return self._starts[-1][1] if self._starts else UNDEFINED

    def assign(self, epoch: int, start: int) -> None:
        """Note that an epoch begins at an offset, unless this epoch or a newer one is known."""
        if epoch > self.last:
            # An epoch without records is replaced by the epoch that begins at the same offset.
            while self._starts and self._starts[-1][1] >= start:
                self._starts.pop()
            self._starts.append((epoch, start))

    def delete_before(self, start: int) -> None:
        """Forget the epochs whose records were all deleted; the oldest one left begins where the log begins now."""
        while len(self._starts) > 1 and self._starts[1][1] <= start:
            self._starts.pop(0)
        if self._starts and self._starts[0][1] < start:
            self._starts[0] = (self._starts[0][0], start)

    def cut(self, end: int) -> None:
        """Forget the epochs that began at an offset or after it."""
        while self._starts and self._starts[-1][1] >= end:
            self._starts.pop()

    def end_of(self, epoch: int, log_end: int) -> tuple[int, int]:
        """Find the greatest epoch up to the given one, and the offset after its last record, in a log with this end.

        Returns:
            (-1, -1) if the epoch is newer than every known one, or none is known; the epoch itself with the start of
            the first known one if all of them are newer.
        """
        if not self._starts or epoch > self.last or epoch < 0:
            return UNDEFINED, UNDEFINED
        found, end = epoch, log_end
        for each, start in reversed(self._starts):
            if each <= epoch:
                return each, end
            end = start
        return found, end
