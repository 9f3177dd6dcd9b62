"""The staging root beside a log dir, open to be changed while a broker runs on the log dir, which is only read.

What lies there is no longer the broker's, so its own lock (``staging_lock``) is enough. No mark is made in the log dir:
what a purge has begun stands in the ledger of the staging root, and the next purge goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from logstore.errors import LogStoreError, OfflineLogDirError
from logstore.fs import Disk
from logstore.log_dir.ledger import Ledgers
from logstore.log_dir.log_dir import LogDir, failure
from logstore.log_dir.read_only import ReadOnlyLogDir
from logstore.log_dir.staging_lock import StagingLock


class StagingBeside(ReadOnlyLogDir):
    """A log dir that others use, of which only the staging root beside it is changed.

    Attributes:
        disk: the primitive changes.
        ledgers: of what is staged beside it.
        offline: why the staging root is no longer used; None while it is in use.
        leave_unclean: as in :class:`logstore.log_dir.LogDir`; without a mark it means nothing here.
    """

    disk: Disk
    ledgers: Ledgers
    offline: str | None = None
    leave_unclean = False
    _lock: StagingLock | None = None

    @classmethod
    def open(cls, path: str, *, disk: Disk | None = None) -> StagingBeside:
        """Open a log dir to be read, and lock the staging root beside it, where there is one.

        Raises:
            NotALogDirError: there is no such log dir, or its identity is missing or damaged.
            LogDirInUseError: another run of this engine works in the staging root.
            ChangeRefusedError: the file system cannot lock a directory.
            ChangeFailedError, OfflineLogDirError: the staging root cannot be opened.
        """
        view = ReadOnlyLogDir.open(path)
        opened = cls(view.root, str(view.scheme) if view.is_ours else None)
        opened.disk = disk or Disk()
        opened.ledgers = Ledgers(opened.disk)
        try:
            if not opened.is_ours:
                opened._lock = StagingLock.take(opened.path, required=True)
        except OSError as error:
            opened.close()
            raise failure(f"the staging root beside {opened.path} cannot be locked", error, is_open=False) from error
        except BaseException:
            opened.close()
            raise
        return opened

    @classmethod
    def take_over(cls, log_dir: LogDir) -> StagingBeside | None:
        """Close a broker's log dir, and go on with the staging root beside it, whose lock is not let go meanwhile.

        Returns:
            None: the log dir stays open, because no lock but its own guards the staging root, or there is none.

        Raises:
            NotALogDirError: its identity cannot be read any more.
        """
        lock = log_dir.hand_over_staging_root()
        if lock is None:
            return None
        try:
            log_dir.close()
            view = ReadOnlyLogDir.open(log_dir.path)
        except BaseException:
            lock.release()
            raise
        opened = cls(view.root, None)
        opened.disk, opened._lock = log_dir.disk, lock
        opened.ledgers = Ledgers(opened.disk)
        return opened

    @property
    def is_locked(self) -> bool:
        """Whether there was a staging root to lock; one that somebody made later is not ours to change."""
        return self._lock is not None

    def check_online(self) -> None:
        """Raise OfflineLogDirError when its disk has failed."""
        if self.offline is not None:
            raise OfflineLogDirError(self.offline)

    @contextmanager
    def changing(self, what: str) -> Iterator[None]:
        """Turn errors of the system into ours. Every change happens inside.

        Raises:
            OfflineLogDirError: its disk has failed, now or before.
            ChangeFailedError: the system refused.
        """
        self.check_online()
        try:
            yield
        except OSError as error:
            raise self.failed(what, error) from error

    def failed(self, what: str, error: OSError) -> LogStoreError:
        """Make the error to raise for a failure of the system; change nothing more where the disk failed."""
        made = failure(f"{self.path}: {what}", error)
        if isinstance(made, OfflineLogDirError):
            self.offline = str(made)
        return made

    def close(self) -> None:
        """Sync the ledgers and release the lock; a second time does nothing."""
        if self.offline is None:
            with suppress(OSError):  # a crash may take those lines back, and what was purged is purged again
                self.ledgers.sync()
        self.ledgers.close()
        if self._lock is not None:
            self._lock.release()
        super().close()
