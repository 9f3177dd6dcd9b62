"""Work that a forked process does ahead of this one, which takes each result when it has use for it.

For a look at the disk before something is changed there: this process changes, and the other finds out meanwhile what
it will need next. The other is ahead by no more results than a pipe holds, so what it saw is fresh. When this process
dies, the other ends at its next result.
"""

from __future__ import annotations

import marshal
import os
import struct
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from logstore.parallel import PIPE_BYTES, can_fork, end_child, fork_with_pipe

Unit = TypeVar("Unit")
Result = TypeVar("Result")

_LENGTH = struct.Struct("=q")
"""Before each result: its bytes."""


def done_ahead(work: Callable[[Unit], Result], units: Iterable[Unit]) -> Generator[Result, None, None]:
    """The results of some units, one after the other, each found out by a forked process before it is asked for.

    Where no process can be started, each is found out when it is asked for.

    Args:
        work: changes nothing, and gives anything that marshal knows; an error is not told, and ends the process.
        units: asked for in that process alone.

    Yields:
        The result of each unit, in their order; those of the first units alone where the process died.
    """

    def do_all(pipe: int) -> None:
        for unit in units:
            result: Any = work(unit)
            _send(marshal.dumps(result), pipe)

    child = None
    if can_fork():
        try:
            child = fork_with_pipe(do_all, ())
        except OSError:
            child = None  # no more processes are allowed: that costs time, and nothing else
    if child is None:
        yield from map(work, units)
        return
    try:
        while (data := _received(child[1])) is not None:
            yield marshal.loads(data)
    finally:
        end_child(*child)


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
