"""Spreads numbered units of work over forked processes, which hand back bytes.

Forked, because a scan's input (names, offsets) is there already and need not be sent; bytes, because Arrow's own
format is the cheapest way back. The numbers of the units lie in a pipe from which each worker takes the next one when
it is done, so a slow unit holds nobody up. A worker that dies costs nothing but its share:
this process does again what was not handed back. Where there is no fork, and with one job, this process does it all.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Iterator

MOST_UNITS = 16_000
"""Units that may be spread at once: the numbers of more might not fit into a pipe, and its writer would block."""

Worker = Callable[[Iterable[int]], Iterator[tuple[int, bytes]]]
"""Does the units whose numbers it is given, and yields each one's number and result."""

_NUMBER = struct.Struct("=i")
_FRAME = struct.Struct("=iq")
"""Before each result: the unit's number, and the bytes that follow."""


_MOST_PROCESSES = 8
"""More than these wait for one disk, and for each other in the kernel."""


def processors() -> int:
    """How many processes it pays to have at work at once."""
    if not _can_fork():
        return 1
    return min(_MOST_PROCESSES, len(os.sched_getaffinity(0)))


def _can_fork() -> bool:
    """Whether work can be spread here at all; elsewhere forking a process that has threads is not safe."""
    return sys.platform == "linux"


def spread(worker: Worker, units: int, jobs: int, enter: Callable[[], None] = lambda: None) -> list[bytes]:
    """The results of units 0 to ``units - 1``, in that order.

    Args:
        worker: runs in forked processes, or in this one when there is one job or a fork died; what it raises comes out.
        units: at most :data:`MOST_UNITS`.
        jobs: processes at work, for which this one waits. With one job, or where there is no fork, it works itself.
        enter: is called first in each forked process, and may change that process as it likes.
    """
    jobs = min(jobs, units) if _can_fork() else 1
    if jobs <= 1:
        return [result for _, result in sorted(worker(range(units)))]
    numbers = _pipe_with_numbers(units)
    children: list[tuple[int, int]] = []
    results: dict[int, bytes] = {}
    try:
        children.extend(_fork(worker, enter, numbers, children) for _ in range(jobs))
        for _, pipe in children:
            results.update(_handed_back(pipe))
    finally:
        os.close(numbers)
        for pid, pipe in children:
            _end(pid, pipe)
    results.update(worker([number for number in range(units) if number not in results]))
    return [results[number] for number in range(units)]


def _pipe_with_numbers(units: int) -> int:
    """The read end of a pipe that holds all the numbers, and whose write end is closed."""
    if units > MOST_UNITS:
        raise ValueError(f"{units} units are more than the {MOST_UNITS} that can be spread at once: make them larger")
    read, write = os.pipe()
    os.write(write, b"".join(map(_NUMBER.pack, range(units))))
    os.close(write)
    return read


def _taken_from(numbers: int) -> Iterator[int]:
    """Numbers from the pipe until it is empty. The kernel serves one reader at a time, so nobody gets half a number."""
    while taken := os.read(numbers, _NUMBER.size):
        yield _NUMBER.unpack(taken)[0]


def _fork(
    worker: Worker, enter: Callable[[], None], numbers: int, siblings: Iterable[tuple[int, int]]
) -> tuple[int, int]:
    """Start one child; gives its process ID and the pipe on which it hands back its results."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    # Whatever happens here, the child must not return into its parent's program: it ends in this function. An error
    # is not told: the parent does the same units again, and meets it there.
    try:
        for descriptor in (read, *(pipe for _, pipe in siblings)):
            os.close(descriptor)
        enter()
        # The results stay here until all the work is done: a pipe is small, and its reader may wait for a sibling.
        results = list(worker(_taken_from(numbers)))
        with open(write, "wb") as out:
            for number, result in results:
                out.write(_FRAME.pack(number, len(result)) + result)
    finally:
        os._exit(0)


def _handed_back(pipe: int) -> Iterator[tuple[int, bytes]]:
    """Whole results from a child's pipe; one that is cut off, because the child died, is left out."""
    with open(pipe, "rb", closefd=False) as source:
        while len(frame := source.read(_FRAME.size)) == _FRAME.size:
            number, length = _FRAME.unpack(frame)
            result = source.read(length)
            if len(result) == length:
                yield number, result


def _end(pid: int, pipe: int) -> None:
    """Close a child's pipe and wait for the child; one still at work, because this process gave up, is ended."""
    os.close(pipe)
    if os.waitpid(pid, os.WNOHANG)[0] == 0:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
