"""The machine's clock, as the engine wants to be handed time: wrong where the machine's is, and never waited for."""

from __future__ import annotations

import threading

from reconciler.simulator.kernel import Timers


class MachineClock:
    """A :class:`~logstore.Clock` over a machine's timers."""

    def __init__(self, timers: Timers) -> None:
        """Take the time of day from these timers."""
        self._timers = timers

    def now_ms(self) -> int:
        """The machine's time of day."""
        return self._timers.now_ms()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Not at all: time passes only between events, so that to wait inside of one would be for ever."""
        return event.is_set()
