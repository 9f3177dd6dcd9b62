"""A clock that a wait moves, so that a drill of what waits takes no time."""

from __future__ import annotations

import threading

from logstore import ManualClock


class WaitingClock(ManualClock):
    """A clock that a wait moves, and that counts the seconds of all waits.

    Attributes:
        waited: the seconds.
    """

    waited = 0.0

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Move the clock on."""
        self.waited += seconds
        self.advance(int(seconds * 1000) + 1)
        return event.is_set()
