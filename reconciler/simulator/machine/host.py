"""Who a broker is, and its only way to time, network and history: what all its parts are handed.

When the broker is down, nothing that it had begun goes on: answers that come late are not told to anybody, and timers
do nothing. What a part's event raises is the machine's history and not the kernel's trouble.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from logstore import LogStoreError
from reconciler.errors import ReconcilerError
from reconciler.simulator.kernel import Journal, Network, Request, Response, Timer, Timers, broker_endpoint
from reconciler.simulator.machine.broker_settings import BrokerSettings


class Host:
    """One broker's life from a start to its end; the next start gets another.

    Attributes:
        alive: False from the end on.
        noticed: called after every event, to look at what it did to the disks.
        log_dirs: paths that the history calls by their ends alone, for the folder of a run means nothing there.
    """

    def __init__(
        self, node_id: int, network: Network, timers: Timers, journal: Journal, settings: BrokerSettings
    ) -> None:
        """Begin a life."""
        self.node_id, self.settings = node_id, settings
        self.network, self.timers, self.journal = network, timers, journal
        self.alive = True
        self.noticed: Callable[[], None] = lambda: None
        self.log_dirs: Sequence[str] = ()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return broker_endpoint(self.node_id)

    def say(self, text: str) -> None:
        """Add a line to the history."""
        for path in self.log_dirs:
            text = text.replace(path, short_path(path))
        self.journal.say(self.endpoint, text)

    def after(self, delay_ms: int, label: str, act: Callable[[], None]) -> Timer:
        """Have something happen later, if the broker still lives then."""
        return self.timers.after(delay_ms, label, lambda: self.guarded(label, act))

    def call(self, receiver: str, request: Request, answered: Callable[[Response | None], None]) -> None:
        """Send a request; the answer is told if the broker still lives then."""
        label = f"answer to {type(request).__name__}"
        self.network.call(
            self.endpoint, receiver, request, lambda response: self.guarded(label, lambda: answered(response))
        )

    def guarded(self, what: str, act: Callable[[], Any]) -> None:
        """Do something; what goes wrong with a disk, a request or ZooKeeper is said, and the broker goes on."""
        if not self.alive:
            return
        try:
            act()
        except (LogStoreError, ReconcilerError) as error:
            self.say(f"{what}: {error}")
        if self.alive:
            self.noticed()


def short_path(path: str) -> str:
    """The end of a log dir's path, which tells it from the broker's others: ``disk-1/data``."""
    return "/".join(path.rsplit("/", 2)[-2:])
