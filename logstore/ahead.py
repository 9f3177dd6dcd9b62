"""Work that forked processes do ahead of this one, which uses each result as soon as it has those before it.

For a look at the disk before something is changed there: this process alone changes, and meanwhile the others find out
what it will need next. Units are dealt out in turn, and results come in the order of the units. A pipe holds each
process back, so it is never more than a unit or two ahead, and what it saw is fresh. A process that dies costs nothing
but its looks: for the rest of its units there is no result, and whoever asked finds out by itself. When this process
dies, the others end at their next result.
"""

from __future__ import annotations

import marshal
import os
import struct
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from logstore.workers import PIPE_BYTES, can_fork, end_child, fork_with_pipe

Unit = TypeVar("Unit")
Result = TypeVar("Result")

_LENGTH = struct.Struct("=q")
"""Before each result: its bytes."""


class Ahead(Generic[Unit, Result]):
    """The results of some units, one after the other; use it as a context manager. Not for several threads at once."""

    def __init__(self, work: Callable[[Unit], Result], units: Sequence[Unit], processes: int) -> None:
        """Start the processes.

        Args:
            work: done in the forked processes, which change nothing; gives anything that marshal knows.
            units: all of them, in the order in which their results will be asked for.
            processes: how many share the units; where there is no fork, there are none, and no results.
        """
        self._children: list[tuple[int, int] | None] = []
        self._next = 0
        for first in range(min(processes, len(units)) if can_fork() else 0):
            try:
                self._children.append(self._start(work, units[first::processes]))
            except OSError:  # a process that cannot be started costs no more than one that died
                self._children.append(None)

    def next(self) -> Result | None:
        """The result of the next unit; None: its process died, or was never started."""
        if not self._children:
            return None
        place = self._next % len(self._children)
        self._next += 1
        child = self._children[place]
        data = None if child is None else _received(child[1])
        if data is None:
            self._give_up(place)
            return None
        result: Result = marshal.loads(data)
        return result

    def _start(self, work: Callable[[Unit], Result], units: Iterable[Unit]) -> tuple[int, int]:
        """Start one process; gives its process ID and the pipe from which its results come."""

        def do_all(pipe: int) -> None:
            for unit in units:
                result: Any = work(unit)
                _send(marshal.dumps(result), pipe)

        return fork_with_pipe(do_all, [child[1] for child in self._children if child is not None])

    def _give_up(self, place: int) -> None:
        child, self._children[place] = self._children[place], None
        if child is not None:
            end_child(*child)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for place in range(len(self._children)):
            self._give_up(place)


def _send(data: bytes, pipe: int) -> None:
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        left = left[os.write(pipe, left) :]


def _received(pipe: int) -> bytes | None:
    """The bytes of one result; None: the pipe came to its end before."""
    length = _exactly(_LENGTH.size, pipe)
    return None if length is None else _exactly(_LENGTH.unpack(length)[0], pipe)


def _exactly(number: int, pipe: int) -> bytes | None:
    received = bytearray()
    while len(received) < number:
        data = os.read(pipe, min(number - len(received), PIPE_BYTES))
        if not data:
            return None
        received += data
    return bytes(received)
