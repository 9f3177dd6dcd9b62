"""A replica's records, in its own directory; a crash may lose what was appended and not flushed.

They lie in one segment, ``00000000000000000000.log``, and in memory, from where they are read. Every change goes
through the log dir's own :class:`~logstore.fs.Disk`, below the replica's directory, which is opened anew for
each, so that a replica that was staged meanwhile is never written to. As in Kafka, nothing is synced on its way to the
disk; :meth:`ReplicaLog.flush` does it now and then, and says how far with the recovery point. Source: FACTS §1.9, §2.4.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from layout.checkpoint import HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from layout.segment_name import FileKind, segment_file_name
from logstore.fs import Directory, Disk
from logstore.log_dir import LogDir
from logstore.store import Replica
from reconciler.simulator.kernel import Record
from reconciler.simulator.machine.epoch_starts import EpochStarts
from reconciler.simulator.machine.record_lines import decode_records, encode_record

SEGMENT_FILE = segment_file_name(0, FileKind.LOG)
"""The only segment of a replica here."""

_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class ReplicaLog:
    """The records of one live replica.

    Attributes:
        replica: as the store had it when the log was opened.
        epochs: leader epochs and where they began.
        recovery_point: the first offset that may not be on the disk yet.
        checkpointed: the high watermark that the log dir's checkpoint holds, or 0.
        torn: how many bytes a crash had left that are no record; they are cut off.
    """

    def __init__(self, log_dir: LogDir, replica: Replica) -> None:
        """Read what is there, and cut off what a crash tore.

        Raises:
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        self.replica = replica
        self._log_dir = log_dir
        self._cut = False  # whether a cut may not be on the disk yet
        self._entry_synced = False  # whether the segment's name is known to be on the disk
        with log_dir.changing(f"the records of {replica.partition} cannot be read"), self._directory() as directory:
            data = _read_segment(directory)
            self._records, self._ends = decode_records(data)
            self.torn = len(data) - self._size
            if self.torn:
                with self._segment(directory) as descriptor:
                    log_dir.disk.truncate(descriptor, self._size)
                    log_dir.disk.sync(descriptor)
        self.epochs = EpochStarts(self._records)
        offsets = log_dir.checkpoints.offsets(replica.partition)
        self.recovery_point = max(0, min(self.end, offsets.get(RECOVERY_POINT_CHECKPOINT, 0)))
        self.checkpointed = max(0, min(self.end, offsets.get(HIGH_WATERMARK_CHECKPOINT, 0)))

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return len(self._records)

    @property
    def log_dir(self) -> str:
        """The path of the log dir it lies in."""
        return self._log_dir.path

    def read(self, start: int, end: int) -> tuple[Record, ...]:
        """The records from one offset up to another one, which is left out."""
        return tuple(self._records[start:end])

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end; none or all of them, unless a crash comes between.

        Raises:
            ValueError: their offsets do not go on where the log ends.
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
                # What was written of it has no place in the log; where this fails too, the checksums tell.
                with suppress(OSError):
                    disk.truncate(descriptor, self._size)
                raise
        for record, line in zip(records, lines, strict=True):
            self._ends.append(self._size + len(line))
            self._records.append(record)
            self.epochs.assign(record.leader_epoch, record.offset)

    def truncate(self, end: int) -> bool:
        """Cut off the records from an offset on; whether there were any.

        Raises:
            OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
        """
        if end >= self.end:
            return False
        length = self._ends[end - 1] if end > 0 else 0
        with self._changing("truncated") as (directory, disk), self._segment(directory) as descriptor:
            disk.truncate(descriptor, length)
        del self._records[end:], self._ends[end:]
        self.epochs.cut(end)
        # What was durable of it was cut off; that the cut itself is on the disk is for the next flush.
        self.recovery_point = min(self.recovery_point, end)
        self._cut = True
        return True

    def flush(self) -> bool:
        """Make all of it durable, up to the end; whether there was anything to do.

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
        """The segment, open to be changed; made where there is none."""
        disk = self._log_dir.disk
        try:
            descriptor = disk.open_to_change(directory.descriptor, SEGMENT_FILE)
        except FileNotFoundError:
            descriptor = disk.create(directory.descriptor, SEGMENT_FILE)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _read_segment(directory: Directory) -> bytes:
    try:
        descriptor = os.open(SEGMENT_FILE, _READ_FLAGS, dir_fd=directory.descriptor)
    except FileNotFoundError:
        return b""
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)
