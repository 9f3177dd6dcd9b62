"""Works through pieces one by one while that is fastest, and by many threads while the disk keeps one waiting.

With warm caches one thread is fastest, because threads only pass the interpreter lock around; with cold caches, and
where each file that goes is waited for, several threads that wait at the same time are much faster, because the disk
serves many requests at once. So the first piece of each batch is done by one thread, and tells: a thread that waits
gives the processor away of its own will, and the system counts that. Time on a clock would not tell, because on a busy
machine others take the processor away, and because a virtual disk uses processor time for its answers. What the pieces
are is left to the caller.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Item = TypeVar("Item")
Piece = TypeVar("Piece")
Result = TypeVar("Result")

THREADS = 8
"""More wait for the disk at the same time, and fight for the interpreter and the file system's locks: 32 of them took
twice as long as 8 to add up cold files, and gained a tenth where only topic IDs were read."""

_THIS_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


class AdaptiveThreadPool(Generic[Piece, Result]):
    """Applies one function to batches of pieces, each at the pace that suits; threads are kept from batch to batch."""

    __slots__ = ("_pool", "_threads", "_work")

    def __init__(self, work: Callable[[Piece], Result], threads: int = THREADS) -> None:
        """Take the function; it is called from so many threads at once when that helps."""
        self._work, self._threads = work, threads
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, batch: Sequence[Piece], fewest_waits: int) -> list[Result]:
        """The results for all the pieces of a batch, in their order. What the function raises comes out here.

        Args:
            batch: the pieces, each about as much work as the next.
            fewest_waits: number of waits during the first piece from which on threads do the others.
        """
        before = waits()
        results = [self._work(piece) for piece in batch[:1]]
        if waits() - before < fewest_waits:
            return results + [self._work(piece) for piece in batch[1:]]
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="pace")
        return results + list(self._pool.map(self._work, batch[1:]))


def map_chunks(
    pace: AdaptiveThreadPool[Sequence[Item], list[Result]], items: Sequence[Item], size: int, fewest_waits: int
) -> list[Result]:
    """The results for all the items, in their order, where a piece is so many of them; as :meth:`Pace.map`."""
    pieces = [items[start : start + size] for start in range(0, len(items), size)]
    return [result for piece in pace.map(pieces, fewest_waits) for result in piece]


def waits() -> int:
    """How often this thread has given the processor away so far, to wait for something."""
    return resource.getrusage(_THIS_THREAD).ru_nvcsw
