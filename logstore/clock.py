"""Time as the engine sees it: always handed in, so that a test or a simulation can make hours pass at once."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """What the engine asks of time."""

    def now_ms(self) -> int:
        """The time of day, in ms since 1970. It is written to disk as due times, so it must outlive a restart."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the time is over; True: it was set."""


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """The machine's time of day, in ms since 1970."""
        return time.time_ns() // 1_000_000

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait in real time."""
        return event.wait(seconds)


class ManualClock:
    """A clock that stands still until it is told to go on: for simulations and tests. Thread-safe."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        """Start at that time, in ms since 1970."""
        self._now_ms = now_ms
        self._moved = threading.Condition()

    def now_ms(self) -> int:
        """Where it stands."""
        with self._moved:
            return self._now_ms

    def advance(self, milliseconds: int) -> None:
        """Let time pass, or with a negative number let the clock go backwards; whoever waits looks again."""
        with self._moved:
            self._now_ms += milliseconds
            self._moved.notify_all()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the clock was moved far enough.

        The event is looked at a hundred times a second of real time, because nobody tells this clock when it is set.
        """
        end_ms = self.now_ms() + seconds * 1000
        while not event.is_set():
            with self._moved:
                if self._now_ms >= end_ms:
                    return False
                self._moved.wait(0.01)
        return True
