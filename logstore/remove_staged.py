"""Removes one staged directory: what is in it first, its record last, so that a purge can stop anywhere and resume.

In which order, and why (DESIGN §5)::

    1  empty     everything but the record goes               a crash leaves a staged directory that is still due
    2  (caller)  one barrier for many directories             from here on nothing of it comes back
    3  finish    the record goes, then the directory          a crash leaves it with its record, empty, or gone
    4  (caller)  the staging root is synced                   from here on it is gone

Un-synced removals may come back each by itself, so without the barrier the record could be lost while data is kept,
and nothing would say any more when that may go. Every directory is judged by what lies there at that moment, through an
open descriptor: whether its record is valid, speaks of it, and is due. Nothing is followed: links, FIFOs and sockets
are unlinked, a mount point stops the removal. A large file is cut off from its end in steps, for one unlink of many
extents keeps a disk busy for long; but never one that has another name elsewhere, whose bytes somebody may want, or
that a process holds, which would fall over its end.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from layout.directory_name import DirectoryKind, DirectoryName
from layout.staged_record import FILE_NAME, StagedRecord
from layout.topic import TopicPartition
from logstore.directory import Directory
from logstore.durable import Disk
from logstore.errors import DamagedRecordError, UnsafePathError
from logstore.log_dir import DISK_FAILURES
from logstore.log_dir_view import LogDirView
from logstore.open_files import Process
from logstore.purge_report import Kept, Why
from logstore.staged import RecordReader, Staged
from logstore.staging_root import Placement, name_below_log_dir
from logstore.throttle import Throttle

STEP_BYTES: Final = 1 << 30
"""Bytes of a file that go at once, where nothing else is asked for."""

REOPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""For a directory that was judged a moment ago; that it is the same one is seen by its inode."""

_DEEPEST = 32
"""Levels of directories in a staged one. Kafka makes none; a tree of thousands would use up all descriptors."""


@dataclass(slots=True)
class Rules:
    """What a purge was asked for, the same for all directories.

    Attributes:
        now_ms: what is due at this time may go.
        throttle: how fast; None: as fast as it goes.
        cancel: set to stop it.
        step_bytes: larger files are truncated in steps of this.
        only: whether a directory is meant at all; None: every one is.
        before_due: take what is not due yet too.
        keep_held: leave directories alone of which a process holds a file.
        progress: told how many directories and bytes went since the last call; called from several threads.
    """

    now_ms: int
    throttle: Throttle | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    step_bytes: int = STEP_BYTES
    only: Callable[[Staged], bool] | None = None
    before_due: bool = False
    keep_held: bool = False
    progress: Callable[[int, int], None] | None = None


@dataclass(slots=True)
class Due:
    """A directory that may go, and what was removed of it so far."""

    name: str
    inode: int
    record: StagedRecord | None
    """None: it is empty already."""
    files: int = 0
    bytes: int = 0
    problem: str | None = None
    """Why it could not be emptied; None: it was."""
    cancelled: bool = False
    touched: bool = False
    """Something of it is gone, or about to go."""
    held: list[tuple[int, str, int]] = field(default_factory=list)
    """Inode, name and bytes of files that processes hold."""


class StagingRoot:
    """The staged directories of one staging root, looked at one by one; nothing is changed.

    Attributes:
        holders: inode of a file → the processes that hold it; filled in by whoever knows.
    """

    def __init__(
        self, log_dir: LogDirView, placement: Placement, root: Directory, rules: Rules, reader: RecordReader
    ) -> None:
        """Take an open staging root."""
        self.log_dir, self.placement, self.root = log_dir, placement, root
        self.rules, self._reader = rules, reader
        self._prefix = name_below_log_dir(log_dir, placement, "-")[:-1]
        self.holders: Mapping[int, tuple[Process, ...]] = {}

    def judge(self, directory: Directory, name: DirectoryName) -> Due | Kept | None:
        """Whether a staged directory may go; None: it is not meant.

        Raises:
            OSError: it cannot be read.
        """
        rules, text, inode = self.rules, name.text, directory.key[1]
        try:
            record = self._reader.read(directory, name)
        except DamagedRecordError as error:
            return self._without_record(directory, name, str(error))
        if record is None:
            return (
                None if rules.only else self._kept(text, Why.NO_RECORD, "a broker left it; nothing says when it may go")
            )
        if rules.only is not None and not rules.only(self._staged(name, inode, record)):
            return None
        if not (rules.before_due or record.is_due(rules.now_ms)):
            return self._kept(text, Why.NOT_DUE, "its time has not come", record.due_ms)
        if rules.keep_held and self.holders:
            holders = {
                str(process) for held in weigh(directory, self.holders).held for process in self.holders[held[0]]
            }
            if holders:
                return self._kept(text, Why.IN_USE, f"held open by {', '.join(sorted(holders))}", record.due_ms)
        return Due(text, inode, record)

    def _without_record(self, directory: Directory, name: DirectoryName, problem: str) -> Due | Kept | None:
        """One whose record is no use stays; an empty one that we staged is what the last step of a purge leaves."""
        names = os.listdir(directory.descriptor)
        if not names and name.kind is DirectoryKind.STAGED:
            return Due(name.text, directory.key[1], None)
        if self.rules.only is not None:
            return None
        return self._kept(name.text, Why.DAMAGED_RECORD if FILE_NAME in names else Why.NO_RECORD, problem)

    def _kept(self, name: str, why: Why, reason: str, due_ms: int | None = None) -> Kept:
        return Kept(self.location(name), why, reason, due_ms)

    def location(self, name: str) -> str:
        """How a scan calls a directory of this staging root."""
        return self._prefix + name

    def _staged(self, name: DirectoryName, inode: int, record: StagedRecord) -> Staged:
        partition = TopicPartition(record.topic, record.partition)
        return Staged(
            log_dir=self.log_dir.path,
            placement=self.placement,
            name=name.text,
            location=self.location(name.text),
            record=record,
            problem=None,
            topic_id=record.topic_id,
            partition=partition,
            inode=inode,
        )


class Removal:
    """Removes the directories of one staging root. Its methods may be called from several threads."""

    def __init__(self, staging: StagingRoot, disk: Disk) -> None:
        """Take a staging root of a log dir that is being changed."""
        self.staging = staging
        self._disk, self._rules, self._root = disk, staging.rules, staging.root

    def empty(self, name: DirectoryName) -> Due | Kept | None:
        """Remove all but the record of a directory, if it may go; None: it is not meant, or is gone.

        What cannot be removed is told in ``problem``, and the record stays.

        Raises:
            OSError: the disk fails.
        """
        due: Due | None = None
        try:
            with self._root.child(name.text) as directory:
                judged = self.staging.judge(directory, name)
                if not isinstance(judged, Due) or judged.record is None:
                    return judged
                due = judged
                self._remove_contents(directory, due, 0)
        except FileNotFoundError:
            return due
        except (OSError, UnsafePathError) as error:
            problem = _problem(error)
            if due is None:
                return Kept(self.staging.location(name.text), Why.DAMAGED_RECORD, problem)
            due.problem = f"{self.staging.location(name.text)} is not purged whole: {problem}"
        return due

    def finish(self, due: Due) -> bool:
        """Remove the record of an emptied directory, then the directory; False: its record lay outside.

        Raises:
            OSError: the disk fails; what else goes wrong is told in ``problem``.
        """
        inside = True
        try:
            descriptor = os.open(due.name, REOPEN, dir_fd=self._root.descriptor)
            try:
                status = os.fstat(descriptor)
                if (status.st_dev, status.st_ino) != (self._root.device, due.inode):
                    raise UnsafePathError("another directory has its name by now")
                try:
                    self._disk.unlink(descriptor, FILE_NAME)
                except FileNotFoundError:
                    inside = False
            finally:
                os.close(descriptor)
            self._disk.rmdir(self._root.descriptor, due.name)
            if self._rules.progress is not None:
                self._rules.progress(1, 0)
        except (OSError, UnsafePathError) as error:
            due.problem = f"{self.staging.location(due.name)} is not purged whole: {_problem(error)}"
        return inside

    def _remove_contents(self, directory: Directory, due: Due, depth: int) -> None:
        """Remove what is in a directory, other directories first: where one is not safe, nothing else is touched."""
        with os.scandir(directory.descriptor) as found:
            entries = list(found)
        files = []
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                files.append(entry)
            elif not due.cancelled:
                self._remove_directory(directory, entry.name, due, depth + 1)
        self._remove_files(directory, files, due, None if depth else FILE_NAME)

    def _remove_directory(self, parent: Directory, name: str, due: Due, depth: int) -> None:
        _check_depth(depth)
        with parent.child(name) as inner:
            self._remove_contents(inner, due, depth)
        if not due.cancelled:
            due.touched = True
            self._disk.rmdir(parent.descriptor, name)

    def _remove_files(self, directory: Directory, files: list[os.DirEntry[str]], due: Due, spared: str | None) -> None:
        """Remove all that is no directory, except one name; most of a purge's time is spent here."""
        unlink, descriptor, holders, rules = self._disk.unlink, directory.descriptor, self.staging.holders, self._rules
        for entry in files:
            name = entry.name
            if name == spared:
                continue
            status = entry.stat(follow_symlinks=False)
            weight = status.st_blocks * 512 if status.st_nlink == 1 else 0
            if status.st_ino in holders:
                due.held.append((status.st_ino, name, weight))
            elif weight > rules.step_bytes and stat.S_ISREG(status.st_mode):
                weight = self._shorten(directory, name, status, due)
            due.cancelled = due.cancelled or not self._may_go_on(weight, 1)
            if due.cancelled:
                return
            due.touched = True
            unlink(descriptor, name)
            due.files += 1
            due.bytes += weight
            if rules.progress is not None:
                rules.progress(0, weight)

    def _may_go_on(self, number_of_bytes: int, unlinks: int) -> bool:
        """Wait for the throttle; False: the purge is cancelled."""
        if self._rules.throttle is None:
            return not self._rules.cancel.is_set()
        return self._rules.throttle.take(number_of_bytes, unlinks, self._rules.cancel)

    def _shorten(self, directory: Directory, name: str, status: os.stat_result, due: Due) -> int:
        """Cut a large file off from its end, step by step, until a step or less is left; its bytes that are left.

        Holes cost nothing, so a step is a part of the length that holds about as many bytes as a step may.
        """
        weight, step = _weight(status), self._rules.step_bytes
        steps = -(-weight // step)
        descriptor = self._disk.open_to_change(directory.descriptor, name)
        try:
            if not os.path.samestat(os.fstat(descriptor), status):
                raise UnsafePathError(f"{name!r:.60} was replaced while it was looked at")
            for left in range(steps - 1, 0, -1):
                if not self._may_go_on(step, 0):
                    due.cancelled = True
                    break
                due.touched = True
                self._disk.truncate(descriptor, status.st_size * left // steps)
                before, weight = weight, _weight(os.fstat(descriptor))
                due.bytes += before - weight
                if self._rules.progress is not None:
                    self._rules.progress(0, before - weight)
        finally:
            os.close(descriptor)
        return weight


def weigh(directory: Directory, holders: Mapping[int, tuple[Process, ...]], depth: int = 0) -> Due:
    """What a removal would give back: files, bytes, and what processes hold of them. Nothing is changed.

    Raises:
        UnsafePathError: there is a mount point in it, or directories nested too deep.
        OSError: the system refuses.
    """
    _check_depth(depth)
    total = Due("", directory.key[1], None)
    with os.scandir(directory.descriptor) as found:
        entries = list(found)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            with directory.child(entry.name) as inner:
                below = weigh(inner, holders, depth + 1)
            total.files += below.files
            total.bytes += below.bytes
            total.held += below.held
        elif depth or entry.name != FILE_NAME:
            status = entry.stat(follow_symlinks=False)
            total.files += 1
            total.bytes += _weight(status)
            if status.st_ino in holders:
                total.held.append((status.st_ino, entry.name, _weight(status)))
    return total


def _weight(status: os.stat_result) -> int:
    """What unlinking gives back: allocated bytes, or nothing while the file has another name."""
    return status.st_blocks * 512 if status.st_nlink == 1 else 0


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise UnsafePathError(f"its directories are nested more than {_DEEPEST} deep, which no broker does")


def _problem(error: OSError | UnsafePathError) -> str:
    """Why one directory is left; a failure of the disk itself is raised on, for it concerns them all."""
    if isinstance(error, UnsafePathError):
        return str(error)
    if error.errno in DISK_FAILURES:
        raise error
    if error.errno == errno.ENOTEMPTY:
        return "something new appeared in it while it was removed"
    return os.strerror(error.errno) if error.errno else str(error)
