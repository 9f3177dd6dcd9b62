from __future__ import annotations

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.kernel import (
    Answer,
    Answered,
    Journal,
    Network,
    ProduceRequest,
    ProduceResponse,
    Request,
    Response,
    Server,
    World,
    broker_endpoint,
)


def test_a_broker_and_the_controller_in_its_process_listen_at_one_endpoint() -> None:
    assert [broker_endpoint(node_id) for node_id in (1, 22)] == ["broker-1", "broker-22"]


def test_a_world_has_the_network_and_the_journal_that_the_parts_ask_for() -> None:
    world, got = World(1), list[Response | None]()

    def acknowledge(sender: str, request: Request, answer: Answer) -> None:
        answer(ProduceResponse(KafkaError.NONE, 7))

    network: Network = world.network
    journal: Journal = world.history
    server: Server = acknowledge
    answered: Answered = got.append
    network.serve("broker-1", server)
    network.call("client-1", "broker-1", ProduceRequest(TopicPartition("orders", 0), None, "x"), answered)
    world.run()
    journal.say("client-1", "wrote x")
    assert got == [ProduceResponse(KafkaError.NONE, 7)]
    assert world.history.lines[-1].endswith("client-1  wrote x")
