from __future__ import annotations

from collections.abc import Callable

from logstore import KafkaError
from reconciler.simulator.controller import ControllerSettings
from reconciler.simulator.controller.requests import Channels
from reconciler.simulator.kernel import Numbered, Request, Response, UpdateMetadataRequest
from tests.reconciler.simulator.controller.cluster import HandTimers


def request(number: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(1, number, 0, (), ())


class Wire:
    """Keeps every call until it is answered by hand."""

    def __init__(self) -> None:
        self.timers = HandTimers()
        self.calls: list[tuple[str, Request, Callable[[Response | None], None]]] = []
        self.told: list[tuple[int, Response]] = []
        self.steps: list[str] = []
        self.numbers: list[int] = []
        self.channels = Channels(
            1,
            self,
            ControllerSettings(retry_ms=100, most_retry_ms=400),
            later=self.timers.after,
            guarded=lambda act: act(),
            step=self.steps.append,
        )
        self.channels.open(2, 20)

    def serve(self, endpoint: str, server: object) -> None:
        raise AssertionError("nobody listens here")

    def call(self, sender: str, receiver: str, sent: Request, answered: Callable[[Response | None], None]) -> None:
        assert sender == "broker-1"
        assert isinstance(sent, Numbered)
        self.numbers.append(sent.number)
        self.calls.append((receiver, sent.request, answered))

    def send(self, number: int, broker: int = 2) -> None:
        self.channels.send(broker, request(number), lambda response: self.told.append((number, response)))

    def sent(self) -> list[int]:
        return [each.controller_epoch for _, each, _ in self.calls if isinstance(each, UpdateMetadataRequest)]

    def answer(self, response: Response | None = KafkaError.NONE) -> None:
        self.calls[-1][2](response)


def test_one_request_is_in_flight_and_the_others_follow_in_order() -> None:
    wire = Wire()
    for number in (1, 2, 3):
        wire.send(number)
    assert (wire.sent(), wire.channels.waiting(2)) == ([1], 3)
    wire.answer()
    assert wire.sent() == [1, 2]
    wire.answer()
    wire.answer()
    assert [number for number, _ in wire.told] == [1, 2, 3]
    assert (wire.sent(), wire.channels.waiting(2)) == ([1, 2, 3], 0)


def test_requests_are_numbered_in_the_order_of_sending_and_keep_their_number_when_sent_again() -> None:
    wire = Wire()
    wire.send(1)
    wire.answer(None)
    wire.timers.pass_time(100)
    wire.answer()
    wire.send(2)
    assert wire.numbers == [1, 1, 2]


def test_a_request_whose_connection_was_lost_is_sent_again_and_again_with_longer_pauses() -> None:
    wire = Wire()
    wire.send(1)
    times = []
    for _ in range(5):
        wire.answer(None)
        before, count = wire.timers.now, len(wire.calls)
        while len(wire.calls) == count:
            wire.timers.pass_time(1)
        times.append(wire.timers.now - before)
    assert times == [100, 200, 400, 400, 400]
    assert set(wire.sent()) == {1}
    assert wire.told == []
    wire.answer()
    assert wire.told == [(1, KafkaError.NONE)]


def test_the_pauses_are_short_again_after_an_answer() -> None:
    wire = Wire()
    wire.send(1)
    wire.send(2)
    wire.answer(None)
    wire.timers.pass_time(100)
    wire.answer()
    wire.answer(None)
    wire.timers.pass_time(100)
    assert wire.sent() == [1, 1, 2, 2]


def test_a_broker_that_was_registered_anew_gets_nothing_that_was_meant_for_the_one_before() -> None:
    wire = Wire()
    wire.send(1)
    wire.send(2)
    old = wire.calls[-1][2]
    wire.channels.open(2, 21)
    old(KafkaError.NONE)
    assert (wire.told, wire.sent(), wire.channels.epoch_of(2)) == ([], [1], 21)
    wire.send(3)
    assert wire.sent() == [1, 3]


def test_nothing_is_sent_again_once_the_queue_is_closed() -> None:
    wire = Wire()
    wire.send(1)
    wire.answer(None)
    wire.channels.close_all()
    wire.timers.pass_time(10_000)
    assert (wire.sent(), wire.channels.brokers()) == ([1], [])


def test_a_request_for_a_broker_that_is_not_there_is_dropped() -> None:
    wire = Wire()
    wire.send(1, broker=9)
    assert (wire.calls, wire.told, wire.channels.waiting(9)) == ([], [], 0)


def test_brokers_do_not_wait_for_each_other() -> None:
    wire = Wire()
    wire.channels.open(3, 30)
    wire.send(1, broker=2)
    wire.send(2, broker=3)
    assert [receiver for receiver, _, _ in wire.calls] == ["broker-2", "broker-3"]


def test_each_request_is_a_step_when_it_is_sent_first() -> None:
    wire = Wire()
    wire.send(1)
    wire.answer(None)
    wire.timers.pass_time(100)
    assert wire.steps == ["send UpdateMetadata to 2"]
