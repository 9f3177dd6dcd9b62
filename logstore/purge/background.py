"""Purges in the background of an embedded store: a thread that sleeps until something is due, without polling the disk.

The caller gives the function that purges; this module does the waiting. Wall-clock time may jump, so a long sleep is
cut into pieces, and only the clock is read between them. Source: DESIGN §5.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from layout.errors import LayoutError
from logstore.clock import Clock
from logstore.errors import LogStoreError

logger = logging.getLogger(__name__)

RETRY_MS: Final = 60_000
"""Least time between two purges where something stays due: a disk that refuses now may do so for a while."""

_NAP_MS: Final = 60_000
"""Longest single sleep of the thread."""


class Purger:
    """Purges at every due time, from :meth:`start` to :meth:`stop`."""

    def __init__(self, purge_due: Callable[[threading.Event], int | None], clock: Clock) -> None:
        """Take the function that purges; no thread is started yet.

        Args:
            purge_due: purges what is due, and returns the next due time, in ms since 1970; None: nothing waits to be
                due. It is called from the purger's thread only, and ends early when its event is set.
            clock: gives the time.
        """
        self._purge_due = purge_due
        self._clock = clock
        self._cancel = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, which begins with what is due already. A second call does nothing."""
        if self._thread is None:
            self._cancel.clear()
            self._wake.clear()
            self._thread = threading.Thread(target=self._run, name="purger", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """Look for the next due time again, because something was staged."""
        self._wake.set()

    def stop(self) -> None:
        """Cancel the purge that is under way, and wait for its end; the next purge resumes it."""
        self._cancel.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._cancel.is_set():
            self._wake.clear()
            started_ms = self._clock.now_ms()
            try:
                next_ms = self._purge_due(self._cancel)
            except (LogStoreError, LayoutError, OSError) as error:
                logger.error("what is due was not purged, and is tried again in %d s: %s", RETRY_MS // 1000, error)
                next_ms = 0
            if next_ms is not None and next_ms <= started_ms:
                next_ms = started_ms + RETRY_MS
            self._sleep_until(next_ms)

    def _sleep_until(self, due_ms: int | None) -> None:
        """Sleep until a due time, or until woken; None: until woken."""
        while not self._cancel.is_set():
            left_ms = _NAP_MS if due_ms is None else min(due_ms - self._clock.now_ms(), _NAP_MS)
            if left_ms <= 0 or self._clock.wait(self._wake, left_ms / 1000):
                return

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
