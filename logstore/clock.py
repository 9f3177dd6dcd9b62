"""The engine's clock: always passed in, so that a test or a simulation can make hours pass at once."""

from __future__ import annotations

import threading
import time
from typing import Protocol


def date_text(ms: int) -> str:
    """Format a time in ms since 1970 as a date in UTC; a time that no calendar has stays a number."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(ms // 1000))
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms since 1970"


class Clock(Protocol):
    """The clock that the engine needs: the time of day, and a wait."""

    def now_ms(self) -> int:
        """Give the time of day, in ms since 1970. Due times on disk are made of it, so it must outlive a restart."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the time is over; return whether the event was set."""


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Give the machine's time of day, in ms since 1970."""
        return time.time_ns() // 1_000_000

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait in real time."""
        return event.wait(seconds)


class ManualClock:
    """A clock that moves only by :meth:`advance`, for simulations and tests. Thread-safe."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        """Start at the given time, in ms since 1970."""
        self._now_ms = now_ms
        self._moved = threading.Condition()

    def now_ms(self) -> int:
        """Give the time at which the clock stands."""
        with self._moved:
            return self._now_ms

    def advance(self, milliseconds: int) -> None:
        """Move the clock forwards, or backwards by a negative number, and wake every waiting thread."""
        with self._moved:
            self._now_ms += milliseconds
            self._moved.notify_all()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the clock was moved far enough.

        The event is polled a hundred times a second of real time, because an event cannot wake the clock.
        """
        end_ms = self.now_ms() + seconds * 1000
        while not event.is_set():
            with self._moved:
                if self._now_ms >= end_ms:
                    return False
                self._moved.wait(0.01)
        return True
