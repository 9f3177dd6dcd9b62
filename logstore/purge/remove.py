"""Removes one staged directory of which the ledger says that a purge has begun, as a careful ``rm -rf``.

A crash may undo each removal by itself. What is left then is still *purging*: the next purge goes on with it, and it is
never restored.
Nothing is followed: links, FIFOs and sockets are unlinked, a mount point stops the removal. A large file is truncated
in steps before it is unlinked, because one unlink of many extents keeps a disk busy for long. A file with another name
elsewhere is never truncated, because that name may be in use; nor is a file that a process holds open, because the
process would fail at its new end.
"""

from __future__ import annotations

import errno
import os
import stat

from logstore.errors import UnsafePathError
from logstore.fs import Directory, Disk
from logstore.log_dir import DISK_FAILURES
from logstore.purge.eligibility import DueDirectory, StagingRoot, check_depth, weight_of


class Removal:
    """Removes the directories of one staging root. Its methods may be called from several threads."""

    def __init__(self, staging: StagingRoot, disk: Disk) -> None:
        """Take a staging root of a log dir that may be changed, and the disk it is on."""
        self.staging = staging
        self._disk, self._rules, self._root = disk, staging.rules, staging.root

    def remove(self, due: DueDirectory) -> bool:
        """Remove a directory with all that is in it; False: it is left, and ``problem`` says why.

        Raises:
            OSError: the disk fails.
        """
        try:
            with self._root.child(due.name) as directory:
                if directory.key[1] != due.inode:
                    raise UnsafePathError("another directory has its name by now")
                self._remove_contents(directory, due, 0)
                if due.cancelled:
                    return False
                # The last user of a directory frees its blocks. While it is open here, that is not rmdir, which would
                # free them while everybody else waits for the staging root.
                self._disk.rmdir(self._root.descriptor, due.name)
        except (OSError, UnsafePathError) as error:
            if not isinstance(error, FileNotFoundError) or self._root.holds(due.name):
                due.problem = f"{self.staging.location(due.name)} is not purged whole: {_problem(error)}"
                return False
        due.removed = True
        if self._rules.progress is not None:
            self._rules.progress(1, 0)
        return True

    def _remove_contents(self, directory: Directory, due: DueDirectory, depth: int) -> None:
        """Remove what is in a directory, subdirectories first: if one is not safe, nothing else is touched."""
        with os.scandir(directory.descriptor) as found:
            entries = list(found)
        files = [entry for entry in entries if not entry.is_dir(follow_symlinks=False)]
        if len(files) < len(entries):
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    self._remove_directory(directory, entry.name, due, depth + 1)
        self._remove_files(directory, files, due)

    def _remove_directory(self, parent: Directory, name: str, due: DueDirectory, depth: int) -> None:
        check_depth(depth)
        with parent.child(name) as inner:
            self._remove_contents(inner, due, depth)
        if not due.cancelled:
            self._disk.rmdir(parent.descriptor, name)
            due.touched = True

    def _remove_files(self, directory: Directory, files: list[os.DirEntry[str]], due: DueDirectory) -> None:
        """Remove files; most of a purge's time is spent here."""
        unlink, descriptor, holders, rules = self._disk.unlink, directory.descriptor, self.staging.holders, self._rules
        is_free, is_cancelled = rules.throttle is None, rules.cancel.is_set
        for entry in files:
            name = entry.name
            status = entry.stat(follow_symlinks=False)
            weight = weight_of(status)
            if status.st_ino in holders:
                due.held.append((status.st_ino, name, weight))
            elif weight > rules.step_bytes and stat.S_ISREG(status.st_mode):
                weight = self._truncate(directory, name, status, due)
            if due.cancelled or (is_cancelled() if is_free else not self._may_continue(weight, 1)):
                due.cancelled = True
                return
            unlink(descriptor, name)
            due.touched = True
            due.files += 1
            due.bytes += weight
            if rules.progress is not None:
                rules.progress(0, weight)

    def _may_continue(self, number_of_bytes: int, unlinks: int) -> bool:
        """Wait for the throttle; False: the purge is cancelled."""
        if self._rules.throttle is None:
            return not self._rules.cancel.is_set()
        return self._rules.throttle.take(number_of_bytes, unlinks, self._rules.cancel)

    def _truncate(self, directory: Directory, name: str, status: os.stat_result, due: DueDirectory) -> int:
        """Truncate a large file step by step, until a step or less is left; gives the bytes that are left.

        Holes take no space, so a step is the part of the length that holds about ``step_bytes`` allocated bytes.
        """
        weight, step = weight_of(status), self._rules.step_bytes
        steps = -(-weight // step)
        descriptor = self._disk.open_to_change(directory.descriptor, name)
        try:
            if not os.path.samestat(os.fstat(descriptor), status):
                raise UnsafePathError(f"{name!r:.60} was replaced while it was looked at")
            for left in range(steps - 1, 0, -1):
                if not self._may_continue(step, 0):
                    due.cancelled = True
                    break
                self._disk.truncate(descriptor, status.st_size * left // steps)
                due.touched = True
                before, weight = weight, weight_of(os.fstat(descriptor))
                due.bytes += before - weight
                if self._rules.progress is not None:
                    self._rules.progress(0, before - weight)
        finally:
            os.close(descriptor)
        return weight


def _problem(error: OSError | UnsafePathError) -> str:
    """Say why one directory is left; a failure of the disk itself is raised, for it concerns all directories."""
    if isinstance(error, UnsafePathError):
        return str(error)
    if error.errno in DISK_FAILURES:
        raise error
    if error.errno == errno.ENOTEMPTY:
        return "something new appeared in it while it was removed"
    return os.strerror(error.errno) if error.errno else str(error)
