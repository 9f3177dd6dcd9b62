"""What the parts of the simulator ask of each other; the kernel and the ZooKeeper in memory answer.

Everything that happens is an event: a callback that the kernel runs later, in an order that the seed decides. A
callback must not raise; what goes wrong on a machine is that machine's history.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from reconciler.simulator.kernel.messages import Request, Response

Answer: TypeAlias = Callable[[Response], None]
"""Sends the answer of one request back; called at most once, at once or later."""

Answered: TypeAlias = Callable[[Response | None], None]
"""Is told the answer; None: the connection was lost, and nobody knows whether the request was handled."""

Server: TypeAlias = Callable[[str, Request, Answer], None]
"""Is handed each request that arrives: who sent it, the request, and the way back."""


class Timer(Protocol):
    """Something that will happen."""

    def cancel(self) -> None:
        """It will not; a second time, or after it happened, does nothing."""


class Timers(Protocol):
    """Time, for one machine. A timer of a machine that crashed never fires."""

    def now_ms(self) -> int:
        """The machine's time of day, which may be wrong and may jump."""

    def after(self, delay_ms: int, label: str, act: Callable[[], None]) -> Timer:
        """Have something happen, that much later by the true time.

        Args:
            delay_ms: 0: as soon as everything that is due now was done.
            label: what it is, for the history: ``purge``, ``retry deletion of orders``.
            act: what happens.
        """


class Network(Protocol):
    """Messages between endpoints; an endpoint is a name such as ``broker-3`` or ``client-1``."""

    def serve(self, endpoint: str, server: Server | None) -> None:
        """Have requests for an endpoint handed to a server; None: it is down, and connections are refused."""

    def call(self, sender: str, receiver: str, request: Request, answered: Answered) -> None:
        """Send a request; it arrives once, never, late, twice or out of order, and ``answered`` is called once."""


class Journal(Protocol):
    """The history that a person reads; the same seed gives the same lines."""

    def say(self, who: str, text: str) -> None:
        """Add a line: who did it, and what was done."""


def broker_endpoint(node_id: int) -> str:
    """Where a broker listens, and the controller that runs in its process."""
    return f"broker-{node_id}"
