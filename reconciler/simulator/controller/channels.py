"""One queue of requests for each broker, one request in flight; sent again until it is answered.

Each request has a number of its own, in the order of sending, so that a broker knows a copy that comes late.

A queue ends when its broker is gone or was registered anew, or when the controller resigns: what waits is dropped, and
answers that still come are heard by nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from reconciler.protocol import ControlRequest
from reconciler.simulator.controller.settings import ControllerSettings
from reconciler.simulator.kernel import Network, Numbered, Response, UpdateMetadataRequest, broker_endpoint

ResponseHandler: TypeAlias = Callable[[Response], None]
Later: TypeAlias = Callable[[int, str, Callable[[], None]], None]
"""Has something done later, unless the controller has resigned by then: delay in ms, label, what."""

SentRequest: TypeAlias = ControlRequest | UpdateMetadataRequest


class Channels:
    """The queues of one controller."""

    def __init__(
        self,
        node_id: int,
        network: Network,
        settings: ControllerSettings,
        *,
        later: Later,
        guarded: Callable[[Callable[[], None]], None],
        step: Callable[[str], None],
    ) -> None:
        """Begin without any.

        Args:
            node_id: of the broker in whose process the controller runs; its end point sends.
            network: carries requests and answers.
            settings: how long to wait before a request is sent again.
            later: of this controller.
            guarded: runs what an answer leads to, unless the controller has resigned.
            step: is told before each first sending.
        """
        self._sender, self._network, self._later, self._guarded = broker_endpoint(node_id), network, later, guarded
        self._step, self._settings = step, settings
        self._open: dict[int, _Channel] = {}
        self._sent = 0

    def open(self, broker: int, broker_epoch: int) -> None:
        """Begin a queue for a broker that was registered; one that there was ends."""
        self.close(broker)
        self._open[broker] = _Channel(broker, broker_epoch)

    def close(self, broker: int) -> None:
        """End a broker's queue, if there is one."""
        found = self._open.pop(broker, None)
        if found is not None:
            found.closed = True

    def close_all(self) -> None:
        """End all queues."""
        for broker in list(self._open):
            self.close(broker)

    def brokers(self) -> list[int]:
        """The brokers that have a queue, sorted."""
        return sorted(self._open)

    def epoch_of(self, broker: int) -> int:
        """The broker epoch that goes into requests for a broker that has a queue."""
        return self._open[broker].broker_epoch

    def waiting(self, broker: int) -> int:
        """How many requests of a broker are not answered yet."""
        found = self._open.get(broker)
        return len(found.queue) if found is not None else 0

    def send(self, broker: int, request: SentRequest, told: ResponseHandler) -> None:
        """Put a request into a broker's queue; without a queue it is dropped, for the broker is gone.

        Args:
            broker: that gets it.
            request: what it gets.
            told: is told the answer, once.
        """
        channel = self._open.get(broker)
        if channel is None:
            return
        self._sent += 1
        channel.queue.append((Numbered(self._sent, request), told))
        if len(channel.queue) == 1:
            self._send_first(channel)

    def _send_first(self, channel: _Channel) -> None:
        request = channel.queue[0][0]
        channel.tries += 1
        if channel.tries == 1:
            kind = type(request.request).__name__.removesuffix("Request")
            self._step(f"send {kind} to {channel.broker}")

        def answered(response: Response | None) -> None:
            if not channel.closed:
                self._guarded(lambda: self._answered(channel, response))

        self._network.call(self._sender, broker_endpoint(channel.broker), request, answered)

    def _answered(self, channel: _Channel, response: Response | None) -> None:
        if response is None:
            pause = min(self._settings.retry_ms << min(channel.tries - 1, 20), self._settings.most_retry_ms)
            self._later(pause, f"send again to broker {channel.broker}", lambda: self._again(channel))
            return
        told = channel.queue.popleft()[1]
        channel.tries = 0
        if channel.queue:
            self._send_first(channel)
        told(response)

    def _again(self, channel: _Channel) -> None:
        if not channel.closed and channel.queue:
            self._send_first(channel)


class _Channel:
    """One queue; what is first in it is in flight."""

    def __init__(self, broker: int, broker_epoch: int) -> None:
        self.broker, self.broker_epoch = broker, broker_epoch
        self.queue: deque[tuple[Numbered, ResponseHandler]] = deque()
        self.closed = False
        self.tries = 0
