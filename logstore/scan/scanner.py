"""One pass over a log dir, or over many, gives an :class:`Observation` of each; nothing here can change a disk.

A pass never follows a link, waits for a FIFO or a device, or reads a file without a limit. It goes on where a directory
cannot be read, where names are not UTF-8, and where a live broker renames and deletes meanwhile. Problems become a
row's ``problem``, so a scan raises nothing. A log dir that is not there, or does not show the expected identity, is
*absent*, which is never the same as empty: the state of the observation says so.

A pass reads the identity and the checkpoints, and then scans every directory (``walk``). Replicas that are live twice
on one broker also get their last leader epoch (``duplicates``).
"""

from __future__ import annotations

import itertools
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar, cast

from layout import clean_shutdown
from layout.meta_properties import MetaProperties
from logstore.arguments import check_path, check_paths
from logstore.errors import InvalidArgumentError
from logstore.fs import kind_of_file, refusal
from logstore.log_dir import (
    ExpectedIdentity,
    FallbackRecords,
    IdentityFound,
    OffsetCheckpoints,
    find_lock_holder,
    read_identity,
    read_offset_checkpoints,
)
from logstore.parallel import processors, spread
from logstore.rows import VARYING, Columns, Kind, LogDirFacts, MetadataState, by_column, plain_row, utf8
from logstore.scan.duplicates import ReplicaSet, with_leader_epochs
from logstore.scan.observation import Observation
from logstore.scan.replica import ScanOptions, ledger_elsewhere
from logstore.scan.walk import WalkResult, walk, walk_log_dir
from logstore.tunables import LOG_DIR_ROWS_AT_ONCE, PROCESSES_PAY_FROM

Seen = TypeVar("Seen")
"""What a scan of one log dir gives; it can be pickled."""

LiveReplica: TypeAlias = tuple[str, int, str | None, str, str, int]
"""Topic, partition, topic ID, path of the directory below the log dir, metadata state and inode, as in the rows."""


class LiveReplicas(NamedTuple):
    """The live replicas of one log dir; with another state than ``ok`` they are not known."""

    log_dir: str
    state: MetadataState
    problem: str | None
    replicas: list[LiveReplica]


def scan(
    log_dir: str,
    *,
    sizes: bool = True,
    jobs: int | None = 0,
    expected: ExpectedIdentity | None = None,
    fallback: FallbackRecords | None = None,
) -> Observation:
    """Scan one log dir. Never raises for anything that lies, or does not lie, on a disk.

    Args:
        log_dir: its path.
        sizes: also add up each directory's files; without it the columns of sizes are null, and a scan takes about a
            third of the time.
        jobs: processes that scan, beside this one; 0: only this one; None: as many as pay.
        expected: the identity it should have; a log dir with another one is absent.
        fallback: the fallback records, which also say what is staged; None: only the ledgers in the log dir count.

    Raises:
        InvalidArgumentError: what was given is no path.
    """
    check_path("log_dir", log_dir, InvalidArgumentError)
    return _scan(log_dir, sizes, jobs, fallback, expected)[0]


def _scan(
    log_dir: str,
    sizes: bool,
    jobs: int | None,
    fallback: FallbackRecords | None,
    expected: ExpectedIdentity | None = None,
) -> tuple[Observation, ReplicaSet]:
    """Scan one log dir; also return its replicas."""
    path = os.path.abspath(log_dir)
    started_ms = time.time_ns() // 1_000_000
    checkpoints = OffsetCheckpoints()
    seen = WalkResult([], [], ReplicaSet())
    inode, absence = _find(path)
    found = absence or read_identity(path, expected)
    if absence is None:
        try:
            checkpoints = read_offset_checkpoints(path)
            elsewhere = None if fallback is None else ledger_elsewhere(fallback, path)
            options = ScanOptions(sizes, checkpoints.recovery_points, elsewhere=elsewhere)
            seen = walk_log_dir(path, found.scheme, options, jobs)
        except OSError as error:
            found = IdentityFound(found.identity, MetadataState.UNREADABLE, f"the log dir {refusal(error)}")
    first = plain_row(".", Kind.LOG_DIR, metadata_state=found.state, problem=found.problem, inode=inode)
    # A log dir that could not be listed may hold any replica, so no checkpoint entry is an orphan; and what hides the
    # directory hides its files, of which nothing is known.
    is_listed = found.state is not MetadataState.UNREADABLE
    of_checkpoints = [*checkpoints.damaged, *checkpoints.orphans(seen.replicas)] if is_listed else []
    # Imported here, because Arrow takes long: where workers scan, it is imported by now.
    from logstore.rows import to_batch, to_table

    table = to_table(
        [to_batch([first, *seen.rows, *of_checkpoints]), *seen.batches],
        _facts(path, started_ms, found.identity),
    )
    lock = find_lock_holder(path, search=False)
    return Observation(path, found.identity, found.state, found.problem, table, lock), seen.replicas


def scan_all(
    log_dirs: Sequence[str], *, sizes: bool = True, jobs: int | None = None, fallback: FallbackRecords | None = None
) -> Iterator[Observation]:
    """Scan many log dirs as :func:`scan` does; the log dirs of one broker come together, otherwise in the order given.

    Replicas that are live in two directories of one (cluster, node) get their ``leader_epoch``. With two jobs or more,
    many small log dirs are spread over processes, each scanned by one. Large log dirs are in memory one broker at a
    time.

    Raises:
        InvalidArgumentError: what was given are no paths.
    """
    check_paths("log_dirs", log_dirs, InvalidArgumentError)
    for batch in _batches(_by_broker(log_dirs)):
        seen = iter(_scan_each([log_dir for broker in batch for log_dir in broker], sizes, jobs, fallback))
        for broker in batch:
            yield from with_leader_epochs(list(itertools.islice(seen, len(broker))))


def _by_broker(log_dirs: Iterable[str]) -> list[list[str]]:
    """Group log dirs by the broker of their identity; a log dir without identity is a group of its own."""
    groups: dict[object, list[str]] = {}
    for log_dir in dict.fromkeys(map(os.path.abspath, log_dirs)):
        identity = None if _find(log_dir)[1] else read_identity(log_dir).identity
        key = log_dir if identity is None else (identity.cluster_id, identity.node_id)
        groups.setdefault(key, []).append(log_dir)
    return list(groups.values())


def _batches(brokers: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """Group brokers to scan together: many small ones, or one with a large log dir."""
    batch: list[list[str]] = []
    for broker in brokers:
        large = any(_links(log_dir) >= PROCESSES_PAY_FROM for log_dir in broker)
        if batch and (large or sum(map(len, batch)) >= LOG_DIR_ROWS_AT_ONCE):
            yield batch
            batch = []
        batch.append(broker)
        if large:
            yield batch
            batch = []
    if batch:
        yield batch


def _scan_each(
    log_dirs: Sequence[str], sizes: bool, jobs: int | None, fallback: FallbackRecords | None
) -> list[tuple[Observation, ReplicaSet]]:
    """Scan log dirs: many small ones each by one process, other ones one after the other by all processes."""
    if not _pays_processes(log_dirs, jobs):
        return [_scan(log_dir, sizes, jobs, fallback) for log_dir in log_dirs]
    from logstore.rows import to_batch  # noqa: F401 - before the fork, so that the processes share one import of Arrow

    return _spread_log_dirs(log_dirs, jobs, lambda log_dir: _scan(log_dir, sizes, 0, fallback))


def scan_live(log_dirs: Sequence[str], *, jobs: int | None = None) -> list[LiveReplicas]:
    """Find the live replicas of log dirs, as a broker does when it starts, in the order given.

    Neither sizes, checkpoints nor locks are looked at, and nothing is made for Arrow.

    Args:
        log_dirs: their absolute paths.
        jobs: processes that scan, as for :func:`scan_all`.
    """
    if _pays_processes(log_dirs, jobs):
        return _spread_log_dirs(log_dirs, jobs, lambda log_dir: _scan_live(log_dir, 0))
    return [_scan_live(log_dir, jobs) for log_dir in log_dirs]


def _scan_live(log_dir: str, jobs: int | None) -> LiveReplicas:
    found = _find(log_dir)[1] or read_identity(log_dir)
    if found.state is not MetadataState.OK:
        return LiveReplicas(log_dir, found.state, found.problem, [])
    try:
        pieces, rows = walk(log_dir, found.scheme, ScanOptions(sizes=False, staged=False), jobs, _live_of)
    except OSError as error:
        return LiveReplicas(log_dir, MetadataState.UNREADABLE, f"the log dir {refusal(error)}", [])
    # A broker follows a link that has a replica's name.
    return LiveReplicas(
        log_dir, found.state, found.problem, [*itertools.chain.from_iterable(pieces), *_live_of(by_column(rows))]
    )


def _live_of(columns: Columns) -> list[LiveReplica]:
    of = dict(zip(VARYING, columns, strict=True))
    topics, paths = _as_utf8(of["topic"]), _as_utf8(of["name"])
    names = (topics, of["partition"], of["topic_id"], paths, of["metadata_state"], of["inode"])
    live = Kind.LIVE.value
    found = (each for kind, each in zip(of["kind"], zip(*names, strict=True), strict=True) if kind == live)
    return cast("list[LiveReplica]", [each for each in found if each[0] is not None])


def _as_utf8(texts: Sequence[str | int | None]) -> Sequence[str | int | None]:
    """Spell names of bytes that are not UTF-8 as the rows of a scan do."""
    try:
        "".join(text for text in texts if isinstance(text, str)).encode()
    except UnicodeEncodeError:
        return [utf8(text) if isinstance(text, str) else text for text in texts]
    return texts


def _pays_processes(log_dirs: Sequence[str], jobs: int | None) -> bool:
    """Whether it pays to have each log dir scanned by one process, several at a time."""
    many = jobs is not None or sum(map(_links, log_dirs)) >= PROCESSES_PAY_FROM
    processes = processors() if jobs is None else jobs
    # With a single process that scans whole log dirs, this one would only wait.
    return many and processes >= 2 and len(log_dirs) >= 2 * processes


def _spread_log_dirs(log_dirs: Sequence[str], jobs: int | None, one: Callable[[str], Seen]) -> list[Seen]:
    import pickle

    def scanned(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, bytes]]:
        for number, log_dir in numbered:
            yield number, pickle.dumps(one(log_dir))

    return spread(scanned, log_dirs, processors() if jobs is None else jobs, lambda _, seen: pickle.loads(seen))


def _links(log_dir: str) -> int:
    """Estimate the number of directories in a log dir by its link count; without one, assume a large log dir."""
    try:
        links = os.stat(log_dir).st_nlink
    except (OSError, ValueError):
        return 0
    return links if links > 1 else PROCESSES_PAY_FROM


def _find(path: str) -> tuple[int | None, IdentityFound | None]:
    """Find the inode of a log dir, or the reason why there is no log dir at this path."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        problem = "there is no such directory; a broker would create an empty log dir here"
    except OSError as error:
        problem = f"the log dir {refusal(error)}"
    except ValueError as error:
        problem = f"this is no path: {error}"
    else:
        if stat.S_ISDIR(status.st_mode):
            return status.st_ino, None
        problem = f"this is {kind_of_file(status.st_mode)}, not a directory; a broker takes the log dir offline"
    return None, IdentityFound(None, MetadataState.ABSENT, problem)


def _facts(path: str, started_ms: int, identity: MetaProperties | None) -> LogDirFacts:
    host = os.uname().nodename
    if identity is None:
        return LogDirFacts(host, path, started_ms, None, None, None)
    directory_id = None if identity.directory_id is None else str(identity.directory_id)
    stopped_cleanly = os.path.lexists(f"{path}/{clean_shutdown.FILE_NAME}")
    return LogDirFacts(host, path, started_ms, identity.cluster_id, identity.node_id, directory_id, stopped_cleanly)
