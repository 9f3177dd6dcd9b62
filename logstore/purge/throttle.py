"""Limits a purge to a rate of bytes and of unlinks a second, so that the disk has time for other work.

Two token buckets, refilled by the clock. A call may overdraw a bucket, and then waits until the debt is refilled. So a
segment larger than the allowance of a second passes as well, and the rate holds on average. Source: DESIGN §5.
"""

from __future__ import annotations

import threading

from logstore.arguments import check_argument
from logstore.clock import Clock
from logstore.errors import ChangeRefusedError, InvalidArgumentError


class _Bucket:
    """A token bucket for one rate; after a pause the allowance of one second may be taken at once."""

    def __init__(self, rate: float, now_ms: int) -> None:
        self.rate = rate
        self._level = 0.0
        self._filled_ms = now_ms

    def take(self, amount: float, now_ms: int) -> float:
        """Take tokens; gives the seconds to wait. A clock that goes backwards refills nothing."""
        passed_ms = max(0, now_ms - self._filled_ms)
        self._filled_ms = now_ms
        self._level = min(self.rate, self._level + self.rate * passed_ms / 1000) - amount
        return max(0.0, -self._level / self.rate)


class Throttle:
    """The rates of a purge, shared by all its workers. Thread-safe."""

    def __init__(self, clock: Clock, *, bytes_per_s: float | None = None, unlinks_per_s: float | None = None) -> None:
        """Set the rates; None: no limit.

        Raises:
            InvalidArgumentError: a rate is no number.
            ChangeRefusedError: a rate is not positive, so that the purge would never end.
        """
        check_argument("clock", clock, Clock, InvalidArgumentError)
        for name, rate in (("bytes", bytes_per_s), ("unlinks", unlinks_per_s)):
            check_argument(f"a rate of {name}", 1.0 if rate is None else rate, float, InvalidArgumentError)
            if rate is not None and rate <= 0:
                raise ChangeRefusedError(f"{rate} {name}/s would never come to an end: give a positive rate, or none")
        now_ms = clock.now_ms()
        self._clock = clock
        self._lock = threading.Lock()
        self._bytes = None if bytes_per_s is None else _Bucket(bytes_per_s, now_ms)
        self._unlinks = None if unlinks_per_s is None else _Bucket(unlinks_per_s, now_ms)

    def take(self, number_of_bytes: int, unlinks: int, cancel: threading.Event) -> bool:
        """Wait until a removal is allowed.

        Args:
            number_of_bytes: that the removal frees.
            unlinks: number of names that it removes.
            cancel: ends the wait.

        Returns:
            Whether it may be done; it may not where the purge was cancelled.
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
