"""Messages: in order unless passed, and every sender is called back exactly once."""

from __future__ import annotations

import pytest

from reconciler.simulator.kernel import (
    START_MS,
    Answer,
    FaultRates,
    MetadataRequest,
    MetadataResponse,
    Request,
    Response,
    World,
)
from reconciler.simulator.kernel.network import TIMEOUT_MS

ANSWER = MetadataResponse((), (), 1)


class Echo:
    """Serves; keeps the requests that arrive, and answers at once, or on demand."""

    def __init__(self, world: World, name: str = "broker-2", *, later: bool = False) -> None:
        self.world, self.name, self.later = world, name, later
        self.arrived: list[str] = []
        self.answers: list[Answer] = []
        world.network.serve(name, self.serve)

    def serve(self, sender: str, request: Request, answer: Answer) -> None:
        assert isinstance(request, MetadataRequest)
        self.arrived.append(request.topics[0])
        self.answers.append(answer)
        if not self.later:
            answer(ANSWER)


def ask(
    world: World, text: str = "x", *, sender: str = "broker-1", receiver: str = "broker-2"
) -> list[Response | None]:
    received: list[Response | None] = []
    world.network.call(sender, receiver, MetadataRequest((text,)), received.append)
    return received


def test_a_request_is_answered_after_a_few_ms() -> None:
    world = World(1)
    echo, received = Echo(world), ask(world)
    assert (echo.arrived, received) == ([], [])
    world.run()
    assert (echo.arrived, received) == (["x"], [ANSWER])
    assert 2 <= world.now_ms - START_MS <= 10


def test_requests_arrive_in_the_order_in_which_they_were_sent_and_so_do_answers() -> None:
    world = World(2, FaultRates(delay=0.3))
    echo, order = Echo(world), list[int]()
    for number in range(100):
        request = MetadataRequest((str(number),))
        world.network.call("broker-1", "broker-2", request, lambda _, number=number: order.append(number))  # type: ignore[misc]
    world.run()
    assert echo.arrived == [str(number) for number in range(100)]
    assert order == list(range(100))
    assert world.now_ms - START_MS > 1000


def test_requests_that_are_reordered_are_passed_by_others() -> None:
    world = World(3, FaultRates(reorder=0.2))
    echo = Echo(world)
    received = [ask(world, str(number)) for number in range(50)]
    world.run()
    assert sorted(echo.arrived, key=int) == [str(number) for number in range(50)] != echo.arrived
    assert received == [[ANSWER]] * 50


def test_a_request_that_is_doubled_is_handled_twice_and_answered_once() -> None:
    world = World(4, FaultRates(double=1.0))
    echo, received = Echo(world), ask(world)
    world.run()
    assert (echo.arrived, received) == (["x", "x"], [ANSWER])


def test_a_lost_request_is_given_up_after_a_while() -> None:
    world = World(5, FaultRates(loss=1.0))
    echo, received = Echo(world), ask(world)
    world.run()
    assert (echo.arrived, received, world.now_ms) == ([], [None], START_MS + TIMEOUT_MS)


def test_a_lost_answer_is_given_up_after_a_while_though_the_request_was_handled() -> None:
    world = World(5, FaultRates(answer_loss=1.0))
    echo, received = Echo(world), ask(world)
    world.run()
    assert (echo.arrived, received) == (["x"], [None])


def test_an_answer_that_comes_too_late_is_ignored() -> None:
    world = World(6)
    echo, received = Echo(world, later=True), ask(world)
    world.run()
    assert received == [None]
    echo.answers[0](ANSWER)
    world.run()
    assert received == [None]


@pytest.mark.parametrize("rates", [FaultRates(), FaultRates(refuse=1.0)])
def test_a_refused_connection_is_reported_soon(rates: FaultRates) -> None:
    world = World(7, rates)
    if rates.refuse:
        Echo(world)
    received = ask(world)
    world.run()
    assert received == [None]
    assert world.now_ms - START_MS <= 10


def test_a_server_that_is_taken_away_refuses() -> None:
    world = World(7)
    echo = Echo(world)
    world.network.serve("broker-2", None)
    received = ask(world)
    world.run()
    assert (echo.arrived, received) == ([], [None])


def test_requests_to_a_machine_that_crashes_end_after_a_while() -> None:
    world = World(8)
    echo, received = Echo(world, later=True), ask(world)
    while not echo.arrived:
        world.step()
    world.crash("broker-2")
    # What is left of the old life has no connection to answer on.
    echo.answers[0](ANSWER)
    world.run()
    assert received == [None]
    assert world.now_ms - START_MS < 1000


def test_a_request_on_its_way_to_a_machine_that_crashes_is_lost_with_its_connection() -> None:
    world = World(9)
    Echo(world)
    received = ask(world)
    world.crash("broker-2")
    again = Echo(world)
    world.run()
    assert (again.arrived, received) == ([], [None])


def test_a_request_that_was_passed_reaches_the_next_life_of_its_receiver() -> None:
    world = World(9, FaultRates(reorder=1.0))
    Echo(world)
    received = ask(world)
    world.crash("broker-2")
    again = Echo(world)
    world.run()
    assert again.arrived == ["x"]
    assert len(received) == 1


def test_a_machine_that_crashes_gets_no_more_answers() -> None:
    world = World(10)
    echo, received = Echo(world), ask(world)
    world.crash("broker-1")
    world.run()
    # It was on its way already.
    assert (echo.arrived, received) == (["x"], [])


def test_an_answer_that_was_sent_before_a_crash_still_arrives() -> None:
    latest_ms = 0
    for seed in range(10):
        world = World(seed, FaultRates(delay=1.0))
        echo, received = Echo(world), ask(world)
        while not echo.arrived:
            world.step()
        crashed_ms = world.now_ms
        world.crash("broker-2")
        world.run()
        assert received == [ANSWER]
        latest_ms = max(latest_ms, world.now_ms - crashed_ms)
    # Others had seen long before that the connection was gone.
    assert latest_ms > 500


def test_nothing_gets_through_where_the_network_is_cut_until_it_is_healed() -> None:
    world = World(12)
    echo, third = Echo(world), Echo(world, "broker-3")
    world.network.cut("broker-2", ["broker-1"], 1_000_000)
    received, other = ask(world), ask(world, receiver="broker-3")
    world.run()
    assert (echo.arrived, received) == ([], [None])
    assert (third.arrived, other) == (["x"], [ANSWER])
    world.network.heal()
    received = ask(world)
    world.run()
    assert received == [ANSWER]


def test_a_cut_ends_by_itself() -> None:
    world = World(12)
    Echo(world)
    world.network.cut("broker-1", ["broker-2"], 50)
    world.run(for_ms=60)
    received = ask(world)
    world.run()
    assert received == [ANSWER]


def test_what_a_machine_sends_to_itself_is_neither_late_nor_lost() -> None:
    world = World(13, FaultRates(loss=1.0, answer_loss=1.0, refuse=1.0, delay=1.0))
    Echo(world, "broker-1")
    world.network.cut("broker-1", ["broker-1", "broker-2"], 1000)
    received = ask(world, receiver="broker-1")
    world.run()
    assert received == [ANSWER]
    assert world.now_ms == START_MS


def test_to_answer_a_request_twice_is_an_error() -> None:
    world = World(14)
    echo = Echo(world)
    ask(world)
    world.run()
    with pytest.raises(RuntimeError, match="broker-2 answers one MetadataRequest of broker-1 twice"):
        echo.answers[0](ANSWER)


@pytest.mark.parametrize("seed", range(10))
def test_every_request_is_called_back_once_whatever_goes_wrong(seed: int) -> None:
    rates = "loss=0.1,answer_loss=0.1,delay=0.1,double=0.2,reorder=0.2,refuse=0.1"
    world = World(seed, FaultRates.parse(rates))
    echoes = [Echo(world), Echo(world, "broker-3", later=True)]
    received = []
    for number in range(300):
        received.append(ask(world, str(number), receiver=echoes[number % 2].name))
        world.run(for_ms=world.random.randrange(20))
        if number % 20 == 19:
            receiver = echoes[world.random.randrange(2)]
            world.crash(receiver.name)
            world.network.serve(receiver.name, receiver.serve)
    world.run()
    assert {len(each) for each in received} == {1}
    assert [None] in received and [ANSWER] in received
