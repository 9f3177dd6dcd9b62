"""Watch log dirs: events say which entries to read again, and a regular sweep over everything finds the rest.

Each log dir and its staging directory are watched, and not the partition dirs in them, so 100,000 partition dirs cost
one watch. An entry that an event names is read again after a short wait in which further events gather. An event in a
partition dir is none in the log dir: the next sweep finds a ``partition.metadata`` that changes later, and changes
below a namespace or prefix directory of a log dir that is ours. A new directory without a topic ID is read a second
time before it is reported, and twice more as long as it has none.

Once a second each directory is checked: one that was deleted, renamed, re-created, unmounted or mounted over is watched
anew when it is back. Meanwhile its log dir is *lost*, which is never the same as empty: see ``log_dir``.
Source: DESIGN §2.
"""

from __future__ import annotations

import heapq
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from logstore.arguments import check_argument, check_fields, check_paths
from logstore.errors import InvalidArgumentError
from logstore.rows import Kind, MetadataState
from logstore.watch.events import WatchEvents
from logstore.watch.log_dir import WatchedLogDir
from logstore.watch.row_cache import RowChange, RowState, net_changes

logger = logging.getLogger(__name__)

_MOST_UNFINISHED = 1000
"""Up to this many directories without a topic ID are taken for unfinished when a watch starts."""


_LONGEST_S = 100 * 366 * 86_400.0
"""A hundred years; a longer time is a typing error."""


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """The intervals and delays of a watch, in seconds.

    Raises:
        InvalidArgumentError: one is no number, is negative, or is a share of more than 1.
    """

    interval: float = 300.0
    """Between sweeps. A sweep over 100,000 cached directories takes about 1 s of processor time."""
    gather: float = 0.1
    """After an event, to let further events gather."""
    check: float = 1.0
    """Between checks that each watched directory is still there."""
    again: tuple[float, ...] = (1.0, 5.0, 30.0)
    """After a directory without a topic ID appeared: when to read it again. It is reported at the first of these."""
    share: float = 0.02
    """Largest share of the time that goes into reading checkpoints, which a live broker rewrites every 5 s. Listing
    plain files and regular sweeps have the same share each: work that took long is not begun again soon."""
    sweep_share: float = 0.2
    """The same for sweeps on demand, for example after lost events; the sweep of a log dir that is back never waits."""

    def __post_init__(self) -> None:
        seconds, share = (0.0, _LONGEST_S), (0.0, 1.0)
        limits = dict.fromkeys(("interval", "gather", "check", "again"), seconds)
        check_fields(self, InvalidArgumentError, {**limits, "share": share, "sweep_share": share})


class Watch:
    """Reports changes in log dirs. Only reads, takes no lock, and never raises for anything that lies on a disk.

    ::

        with Watch(["/disks/1/kafka"]) as watch:
            for changes in watch:
                ...

    One thread starts the watch, polls or iterates it, and reads ``log_dirs``; this thread reads the disks.
    :meth:`stop` and :meth:`sweep_soon` may be called from any thread, and from a signal handler. Watchdog's own threads
    only collect names. After :meth:`stop` a watch cannot be started again.

    Attributes:
        log_dirs: each log dir with its known rows, by absolute path.
    """

    def __init__(
        self,
        log_dirs: Iterable[str],
        times: WatchTimes = WatchTimes(),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to watch; nothing is read yet.

        Args:
            log_dirs: paths; a log dir that is not there yet is lost until it comes.
            times: intervals and delays.
            clock: seconds that only go forward, from any beginning.

        Raises:
            InvalidArgumentError: what was given are no paths.
        """
        paths = log_dirs if isinstance(log_dirs, str | bytes) else tuple(log_dirs)
        check_paths("log_dirs", paths, InvalidArgumentError)
        check_argument("times", times, WatchTimes, InvalidArgumentError)
        disks = map(WatchedLogDir, paths)
        self.log_dirs: Mapping[str, WatchedLogDir] = {disk.path: disk for disk in disks}
        self._times, self._clock = times, clock
        self._events = WatchEvents()
        self._marks: dict[str, tuple[int, int] | None] = {}
        self._unwatchable: set[str] = set()
        self._looks: list[tuple[float, str, str, int]] = []
        self._waiting_for_look: set[tuple[str, str]] = set()
        self._limits = {path: _TimeShares(times, clock) for path in self.log_dirs}
        self._next_check = self._next_sweep = 0.0
        self._sweeps: deque[tuple[str, float, Iterator[list[RowChange]]]] = deque()
        self._sweep_all = self._stopped = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._events.stop()

    def __iter__(self) -> Iterator[list[RowChange]]:
        """Iterate over batches of changes as they come, until the watch is stopped."""
        while not self._stopped:
            changes = self.poll(None)
            if changes:
                yield changes

    @property
    def is_stopped(self) -> bool:
        """Whether :meth:`stop` was called."""
        return self._stopped

    def start(self) -> None:
        """Watch first, then read everything once, so that no change is missed in between. Known rows are no changes."""
        self._events.start()
        self._check_directories()
        for disk in self.log_dirs.values():
            for _ in disk.sweep(defer=False):
                if self._stopped:
                    return
            self._plan_second_looks(disk)
            unfinished = [key for key, seen in disk.known.items() if _has_no_id_yet(seen)]
            # Very many of them belong to a broker before 2.8, which writes no topic IDs.
            self._plan_looks(disk, unfinished if len(unfinished) <= _MOST_UNFINISHED else (), 1)
        self._check_directories()
        self._next_sweep = self._clock() + self._times.interval

    def stop(self) -> None:
        """End :meth:`poll` and the iteration soon; leaving the context ends watchdog's threads as well."""
        self._stopped = True
        self._events.wake()

    def sweep_soon(self) -> None:
        """Ask for a sweep, for example because something is known to have changed inside a directory."""
        self._sweep_all = True
        self._events.wake()

    def poll(self, seconds: float | None) -> list[RowChange]:
        """Wait for changes at most so long; None: until there are some, or the watch is stopped.

        Returns:
            One change for each row that differs; an empty list when the time is over.
        """
        end = None if seconds is None else self._clock() + seconds
        while not self._stopped:
            changes = net_changes(self._work())
            now = self._clock()
            if changes or (end is not None and now >= end):
                return changes
            until = self._next_due() if end is None else min(end, self._next_due())
            if not self._sweeps and self._events.wait(until - now) and self._times.gather:
                self._events.wait_for_more(self._times.gather)
        return []

    def _next_due(self) -> float:
        """When the next work is due without any event."""
        look = self._looks[0][0] if self._looks else self._next_check
        return min(self._next_check, self._next_sweep, look)

    def _work(self) -> list[RowChange]:
        """Do all work that is due now."""
        changes = self._check() if self._clock() >= self._next_check else []
        changes += self._follow_hints()
        changes += self._look_twice()
        for disk in self.log_dirs.values():
            changes += self._read_files(disk)
        if self._sweep_all or self._clock() >= self._next_sweep:
            self._sweep_all = False
            self._begin_round()
        for disk in self.log_dirs.values():
            may_begin = disk.state.lost or self._limits[disk.path].sweep.is_open
            if disk.wants_sweep and may_begin and not any(disk.path == path for path, *_ in self._sweeps):
                self._sweeps.append((disk.path, self._clock(), disk.sweep()))
        changes += self._sweep_a_little()
        return changes

    # Directories that come and go

    def _check(self) -> list[RowChange]:
        self._next_check = self._clock() + self._times.check
        changed = self._check_directories()
        changes = []
        for disk in self.log_dirs.values():
            if disk.state.lost or disk.path in changed:
                changes += disk.check()
                disk.wants_sweep |= disk.path in changed and not disk.state.lost
            if disk.staging_root in changed:
                disk.wants_sweep = True
        return changes

    def _check_directories(self) -> set[str]:
        """Watch every directory that is there, anew where it was replaced; give the directories that changed."""
        changed = set()
        for disk in self.log_dirs.values():
            for directory in filter(None, (disk.path, disk.staging_root)):
                mark = _device_and_inode(directory)
                if mark == self._marks.get(directory) and (mark is None or self._events.is_watched(directory)):
                    continue
                if mark != self._marks.get(directory) or directory not in self._unwatchable:
                    changed.add(directory)
                self._marks[directory] = mark
                self._watch(directory, mark)
        return changed

    def _watch(self, directory: str, mark: tuple[int, int] | None) -> None:
        if mark is None:
            self._events.unwatch(directory)
            return
        try:
            self._events.watch(directory)
        except OSError as error:
            if directory not in self._unwatchable:
                logger.warning(
                    "%s cannot be watched (%s), so changes in it are found once in %g s only; the system's limits are "
                    "fs.inotify.max_user_watches and fs.inotify.max_user_instances",
                    directory, os.strerror(error.errno) if error.errno else error, self._times.interval,
                )  # fmt: skip
            self._unwatchable.add(directory)
        else:
            self._unwatchable.discard(directory)

    # Entries that events named

    def _follow_hints(self) -> list[RowChange]:
        hints = self._events.take()
        if hints.overflow:
            logger.warning("so much happened at once that events were lost: everything is read again")
            self._sweep_all = True
        changes = []
        for disk in self.log_dirs.values():
            keys = set(hints.names.get(disk.path, ()))
            if disk.staging_root is not None:
                keys.update(disk.staging_prefix + name for name in hints.names.get(disk.staging_root, ()))
            if keys:
                changes += disk.look_again(keys)
                self._plan_second_looks(disk)
        return changes

    def _plan_second_looks(self, disk: WatchedLogDir) -> None:
        self._plan_looks(disk, disk.deferred, 0)
        disk.deferred.clear()

    def _plan_looks(self, disk: WatchedLogDir, keys: Iterable[str], number: int) -> None:
        """Plan to read these entries again, after the delay of that number."""
        if number >= len(self._times.again):
            return
        for key in keys:
            if (disk.path, key) not in self._waiting_for_look:
                self._waiting_for_look.add((disk.path, key))
                heapq.heappush(self._looks, (self._clock() + self._times.again[number], disk.path, key, number))

    def _look_twice(self) -> list[RowChange]:
        due: dict[tuple[str, int], list[str]] = {}
        while self._looks and self._looks[0][0] <= self._clock():
            _, path, key, number = heapq.heappop(self._looks)
            self._waiting_for_look.discard((path, key))
            due.setdefault((path, number), []).append(key)
        changes = []
        for (path, number), keys in due.items():
            disk = self.log_dirs[path]
            changes += disk.look_again(keys, defer=False)
            rows = ((key, disk.known.get(key)) for key in keys)
            unfinished = [key for key, seen in rows if seen is not None and _has_no_id_yet(seen)]
            self._plan_looks(disk, unfinished, number + 1)
        return changes

    def _read_files(self, disk: WatchedLogDir) -> list[RowChange]:
        """Read the plain files and checkpoints that are wanted, as often as their share of the time allows."""
        limits, changes = self._limits[disk.path], list[RowChange]()
        if disk.wants_listing and limits.listing.is_open:
            with limits.listing:
                changes += disk.list_files()
        if disk.wants_checkpoints and limits.checkpoints.is_open:
            with limits.checkpoints:
                changes += disk.read_checkpoints()
        self._plan_second_looks(disk)
        return changes

    # Sweeps

    def _begin_round(self) -> None:
        """Plan a sweep of every log dir, and renew all watches: an unmount and a mount between two checks kills one."""
        self._next_sweep = self._clock() + self._times.interval
        for directory, mark in self._marks.items():
            self._watch(directory, mark)
        for disk in self.log_dirs.values():
            disk.wants_sweep = True

    def _sweep_a_little(self) -> list[RowChange]:
        """Continue the first sweep, for about as long as events may wait."""
        until = self._clock() + self._times.gather
        changes: list[RowChange] = []
        while self._sweeps and not self._stopped:
            path, started, sweep = self._sweeps[0]
            found = next(sweep, None)
            if found is None:
                self._sweeps.popleft()
                took = self._clock() - started
                self._limits[path].sweep.took(took)
                self._next_sweep = max(self._next_sweep, self._clock() + took / self._times.share)
            else:
                changes += found
            self._plan_second_looks(self.log_dirs[path])
            if self._clock() >= until:
                break
        return changes


class _TimeShare:
    """Limits one kind of work to a share of the time. As a context manager it measures the work."""

    def __init__(self, share: float, clock: Callable[[], float]) -> None:
        self._share, self._clock = share, clock
        self._began = self._free_from = 0.0

    @property
    def is_open(self) -> bool:
        return self._clock() >= self._free_from

    def __enter__(self) -> None:
        self._began = self._clock()

    def __exit__(self, *_: object) -> None:
        self.took(self._clock() - self._began)

    def took(self, seconds: float) -> None:
        """Note that the work was done just now, and how many seconds it took."""
        self._free_from = self._clock() + seconds / self._share


class _TimeShares:
    """The kinds of work on one log dir that have a limited share of the time."""

    def __init__(self, times: WatchTimes, clock: Callable[[], float]) -> None:
        self.listing, self.checkpoints = _TimeShare(times.share, clock), _TimeShare(times.share, clock)
        self.sweep = _TimeShare(times.sweep_share, clock)


def _has_no_id_yet(seen: RowState) -> bool:
    return seen.kind in (Kind.LIVE, Kind.FUTURE) and seen.metadata_state == MetadataState.MISSING


def _device_and_inode(directory: str) -> tuple[int, int] | None:
    """Identify a directory at a path, links followed; None: there is none."""
    try:
        status = os.stat(directory)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if os.path.isdir(directory) else None
