"""The interfaces between the parts of the simulator; the kernel and the ZooKeeper in memory implement them.

Everything that happens is an event: a callback that the kernel runs later, in an order that the seed decides. A
callback must not raise; a failure on a machine becomes part of that machine's history.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol, TypeAlias

from reconciler.simulator.kernel.messages import Request, Response

Answer: TypeAlias = Callable[[Response], None]
"""Sends the answer of one request back; called at most once, at once or later."""

Answered: TypeAlias = Callable[[Response | None], None]
"""Receives the answer; None: the connection was lost, and nobody knows whether the request was handled."""

Server: TypeAlias = Callable[[str, Request, Answer], None]
"""Handles each request that arrives: the sender, the request, and the callback that answers it."""


class Timer(Protocol):
    """An event that can still be cancelled."""

    def cancel(self) -> None:
        """Cancel the event; does nothing the second time, or after the event happened."""


class Timers(Protocol):
    """The clock and the timers of one machine. A timer of a machine that crashed never fires."""

    def now_ms(self) -> int:
        """The machine's time of day, which may be wrong and may jump."""

    def after(self, delay_ms: int, label: str, act: Callable[[], None]) -> Timer:
        """Call a function after a delay in true time; 0: as soon as everything that is due now was done.

        The label names the timer in the history: ``purge``, ``retry deletion of orders``.
        """


class Network(Protocol):
    """Messages between endpoints; an endpoint is a name such as ``broker-3`` or ``client-1``."""

    def serve(self, endpoint: str, server: Server | None) -> None:
        """Register the server of an endpoint; None: the endpoint is down and refuses connections."""

    def call(self, sender: str, receiver: str, request: Request, answered: Answered) -> None:
        """Send a request; it arrives once, never, late, twice or out of order, and ``answered`` is called once."""


class Journal(Protocol):
    """The history that a person reads; the same seed gives the same lines."""

    def say(self, who: str, text: str) -> None:
        """Add a line: who acted, and what was done."""

    def reach(self, what: str, times: int = 1) -> None:
        """Count that the run came to an operation, a fault, a verdict, an error or a way of recovery."""


class Schedule(Protocol):
    """True time, chance, the lives of machines and the one queue of events: what the network and the faults need."""

    @property
    def now_ms(self) -> int:
        """The true time, in ms since 1970."""

    def randomness(self, purpose: str) -> Random:
        """Return a random generator of its own for one purpose."""

    def add(
        self, delay_ms: int, machine: str, label: str, act: Callable[[], None], *, outlives_crash: bool = False
    ) -> Timer:
        """Queue an event of a machine's present life; an empty machine makes it an event that no crash removes."""

    def passes(self, machine: str) -> None:
        """Count one action of a machine; raises when the machine has lost its power."""

    def life_of(self, machine: str) -> int:
        """Return how often a machine crashed."""


def broker_endpoint(node_id: int) -> str:
    """Return the endpoint of a broker and of the controller in its process."""
    return f"broker-{node_id}"
