"""Spreads units of work over forked processes, which hand back each result as soon as it is there.

Units may come one by one, while this process still finds out what there is to do. Each worker takes the next one from
a queue when it is done, so a slow unit holds nobody up; nor does a reader that is busy, because a worker keeps what
does not fit into its pipe and goes on.

Results travel in Python's own ``marshal``: that is the fastest for columns of texts and numbers, keeps names that are
not UTF-8, and the same Python writes and reads it. This process turns them into something else meanwhile, so that is no
work of the workers. A worker that dies costs nothing but its share: this process does again what was not handed back
whole. Where there is no fork, and with no jobs, this process does it all.

A queue of units of work: one process puts them in, and those it forked take them out, each unit once.

A unit's bytes lie in a file in memory, which all of the processes share, and a pipe holds where. The kernel serves one
reader of a pipe at a time, and what is read there has one size; so nobody gets half a unit, or another one's. Units
travel in Python's own ``marshal``, which only forked processes may do, and which keeps names that are not UTF-8.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import selectors
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

Unit = TypeVar("Unit")
Result = TypeVar("Result")
Taken = TypeVar("Taken")

Worker: TypeAlias = Callable[[Iterable[tuple[int, Unit]]], Iterator[tuple[int, Result]]]
"""Does the numbered units that it is given, and yields each one's number and result: anything that marshal knows."""

_FRAME = struct.Struct("=iq")
"""Before each result: the unit's number, and the bytes that follow."""

PIPE_BYTES = 1 << 20
"""What a pipe holds, where the system allows it: a unit or several, so that few calls are made for each."""

_FORKING = threading.Lock()
"""Held while the end of a pipe for writing is open here: another thread's child that got it too would keep it open, and
nobody would notice that the pipe's own process died."""

_MOST_PROCESSES = 8
"""More than these wait for one disk, and for each other in the kernel."""


def processors() -> int:
    """How many processes it pays to have at work at once."""
    if not can_fork():
        return 1
    return min(_MOST_PROCESSES, len(os.sched_getaffinity(0)))


def can_fork() -> bool:
    """Whether work can be spread here at all; elsewhere forking a process that has threads is not safe."""
    return sys.platform == "linux"


def spread(
    worker: Worker[Unit, Result],
    units: Iterable[Unit],
    jobs: int,
    take: Callable[[int, Result], Taken],
    enter: Callable[[], None] = lambda: None,
) -> list[Taken]:
    """What was taken of the result of each unit, in their order.

    Args:
        worker: runs in forked processes; in this one when there are no jobs, or a fork died. What it raises comes out.
        units: anything that marshal knows, asked for one by one while workers are at the first; that may raise.
        jobs: processes at work beside this one; with 0, or where there is no fork, this one works itself.
        take: is called in this process for each result, with the number of its unit, as they come; what it gives is
            kept, what it raises comes out.
        enter: is called first in each forked process, and may change that process as it likes.
    """
    taken: dict[int, Taken] = {}

    def keep(number: int, result: Result) -> None:
        taken[number] = take(number, result)

    left: Iterable[tuple[int, Unit]] = enumerate(units)
    if can_fork() and jobs > 0:
        given = _let_children_work(worker, units, jobs, keep, enter)
        left = [(number, unit) for number, unit in enumerate(given) if number not in taken]
    for number, result in worker(left):
        keep(number, result)
    return [taken[number] for number in range(len(taken))]


def _let_children_work(
    worker: Worker[Unit, Result],
    units: Iterable[Unit],
    jobs: int,
    keep: Callable[[int, Result], None],
    enter: Callable[[], None],
) -> list[Unit]:
    """Fork, hand out the units, keep whatever comes back, and leave nothing behind; gives all the units."""
    children: list[tuple[int, int]] = []
    with UnitQueue() as queue:
        try:
            for _ in range(jobs):
                with suppress(OSError):  # a process that cannot be started costs no more than one that died
                    children.append(_fork(worker, enter, queue, children))
            given = _handed_out(units, queue)
            _keep_all([pipe for _, pipe in children], keep)
        finally:
            for pid, pipe in children:
                end_child(pid, pipe)
    return given


def _handed_out(units: Iterable[Unit], queue: UnitQueue) -> list[Unit]:
    """Put all the units into the queue, as far as it takes them; those it does not take are not handed back either."""
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


def _fork(
    worker: Worker[Any, Any], enter: Callable[[], None], queue: UnitQueue, siblings: Iterable[tuple[int, int]]
) -> tuple[int, int]:
    """Start one child; gives its process ID and the pipe on which it hands back its results."""

    def work(pipe: int) -> None:
        queue.finish()  # what a worker forks may take units too, and comes to the end when nobody can put any in
        enter()
        _hand_back(worker(queue.taken()), pipe)

    return fork_with_pipe(work, [pipe for _, pipe in siblings])


def fork_with_pipe(work: Callable[[int], None], siblings: Iterable[int]) -> tuple[int, int]:
    """Start a process that does one thing and ends.

    Args:
        work: does it, and is given the pipe to write to. An error is not told: what it has not written is lacking.
        siblings: the pipes from which others are read, which it closes, so that those notice when nobody reads.

    Returns:
        Its process ID, and the pipe from which comes what it writes; :func:`end_child` takes both.

    Raises:
        OSError: no process can be started.
    """
    pid = -1
    with _FORKING:
        read, write = os.pipe()
        with suppress(OSError):  # all of a user's pipes together may be so large and no larger
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
        return pid, read
    # Whatever happens here, the child must not return into its parent's program: it ends in this function.
    try:
        for descriptor in (read, *siblings):
            os.close(descriptor)
        work(write)
    finally:
        os._exit(0)


def _hand_back(results: Iterable[tuple[int, Any]], pipe: int) -> None:
    """Write results as they come, as far as the pipe has room; the rest waits here, and the work does not.

    Where the work fails, what it had done by then is handed back too.
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
    """Keep whole results as they come, until all the pipes are at their end.

    One that is cut off, because the child died, is left out.
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
                for number, result in _whole(key.data):
                    keep(number, result)


def _whole(received: bytearray) -> Iterator[tuple[int, Any]]:
    """Take the whole results out of what was received; what has not come to its end yet stays there."""
    while len(received) >= _FRAME.size:
        number, length = _FRAME.unpack_from(received)
        end = _FRAME.size + length
        if len(received) < end:
            return
        result = marshal.loads(received[_FRAME.size : end])
        del received[:end]
        yield number, result


def end_child(pid: int, pipe: int) -> None:
    """Close a child's pipe and wait for the child; one still at work, because this process gave up, is ended."""
    os.close(pipe)
    if os.waitpid(pid, os.WNOHANG)[0] == 0:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


_WHERE = struct.Struct("=iiq")
"""A unit's number, its length in bytes, and where it begins. Its own size divides that of a page, so pipes do not split
it."""


class UnitQueue:
    """Opened before the fork; afterwards each process says by its first call on which side it is. Linux only."""

    __slots__ = ("_end", "_file", "_put", "_read", "_write")

    def __init__(self) -> None:
        self._file = _shared_file()
        try:
            self._read, self._write = os.pipe()
        except OSError:
            os.close(self._file)
            raise
        self._end = self._put = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()
        self._read = _closed(self._read)
        self._file = _closed(self._file)

    def put(self, unit: Any) -> None:
        """Put in the next unit, anything that marshal knows. The first one has number 0.

        Raises:
            OSError: there is no memory, or nobody is left who could take it out.
        """
        # A reader that is this process itself would keep it waiting for ever once the pipe is full.
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
        """Put in no more; whoever takes units out comes to the end."""
        self._write = _closed(self._write)

    def taken(self) -> Iterator[tuple[int, Any]]:
        """Units with their numbers, one at a time until there are no more; waits while there may be."""
        self.finish()
        while where := os.read(self._read, _WHERE.size):
            number, length, begin = _WHERE.unpack(where)
            yield number, marshal.loads(os.pread(self._file, length, begin))


def _shared_file() -> int:
    """A file without a name, in memory where this Python can make one there."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("units")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _closed(descriptor: int) -> int:
    """Close a descriptor that is open, and give one that is not."""
    if descriptor >= 0:
        os.close(descriptor)
    return -1
