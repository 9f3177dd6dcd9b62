"""Scans all directories of a log dir, by as many processes as asked for and as many threads as pay.

Directories are scanned in units while the log dir is still listed. Workers return only the values that differ from row
to row. This process imports Arrow meanwhile, if rows are wanted, and makes batches as results come. When directories
vanished meanwhile, the log dir is listed once more, and new directories are scanned: so a directory that a live broker
renamed is found under its new name. Nearly all directories take the ``fast_path``; the others are scanned one by one
(``replica``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from layout.scheme import Scheme
from logstore.parallel import AdaptiveThreadPool, processors, spread
from logstore.rows import Columns, Row, by_column, concat_columns
from logstore.scan.duplicates import ReplicaSet
from logstore.scan.fast_path import FastPathResult, fast_path_columns, scan_fast
from logstore.scan.listing import Folder, FolderBatch, Listing, NameRule, batches_of, list_in_batches, list_log_dir
from logstore.scan.replica import ScanOptions, scan_directories
from logstore.tunables import (
    DIRECTORIES_PER_PIECE,
    DIRECTORIES_PER_UNIT,
    PROCESSES_PAY_FROM,
    WAITS_PAY_THREADS_FROM,
)

if TYPE_CHECKING:
    import pyarrow as pa


Piece = TypeVar("Piece")
"""What is made of the columns of one batch of directories."""


class WalkResult(NamedTuple):
    """The content of a log dir."""

    batches: list[pa.RecordBatch]
    """The rows of directories."""
    rows: list[Row]
    """The rows of everything else."""
    replicas: ReplicaSet
    """The replicas that the directories hold."""


_Task: TypeAlias = tuple[str, str, str, str, bool, list[str], list[int]]
"""A batch as it is sent: its folder's prefix, path, rule and namespace; whether its names are live; names, inodes."""

_PieceResult: TypeAlias = tuple[FastPathResult | None, Columns | None]
"""The values of one piece: either from the fast path, or as columns."""


def walk_log_dir(log_dir: str, scheme: Scheme | None, options: ScanOptions, jobs: int | None) -> WalkResult:
    """Scan every directory of a log dir into Arrow batches; the arguments and errors are those of :func:`walk`."""
    replicas = ReplicaSet()

    def batch(columns: Columns) -> pa.RecordBatch:
        # Imported here, while the workers scan, because Arrow takes as long as a scan of twenty thousand directories.
        from logstore.rows import columns_to_batch

        replicas.add(columns)
        return columns_to_batch(columns)

    batches, rows = walk(log_dir, scheme, options, jobs, batch)
    replicas.add(by_column(rows))  # a broker follows a link that has a replica's name
    return WalkResult(batches, rows, replicas)


def walk(
    log_dir: str, scheme: Scheme | None, options: ScanOptions, jobs: int | None, keep: Callable[[Columns], Piece]
) -> tuple[list[Piece], list[Row]]:
    """Scan every directory of a log dir.

    Args:
        log_dir: its path, without a slash at the end.
        scheme: the layout of a log dir of ours; None for a real broker's.
        options: what to read of each directory.
        jobs: processes that scan, while this one lists and makes batches; 0: this one scans too; None: as many as pay.
            A single unit of directories never pays for a process.
        keep: makes of the columns of a batch what is returned.

    Returns:
        What was made of the directories, batch by batch; and the rows of everything else.

    Raises:
        OSError: the log dir itself cannot be listed.
    """
    listing, found = Listing(), 0

    def counted(columns: Columns) -> Piece:
        nonlocal found
        found += len(columns[0])
        return keep(columns)

    folders = list_in_batches(log_dir, scheme, listing, DIRECTORIES_PER_UNIT)
    pieces = _walk_batches(log_dir, folders, options, jobs, counted)
    if found < sum(len(folder.names) for folder in listing.places if options.takes(folder)):
        again = list_log_dir(log_dir, scheme)
        new = batches_of(_new_folders(listing, again), DIRECTORIES_PER_UNIT)
        pieces += _walk_batches(log_dir, new, options, 0, keep)
        listing = again
    return pieces, listing.rows


def _new_folders(before: Listing, after: Listing) -> list[Folder]:
    """Reduce the folders of a second listing to names that the first one did not have."""
    seen = {(folder.prefix, name) for folder in before.places for name in folder.names}
    for folder in after.places:
        pairs = zip(folder.names, folder.inodes, strict=True)
        new = [(name, inode) for name, inode in pairs if (folder.prefix, name) not in seen]
        folder.names, folder.inodes = [name for name, _ in new], [inode for _, inode in new]
    return after.places


def _walk_batches(
    log_dir: str,
    batches: Iterable[FolderBatch],
    options: ScanOptions,
    jobs: int | None,
    keep: Callable[[Columns], Piece],
) -> list[Piece]:
    """Scan all directories of some batches; return what ``keep`` makes of each, in the same order."""
    listed: dict[int, FolderBatch] = {}
    entered = False

    def enter() -> None:
        """Change to the log dir, in a process that does nothing else: shorter paths save look-ups of parents."""
        nonlocal entered
        with suppress(OSError):
            os.chdir(log_dir)
            entered = True

    def scan_tasks(tasks: Iterable[tuple[int, _Task]]) -> Iterator[tuple[int, list[_PieceResult]]]:
        with AdaptiveThreadPool[tuple[Folder, bool, list[str], list[int]], _PieceResult](
            lambda piece: _scan_piece(options, *piece)
        ) as pool:
            for number, task in tasks:
                yield number, pool.map(_pieces(task, entered), WAITS_PAY_THREADS_FROM)

    def piece(number: int, results: Sequence[_PieceResult]) -> Piece:
        return keep(_columns(listed.pop(number), results, options))

    fewest = PROCESSES_PAY_FROM if jobs is None else DIRECTORIES_PER_UNIT + 1
    begun, tasks = _begin(_tasks((each for each in batches if options.takes(each.folder)), listed), fewest)
    jobs = processors() if jobs is None else jobs
    return spread(scan_tasks, tasks, 0 if begun < fewest else jobs, piece, enter)


def _tasks(batches: Iterable[FolderBatch], listed: dict[int, FolderBatch]) -> Iterator[_Task]:
    """Turn batches into tasks to send; put each batch into ``listed`` under its number."""
    for number, batch in enumerate(batches):
        listed[number] = batch
        folder, names, inodes, plain = batch
        yield folder.prefix, folder.path, folder.rule.value, folder.namespace, plain is not None, names, inodes


def _begin(tasks: Iterator[_Task], fewest: int) -> tuple[int, Iterator[_Task]]:
    """Draw tasks until they cover ``fewest`` directories; return the number of directories, and all tasks."""
    directories, begun = 0, list[_Task]()
    for task in tasks:
        begun.append(task)
        directories += len(task[-1])
        if directories >= fewest:
            break
    return directories, chain(begun, tasks)


def _pieces(task: _Task, entered: bool) -> list[tuple[Folder, bool, list[str], list[int]]]:
    """Cut a task into pieces, with paths for a process that may have changed to the log dir."""
    prefix, path, rule, namespace, live, names, inodes = task
    # A folder beside the log dir keeps its whole path: if the log dir was reached by a link, '..' is another folder.
    if entered and not prefix.startswith("../"):
        path = prefix
    folder = Folder(prefix, path, NameRule(rule), namespace)
    starts = range(0, len(names), DIRECTORIES_PER_PIECE)
    return [
        (folder, live, names[start : start + DIRECTORIES_PER_PIECE], inodes[start : start + DIRECTORIES_PER_PIECE])
        for start in starts
    ]


def _scan_piece(options: ScanOptions, folder: Folder, live: bool, names: list[str], inodes: list[int]) -> _PieceResult:
    fast = scan_fast(options, folder, names) if live else None
    if fast is not None:
        return fast, None
    return None, by_column(scan_directories(options, folder, list(zip(names, inodes, strict=True))))


def _columns(batch: FolderBatch, results: Sequence[_PieceResult], options: ScanOptions) -> Columns:
    """Join the columns of a batch from its pieces, in order."""
    fast = [found for found, _ in results if found is not None]
    if len(fast) == len(results):
        return fast_path_columns(batch, fast, options.recovery_points)
    pieces: list[Columns] = []
    for start, (found, columns) in zip(range(0, len(batch.names), DIRECTORIES_PER_PIECE), results, strict=True):
        if columns is not None:
            pieces.append(columns)
        elif found is not None:
            pieces.append(
                fast_path_columns(batch.part(start, start + DIRECTORIES_PER_PIECE), [found], options.recovery_points)
            )
    return concat_columns(pieces)
