"""Purges what is staged and due: in batches, several log dirs at a time, throttled, cancellable, resumable.

A directory is deleted only if it is due and carries a valid record, and the record is removed last (``remove`` explains
the order). Directories that a broker left have no record, so a purge never takes them. Whatever fails or is cancelled
stays staged and due, and the next purge resumes it. With a clock that went backwards nothing is due. While a broker
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

from layout.directory_name import DirectoryKind, DirectoryName, parse, parse_staged
from layout.scheme import PURGE_NOTE_FILE
from logstore.errors import LogStoreError, UnsafePathError
from logstore.fs import Directory
from logstore.log_dir import LogDir, LogDirView, OpenFiles, StagingBeside, find_open_files
from logstore.purge.batches import PurgeBatch
from logstore.purge.eligibility import DueDirectory, PurgeRules, StagingRoot, measure_removal
from logstore.purge.report import HeldFile, KeepReason, KeptDirectory, LogDirPurge, Purged, PurgeReport
from logstore.purge.workers import PurgeWorkers
from logstore.staging import (
    EVERYTHING_DUE,
    FallbackRecords,
    Placement,
    PurgeNote,
    RecordReader,
    begin_purge,
    drop_spent_note,
    end_purge,
    find_staged,
    staging_roots,
)

logger = logging.getLogger(__name__)

DEFAULT_WORKERS: Final = 2
"""Workers on each disk."""

PurgedLogDir: TypeAlias = LogDir | StagingBeside


def purge(
    log_dirs: Sequence[PurgedLogDir],
    rules: PurgeRules,
    *,
    workers: int = DEFAULT_WORKERS,
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
        for name in names:
            try:
                with staging.root.child(name.text) as directory:
                    judged = staging.judge(directory, name)
                    if isinstance(judged, KeptDirectory):
                        report.keep(judged)
                    elif judged is not None and beside and staging.placement is not Placement.SIBLING:
                        report.waiting += 1
                    elif judged is not None:
                        found = measure_removal(directory, staging.holders)
                        location = staging.location(name.text)
                        report.purged.append(Purged(location, judged.record, found.files, found.bytes))
                        report.held += _held(location, found, open_files)
            except FileNotFoundError:
                continue
            except UnsafePathError as error:
                report.failures.append(f"{staging.location(name.text)} is not purged whole: {error}")
    return _sorted(report)


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
        self._former: PurgeNote | None = None
        self._partly: dict[str, int] = {}

    def purge(self) -> None:
        """Purge the log dir; failures go to the report."""
        report = self.report
        free = _free_bytes(self.log_dir)
        try:
            self.log_dir.check_online()
            for staging, names in _staging_roots(self.log_dir, self.rules, self.fallback):
                if isinstance(self.log_dir, StagingBeside) and staging.placement is not Placement.SIBLING:
                    self._count_waiting(staging, names)
                    continue
                if isinstance(self.log_dir, StagingBeside) and not self.log_dir.is_locked:
                    continue  # it was made after this purge began, by whoever holds the log dir
                self._purge_root(staging, names)
                self._note_end(staging, all_judged=self.rules.only is None)
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
            for name in sorted(names, key=lambda name: name.text):
                before = len(self.report.purged)
                self._purge_root(staging, [name])
                self._note_end(staging, all_judged=False)
                yield from self.report.purged[before:]

    def _purge_root(self, staging: StagingRoot, names: list[DirectoryName]) -> None:
        """Purge one staging root; where nothing is due, only the note of a purge that is over by now is removed."""
        first = self._first_due(staging, names)
        if first == len(names):
            self._drop_spent_note(staging)
            return
        if self._open_files is None:
            self._open_files = find_open_files(self.device)
            self.report.unseen_processes = self._open_files.unseen
        staging.holders = self._open_files.holders
        with self.log_dir.changing("what is staged cannot be purged"):
            due_by_ms = EVERYTHING_DUE if self.rules.before_due else self.rules.now_ms
            self._former = begin_purge(self.log_dir.disk, self._note_home(staging), due_by_ms)
            self._partly = {}
            workers = PurgeWorkers(staging, self.log_dir.disk, self._workers, may_fork=self._may_fork)
            try:
                workers.purge(names[first:])
            finally:
                self.report.cancelled |= workers.cancelled
                for batch in workers.gone:
                    self._report_batch(staging, batch)

    def _count_waiting(self, staging: StagingRoot, names: list[DirectoryName]) -> None:
        """Count what is due in a staging root that is left alone; what is kept for other reasons is reported."""
        left = names
        while left:
            first = self._first_due(staging, left)
            self.report.waiting += first < len(left)
            left = left[first + 1 :]

    def _drop_spent_note(self, staging: StagingRoot) -> None:
        home = self._note_home(staging)
        if home.holds(PURGE_NOTE_FILE):
            with self.log_dir.changing("the note of an earlier purge cannot be removed"):
                beside = staging.placement is Placement.SIBLING
                found = find_staged(self.log_dir, self.fallback)
                of_home = [each for each in found if (each.placement is Placement.SIBLING) is beside]
                drop_spent_note(self.log_dir.disk, home, of_home)

    def _note_home(self, staging: StagingRoot) -> Directory:
        """Give the directory whose lock the purge holds, where its note belongs."""
        return staging.root if staging.placement is Placement.SIBLING else self.log_dir.root

    def _note_end(self, staging: StagingRoot, *, all_judged: bool) -> None:
        """Note which directories are partly gone, by this purge or by an earlier one that this one did not complete."""
        former = self._former
        if former is None:
            return
        report, self._former = self.report, None
        left_alone = any(kept.why in (KeepReason.IN_USE, KeepReason.WANTED) for kept in report.kept)
        is_whole = all_judged and report.is_whole and not left_alone
        gone = {purged.location for purged in report.purged}
        partly = {**former.directories, **self._partly}
        with self.log_dir.changing("the end of a purge cannot be noted"):
            named = {location: staged_ms for location, staged_ms in partly.items() if location not in gone}
            note = PurgeNote(None if is_whole else former.due_by_ms, named)
            end_purge(self.log_dir.disk, self._note_home(staging), note)

    def _note_partly_gone(self, staging: StagingRoot, due: DueDirectory) -> None:
        self.report.partly_bytes += due.bytes
        if due.record is not None and due.touched:
            self._partly[staging.location(due.name)] = due.record.staged_ms

    def _first_due(self, staging: StagingRoot, names: list[DirectoryName]) -> int:
        """Find the position of the first directory that may go; those before it are reported here."""
        for position, name in enumerate(names):
            try:
                with staging.root.child(name.text) as directory:
                    judged = staging.judge(directory, name)
            except FileNotFoundError:
                continue
            except UnsafePathError as error:
                judged = KeptDirectory(staging.location(name.text), KeepReason.DAMAGED_RECORD, str(error))
            if isinstance(judged, DueDirectory):
                return position
            if judged is not None:
                self.report.keep(judged)
        return len(names)

    def _report_batch(self, staging: StagingRoot, batch: PurgeBatch) -> None:
        """Take the results of a batch into the report."""
        report = self.report
        for kept in batch.kept:
            report.keep(kept)
        for due in (*batch.emptied, *batch.partly):
            if due.held:
                self._held += _held(staging.location(due.name), due, self._open_files or OpenFiles())
        if batch.failure is not None:
            report.failures.append(batch.failure)
        left, gone = (batch.partly, batch.emptied) if batch.failure is None else ([*batch.partly, *batch.emptied], [])
        for due in left:
            self._note_partly_gone(staging, due)
            report.failures += [due.problem] if due.problem else []
            report.cancelled |= due.cancelled
        for due, had_record_inside in zip(gone, batch.had_record_inside, strict=True):
            if due.problem is not None:
                self.log_dir.leave_unclean = True  # where only the empty directory is left, the next open removes it
                self._note_partly_gone(staging, due)
                report.failures.append(due.problem)
                continue
            if due.record is not None and not had_record_inside:
                self.fallback.remove(self.log_dir, due.name)
            report.purged.append(Purged(staging.location(due.name), due.record, due.files, due.bytes))

    def _check_held_again(self) -> None:
        """Report the files that are still held, without those that were closed meanwhile."""
        if self._held:
            still = find_open_files(self.device, {held.process.pid for held in self._held}).holders
            self.report.held = [held for held in self._held if held.process in still.get(held.inode, ())]


def _staging_roots(
    log_dir: LogDirView, rules: PurgeRules, fallback: FallbackRecords
) -> Iterator[tuple[StagingRoot, list[DirectoryName]]]:
    """Open the staging roots of a log dir one at a time, each with its directories in the order of inodes."""
    reader = RecordReader(log_dir, fallback)
    with closing(staging_roots(log_dir)) as roots:
        for placement, root in roots:
            if rules.placements is not None and placement not in rules.placements:
                continue
            yield StagingRoot(log_dir, placement, root, rules, reader), _names(root, placement)


def _names(root: Directory, placement: Placement) -> list[DirectoryName]:
    read = parse if placement is Placement.IN_PLACE else parse_staged
    names = map(read, root.directories())
    return [name for name in names if name.kind in (DirectoryKind.STAGED, DirectoryKind.STRAY)]


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
