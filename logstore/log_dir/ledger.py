"""The ledger of one staging folder as a file: it is created with room to spare, appended to, recovered and compacted.

In which order, and why (DESIGN §5; the lines are explained in :mod:`layout.ours.ledger`)::

    create     a temporary file with a header and zeros, synced, renamed, the folder synced
    append     the lines are written behind the last one; one sync, and a mark of it, which the next one makes durable;
               only then is done what they speak of
    recover    what a crash tore is overwritten by empty lines, so that it is not mistaken for damage later
    compact    a new file with the lines that still mean something, which takes the place of the old one

The zeros are disk blocks that the ledger has already, so that on a full disk the next lines can still be written. The
last part of them is kept from staging, because only a purge can free a disk. A file system that never writes in place
(Btrfs, ZFS) may need space all the same.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from layout.errors import DamagedFileError
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
from logstore.errors import ChangeRefusedError, UnreadableFileError
from logstore.fs import Directory, Disk, read_small_file, replace_file
from logstore.tunables import LEAST_DEAD_LINES

LEDGER_LIMIT: Final = 1 << 30
"""Largest ledger that is read, in bytes: some three million staged replicas."""

RESERVED_BYTES: Final = 1 << 16
"""Space that is kept behind the last line where the disk has it: for some 200 replicas."""

PURGE_BYTES: Final = 1 << 12
"""The part of it that staging leaves alone: room for some 60 directories that are purged."""

NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Error numbers of a disk that is full, or of a quota that is used up."""

_OVER = frozenset({LedgerEvent.RESTORED, LedgerEvent.PURGED})


def read_ledger(folder: Directory) -> Ledger | None:
    """Read the ledger of a folder, without any change; None: it has none.

    Raises:
        UnreadableFileError: it is no plain file, larger than any ledger, or a later release wrote it; a clause that
            follows its name.
        FailedReadError: the system refuses to read it.
    """
    data = read_small_file(LEDGER_FILE, LEDGER_LIMIT, folder.descriptor)
    return None if data is None else _parsed(data)


class LedgerFile:
    """The ledger of one folder, open to be changed by the holder of the folder's lock.

    Attributes:
        ledger: what it says, kept up to date.
        recovered: number of bytes that a crash had torn, which :meth:`open` overwrote where there was space for it.
        is_durable: whether a sync has confirmed every line but the last mark.
    """

    def __init__(self, disk: Disk, folder: Directory, ledger: Ledger, size: int) -> None:
        """Take what lies in the folder; use :meth:`open`."""
        self._disk, self._folder = disk, folder
        self.ledger, self._size = ledger, size
        self.recovered = sum(bad.length for bad in ledger.torn)
        self._synced, self._unsynced = self.ledger.end, bytearray()
        """What was written here since a sync, and where. It is written again after a sync that failed, because the
        system may forget it then."""
        self._sync_failed = self._is_replaced = False
        self.is_durable = True
        self._descriptor = disk.open_to_change(folder.descriptor, LEDGER_FILE)

    @classmethod
    def open(cls, disk: Disk, folder: Directory, known: Ledger | None = None) -> Self:
        """Open the ledger of a folder; create it where there is none, and recover it after a crash.

        Args:
            disk: the seam.
            folder: of the ledger, whose lock is held.
            known: what it says, where somebody read it under the same lock; None: it is parsed here.

        Raises:
            ChangeRefusedError: it cannot be read, for a reason of :func:`read_ledger`.
            OSError: from the system; where it has no space for a new ledger, none is left.
        """
        try:
            data = read_small_file(LEDGER_FILE, LEDGER_LIMIT, folder.descriptor)
            ledger = _parsed(data or b"") if known is None else known
        except UnreadableFileError as error:
            raise ChangeRefusedError(f"{folder.path}/{LEDGER_FILE} {error}") from error
        if data is None:
            data = _create(disk, folder)
            ledger = parse_ledger(data)
        elif _is_shared(folder):
            # A copy of the folder by hard links would change with it.
            replace_file(disk, folder, LEDGER_FILE, data)
        else:
            disk.sync(folder.descriptor)  # the process that made it may have ended before it did this
        opened = cls(disk, folder, ledger, len(data))
        try:
            opened._recover()
        except BaseException:
            opened.close()
            raise
        return opened

    def _recover(self) -> None:
        """Overwrite what a crash tore by empty lines, durably; there it needs no space.

        Where it does need some and there is none, what is torn stays: it means nothing, and goes before the next line.
        Lines behind the last mark are made durable, because from now on something may be done by them.
        """
        ledger = self.ledger
        if not ledger.torn:
            if ledger.end > ledger.durable + len(encode_mark(ledger.durable)):
                self._disk.sync(self._descriptor)
            return
        try:
            for torn in ledger.torn:
                # The last one has no line break yet, and gets one.
                length = torn.length + (torn.offset + torn.length == ledger.end)
                self._write(torn.offset, b"\n" * length)
                ledger.end = max(ledger.end, torn.offset + length)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            return
        left, ledger.torn = ledger.torn, []
        try:
            self.sync()
        except OSError:
            ledger.torn = left
            raise

    def stage(self, records: Mapping[str, StagedRecord], lines: Sequence[bytes] | None = None) -> None:
        """Append durably that replicas are staged, before they are renamed.

        Args:
            records: name in the folder → record. A name must not be used again, unless it was *restored*.
            lines: of these records, in their order; None: they are written here.

        Raises:
            ValueError: a name was used before.
            DamagedFileError: a record breaks a rule; nothing was written.
            OSError: from the system; what was written means nothing, for the replicas are not renamed. Lines that are
                there and may be durable are among the entries.
        """
        entries = self.ledger.entries
        taken = [name for name in records if name in entries and entries[name].event is not LedgerEvent.RESTORED]
        if taken:
            raise ValueError(f"{min(taken)!r:.80} was used before")
        if lines is None:
            lines = [encode_staged(name, record) for name, record in records.items()]
        self._append(lines, left=PURGE_BYTES)
        self.ledger.lines += len(records)
        for name, record in records.items():
            self.ledger.entries[name] = LedgerEntry(LedgerEvent.STAGED, record)
        self.sync()

    def rename(self, name: str, record: StagedRecord) -> None:
        """Append durably that a replica, which stays staged as it is, has another name by now.

        Args:
            name: of its directory, which a line speaks of.
            record: with the new name; where it is the one that counts already, nothing is written.

        Raises:
            DamagedFileError: the record breaks a rule; nothing was written.
            OSError: as for :meth:`stage`.
        """
        if self.ledger.entries[name].record == record:
            return
        self._append([encode_staged(name, record)], left=PURGE_BYTES)
        self.ledger.lines += 1
        self.ledger.entries[name] = LedgerEntry(LedgerEvent.STAGED, record)
        self.sync()

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
        self.ledger.lines += len(names)
        for name in names:
            self.ledger.entries[name] = LedgerEntry.after(self.ledger.entries.get(name), event)

    def sync(self) -> None:
        """Make everything durable that was appended, and mark how far. Raises OSError: nobody knows what of it is."""
        try:
            self._disk.sync(self._descriptor)
        except OSError:
            self._sync_failed = True
            raise
        self._synced, self._sync_failed = self.ledger.end, False
        self._unsynced.clear()
        try:
            self._append([encode_mark(self._synced)])
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
        self.is_durable = True

    def compact_where_over(self) -> None:
        """Compact it where most of its lines speak of what is restored or purged; Raises OSError.

        Where nothing else is left, this is done for few lines too: then every name is free again.
        """
        entries, lines = self.ledger.entries, self.ledger.lines
        over = sum(entry.event in _OVER for entry in entries.values())
        # Of each there are two lines at least; the folder is listed only where they may be the most.
        if over and (over == len(entries) or (lines > LEAST_DEAD_LINES and 4 * over > lines)):
            self.compact(self._folder.directories(), LEAST_DEAD_LINES if over < len(entries) else 1)

    def compact(self, present: Iterable[str], least: int | None = None) -> bool:
        """Write a new file, if most lines are about directories that are gone; False: it is not worth it.

        A disk that has no space for the new file keeps the old one.

        Args:
            present: names of the directories in the folder.
            least: number of lines without meaning from which it pays; None: LEAST_DEAD_LINES.

        Raises:
            OSError: from the system, for another reason than lack of space.
        """
        kept = set(present)
        if not is_worth_compacting(self.ledger, kept, LEAST_DEAD_LINES if least is None else least):
            return False
        data = read_small_file(LEDGER_FILE, LEDGER_LIMIT, self._folder.descriptor)
        assert data is not None, "it is open here"
        new = encode_compacted(self.ledger, kept, data)
        self._is_replaced = True
        try:
            replace_file(self._disk, self._folder, LEDGER_FILE, new + bytes(RESERVED_BYTES))
            self._is_replaced = False
        except OSError as error:
            if error.errno not in NO_SPACE:
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

    def _append(self, lines: Sequence[bytes], *, left: int = 0) -> None:
        """Write lines behind the last one.

        Args:
            lines: in their order.
            left: bytes of the reserved space that must be left.

        Raises:
            OSError: ENOSPC, before anything was written; or another error of the system.
        """
        if self._is_replaced:
            self._disk.sync(self._folder.descriptor)  # or a crash may bring the file back that lacks these lines
            self._is_replaced = False
        if self.ledger.torn:
            self._recover()
            if self.ledger.torn:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        new = b"".join(lines)
        end = self.ledger.end + len(new)
        if self._size < end + RESERVED_BYTES // 2:
            try:
                self._grow(end + RESERVED_BYTES)
            except OSError as error:
                if error.errno not in NO_SPACE or self._size < end + left:
                    raise
        self.is_durable = False
        if self._sync_failed:
            self._write(self._synced, bytes(self._unsynced))
        try:
            self._write(self.ledger.end, new)
        except OSError:
            # A part of it may stand there, and would be read as said. What cannot be wiped, the next lines overwrite.
            with suppress(OSError):
                self._write(self.ledger.end, bytes(min(len(new), self._size - self.ledger.end)))
            raise
        self._unsynced += new
        self.ledger.end = end

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
        self._synced = self.ledger.end
        self._unsynced.clear()


class Ledgers:
    """The ledgers of the folders in which one open log dir has something staged, each opened once."""

    def __init__(self, disk: Disk) -> None:
        """Take the primitive changes; nothing is opened yet."""
        self._disk = disk
        self._opened: dict[tuple[int, int], tuple[Directory, LedgerFile]] = {}

    def of(self, folder: Directory, known: Ledger | None = None) -> LedgerFile:
        """Open the ledger of a folder, or create it; arguments and errors are those of :meth:`LedgerFile.open`."""
        found = self._opened.get(folder.key)
        if found is None:
            own = folder.below("")
            try:
                ledger = LedgerFile.open(self._disk, own, known)
                try:
                    ledger.compact_where_over()
                except BaseException:
                    ledger.close()
                    raise
            except BaseException:
                own.close()
                raise
            found = self._opened[folder.key] = own, ledger
        return found[1]

    def find(self, folder: Directory, known: Ledger | None = None) -> LedgerFile | None:
        """Open the ledger of a folder; None: it has none. Otherwise as :meth:`of`."""
        return self.of(folder, known) if folder.key in self._opened or folder.holds(LEDGER_FILE) else None

    def sync(self) -> None:
        """Make durable what was appended to any of them and is not yet. Raises OSError."""
        for _, ledger in self._opened.values():
            if not ledger.is_durable:
                ledger.sync()

    def close(self) -> None:
        """Close all of them; a second time does nothing."""
        for folder, ledger in self._opened.values():
            ledger.close()
            folder.close()
        self._opened.clear()


def _parsed(data: bytes) -> Ledger:
    """Read a ledger. Raises UnreadableFileError: a later release wrote it."""
    try:
        return parse_ledger(data)
    except DamagedFileError as error:
        raise UnreadableFileError(f"is of another release: {error.problem}") from error


def _is_shared(folder: Directory) -> bool:
    status = folder.status(LEDGER_FILE)
    return status is not None and status.st_nlink > 1


def _create(disk: Disk, folder: Directory) -> bytes:
    """Create a ledger, with the reserved space or at least what a purge needs of it. Raises OSError."""
    header = encode_header()
    data = header + bytes(RESERVED_BYTES)
    try:
        replace_file(disk, folder, LEDGER_FILE, data)
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        data = header + bytes(PURGE_BYTES - len(header))
        replace_file(disk, folder, LEDGER_FILE, data)
    return data
