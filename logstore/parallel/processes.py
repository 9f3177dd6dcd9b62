"""A pool of forked processes: units of work go out through a queue, and results come back through pipes.

Units may come one by one, while this process still finds out what there is to do. Each worker takes its next unit from
the queue when it is done with one, so a slow unit delays nothing else. Nor does a busy reader: a worker keeps the bytes
that do not fit into its pipe, and goes on. A worker that dies loses only its share: this process does again each unit
whose result did not come back whole. Where there is no fork, or with no jobs, this process does all the work.

The bytes of the queued units lie in a file in memory that all processes share, and a pipe holds the offset and length
of each. The kernel serves one reader of a pipe at a time, and all entries of this pipe have one size, so no process
gets half a unit, or bytes of another one.

Units and results travel in Python's own ``marshal``: it is the fastest for columns of texts and numbers, it keeps names
that are not UTF-8, and the same Python writes and reads it. Converting results is left to this process, so that workers
only look.
"""

from __future__ import annotations

import fcntl
import gc
import marshal
import os
import selectors
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Self, TypeAlias, TypeVar

from logstore.tunables import MOST_PROCESSES, PIPE_BYTES

Unit = TypeVar("Unit")
Result = TypeVar("Result")
Taken = TypeVar("Taken")

Worker: TypeAlias = Callable[[Iterable[tuple[int, Unit]]], Iterator[tuple[int, Result]]]
"""Work on numbered units: yields each unit's number and its result, which ``marshal`` must support."""

_FRAME = struct.Struct("=iq")
"""Header of each result: the unit's number, and the number of bytes that follow."""

_FORKING = threading.Lock()
"""Held while the write end of a child's pipe is open here, and while :data:`_OPEN` changes. A child that another thread
forks would inherit that end and keep it open, and then this process would not notice the death of the pipe's own
child."""

_OPEN: set[int] = set()
"""The descriptors of all pools of this process. Each child inherits them, and closes all but its own queue's. Two pools
at once would wait for ever otherwise: no queue ends while a child of the other pool could still put units in."""


def processors() -> int:
    """Give the number of processes that it pays to use."""
    if not can_fork():
        return 1
    return min(MOST_PROCESSES, len(os.sched_getaffinity(0)))


def can_fork() -> bool:
    """Say whether work can be spread here. Outside Linux, forking a process that has threads is not safe."""
    return sys.platform == "linux"


def spread(
    worker: Worker[Unit, Result],
    units: Iterable[Unit],
    jobs: int,
    take: Callable[[int, Result], Taken],
    enter: Callable[[], None] = lambda: None,
) -> list[Taken]:
    """Do units of work in forked processes; return what ``take`` made of each result, in the order of the units.

    Args:
        worker: runs in the forked processes, and in this one with no jobs or after a child died. Its errors are raised
            here.
        units: values that ``marshal`` supports, asked for one by one while workers are busy; may raise.
        jobs: number of processes beside this one; with 0, or where there is no fork, this one works itself.
        take: called in this process with the number and the result of each unit, as results come. Its errors are raised
            here.
        enter: called first in each forked process, which it may change as it likes.
    """
    taken: dict[int, Taken] = {}

    def keep(number: int, result: Result) -> None:
        taken[number] = take(number, result)

    left: Iterable[tuple[int, Unit]] = enumerate(units)
    if can_fork() and jobs > 0:
        given = _run_children(worker, units, jobs, keep, enter)
        left = [(number, unit) for number, unit in enumerate(given) if number not in taken]
    for number, result in worker(left):
        keep(number, result)
    return [taken[number] for number in range(len(taken))]


def _run_children(
    worker: Worker[Unit, Result],
    units: Iterable[Unit],
    jobs: int,
    keep: Callable[[int, Result], None],
    enter: Callable[[], None],
) -> list[Unit]:
    """Fork, hand out the units, keep all results that come back, end the children; return all the units."""
    children: list[tuple[int, int]] = []
    with UnitQueue() as queue:
        try:
            for _ in range(jobs):
                with suppress(OSError):  # a process that cannot be started costs no more than one that died
                    children.append(_fork(worker, enter, queue))
            given = _hand_out(units, queue)
            _keep_all([pipe for _, pipe in children], keep)
        finally:
            for pid, pipe in children:
                _end_child(pid, pipe)
    return given


def _hand_out(units: Iterable[Unit], queue: UnitQueue) -> list[Unit]:
    """Put all units into the queue until it refuses one; return all units. No result comes for a refused unit."""
    given: list[Unit] = []
    refused = False
    for unit in units:
        given.append(unit)
        try:
            if not refused:
                queue.put(unit)
        except OSError:
            refused = True
    queue.finish()
    return given


def _fork(worker: Worker[Any, Any], enter: Callable[[], None], queue: UnitQueue) -> tuple[int, int]:
    """Start one child; return its process ID and the read end of the pipe for its results, for :func:`_end_child`.

    An error in the child is not passed on: its results are just incomplete. The child closes the pipes of all other
    children, so that each of them notices when this process no longer reads.

    Raises:
        OSError: no process can be started.
    """
    pid = -1
    with _FORKING:
        read, write = os.pipe()
        with suppress(OSError):  # the system limits the sum of a user's pipes
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        try:
            pid = os.fork()
        except OSError:
            os.close(read)
            raise
        finally:
            if pid:
                os.close(write)
        if pid:
            _OPEN.add(read)
            return pid, read
    # Whatever happens here, the child must not return into its parent's program: it ends in this function.
    try:
        # What the parent dropped is not for the child to end: DuckDB's end, for one, needs threads that only it has.
        gc.freeze()
        for descriptor in (read, *(_OPEN - queue.descriptors)):
            os.close(descriptor)
        _OPEN.intersection_update(queue.descriptors)
        enter()
        _hand_back(worker(queue.taken()), write)
    finally:
        os._exit(0)


def _hand_back(results: Iterable[tuple[int, Any]], pipe: int) -> None:
    """Write results as they come, as far as the pipe has room. The rest waits here while the work goes on.

    Where the work fails, its results up to then are written too.
    """
    os.set_blocking(pipe, False)
    unsent = bytearray()
    try:
        for number, result in results:
            data = marshal.dumps(result)
            unsent += _FRAME.pack(number, len(data))
            unsent += data
            with suppress(BlockingIOError):
                _send(unsent, pipe)
    finally:
        os.set_blocking(pipe, True)
        _send(unsent, pipe)


def _send(unsent: bytearray, pipe: int) -> None:
    while unsent:
        del unsent[: os.write(pipe, unsent)]


def _keep_all(pipes: Sequence[int], keep: Callable[[int, Any], None]) -> None:
    """Keep whole results as they come, until all pipes are at their end.

    A result that is cut off, because its child died, is left out.
    """
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ, bytearray())
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, PIPE_BYTES)
                if not data:
                    selector.unregister(key.fd)
                key.data.extend(data)
                for number, result in _whole_results(key.data):
                    keep(number, result)


def _whole_results(received: bytearray) -> Iterator[tuple[int, Any]]:
    """Take the whole results out of the received bytes; an incomplete one stays there."""
    while len(received) >= _FRAME.size:
        number, length = _FRAME.unpack_from(received)
        end = _FRAME.size + length
        if len(received) < end:
            return
        result = marshal.loads(received[_FRAME.size : end])
        del received[:end]
        yield number, result


def _end_child(pid: int, pipe: int) -> None:
    """Close a child's pipe and wait for the child. One that still works, because this process gave up, is killed."""
    _closed(pipe)
    if os.waitpid(pid, os.WNOHANG)[0] == 0:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


_WHERE = struct.Struct("=iiq")
"""A unit's number, its length in bytes, and its offset. The size of this entry divides the size of a page, so a pipe
does not split it."""


class UnitQueue:
    """A queue between this process and its children, for Linux. Open it before the fork.

    A process either puts units in or takes them out: its first call closes the other end.
    """

    __slots__ = ("_end", "_file", "_put", "_read", "_write")

    def __init__(self) -> None:
        with _FORKING:
            self._file = _shared_file()
            try:
                self._read, self._write = os.pipe()
            except OSError:
                os.close(self._file)
                raise
            _OPEN.update(self.descriptors)
        self._end = self._put = 0

    @property
    def descriptors(self) -> set[int]:
        """What is open of it in this process."""
        return {self._file, self._read, self._write} - {-1}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()
        self._read = _closed(self._read)
        self._file = _closed(self._file)

    def put(self, unit: Any) -> None:
        """Put in the next unit, which ``marshal`` must support. The first one has number 0.

        Raises:
            OSError: there is no memory, or no process is left that could take units out.
        """
        # With its own read end open, this process would wait for ever once the pipe is full.
        self._read = _closed(self._read)
        data = marshal.dumps(unit)
        left = memoryview(data)
        begin = self._end
        while left:
            written = os.pwrite(self._file, left, self._end)
            self._end += written
            left = left[written:]
        os.write(self._write, _WHERE.pack(self._put, len(data), begin))
        self._put += 1

    def finish(self) -> None:
        """Put in no more units, so that the processes that take them out come to the end."""
        self._write = _closed(self._write)

    def taken(self) -> Iterator[tuple[int, Any]]:
        """Take out units with their numbers, one at a time, until the other side has finished."""
        self.finish()
        while where := os.read(self._read, _WHERE.size):
            number, length, begin = _WHERE.unpack(where)
            yield number, marshal.loads(os.pread(self._file, length, begin))


def _shared_file() -> int:
    """Make a file without a name, in memory where this Python can."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("units")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _closed(descriptor: int) -> int:
    """Close a descriptor of a pool, if it is open; return -1 in its place."""
    if descriptor >= 0:
        with _FORKING:
            _OPEN.discard(descriptor)
            os.close(descriptor)
    return -1
