"""The queue of events, ordered by time and then by when they were added; and the history of what happened.

The history is kept twice: lines for a person, and a trace of every event that shows where two runs part. A line is
``+000012.345s broker-2  stages orders-0``: the true time since the beginning, who, and what. The same seed gives the
same lines and the same trace, byte for byte; the digests say so in a few characters.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Mapping


class Event:
    """A callback that runs at its time, unless it is cancelled or its machine crashes first.

    Attributes:
        due_ms: the true time at which it is due.
        machine: the machine it belongs to; empty: none, so that no crash removes it.
        life: the life of the machine it belongs to, counted by crashes; -1: it outlives them.
        label: names it in the trace.
        act: the callback; None once it ran or was cancelled.
    """

    __slots__ = ("act", "due_ms", "label", "life", "machine")

    def __init__(self, due_ms: int, machine: str, life: int, label: str, act: Callable[[], None]) -> None:
        """Describe an event; :meth:`EventQueue.add` queues it."""
        self.due_ms, self.machine, self.life, self.label = due_ms, machine, life, label
        self.act: Callable[[], None] | None = act

    def cancel(self) -> None:
        """Cancel the event; does nothing the second time, or after the event happened."""
        self.act = None


class EventQueue:
    """All events that are still to happen."""

    def __init__(self) -> None:
        """Start empty."""
        self._heap: list[tuple[int, int, Event]] = []
        self._added = 0

    def add(self, event: Event) -> Event:
        """Queue an event; events of one time happen in the order in which they were added."""
        heapq.heappush(self._heap, (event.due_ms, self._added, event))
        self._added += 1
        return event

    def take(self, lives: Mapping[str, int]) -> tuple[Event, Callable[[], None]] | None:
        """Take the next event that was not cancelled and whose machine still lives the same life, with its callback.

        ``lives`` counts the crashes of each machine.

        Returns:
            None: no event is left.
        """
        event = self._next(lives)
        if event is None or event.act is None:
            return None
        heapq.heappop(self._heap)
        act, event.act = event.act, None
        return event, act

    def next_ms(self, lives: Mapping[str, int]) -> int | None:
        """Return the time at which the next event is due; None: no event is left."""
        event = self._next(lives)
        return None if event is None else event.due_ms

    def _next(self, lives: Mapping[str, int]) -> Event | None:
        """Return the first event that will happen, and drop those before it that never will."""
        while self._heap:
            event = self._heap[0][2]
            if event.act is not None and (event.life < 0 or event.life == lives.get(event.machine, 0)):
                return event
            heapq.heappop(self._heap)
        return None

    def __len__(self) -> int:
        """Return the number of queued events, including cancelled ones."""
        return len(self._heap)


class History:
    """The lines and the trace of one run; a :class:`~reconciler.simulator.kernel.Journal`.

    Attributes:
        folder: holds the disks of the run; left out of the lines, so that runs in two folders read the same.
        lines: in order.
        trace: every event: its time in ms since the beginning, its machine, its label.
        reached: a kind and a name, such as ``verdict STALE_ID`` → how often the run came there.
    """

    def __init__(self, since_ms: Callable[[], int]) -> None:
        """Start empty; ``since_ms`` returns the true time, in ms since the beginning."""
        self.folder = ""
        self.lines: list[str] = []
        self.trace: list[tuple[int, str, str]] = []
        self.reached: dict[str, int] = {}
        self._since_ms = since_ms

    def say(self, who: str, text: str) -> None:
        """Add a line; a text of several lines becomes one."""
        since_ms = self._since_ms()
        if self.folder:
            text = text.replace(f"{self.folder}/", "")
        self.lines.append(f"+{since_ms // 1000:06d}.{since_ms % 1000:03d}s {who}  {' '.join(text.splitlines())}")

    def reach(self, what: str, times: int = 1) -> None:
        """Count that the run came to an operation, a fault, a verdict, an error or a way of recovery."""
        if times:
            self.reached[what] = self.reached.get(what, 0) + times

    def happened(self, machine: str, label: str) -> None:
        """Add an event to the trace."""
        self.trace.append((self._since_ms(), machine, label))

    @property
    def digest(self) -> str:
        """32 hex digits over the lines, equal for equal lines."""
        return _digest(self.lines)

    @property
    def trace_digest(self) -> str:
        """32 hex digits over the trace, which holds more than the lines."""
        return _digest(map(repr, self.trace))


def _digest(texts: Iterable[str]) -> str:
    made = hashlib.blake2b(digest_size=16)
    for text in texts:
        made.update(text.encode("utf-8", "surrogateescape") + b"\n")
    return made.hexdigest()
