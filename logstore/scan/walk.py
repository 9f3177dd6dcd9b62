"""Looks into all the directories of a log dir, by as many processes as asked for and as many threads as pay.

Unit after unit of directories is looked at while the log dir is still listed (``workers`` spreads them, ``pace``
chooses between one thread and many). Workers hand back what is peculiar to each directory; this process imports Arrow
meanwhile, and makes batches as results come. When directories vanished meanwhile, the log dir is listed once more, and
what is new is looked at: so a directory that a live broker renamed is seen under its new name. What one directory holds
is told by ``replica_dir``, and for nearly all of them by ``usual_replicas``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from layout.scheme import Scheme
from logstore.parallel import AdaptiveThreadPool, paused_gc, processors, spread
from logstore.rows import Columns, Row, by_column, concat_columns
from logstore.scan.duplicates import ReplicaSet
from logstore.scan.fast_path import FastPathResult, fast_path_columns, scan_fast
from logstore.scan.listing import Folder, FolderBatch, Listing, NameRule, batches_of, list_in_batches, list_log_dir
from logstore.scan.replica import ScanOptions, scan_directories

if TYPE_CHECKING:
    import pyarrow as pa

PAYS_TO_FORK = 8192
"""Directories below which a second process costs more than it saves."""

_UNIT = 2048
"""Directories that one process takes at a time."""

_PIECE = 64
"""Directories that one thread takes at a time, and that are looked at together while they are all usual."""

_FEWEST_WAITS = 8
"""Waits for the disk during one piece from which on threads pay. Warm there are none, cold there are hundreds."""


class WalkResult(NamedTuple):
    """What lies in a log dir."""

    batches: list[pa.RecordBatch]
    """The rows of directories."""
    rows: list[Row]
    """The rows of everything else."""
    census: ReplicaSet
    """The replicas that the directories hold."""


_Task: TypeAlias = tuple[str, str, str, str, bool, list[str], list[int]]
"""A batch as it is sent: its folder's prefix, path, rule and namespace; whether its names are live; names, inodes."""

_PieceResult: TypeAlias = tuple[FastPathResult | None, Columns | None]
"""What was found in some directories: one or the other."""


def walk_log_dir(log_dir: str, scheme: Scheme | None, options: ScanOptions, jobs: int | None) -> WalkResult:
    """Look into every directory of a log dir.

    Args:
        log_dir: its path, without a slash at the end.
        scheme: how it is laid out when it is ours; None for a real broker's.
        options: what to look for.
        jobs: processes that look, while this one lists and makes batches; 0: none, this one looks too; None: as many as
            pay. A unit of directories or less does not pay for any.

    Raises:
        OSError: the log dir itself cannot be listed.
    """
    listing, census = Listing(), ReplicaSet()
    with nullcontext() if jobs == 0 else paused_gc():
        batches = _walk_batches(log_dir, list_in_batches(log_dir, scheme, listing, _UNIT), options, jobs, census)
    if sum(batch.num_rows for batch in batches) < sum(len(folder.names) for folder in listing.places):
        again = list_log_dir(log_dir, scheme)
        new = batches_of(_new_folders(listing, again), _UNIT)
        batches += _walk_batches(log_dir, new, options, 0, census)
        listing = again
    census.add(by_column(listing.rows))  # a broker follows a link that has a replica's name
    return WalkResult(batches, listing.rows, census)


def _new_folders(before: Listing, after: Listing) -> list[Folder]:
    """The places of a second listing, with only what the first had not."""
    seen = {(folder.prefix, name) for folder in before.places for name in folder.names}
    for folder in after.places:
        pairs = zip(folder.names, folder.inodes, strict=True)
        new = [(name, inode) for name, inode in pairs if (folder.prefix, name) not in seen]
        folder.names, folder.inodes = [name for name, _ in new], [inode for _, inode in new]
    return after.places


def _walk_batches(
    log_dir: str, batches: Iterable[FolderBatch], options: ScanOptions, jobs: int | None, census: ReplicaSet
) -> list[pa.RecordBatch]:
    """Look into all directories of some batches; batches in their order."""
    listed: dict[int, FolderBatch] = {}
    entered = False

    def enter() -> None:
        """Go into the log dir, in a process that does nothing else: shorter paths save look-ups of those above it."""
        nonlocal entered
        with suppress(OSError):
            os.chdir(log_dir)
            entered = True

    def looked_at(tasks: Iterable[tuple[int, _Task]]) -> Iterator[tuple[int, list[_PieceResult]]]:
        with AdaptiveThreadPool[tuple[Folder, bool, list[str], list[int]], _PieceResult](
            lambda piece: _scan_piece(options, *piece)
        ) as pace:
            for number, task in tasks:
                yield number, pace.map(_pieces(task, entered), _FEWEST_WAITS)

    def batch(number: int, looks: Sequence[_PieceResult]) -> pa.RecordBatch:
        # Imported here, because Arrow takes as long as a look into twenty thousand directories: by now workers look.
        from logstore.rows import columns_to_batch

        columns = _columns(listed.pop(number), looks, options)
        census.add(columns)
        return columns_to_batch(columns)

    fewest = PAYS_TO_FORK if jobs is None else _UNIT + 1
    begun, tasks = _begin(_tasks(batches, listed), fewest)
    jobs = processors() if jobs is None else jobs
    return spread(looked_at, tasks, 0 if begun < fewest else jobs, batch, enter)


def _tasks(batches: Iterable[FolderBatch], listed: dict[int, FolderBatch]) -> Iterator[_Task]:
    """The batches as they are sent; they themselves are put into ``listed``, by their number."""
    for number, batch in enumerate(batches):
        listed[number] = batch
        folder, names, inodes, replicas = batch
        yield folder.prefix, folder.path, folder.rule.value, folder.namespace, replicas is not None, names, inodes


def _begin(tasks: Iterator[_Task], fewest: int) -> tuple[int, Iterator[_Task]]:
    """Begin with the tasks, until they concern so many directories; that number, and all the tasks."""
    directories, begun = 0, list[_Task]()
    for task in tasks:
        begun.append(task)
        directories += len(task[-1])
        if directories >= fewest:
            break
    return directories, chain(begun, tasks)


def _pieces(task: _Task, entered: bool) -> list[tuple[Folder, bool, list[str], list[int]]]:
    """Cut a task into pieces, as seen by a process that may have gone into the log dir."""
    prefix, path, reading, namespace, live, names, inodes = task
    # What lies beside a log dir keeps its whole path: if the log dir was reached by a link, '..' is another folder.
    if entered and not prefix.startswith("../"):
        path = prefix
    folder = Folder(prefix, path, NameRule(reading), namespace)
    starts = range(0, len(names), _PIECE)
    return [(folder, live, names[start : start + _PIECE], inodes[start : start + _PIECE]) for start in starts]


def _scan_piece(options: ScanOptions, folder: Folder, live: bool, names: list[str], inodes: list[int]) -> _PieceResult:
    usual = scan_fast(options, folder, names) if live else None
    if usual is not None:
        return usual, None
    return None, by_column(scan_directories(options, folder, list(zip(names, inodes, strict=True))))


def _columns(batch: FolderBatch, looks: Sequence[_PieceResult], options: ScanOptions) -> Columns:
    """The columns of a batch, whose pieces were looked at one after the other."""
    usual = [found for found, _ in looks if found is not None]
    if len(usual) == len(looks):
        return fast_path_columns(batch, usual, options.recovery_points)
    pieces: list[Columns] = []
    for start, (found, columns) in zip(range(0, len(batch.names), _PIECE), looks, strict=True):
        if columns is not None:
            pieces.append(columns)
        elif found is not None:
            pieces.append(fast_path_columns(batch.part(start, start + _PIECE), [found], options.recovery_points))
    return concat_columns(pieces)
