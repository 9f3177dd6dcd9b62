"""The ledger of one staging folder as a file: it is created with room to spare, appended to, recovered and compacted.

In which order, and why (DESIGN §5; the lines are explained in :mod:`layout.ours.ledger`)::

    create     a temporary file with a header and zeros, synced, renamed, the folder synced
    append     the lines are written behind the last one; one sync; only then is done what they speak of
    recover    what a crash tore is overwritten by empty lines, so that it is not mistaken for damage later
    compact    a new file with the lines that still mean something, which takes the place of the old one

The zeros are disk blocks that the ledger has already, so that on a full disk the next lines can still be written. The
last part of them is kept from staging, because only a purge can free a disk. A file system that never writes in place
(Btrfs, ZFS) may need space all the same.

Staging, restoring and purging have their own records still; this is what will take their place.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Mapping
from types import TracebackType
from typing import Final, Self

from layout.ours import (
    Ledger,
    LedgerEntry,
    LedgerEvent,
    StagedRecord,
    encode_compacted,
    encode_event,
    encode_header,
    encode_mark,
    encode_staged,
    is_worth_compacting,
    parse_ledger,
)
from layout.scheme import LEDGER_FILE
from logstore.fs import Directory, Disk, read_small_file, replace_file

LEDGER_LIMIT: Final = 1 << 30
"""Largest ledger that is read, in bytes: some three million staged replicas."""

RESERVED_BYTES: Final = 1 << 18
"""Space that is kept behind the last line where the disk has it: for some 800 replicas."""

PURGE_BYTES: Final = 1 << 12
"""The part of it that staging leaves alone: room for some 60 directories that are purged."""

LEAST_DEAD_LINES: Final = 1000
"""Lines without meaning from which a new file pays; fewer are read in some milliseconds."""

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


def read_ledger(folder: Directory) -> Ledger | None:
    """Read the ledger of a folder, without any change; None: it has none.

    Raises:
        UnreadableFileError: it is no plain file, or larger than any ledger.
        FailedReadError: the system refuses to read it.
        DamagedFileError: a later release wrote it.
    """
    data = read_small_file(LEDGER_FILE, LEDGER_LIMIT, folder.descriptor)
    return None if data is None else parse_ledger(data)


class LedgerFile:
    """The ledger of one folder, open to be changed by the holder of the folder's lock.

    Attributes:
        ledger: what it says, kept up to date.
        recovered: number of bytes that a crash had torn, which :meth:`open` overwrote.
    """

    def __init__(self, disk: Disk, folder: Directory, data: bytes) -> None:
        """Take what lies in the folder; use :meth:`open`."""
        self._disk, self._folder = disk, folder
        self.ledger = parse_ledger(data)
        self.recovered = sum(bad.length for bad in self.ledger.torn)
        self._size = len(data)
        self._durable = self.ledger.durable
        """Offset up to which a sync has confirmed the file."""
        self._synced, self._unsynced = self.ledger.end, bytearray()
        """What was written here since a sync, and where. It is written again after a sync that failed, because the
        system may forget it then."""
        self._sync_failed = self._is_replaced = False
        self._descriptor = disk.open_to_change(folder.descriptor, LEDGER_FILE)

    @classmethod
    def open(cls, disk: Disk, folder: Directory) -> Self:
        """Open the ledger of a folder; create it where there is none, and recover it after a crash.

        Raises:
            UnreadableFileError, FailedReadError, DamagedFileError: as for :func:`read_ledger`.
            OSError: from the system; where it has no space for a new ledger, none is left.
        """
        data = read_small_file(LEDGER_FILE, LEDGER_LIMIT, folder.descriptor)
        if data is None:
            data = _create(disk, folder)
        else:
            disk.sync(folder.descriptor)  # the process that made it may have ended before it did this
        opened = cls(disk, folder, data)
        try:
            opened._recover(data)
        except BaseException:
            opened.close()
            raise
        return opened

    def _recover(self, data: bytes) -> None:
        """Overwrite what a crash tore by empty lines, durably; there it needs no space."""
        if not self.ledger.torn:
            return
        for torn in self.ledger.torn:
            # The last one has no line break yet, and gets one.
            length = torn.length + (torn.offset + torn.length == self.ledger.end)
            self._write(torn.offset, b"\n" * length)
            self.ledger.end = max(self.ledger.end, torn.offset + length)
        self._disk.sync(self._descriptor)
        self._durable = self._synced = self.ledger.end
        self.ledger.torn = []

    def stage(self, records: Mapping[str, StagedRecord]) -> None:
        """Append durably that replicas are staged, before they are renamed.

        Args:
            records: name in the folder → record. A name of which the ledger says anything must not be used again.

        Raises:
            ValueError: a name was used before.
            DamagedFileError: a record breaks a rule; nothing was written.
            OSError: from the system; what was written means nothing, for the replicas are not renamed.
        """
        taken = records.keys() & self.ledger.entries.keys()
        if taken:
            raise ValueError(f"{min(taken)!r:.80} was used before")
        self._append([encode_staged(name, record) for name, record in records.items()], left=PURGE_BYTES)
        self.sync()
        for name, record in records.items():
            self.ledger.entries[name] = LedgerEntry(LedgerEvent.STAGED, record)

    def note(self, event: LedgerEvent, names: Collection[str], *, durable: bool) -> None:
        """Append an event of several directories.

        Args:
            event: any other than *staged*.
            names: of the directories, in the folder.
            durable: sync it now; False: a later sync does so, or a crash loses it.

        Raises:
            OSError: from the system; where it has no space, nothing was written.
        """
        self._append([encode_event(event, name) for name in names])
        if durable:
            self.sync()
        for name in names:
            former = self.ledger.entries.get(name)
            self.ledger.entries[name] = LedgerEntry(event, None if former is None else former.record)

    def sync(self) -> None:
        """Make everything durable that was appended. Raises OSError: nobody knows what of it is."""
        try:
            self._disk.sync(self._descriptor)
        except OSError:
            self._sync_failed = True
            raise
        self._durable = self._synced = self.ledger.end
        self._sync_failed = False
        self._unsynced.clear()

    def compact(self, present: Iterable[str]) -> bool:
        """Write a new file, if most lines are about directories that are gone; False: it is not worth it.

        A disk that has no space for the new file keeps the old one.

        Args:
            present: names of the directories in the folder.

        Raises:
            OSError: from the system, for another reason than lack of space.
        """
        kept = set(present)
        if not is_worth_compacting(self.ledger, kept, LEAST_DEAD_LINES):
            return False
        self.sync()
        data = read_small_file(LEDGER_FILE, LEDGER_LIMIT, self._folder.descriptor)
        assert data is not None, "it is open here"
        new = encode_compacted(self.ledger, kept, data)
        self._is_replaced = True
        try:
            replace_file(self._disk, self._folder, LEDGER_FILE, new + bytes(RESERVED_BYTES))
            self._is_replaced = False
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            return False
        finally:
            self._reopen()
        return True

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, lines: list[bytes], *, left: int = 0) -> None:
        """Write lines behind the last one, after a mark.

        Args:
            lines: in their order.
            left: bytes of the reserved space that must be left.

        Raises:
            OSError: ENOSPC, before anything was written; or another error of the system.
        """
        if self._is_replaced:
            self._disk.sync(self._folder.descriptor)  # or a crash may bring the file back that lacks these lines
            self._is_replaced = False
        new = b"".join([encode_mark(self._durable), *lines])
        end = self.ledger.end + len(new)
        if self._size < end + RESERVED_BYTES // 2:
            try:
                self._grow(end + RESERVED_BYTES)
            except OSError as error:
                if error.errno not in _NO_SPACE or self._size < end + left:
                    raise
        if self._sync_failed:
            self._write(self._synced, bytes(self._unsynced))
        self._write(self.ledger.end, new)
        self._unsynced += new
        self.ledger.end = end
        self.ledger.lines += len(lines)

    def _grow(self, size: int) -> None:
        """Write zeros behind the present end of the file, as far as there is space."""
        try:
            self._write(self._size, bytes(size - self._size))
        finally:
            self._size = os.fstat(self._descriptor).st_size

    def _write(self, offset: int, data: bytes) -> None:
        os.lseek(self._descriptor, offset, os.SEEK_SET)
        self._disk.write(self._descriptor, data)

    def _reopen(self) -> None:
        """Open the file that has the name now, and read it."""
        self.close()
        data = read_small_file(LEDGER_FILE, LEDGER_LIMIT, self._folder.descriptor)
        assert data is not None, "one of the two files has the name"
        self._descriptor = self._disk.open_to_change(self._folder.descriptor, LEDGER_FILE)
        self.ledger, self._size = parse_ledger(data), len(data)
        self._durable = self._synced = self.ledger.end
        self._unsynced.clear()


def _create(disk: Disk, folder: Directory) -> bytes:
    """Create a ledger, with the reserved space or at least what a purge needs of it. Raises OSError."""
    header = encode_header()
    data = header + bytes(RESERVED_BYTES)
    try:
        replace_file(disk, folder, LEDGER_FILE, data)
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        data = header + bytes(PURGE_BYTES - len(header))
        replace_file(disk, folder, LEDGER_FILE, data)
    return data
