"""A network that shows every answer that a broker gives over it, to clients and to followers."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.simulator.kernel import Answer, Answered, Network, Request, Response, Server


class WatchedNetwork:
    """A :class:`~reconciler.simulator.kernel.Network` that stands between a broker and the real one.

    Attributes:
        on_answer: called with each request and its answer, as soon as the answer is on its way.
    """

    def __init__(self, network: Network) -> None:
        """Pass everything on to this network."""
        self._network = network
        self.on_answer: Callable[[Request, Response], None] = lambda request, response: None

    def serve(self, endpoint: str, server: Server | None) -> None:
        """As the network does."""
        self._network.serve(endpoint, None if server is None else self._watched(server))

    def call(self, sender: str, receiver: str, request: Request, answered: Answered) -> None:
        """As the network does."""
        self._network.call(sender, receiver, request, answered)

    def _watched(self, server: Server) -> Server:
        def serve(sender: str, request: Request, answer: Answer) -> None:
            def watched_answer(response: Response) -> None:
                answer(response)
                self.on_answer(request, response)

            server(sender, request, watched_answer)

        return serve
