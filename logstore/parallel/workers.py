"""Spreads units of work over forked processes, which hand back each result as soon as it is there.

Units may come one by one, while this process still finds out what there is to do. Each worker takes the next one from
a queue when it is done, so a slow unit holds nobody up; nor does a reader that is busy, because a worker keeps what
does not fit into its pipe and goes on.

Results travel in Python's own ``marshal``: that is the fastest for columns of texts and numbers, keeps names that are
not UTF-8, and the same Python writes and reads it. This process turns them into something else meanwhile, so that is no
work of the workers. A worker that dies costs nothing but its share: this process does again what was not handed back
whole. Where there is no fork, and with no jobs, this process does it all.
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
from typing import Any, TypeAlias, TypeVar

from logstore.parallel.unit_queue import UnitQueue

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
