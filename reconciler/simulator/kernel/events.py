"""The queue of events: by their time, and those of one time in the order in which they were asked for."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping


class Event:
    """Something that will happen, unless it is cancelled or its machine crashes first.

    Attributes:
        due_ms: when, by the true time.
        machine: whose it is; empty: nobody's, so no crash takes it away.
        life: which life of the machine it belongs to, counted by its crashes; -1: it outlives them.
        label: what it is, for the trace.
        act: what happens; None once it happened or was cancelled.
    """

    __slots__ = ("act", "due_ms", "label", "life", "machine")

    def __init__(self, due_ms: int, machine: str, life: int, label: str, act: Callable[[], None]) -> None:
        """Put together by :meth:`EventQueue.add`."""
        self.due_ms, self.machine, self.life, self.label = due_ms, machine, life, label
        self.act: Callable[[], None] | None = act

    def cancel(self) -> None:
        """It will not happen; a second time, or after it happened, does nothing."""
        self.act = None


class EventQueue:
    """All that will happen."""

    def __init__(self) -> None:
        """Nothing will."""
        self._heap: list[tuple[int, int, Event]] = []
        self._added = 0

    def add(self, event: Event) -> Event:
        """Enter an event; of several at one time, the one that was added first happens first."""
        heapq.heappush(self._heap, (event.due_ms, self._added, event))
        self._added += 1
        return event

    def take(self, lives: Mapping[str, int]) -> tuple[Event, Callable[[], None]] | None:
        """The next event that was not cancelled and whose machine still lives that life, and what it does.

        Args:
            lives: machine → how often it crashed so far.

        Returns:
            None: nothing will happen any more.
        """
        event = self._next(lives)
        if event is None or event.act is None:
            return None
        heapq.heappop(self._heap)
        act, event.act = event.act, None
        return event, act

    def next_ms(self, lives: Mapping[str, int]) -> int | None:
        """When the next event is due; None: there is none."""
        event = self._next(lives)
        return None if event is None else event.due_ms

    def _next(self, lives: Mapping[str, int]) -> Event | None:
        """The first that will happen; what comes before it, and never will, is dropped."""
        while self._heap:
            event = self._heap[0][2]
            if event.act is not None and (event.life < 0 or event.life == lives.get(event.machine, 0)):
                return event
            heapq.heappop(self._heap)
        return None

    def __len__(self) -> int:
        """How many are entered, those included that will turn out to be cancelled."""
        return len(self._heap)
