"""One log dir opened for changes, under Kafka's own lock, until its disk fails.

Opening takes ``.lock``, so that a running broker and this engine exclude each other, and reads the identity. A log dir
is *ours* when its ``meta.properties`` carries ``logstore.scheme``. Any other is a real broker's, and must never hold
anything that keeps the broker from starting. When the disk fails, the log dir goes *offline*, as Kafka's do: every
request fails with KAFKA_STORAGE_ERROR until it is opened again. Before the first change an ``.logstore_unclean`` file
is made, and a clean :meth:`LogDir.close` removes it, so that the next open knows whether to recover from a crash.
Source: DESIGN §5; FACTS §1.5, §2.2, §2.7.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

from layout import meta_properties
from layout.meta_properties import MetaProperties
from layout.scheme import MARKER_FILE, STAGING_DIR, UNCLEAN_FILE, Scheme, namespace_path
from layout.topic import Namespace, TopicPartition
from logstore.arguments import check_argument, check_path
from logstore.errors import (
    ChangeFailedError,
    ChangeRefusedError,
    InvalidArgumentError,
    InvalidNamespaceError,
    LogStoreError,
    NotALogDirError,
    OfflineLogDirError,
)
from logstore.fs import TEMPORARY, Directory, Disk, make_directory, refusal, remove_file, replace_file, write_new_file
from logstore.log_dir.checkpoints import CheckpointFiles
from logstore.log_dir.identity import ExpectedIdentity, read_identity
from logstore.log_dir.ledger import Ledgers
from logstore.log_dir.lock import Lock
from logstore.log_dir.staging_lock import StagingLock
from logstore.rows import MetadataState

logger = logging.getLogger(__name__)

DISK_FAILURES = frozenset(
    {errno.EIO, errno.EROFS, errno.ENXIO, errno.ENODEV, errno.ESTALE, errno.EUCLEAN, errno.ENOTCONN, errno.EBADF}
)
"""Error numbers of the disk, not of the request. The last change may or may not have reached the disk."""

_DATE = "Thu Jan 01 00:00:00 UTC 1970"
"""Second comment line of ``meta.properties``. No program reads it; as a constant it gives the same bytes each time."""


class LogDir:
    """One open log dir. Not thread-safe by itself: ``LogStore`` lets one thread at a time change a log dir.

    Attributes:
        path: its absolute path, as it was given.
        root: the open directory.
        identity: the content of its ``meta.properties``.
        disk: the primitive changes.
        checkpoints: its offset checkpoints, kept in memory.
        ledgers: of what is staged in it and beside it.
        was_unclean: whether the previous process to change it crashed, so that a recovery may be needed.
        offline: why it is no longer used; None while it is in use.
    """

    def __init__(self, root: Directory, lock: Lock, identity: MetaProperties, disk: Disk) -> None:
        """Use :meth:`open` or :meth:`format`."""
        self.path = root.path
        self.root = root
        self.identity = identity
        self.disk = disk
        self.checkpoints = CheckpointFiles(root)
        self.ledgers = Ledgers(disk)
        self.was_unclean = root.holds(UNCLEAN_FILE)
        self.offline: str | None = None
        self._lock = lock
        self._staging_lock: StagingLock | None = None
        self._marked = self.was_unclean
        self.leave_unclean = self.was_unclean
        """Whether :meth:`close` leaves the mark, so that the next open recovers the log dir."""

    @classmethod
    def open(cls, path: str, *, disk: Disk | None = None, expected: ExpectedIdentity | None = None) -> LogDir:
        """Take the lock of a log dir, and read its identity. Nothing is changed, except that ``.lock`` is made.

        Where ``.lock`` is missing, it is made only in a log dir that is known: an empty mount point stays empty.

        ``disk``: the primitive changes; None: the real ones; ``expected``: the identity it must have.

        Raises:
            NotALogDirError: there is no such directory, or its identity is missing, damaged, or another one.
            LogDirInUseError: a broker or another run of this engine holds the lock, or purges beside the log dir.
            OfflineLogDirError: the disk fails, or ``meta.properties`` cannot be read, as in a broker (FACTS §1.5).
            ChangeFailedError: the system refuses to open ``.lock``.
        """
        check_path("path", path, InvalidArgumentError)
        disk = disk or Disk()
        path = os.path.abspath(path)
        try:
            root = Directory.open(path)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in DISK_FAILURES:
                raise failure(f"the log dir {path} cannot be opened", error, is_open=False) from error
            reason = refusal(error) if isinstance(error, OSError) else str(error)
            raise NotALogDirError(f"the log dir {path} {reason}") from error
        try:
            lock = _locked(root, disk, lambda: _read_known_identity(path, expected))
            try:
                opened = cls(root, lock, _read_known_identity(path, expected), disk)
                opened.lock_staging_root()
                logger.debug("%s is locked", path)
                return opened
            except BaseException:
                lock.release()
                raise
        except BaseException:
            root.close()
            raise

    @classmethod
    def format(cls, path: str, identity: MetaProperties, *, disk: Disk | None = None) -> LogDir:
        """Make a log dir of ours, with its parents, and open it.

        A crash on the way leaves an empty directory, which can be formatted again.

        Raises:
            ChangeRefusedError: the directory is not empty, the identity has no known scheme, or the path is invalid.
            LogDirInUseError: another process holds its lock.
            ChangeFailedError, OfflineLogDirError: the system refuses, or the disk fails.
        """
        check_path("path", path, InvalidArgumentError)
        check_argument("identity", identity, MetaProperties, InvalidArgumentError)
        if identity.node_id is not None and identity.node_id < 0:
            raise InvalidArgumentError(
                f"the node ID is {identity.node_id}, where 0 or more is expected, as a broker has"
            )
        disk = disk or Disk()
        path = os.path.abspath(path)
        if identity.scheme not in frozenset(Scheme):
            raise ChangeRefusedError(f"{path}: {identity.scheme!r:.60} is no scheme: {', '.join(Scheme)} are")
        if "\0" in path:
            raise ChangeRefusedError(f"{path!r:.80} has a NUL in it, so it is no path")
        try:
            root = _made_with_parents(path, disk)
            with root:
                strangers = [name for name, _ in root.entries() if name not in _BEFORE_FORMAT]
                if strangers:
                    raise ChangeRefusedError(f"{path} is not empty, it holds {strangers[0]!r:.60}: format another path")
                lock = _locked(root, disk)
                try:
                    with make_directory(disk, root, STAGING_DIR) as staging:
                        if list(staging.entries()):
                            raise ChangeRefusedError(f"{staging.path} holds staged replicas: format another path")
                    replace_file(disk, root, meta_properties.FILE_NAME, meta_properties.encode(identity, _DATE))
                finally:
                    lock.release()
        except OSError as error:
            raise failure(f"{path} cannot be formatted", error, is_open=False) from error
        return cls.open(path, disk=disk)

    @property
    def scheme(self) -> Scheme:
        """The layout of its partitions; a real broker's is always flat."""
        scheme = self.identity.scheme
        return Scheme.FLAT if scheme is None or scheme == Scheme.FLAT else Scheme(scheme)

    @property
    def is_ours(self) -> bool:
        """Whether it is laid out for this engine alone; otherwise a real broker will read it again."""
        return self.identity.scheme is not None

    @property
    def directory_id(self) -> str:
        """Its directory ID; empty before Kafka 3.7."""
        return "" if self.identity.directory_id is None else str(self.identity.directory_id)

    def check_ours(self, what: str) -> None:
        """Refuse a change that a real broker would not understand.

        Raises:
            ChangeRefusedError: this is a real broker's log dir.
        """
        if not self.is_ours:
            raise ChangeRefusedError(
                f"{self.path} is a real broker's log dir, which would not start after this: {what} works only in a log "
                f"dir whose {meta_properties.FILE_NAME} carries {meta_properties.SCHEME_KEY}"
            )

    def lock_staging_root(self) -> None:
        """Lock the staging root beside a broker's log dir, where there is one and this has not locked it yet.

        Raises:
            LogDirInUseError: a purge works there.
            ChangeFailedError, OfflineLogDirError: it cannot be opened.
        """
        if self.is_ours or (self._staging_lock is not None and self._staging_lock.is_current()):
            return
        self._release_staging_root()
        try:
            self._staging_lock = StagingLock.take(self.path)
        except OSError as error:
            raise failure(f"the staging root beside {self.path} cannot be locked", error) from error

    def hand_over_staging_root(self) -> StagingLock | None:
        """Give the lock of the staging root beside a broker's log dir to the caller; None: there is no lock."""
        lock, self._staging_lock = self._staging_lock, None
        return lock

    def _release_staging_root(self) -> None:
        if self._staging_lock is not None:
            self._staging_lock.release()
            self._staging_lock = None

    def check_online(self) -> None:
        """Raise OfflineLogDirError when the log dir is no longer used."""
        if self.offline is not None:
            raise OfflineLogDirError(self.offline)

    @contextmanager
    def changing(self, what: str, *, marked: bool = False) -> Iterator[None]:
        """Mark the log dir for a change, and turn errors of the system into ours. Every change happens inside.

        Code inside must undo a failed change before it raises, except when the disk itself fails.

        Args:
            what: names the change in messages, for example ``orders-0 cannot be staged``.
            marked: refuse to begin without the mark, because a crash would leave more than harmless leftovers.

        Raises:
            OfflineLogDirError: it is offline, or the disk failed just now.
            ChangeFailedError: the system refused.
        """
        self.check_online()
        try:
            self._mark(needed=marked)
            yield
        except OSError as error:
            self.leave_unclean = True  # a crash may bring the undone change back
            raise self.failed(what, error) from error
        except LogStoreError:
            raise
        except BaseException:
            self.leave_unclean = True  # an interrupt may come between a change and its undo
            raise

    def failed(self, what: str, error: OSError) -> LogStoreError:
        """Make the error to raise for a failure of the system; take the log dir offline where the disk failed."""
        if self.offline is not None:
            return OfflineLogDirError(self.offline)  # the undo failed as well
        made = failure(f"{self.path}: {what}", error)
        if isinstance(made, OfflineLogDirError):
            self.go_offline(str(made))
        return made

    def go_offline(self, reason: str) -> None:
        """Stop using the log dir; the next open recovers unfinished changes."""
        if self.offline is None:
            self.offline = reason
            logger.error("%s", reason)

    def write_checkpoints(self) -> bool:
        """Write the changed offset checkpoints; return False when the system refused, and the next open tries again.

        A refusal is no error: old entries of removed replicas do no harm, and cleaning a full disk must still work.

        Raises:
            OSError: the disk fails.
        """
        try:
            self.checkpoints.write(self.disk)
        except OSError as error:
            if error.errno in DISK_FAILURES:
                raise
            self.leave_unclean = True
            logger.warning(
                "%s: the checkpoints cannot be written (%s); they stay as they were until it is opened again",
                *(self.path, error.strerror),
            )
            return False
        return True

    @property
    def is_marked(self) -> bool:
        """Whether the mark is there, so that the next open notices a crash and recovers the log dir."""
        return self._marked

    def _mark(self, *, needed: bool) -> None:
        """Make the mark, so that the next open notices a crash from here on.

        A disk may be too full for one more name, and cleaning it must still work: then the change goes on without the
        mark. A crash then leaves only a record in a live replica or a draft, and loses nothing.
        """
        if not self._marked:
            try:
                write_new_file(self.disk, self.root, UNCLEAN_FILE, b"", durable=True)
                self._marked = True
            except OSError as error:
                if needed or error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise

    def close(self) -> None:
        """Remove the mark where all changes are done, and release the lock. A second time does nothing."""
        try:
            self._finish()
        finally:  # an interrupt must not leave the lock to the rest of the process
            self.abandon()

    def _finish(self) -> None:
        """Bring the checkpoints, the ledgers and the mark up to date, where the log dir is still online."""
        if self.offline is not None or self.root.descriptor < 0:
            return
        if self.checkpoints.behind:
            # There may be space by now; where there is none, old entries do no harm.
            with suppress(OSError):
                self.checkpoints.write(self.disk)
        try:
            self.ledgers.sync()  # without the mark nobody would look for lines that a crash takes back
        except OSError:
            self.leave_unclean = True
        if self._marked and not self.leave_unclean:
            # Where this fails, the next open looks for something to recover, and finds nothing.
            with suppress(OSError):
                remove_file(self.disk, self.root, UNCLEAN_FILE)
        elif self.leave_unclean:
            # A full disk may have had no space for the mark at first.
            with suppress(OSError):
                if not self.root.holds(UNCLEAN_FILE):
                    write_new_file(self.disk, self.root, UNCLEAN_FILE, b"", durable=True)

    def abandon(self) -> None:
        """Close without any change to the disk, as a crash would; for tests and simulators."""
        self.ledgers.close()
        self._release_staging_root()
        self._lock.release()
        self.root.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, LogStoreError):
            self.leave_unclean = True
        self.close()


_BEFORE_FORMAT = frozenset({STAGING_DIR, ".lock", f"{meta_properties.FILE_NAME}{TEMPORARY}", "lost+found"})
"""Entries that an interrupted format, or mkfs, leaves in an otherwise empty directory."""


def failure(what: str, error: OSError, *, is_open: bool = True) -> LogStoreError:
    """Make the error for a failure of the system: of the disk itself, or of one request.

    ``is_open``: whether the log dir was open, so that its disk takes it offline; else it is not opened at all.
    """
    reason = os.strerror(error.errno) if error.errno else str(error)
    place = f" ({error.filename})" if isinstance(error.filename, str) else ""
    if error.errno in DISK_FAILURES and not is_open:
        mount = ", and mount its file system so that it can be written" if error.errno == errno.EROFS else ""
        return OfflineLogDirError(f"{what}: {reason}{place}; the log dir is not opened: see to its disk first{mount}")
    if error.errno in DISK_FAILURES:
        return OfflineLogDirError(f"{what}: {reason}{place}; the log dir is offline until it is opened again")
    return ChangeFailedError(f"{what}: {reason}{place}; nothing was changed")


def _read_known_identity(path: str, expected: ExpectedIdentity | None) -> MetaProperties:
    """Read the identity of a log dir; raises as :meth:`LogDir.open`."""
    found = read_identity(path, expected)
    if found.state is MetadataState.UNREADABLE:
        raise OfflineLogDirError(f"{path}: {found.problem}; see to it, and open the log dir again")
    if found.identity is None or found.state is not MetadataState.OK:
        raise NotALogDirError(f"{path}: {found.problem}; nothing is changed in a log dir that is not known")
    return found.identity


def _locked(root: Directory, disk: Disk, before_made: Callable[[], object] = lambda: None) -> Lock:
    try:
        return Lock.take(root, disk, before_made)
    except OSError as error:
        raised = failure(f"the lock of {root.path} cannot be taken", error, is_open=False)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            way_out = "to make room for that empty file, move a replica that nobody wants to another disk"
            raise ChangeFailedError(f"{raised}; {way_out}") from error
        raise raised from error


def _made_with_parents(path: str, disk: Disk) -> Directory:
    """Open a directory, and make missing ones; each is durable in its parent before the next is made."""
    existing, missing = path, list[str]()
    while not os.path.lexists(existing):
        existing, _, name = existing.rpartition("/")
        existing = existing or "/"
        missing.append(name)
    found = Directory.open(existing)
    for name in reversed(missing):
        with found:
            found = make_directory(disk, found, name)
    return found


def open_replica_parent(log_dir: LogDir, folder: str, partition: TopicPartition) -> Directory:
    """Open the parent directory of a replica: the log dir, the last tier of its namespace, or the prefix of its ID.

    The prefix directory of the by-topic-id scheme is made where it is missing. Tiers are made by creating a namespace.

    Raises:
        InvalidNamespaceError: the namespace was not created.
        OSError: the system refuses.
    """
    if log_dir.scheme is Scheme.BY_TOPIC_ID:
        with log_dir.root.below("") as root:
            return root.child(folder) if root.holds(folder) else make_directory(log_dir.disk, root, folder)
    try:
        parent = log_dir.root.below(folder)
        if not folder or parent.holds(MARKER_FILE):
            return parent
        parent.close()  # a partition dir with the name of a tier
    except (FileNotFoundError, NotADirectoryError):
        pass
    raise InvalidNamespaceError(
        f"namespace {partition.namespace} was not created in {log_dir.path} "
        f"({namespace_path(Namespace.parse(partition.namespace))} is no tier there): create it first"
    )
