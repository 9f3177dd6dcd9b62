"""The queue of events: by their time, and those of one time in the order in which they were asked for.

What happened, twice: lines for a person, and a trace of every event that shows where two runs part.

A line is ``+000012.345s broker-2  stages orders-0``: the true time since the beginning, who, and what. The same seed
gives the same lines and the same trace, byte for byte; the digests say so in a few characters.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence


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


class History:
    """The lines and the trace of one run; a :class:`~reconciler.simulator.kernel.Journal`.

    Attributes:
        folder: where the disks of the run lie; left out of what is said, so that runs at two places say the same.
        lines: what was said, in order.
        trace: every event: its time in ms since the beginning, its machine, its label.
    """

    def __init__(self, since_ms: Callable[[], int]) -> None:
        """Start empty.

        Args:
            since_ms: tells the true time, in ms since the beginning.
        """
        self.folder = ""
        self.lines: list[str] = []
        self.trace: list[tuple[int, str, str]] = []
        self._since_ms = since_ms

    def say(self, who: str, text: str) -> None:
        """Add a line; what has several lines becomes one."""
        since_ms = self._since_ms()
        if self.folder:
            text = text.replace(f"{self.folder}/", "")
        self.lines.append(f"+{since_ms // 1000:06d}.{since_ms % 1000:03d}s {who}  {' '.join(text.splitlines())}")

    def happened(self, machine: str, label: str) -> None:
        """Add an event to the trace."""
        self.trace.append((self._since_ms(), machine, label))

    @property
    def digest(self) -> str:
        """32 hex digits over the lines: two runs that say the same have the same."""
        return _digest(self.lines)

    @property
    def trace_digest(self) -> str:
        """The same over the trace, which holds more than is said."""
        return _digest(map(repr, self.trace))


def first_difference(one: Sequence[object], other: Sequence[object]) -> int | None:
    """The index of the first line or event in which two runs differ; None: they are the same."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return None if len(one) == len(other) else min(len(one), len(other))


def _digest(texts: Iterable[str]) -> str:
    made = hashlib.blake2b(digest_size=16)
    for text in texts:
        made.update(text.encode("utf-8", "surrogateescape") + b"\n")
    return made.hexdigest()
