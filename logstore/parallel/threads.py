"""A thread pool that is used only while the disk makes threads wait.

With warm caches one thread is fastest, because several threads only pass the interpreter lock around. With cold caches,
and where each removal of a file waits for the disk, several threads are much faster, because the disk serves many
requests at once. So one thread does the first piece of each batch, and its voluntary context switches decide: a thread
that waits for the disk gives the processor away, and the system counts that. Elapsed time would decide wrongly, because
on a busy machine other processes take the processor away, and because a virtual disk uses processor time for its
answers.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from logstore.tunables import THREADS

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Item = TypeVar("Item")
Piece = TypeVar("Piece")
Result = TypeVar("Result")

_THIS_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


class AdaptiveThreadPool(Generic[Piece, Result]):
    """Apply one function to batches of pieces, by one thread or by several; the threads are kept between batches."""

    __slots__ = ("_pool", "_threads", "_work")

    def __init__(self, work: Callable[[Piece], Result], threads: int = THREADS) -> None:
        """Take the function, and the number of threads that may call it at once."""
        self._work, self._threads = work, threads
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, batch: Sequence[Piece], fewest_waits: int) -> list[Result]:
        """Give the results for all pieces of a batch, in order. Errors of the function are raised here.

        Args:
            batch: the pieces, each about as much work as the next.
            fewest_waits: use threads for the other pieces if the first one waited at least this often.
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
    pool: AdaptiveThreadPool[Sequence[Item], list[Result]], items: Sequence[Item], size: int, fewest_waits: int
) -> list[Result]:
    """Give the results for all items, in order, with ``size`` items to a piece; see :meth:`AdaptiveThreadPool.map`."""
    pieces = [items[start : start + size] for start in range(0, len(items), size)]
    return [result for piece in pool.map(pieces, fewest_waits) for result in piece]


def waits() -> int:
    """Count how often this thread has given the processor away so far, to wait for something."""
    return resource.getrusage(_THIS_THREAD).ru_nvcsw
