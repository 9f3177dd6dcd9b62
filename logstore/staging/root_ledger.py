"""What the ledgers say of the directories in one staging root: its own ledger, and the one in the fallback folder."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from layout.directory_name import DirectoryKind, DirectoryName
from layout.ours import Ledger, LedgerEntry, LedgerEvent, StagedRecord
from layout.scheme import LEDGER_FILE, Scheme
from logstore.errors import ChangeRefusedError, DamagedRecordError, LogStoreError, UnreadableFileError
from logstore.fs import Directory
from logstore.log_dir import FallbackRecords, LogDir, LogDirView, StagingBeside, read_ledger
from logstore.staging.records import check_record_of

logger = logging.getLogger(__name__)

_HOW_FAR = {
    event: place
    for place, event in enumerate((LedgerEvent.STAGED, LedgerEvent.PURGING, LedgerEvent.RESTORED, LedgerEvent.PURGED))
}


class RootLedger:
    """The entries of one staging root, read once; nothing is changed.

    Attributes:
        own: the ledger of the staging root itself; None: it has none, or that cannot be read.
        damaged: a sentence for each line that cannot be read any more, with file and number.
        problem: why one of them cannot be read at all, a clause; None: both were.
    """

    def __init__(self, log_dir: LogDirView, root: Directory, fallback: FallbackRecords) -> None:
        """Read both ledgers. One that cannot be read is no error: its directories have no record then."""
        self._log_dir, self._folder = log_dir, root.path
        self.problem: str | None = None
        self._cause: Exception | None = None
        self.damaged: list[str] = []
        self.own: Ledger | None = None
        try:
            self.own = read_ledger(root)
        except UnreadableFileError as error:
            self._cause = error
            self.problem = f"{root.path}/{LEDGER_FILE} {error}"
        self._is_flat = log_dir.scheme is Scheme.FLAT
        self._own = self._entries(self.own, root.path)
        self._elsewhere: Mapping[str, LedgerEntry] = {}
        elsewhere = fallback.path_of(log_dir.path)
        try:
            self._elsewhere = self._entries(fallback.read(log_dir.path), elsewhere)
        except UnreadableFileError as error:
            self._cause = error
            self.problem = f"{elsewhere}/{LEDGER_FILE} {error}"
        # Both speak of one where the lines of a batch found room in the one after the other had taken a part of them.
        common = self._own.keys() & self._elsewhere.keys()
        if common:
            both = {name: _of_two(self._own[name], self._elsewhere[name]) for name in common}
            self._own, self._elsewhere = {**self._own, **both}, {**self._elsewhere, **both}

    def _entries(self, ledger: Ledger | None, folder: str) -> Mapping[str, LedgerEntry]:
        if ledger is None:
            return {}
        self.damaged += [
            f"line {bad.number} of {folder}/{LEDGER_FILE} cannot be read: {bad.reason}" for bad in ledger.damaged
        ]
        return ledger.entries

    def __contains__(self, name: str) -> bool:
        """Whether a line speaks of a directory, or once did: the name must not be used again."""
        return name in self._own or name in self._elsewhere

    def entry_of(self, name: str) -> LedgerEntry | None:
        """Give what is said of a directory; None: nothing, or that it is staged no more."""
        entry = self._own.get(name) or self._elsewhere.get(name)
        return None if entry is None or entry.event is LedgerEvent.RESTORED else entry

    def staged(self) -> Iterator[tuple[str, StagedRecord]]:
        """Iterate over the directories that are staged and untouched, as far as the lines can be read."""
        for name, entry in {**self._elsewhere, **self._own}.items():
            if entry.event is LedgerEvent.STAGED and entry.record is not None:
                yield name, entry.record

    def regular_record(self, name: str) -> StagedRecord | None:
        """Give the record of a directory that surely is its own, whole and restorable; None: ask :meth:`record_of`."""
        entry = self._own.get(name)
        return entry.record if entry is not None and entry.is_regular and self._is_flat else None

    def is_whole(self, name: str) -> bool:
        """Whether a directory is staged, and no purge has begun to empty it."""
        entry = self.entry_of(name)
        return entry is not None and not entry.may_be_partly_purged

    def record_of(self, name: DirectoryName) -> StagedRecord | None:
        """Give the record of a directory; None: it is a stray that a broker left.

        Raises:
            DamagedRecordError: it has no record that can be believed. Where the system refused to read the ledger,
                its cause is a FailedReadError.
        """
        entry = self.entry_of(name.text)
        if entry is not None and entry.record is not None:
            check_record_of(self._log_dir, self._folder, name, entry.record)
            return entry.record
        place = f"{self._folder}/{name.text}"
        if entry is None:
            if self.problem is not None:
                raise DamagedRecordError(f"{place}: {self.problem}, so nothing says what it was") from self._cause
            if name.kind is DirectoryKind.STRAY:
                return None
            lost = f" that can be read ({self.damaged[-1]})" if self.damaged else ""
            raise DamagedRecordError(f"{place} has no line in {LEDGER_FILE}{lost}, so nothing says what it was")
        raise DamagedRecordError(f"{place}: its line in {LEDGER_FILE} cannot be read, so nothing says what it was")


def _of_two(one: LedgerEntry, other: LedgerEntry) -> LedgerEntry:
    """Say which of two entries about one directory counts: of one staging, that which lets less be restored.

    Of two stagings the later one counts: a name was used again while the fallback folder could not be seen. Where one
    of them has no record, nobody knows which it is: the directory does not come back, and goes when it is due.
    """
    its, others = one.record, other.record
    if its is None or others is None:
        return replace(other if its is None else one, event=LedgerEvent.STAGED, in_doubt=True, is_regular=False)
    if its.staged_ms != others.staged_ms:
        return one if its.staged_ms > others.staged_ms else other
    return max(one, other, key=lambda entry: (_HOW_FAR[entry.event], entry.in_doubt))


def note_event(
    log_dir: LogDir | StagingBeside,
    root: Directory,
    fallback: FallbackRecords,
    event: LedgerEvent,
    names: Collection[str],
    *,
    durable: bool,
    known: Ledger | None = None,
) -> None:
    """Append an event about directories of a staging root to the ledgers that speak of them.

    Args:
        log_dir: that may be changed.
        root: the staging root.
        fallback: the fallback records.
        event: any but *staged*.
        names: of the directories; those of which no ledger speaks are passed over.
        durable: sync it now.
        known: what the staging root's own ledger says, where the caller read it under the same lock; it is kept up to
            date from then on. None: it is read here.

    Raises:
        OSError, LogStoreError: a ledger cannot be written; the fallback folder's is written first, and may have been.
    """
    own = log_dir.ledgers.find(root, known)
    here = [] if own is None else [name for name in names if name in own.ledger.entries]
    try:
        with fallback.ledger(log_dir.path) as other:
            there = [] if other is None else [name for name in names if name in other.ledger.entries]
            if other is not None and there:
                other.note(event, there, durable=True)  # nobody syncs it later
    except (OSError, LogStoreError) as error:
        if len(here) < len(names):
            raise
        if event is LedgerEvent.KEPT:
            # It would go on to say that they are purged, and that counts.
            logger.warning("%s: what a purge left can only be purged: %s", root.path, error)
            return
    if own is not None and here:
        own.note(event, here, durable=durable)


def note_new_name(
    log_dir: LogDir, root: Directory, fallback: FallbackRecords, directory: str, record: StagedRecord
) -> None:
    """Append durably that a staged directory has another record by now, to the ledger that speaks of it.

    Args:
        log_dir: that may be changed.
        root: the staging root.
        fallback: the fallback records.
        directory: its name in the staging root.
        record: the one that counts from now on; where it counts already, nothing is written.

    Raises:
        ChangeRefusedError: no ledger says any more that the directory is staged and whole.
        OSError, LogStoreError: the ledger cannot be written; where there is no space, nothing was.
    """
    own = log_dir.ledgers.find(root)
    if own is not None and _is_whole(own.ledger, directory):
        own.rename(directory, record)
        return
    with fallback.ledger(log_dir.path) as other:
        if other is None or not _is_whole(other.ledger, directory):
            raise ChangeRefusedError(
                f"{root.path_of(directory)} is staged no more, as {LEDGER_FILE} says, or not whole: list again"
            )
        other.rename(directory, record)


def _is_whole(ledger: Ledger, directory: str) -> bool:
    entry = ledger.entries.get(directory)
    return entry is not None and entry.event is LedgerEvent.STAGED
