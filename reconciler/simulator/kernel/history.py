"""What happened, twice: lines for a person, and a trace of every event that shows where two runs part.

A line is ``+000012.345s broker-2  stages orders-0``: the true time since the beginning, who, and what. The same seed
gives the same lines and the same trace, byte for byte; the digests say so in a few characters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence


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
