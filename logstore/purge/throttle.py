"""Holds a purge to so many bytes and so many unlinks a second, so that the disk has time for those who read from it.

Two buckets, refilled by the clock. What is taken may overdraw a bucket, and whoever overdraws it waits until it is paid
for: so a segment larger than what a second allows passes as well, and the rate holds on average. Source: DESIGN §5.
"""

from __future__ import annotations

import threading

from logstore.clock import Clock
from logstore.errors import ChangeRefusedError


class _Bucket:
    """One rate; a second's worth may be taken at once after a pause."""

    def __init__(self, rate: float, now_ms: int) -> None:
        self.rate = rate
        self._level = 0.0
        self._filled_ms = now_ms

    def take(self, amount: float, now_ms: int) -> float:
        """Take, and tell for how many seconds to wait. A clock that goes backwards refills nothing."""
        passed_ms = max(0, now_ms - self._filled_ms)
        self._filled_ms = now_ms
        self._level = min(self.rate, self._level + self.rate * passed_ms / 1000) - amount
        return max(0.0, -self._level / self.rate)


class Throttle:
    """Shared by all that work at the same time. Thread-safe."""

    def __init__(self, clock: Clock, *, bytes_per_s: float | None = None, unlinks_per_s: float | None = None) -> None:
        """Set the rates; None: as fast as it goes.

        Raises:
            ChangeRefusedError: a rate that is not positive, at which nothing would ever be done.
        """
        for name, rate in (("bytes", bytes_per_s), ("unlinks", unlinks_per_s)):
            if rate is not None and rate <= 0:
                raise ChangeRefusedError(f"{rate} {name}/s would never come to an end: give a positive rate, or none")
        now_ms = clock.now_ms()
        self._clock = clock
        self._lock = threading.Lock()
        self._bytes = None if bytes_per_s is None else _Bucket(bytes_per_s, now_ms)
        self._unlinks = None if unlinks_per_s is None else _Bucket(unlinks_per_s, now_ms)

    def take(self, number_of_bytes: int, unlinks: int, cancel: threading.Event) -> bool:
        """Wait until so much may be removed.

        Args:
            number_of_bytes: that the disk gets back.
            unlinks: names that go.
            cancel: ends the wait.

        Returns:
            False: it was cancelled, and nothing more may be removed.
        """
        if cancel.is_set():
            return False
        with self._lock:
            now_ms = self._clock.now_ms()
            seconds = 0.0
            if self._bytes is not None:
                seconds = self._bytes.take(number_of_bytes, now_ms)
            if self._unlinks is not None:
                seconds = max(seconds, self._unlinks.take(unlinks, now_ms))
        return seconds <= 0 or not self._clock.wait(cancel, seconds)
