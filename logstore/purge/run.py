"""Purges what is staged and due: in batches, several log dirs at a time, throttled, cancellable, resumable.

A directory is deleted only if a valid line of the ledger says that it is due. In which order, and why (DESIGN §5)::

    1  the ledger says *purging* for all that is due, behind one sync   from here on it can only be purged
    2  each directory is removed                                        a crash leaves some of them, whole or in part
    3  the staging root is synced                                       from here on none of them comes back
    4  the ledger says *purged*, or *kept* of what was not touched      the latter can be restored again, from a sync on

Directories that a broker left have no line, so a purge never takes them. Whatever fails or is cancelled stays staged
and due, and the next purge resumes it. With a clock that went backwards nothing is due. While a broker
runs on a log dir, what is staged beside it is purged all the same (:class:`StagingBeside`), and what is due in the log
dir itself is counted: it waits until the broker is stopped.
Source: DESIGN §5; USERS, pains 5, 6 and 8.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final, TypeAlias

from layout.directory_name import DirectoryName
from layout.ours import LedgerEvent
from logstore.errors import LogStoreError, UnsafePathError
from logstore.log_dir import (
    DISK_FAILURES,
    NO_SPACE,
    FallbackRecords,
    LogDir,
    LogDirView,
    OpenFiles,
    StagingBeside,
    find_open_files,
)
from logstore.parallel import paused_gc
from logstore.purge.eligibility import DueDirectory, PurgeRules, StagingRoot, measure_removal
from logstore.purge.report import HeldFile, KeepReason, KeptDirectory, LogDirPurge, Purged, PurgeReport
from logstore.purge.workers import PurgeWorkers
from logstore.staging import Placement, RootLedger, note_event, staged_names, staging_roots
from logstore.tunables import PURGE_WORKERS

logger = logging.getLogger(__name__)

_WITHOUT_ROOM: Final = 32
"""Directories that are purged at a time where a full disk has no room for the lines of all."""

PurgedLogDir: TypeAlias = LogDir | StagingBeside


def purge(
    log_dirs: Sequence[PurgedLogDir],
    rules: PurgeRules,
    *,
    workers: int = PURGE_WORKERS,
    fallback: FallbackRecords | None = None,
    look_at_processes: bool = True,
    may_fork: bool = False,
) -> PurgeReport:
    """Purge what is due in several log dirs, those on different disks at the same time.

    A failure in one log dir is reported in its part of the report, and the others go on.

    Args:
        log_dirs: open, and changed by nobody else meanwhile; or only what is staged beside them is.
        rules: of the purge.
        workers: number of workers on each disk; each removes several files at once where it waits for the disk.
        fallback: the fallback records.
        look_at_processes: find the processes that hold files of the purged directories; done only when something is
            due.
        may_fork: use processes as the workers of a large purge; threads share an interpreter. Not for a program that
            must not be forked.
    """
    runs = [
        _LogDirPurger(log_dir, rules, workers, fallback or FallbackRecords(None), look_at_processes, may_fork=may_fork)
        for log_dir in log_dirs
    ]
    disks: dict[int, list[_LogDirPurger]] = {}
    for run in runs:
        disks.setdefault(run.device, []).append(run)

    def purge_disk(on_disk: list[_LogDirPurger]) -> None:
        for run in on_disk:
            run.purge()

    if len(disks) == 1:
        purge_disk(runs)
    elif disks:
        with ThreadPoolExecutor(len(disks), thread_name_prefix="purge") as pool:
            list(pool.map(purge_disk, disks.values()))
    return PurgeReport(tuple(run.report for run in runs))


def purge_steps(log_dir: LogDir, rules: PurgeRules, *, fallback: FallbackRecords | None = None) -> Iterator[Purged]:
    """Purge one due directory at each step, durably; for simulators, which do other work in between.

    Raises:
        OfflineLogDirError, ChangeFailedError: the disk fails, or the system refuses.
    """
    run = _LogDirPurger(log_dir, rules, 1, fallback or FallbackRecords(None), look_at_processes=False)
    yield from run.steps()


def planned_purge(
    log_dir: LogDirView, rules: PurgeRules, fallback: FallbackRecords | None = None, *, beside: bool = False
) -> LogDirPurge:
    """Report what a purge would do now, without doing it; no lock is needed.

    ``held`` lists the files that processes hold, whose space would not be freed yet.

    Args:
        log_dir: open to be read.
        rules: of the purge.
        fallback: the fallback records.
        beside: the log dir is in use, so that only what is staged beside it would go.

    Raises:
        OSError: from the system.
    """
    report = LogDirPurge(log_dir.path)
    open_files = find_open_files(log_dir.root.device)
    report.unseen_processes = open_files.unseen
    for staging, names in _staging_roots(log_dir, rules, fallback or FallbackRecords(None)):
        staging.holders = open_files.holders
        for each in _judged(staging, names):
            judged = each if isinstance(each, KeptDirectory) else staging.kept_in_use(each) or each
            if isinstance(judged, KeptDirectory):
                report.keep(judged)
            elif beside and staging.placement is not Placement.SIBLING:
                report.waiting += 1
            else:
                _measure(staging, judged, open_files, report)
    return _sorted(report)


def _measure(staging: StagingRoot, due: DueDirectory, open_files: OpenFiles, report: LogDirPurge) -> None:
    """Enter in a report what a purge of a directory would remove."""
    location = staging.location(due.name)
    try:
        with staging.root.child(due.name) as directory:
            found = measure_removal(directory, staging.holders)
    except FileNotFoundError:
        return
    except UnsafePathError as error:
        report.failures.append(f"{location} is not purged whole: {error}")
        return
    report.purged.append(Purged(location, due.record, found.files, found.bytes))
    report.held += _held(location, found, open_files)


class _LogDirPurger:
    """The purge of one log dir."""

    def __init__(
        self,
        log_dir: PurgedLogDir,
        rules: PurgeRules,
        workers: int,
        fallback: FallbackRecords,
        look_at_processes: bool,
        *,
        may_fork: bool = False,
    ) -> None:
        self.log_dir, self.rules, self.fallback = log_dir, rules, fallback
        self.device = log_dir.root.device
        self.report = LogDirPurge(log_dir.path)
        self._workers, self._may_fork = workers, may_fork
        self._open_files: OpenFiles | None = None if look_at_processes else OpenFiles()
        self._held: list[HeldFile] = []

    def purge(self) -> None:
        """Purge the log dir; failures go to the report."""
        report = self.report
        free = _free_bytes(self.log_dir)
        try:
            self.log_dir.check_online()
            for staging, names in _staging_roots(self.log_dir, self.rules, self.fallback):
                if isinstance(self.log_dir, StagingBeside) and staging.placement is not Placement.SIBLING:
                    report.waiting += len(self._due(staging, names))
                    continue
                if isinstance(self.log_dir, StagingBeside) and not self.log_dir.is_locked:
                    continue  # it was made after this purge began, by whoever holds the log dir
                self._purge_root(staging, names)
        except LogStoreError as error:
            report.error = str(error)
        except OSError as error:
            report.error = str(self.log_dir.failed("what is staged cannot be purged", error))
        if free is not None and (report.purged or report.partly_bytes):
            after = _free_bytes(self.log_dir)
            report.freed_bytes = None if after is None else after - free
        self._check_held_again()
        _sorted(report)

    def steps(self) -> Iterator[Purged]:
        """Purge one directory at a time."""
        for staging, names in _staging_roots(self.log_dir, self.rules, self.fallback):
            # By name, so that a simulation does not depend on the order of inodes; one at a time, the order costs
            # nothing.
            for name in sorted(names, key=lambda each: each[0].text):
                before = len(self.report.purged)
                self._purge_root(staging, [name])
                yield from self.report.purged[before:]

    def _due(self, staging: StagingRoot, names: list[tuple[DirectoryName, int]]) -> list[DueDirectory]:
        """Find the directories that may go; the others are reported here."""
        found = []
        with paused_gc():
            for judged in _judged(staging, names):
                if isinstance(judged, DueDirectory):
                    found.append(judged)
                else:
                    self.report.keep(judged)
        return found

    def _purge_root(self, staging: StagingRoot, names: list[tuple[DirectoryName, int]]) -> None:
        """Purge one staging root; where nothing is due, nothing is changed."""
        left = self._due(staging, names)
        if not left:
            return
        if self._open_files is None:
            self._open_files = find_open_files(self.device)
            self.report.unseen_processes = self._open_files.unseen
        staging.holders = self._open_files.holders
        in_use = {due.name: kept for due in left if (kept := staging.kept_in_use(due)) is not None}
        for kept in in_use.values():
            self.report.keep(kept)
        left = [due for due in left if due.name not in in_use]
        with self.log_dir.changing("what is staged cannot be purged"):
            while left:
                announced = self._announced(staging, left)
                batch = left[: announced or _WITHOUT_ROOM]
                left = left[len(batch) :]
                self._purge_batch(staging, batch, is_announced=announced > 0)
                if self.report.cancelled:
                    # One of two ledgers may have had room to announce them, and is not to say so for ever.
                    self._note_kept(staging, left)
                    return

    def _announced(self, staging: StagingRoot, due: list[DueDirectory]) -> int:
        """Step 1: say in the ledger that directories are purged; gives of how many, from the first one on.

        Raises:
            OSError: the ledger cannot be written, for another reason than lack of space.
        """
        for number in (len(due), _WITHOUT_ROOM):
            names = [each.name for each in due[:number] if each.record is not None and not each.was_begun]
            try:
                self._note(staging, LedgerEvent.PURGING, names, durable=True)
            except OSError as error:
                if error.errno not in NO_SPACE:
                    raise
            else:
                return number
        logger.warning(
            "%s: there is no room to note that a purge is under way: if it is cut short, do not restore what is due",
            staging.root.path,
        )
        return 0

    def _note(self, staging: StagingRoot, event: LedgerEvent, names: list[str], *, durable: bool) -> None:
        if names:
            with paused_gc():
                known = staging.ledger.own
                note_event(self.log_dir, staging.root, self.fallback, event, names, durable=durable, known=known)

    def _purge_batch(self, staging: StagingRoot, due: list[DueDirectory], *, is_announced: bool) -> None:
        """Steps 2 to 4. Raises OSError where the disk fails."""
        workers = PurgeWorkers(staging, self.log_dir.disk, self._workers, may_fork=self._may_fork)
        unconfirmed: str | None = "the disk failed"
        try:
            try:
                workers.purge(due)
            finally:
                unconfirmed = self._unconfirmed(staging, workers.done)
        finally:
            self.report.cancelled |= workers.cancelled
            with paused_gc():
                for each in workers.done:
                    self._report(staging, each, unconfirmed)
        if unconfirmed is not None:
            self.report.failures.append(unconfirmed)
        tried = {each.name: each for each in workers.done}
        recorded = [tried.get(each.name, each) for each in due if each.record is not None]
        gone = [each.name for each in recorded if each.removed and unconfirmed is None]
        left = [each for each in recorded if not each.removed or unconfirmed is not None]
        try:
            if not is_announced:  # there may be room by now
                begun = [each.name for each in left if _is_begun(each)]
                self._note(staging, LedgerEvent.PURGING, begun, durable=True)
            self._note(staging, LedgerEvent.PURGED, gone, durable=not is_announced)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
        self._note_kept(staging, left)

    def _note_kept(self, staging: StagingRoot, due: list[DueDirectory]) -> None:
        """Say of directories that this purge did not touch that they are staged as before, as far as there is room.

        Durably, for a crash after a restore must find that it was restorable, and not that it was purged.
        """
        whole = [each.name for each in due if each.record is not None and not each.was_begun and not _is_begun(each)]
        try:
            self._note(staging, LedgerEvent.KEPT, whole, durable=True)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise

    def _unconfirmed(self, staging: StagingRoot, done: list[DueDirectory]) -> str | None:
        """Step 3; gives the reason why the disk does not confirm it. Raises OSError where it fails."""
        removed = sum(each.removed for each in done)
        if not removed:
            return None
        try:
            self.log_dir.disk.sync(staging.root.descriptor)
        except OSError as error:
            if error.errno in DISK_FAILURES:
                raise
            return (
                f"{staging.root.path}: {removed} directories were removed, and the disk does not confirm it "
                f"({os.strerror(error.errno or 0)})"
            )
        return None

    def _report(self, staging: StagingRoot, due: DueDirectory, unconfirmed: str | None) -> None:
        """Take the result for one directory into the report."""
        report, location = self.report, staging.location(due.name)
        if due.held:
            self._held += _held(location, due, self._open_files or OpenFiles())
        report.cancelled |= due.cancelled
        if due.removed and unconfirmed is None:
            report.purged.append(Purged(location, due.record, due.files, due.bytes))
            return
        report.partly_bytes += due.bytes
        report.failures += [due.problem] if due.problem else []

    def _check_held_again(self) -> None:
        """Report the files that are still held, without those that were closed meanwhile."""
        if self._held:
            still = find_open_files(self.device, {held.process.pid for held in self._held}).holders
            self.report.held = [held for held in self._held if held.process in still.get(held.inode, ())]


def _is_begun(due: DueDirectory) -> bool:
    """Whether a directory was touched, or is gone."""
    return due.touched or due.removed


def _staging_roots(
    log_dir: LogDirView, rules: PurgeRules, fallback: FallbackRecords
) -> Iterator[tuple[StagingRoot, list[tuple[DirectoryName, int]]]]:
    """Open the staging roots of a log dir one at a time, each with its directories and their inodes.

    One in which nothing lies is passed over, so that a purge that finds nothing to do reads no ledger.
    """
    with closing(staging_roots(log_dir)) as roots:
        for placement, root in roots:
            if rules.placements is None or placement in rules.placements:
                with paused_gc():
                    names = staged_names(root, placement)
                    if not names:
                        continue
                    ledger = RootLedger(log_dir, root, fallback)
                yield StagingRoot(log_dir, placement, root, rules, ledger), names


def _judged(staging: StagingRoot, names: list[tuple[DirectoryName, int]]) -> Iterator[DueDirectory | KeptDirectory]:
    """Judge the directories of a staging root, except those that are not selected or gone."""
    for name, inode in names:
        try:
            judged = staging.judge(name, inode)
        except UnsafePathError as error:
            judged = KeptDirectory(staging.location(name.text), KeepReason.DAMAGED_RECORD, str(error))
        if judged is not None:
            yield judged


def _held(location: str, due: DueDirectory, open_files: OpenFiles) -> list[HeldFile]:
    return [
        HeldFile(process, f"{location}/{name}", inode, number_of_bytes)
        for inode, name, number_of_bytes in due.held
        for process in open_files.holders.get(inode, ())
    ]


def _free_bytes(log_dir: PurgedLogDir) -> int | None:
    try:
        status = os.fstatvfs(log_dir.root.descriptor)
    except OSError:
        return None
    return status.f_bfree * status.f_frsize


def _sorted(report: LogDirPurge) -> LogDirPurge:
    """Sort a report, so that it does not depend on inodes and threads."""
    report.purged.sort(key=lambda purged: purged.location)
    report.kept.sort(key=lambda kept: kept.location)
    report.failures.sort()
    report.held.sort(key=lambda held: (held.name, held.process.pid))
    return report
