"""Ledgers on another disk than the log dirs, so that even a full disk can be cleaned.

The ledger of a staging root has space of its own. Where a disk had no room for that from the beginning, or it is used
up, the next lines go to a ledger in a folder on another disk, below a name made from the log dir's path. Restore and
purge look there too. Without that folder, nothing can be staged on a disk that is full to the last block.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

from layout.ours import Ledger, LedgerEvent
from layout.scheme import LEDGER_FILE
from logstore.errors import LogStoreError
from logstore.fs import Directory, Disk, make_directory, remove_file
from logstore.log_dir.ledger import LedgerFile, read_ledger

logger = logging.getLogger(__name__)

_OVER = frozenset({LedgerEvent.RESTORED, LedgerEvent.PURGED})


class FallbackRecords:
    """A folder for ledgers, on another disk than the log dirs."""

    def __init__(self, folder: str | None, disk: Disk | None = None) -> None:
        """Use an existing folder; None: there is none."""
        self.folder = folder
        self._disk = disk or Disk()

    def path_of(self, log_dir: str) -> str:
        """Give the path of the folder in it that belongs to a log dir, named by its absolute path; for messages."""
        return f"{self.folder}/{_key(log_dir)}"

    def read(self, log_dir: str) -> Ledger | None:
        """Read the ledger of what found no room in a log dir's own, named by its absolute path; None: there is none.

        Raises:
            UnreadableFileError, FailedReadError: as :func:`logstore.log_dir.read_ledger`.
        """
        try:
            with self._opened(log_dir) as own:
                return None if own is None else read_ledger(own)
        except OSError as error:
            logger.warning("the folder for spare records, %s, cannot be used: %s", self.folder, error)
            return None

    @contextmanager
    def ledger(self, log_dir: str, *, make: bool = False) -> Generator[LedgerFile | None, None, None]:
        """Open that ledger to be changed; None: there is no folder, or nothing in it and ``make`` was not asked for.

        What means nothing any more is removed at the end.

        Raises:
            OSError, LogStoreError: it cannot be used.
        """
        with self._opened(log_dir, make=make) as own:
            if own is None or not (make or own.holds(LEDGER_FILE)):
                yield None
                return
            with LedgerFile.open(self._disk, own) as opened:
                yield opened
                is_over = all(entry.event in _OVER for entry in opened.ledger.entries.values())
            if is_over and not opened.ledger.damaged:
                remove_file(self._disk, own, LEDGER_FILE)

    @contextmanager
    def _opened(self, log_dir: str, *, make: bool = False) -> Generator[Directory | None, None, None]:
        if self.folder is None:
            yield None
            return
        with Directory.open(self.folder) as top:
            try:
                own = make_directory(self._disk, top, _key(log_dir)) if make else top.child(_key(log_dir))
            except FileNotFoundError:
                yield None
                return
            except LogStoreError as error:
                logger.warning("the folder for spare records, %s, cannot be used: %s", self.folder, error)
                yield None
                return
            with own:
                yield own


def _key(log_dir: str) -> str:
    """Make a folder name from the path of a log dir: two log dirs of one machine never share one."""
    import hashlib  # which takes 4 ms to load, and mostly there is no folder

    return hashlib.sha256(log_dir.encode("utf-8", "surrogateescape")).hexdigest()[:32]
