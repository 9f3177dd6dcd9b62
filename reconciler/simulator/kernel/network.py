"""Messages between machines: each takes a few ms, and some of them come late, twice, out of order, or never.

Requests from one machine to another arrive in the order in which they were sent, and so do answers, as over one
connection. A request that is *reordered* or comes a second time went over another connection: later requests pass it,
and it still arrives after its receiver has crashed and started again, which is why Kafka fences by broker epoch. The
sender is called back once: with the answer, or with None when the connection was refused, was broken by a crash, or
timed out. A message that a machine sends to itself is neither late nor lost. Source: FACTS §4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reconciler.simulator.kernel.messages import Numbered, Request, Response
from reconciler.simulator.kernel.ports import Answered, Schedule, Server, Timer

TIMEOUT_MS = 30_000
"""How long a request waits for its answer: the default of ``request.timeout.ms``."""

_LATENCY_MS = (1, 5)
_LATE_MS = (50, 10_000)
_PASSED_MS = (5, 2_000)
_BROKEN_MS = (1, 500)
"""How long after a crash the other machines notice that their connections are gone."""


class _Call:
    """One request on its way, until its sender has the answer."""

    __slots__ = ("answered", "is_answered", "kind", "number", "receiver", "request", "sender", "timeout")

    def __init__(self, number: int, sender: str, receiver: str, request: Request, answered: Answered) -> None:
        self.number, self.sender, self.receiver, self.request = number, sender, receiver, request
        self.answered = answered
        self.kind = type(request.request if isinstance(request, Numbered) else request).__name__
        self.is_answered = False
        self.timeout: Timer | None = None


class SimulatedNetwork:
    """A :class:`~reconciler.simulator.kernel.Network`; an endpoint is the name of a machine."""

    def __init__(self, machines: Schedule, goes_wrong: Callable[[str], bool]) -> None:
        """Start without any server; ``goes_wrong`` draws whether a fault of a kind happens to one message."""
        self._machines, self._goes_wrong, self._random = machines, goes_wrong, machines.randomness("network")
        self._servers: dict[str, Server] = {}
        self._calls: dict[int, _Call] = {}
        self._called = 0
        self._last: dict[tuple[str, str, bool], int] = {}
        """Sender, receiver, whether answers → when the last message arrives."""
        self._cuts: dict[tuple[str, str], int] = {}
        """Two machines → the true time until which nothing gets through between them."""

    def serve(self, endpoint: str, server: Server | None) -> None:
        """Register the server of an endpoint; None: the endpoint is down and refuses connections."""
        if server is None:
            self._servers.pop(endpoint, None)
        else:
            self._servers[endpoint] = server

    def call(self, sender: str, receiver: str, request: Request, answered: Answered) -> None:
        """Send a request; it arrives once, never, late, twice or out of order, and ``answered`` is called once.

        Where the sender crashes first, ``answered`` is never called.
        """
        self._machines.passes(sender)
        call = _Call(self._called, sender, receiver, request, answered)
        self._called += 1
        self._calls[call.number] = call
        call.timeout = self._machines.add(
            TIMEOUT_MS, sender, f"no answer from {receiver} to {call.kind}", lambda: self._call_back(call, None)
        )
        if sender == receiver:
            self._send(call, 0)
        elif self._goes_wrong("refuse"):
            self._refuse(call)
        else:
            lost, doubled = self._goes_wrong("loss"), self._goes_wrong("double")
            if not lost:
                self._send(call, self._travel(), passed=self._goes_wrong("reorder"))
            if doubled:
                self._send(call, self._travel(), passed=True)

    def cut(self, machine: str, others: Iterable[str], for_ms: int) -> None:
        """Let nothing through between a machine and some others for a while; messages on their way are lost."""
        for other in others:
            pair = _pair(machine, other)
            self._cuts[pair] = max(self._cuts.get(pair, 0), self._machines.now_ms + for_ms)

    def heal(self) -> None:
        """Let everything through again."""
        self._cuts.clear()

    def crashed(self, machine: str) -> None:
        """Forget a machine's server and requests; machines that wait for its answers get None, after a while.

        An answer that it had sent already still arrives.
        """
        self._servers.pop(machine, None)
        for call in list(self._calls.values()):
            if call.sender == machine:
                del self._calls[call.number]
            elif call.receiver == machine and not call.is_answered:
                self._later(call, self._random.randint(*_BROKEN_MS), None, "connection lost")

    def _travel(self) -> int:
        """Draw how long a message takes; both numbers are drawn always, so that a rate does not change later draws."""
        latency, late = self._random.randint(*_LATENCY_MS), self._random.randint(*_LATE_MS)
        return late if self._goes_wrong("delay") else latency

    def _in_order(self, sender: str, receiver: str, travel_ms: int, *, answer: bool) -> int:
        """Return how long a message takes that may not pass earlier ones."""
        key, now_ms = (sender, receiver, answer), self._machines.now_ms
        self._last[key] = max(now_ms + travel_ms, self._last.get(key, 0))
        return self._last[key] - now_ms

    def _send(self, call: _Call, travel_ms: int, *, passed: bool = False) -> None:
        if passed:
            travel_ms += self._random.randint(*_PASSED_MS)
        else:
            travel_ms = self._in_order(call.sender, call.receiver, travel_ms, answer=False)
        label = f"{call.kind} from {call.sender}"
        self._machines.add(travel_ms, call.receiver, label, lambda: self._arrive(call), outlives_crash=passed)

    def _arrive(self, call: _Call) -> None:
        if self._is_cut(call.sender, call.receiver):
            return
        server = self._servers.get(call.receiver)
        if server is None:
            self._refuse(call)
            return
        life, answers = self._machines.life_of(call.receiver), list[Response]()

        def answer(response: Response) -> None:
            if answers:
                raise RuntimeError(f"{call.receiver} answers one {call.kind} of {call.sender} twice")
            answers.append(response)
            self._answer(call, response, life)

        server(call.sender, call.request, answer)

    def _answer(self, call: _Call, response: Response, life: int) -> None:
        if life != self._machines.life_of(call.receiver):
            return  # the connection ended with the life in which the request arrived
        self._machines.passes(call.receiver)
        if call.sender == call.receiver:
            call.is_answered = True
            self._later(call, 0, response, "answer")
            return
        travel_ms = self._in_order(call.receiver, call.sender, self._travel(), answer=True)
        if self._goes_wrong("answer_loss") or self._is_cut(call.sender, call.receiver):
            return
        call.is_answered = True
        self._later(call, travel_ms, response, "answer")

    def _refuse(self, call: _Call) -> None:
        self._later(call, self._random.randint(*_LATENCY_MS), None, "connection refused")

    def _later(self, call: _Call, delay_ms: int, response: Response | None, what: str) -> None:
        label = f"{what} of {call.receiver} to {call.kind}"
        if call.number in self._calls:
            self._machines.add(delay_ms, call.sender, label, lambda: self._call_back(call, response))

    def _call_back(self, call: _Call, response: Response | None) -> None:
        """Hand the sender the answer, unless the call ended before."""
        if self._calls.pop(call.number, None) is not None:
            if call.timeout is not None:
                call.timeout.cancel()
            call.answered(response)

    def _is_cut(self, one: str, other: str) -> bool:
        return bool(self._cuts) and one != other and self._cuts.get(_pair(one, other), 0) > self._machines.now_ms


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
