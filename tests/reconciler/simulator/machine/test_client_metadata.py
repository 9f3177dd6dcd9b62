"""A client asks one broker after the other, until one answers."""

from __future__ import annotations

from reconciler.simulator.kernel import (
    Answer,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    Request,
    TopicMetadata,
    World,
)
from reconciler.simulator.machine import ClientMetadata
from tests.reconciler.simulator.machine.brokers import A

ORDERS = TopicMetadata("orders", A, (PartitionMetadata(0, 1, 0, (1,), (1,)),))


def client(world: World) -> ClientMetadata:
    return ClientMetadata("client-1", [1, 2], world.network, world.timers("client-1"))


# KIP516-9
def test_it_knows_what_the_broker_said_last() -> None:
    world = World(1)
    told = [MetadataResponse((ORDERS,), (1,), 1), MetadataResponse((), (1,), 1)]
    for endpoint in ("broker-1", "broker-2"):
        world.network.serve(endpoint, lambda sender, request, answer: answer(told.pop(0)))
    metadata = client(world)
    assert (metadata.topic_id("orders"), metadata.partitions("orders")) == (None, ())
    metadata.refresh()
    world.run()
    assert (metadata.topic_id("orders"), metadata.partitions("orders")) == (A, ORDERS.partitions)
    metadata.refresh()
    world.run()
    assert metadata.topics == {}


def test_where_one_broker_is_down_the_next_one_is_asked() -> None:
    world, metadata = World(1), None
    asked: list[Request] = []

    def serve(sender: str, request: Request, answer: Answer) -> None:
        asked.append(request)
        answer(MetadataResponse((ORDERS,), (2,), 2))

    world.network.serve("broker-2", serve)
    metadata = client(world)
    metadata.refresh()
    world.run()
    assert asked == [MetadataRequest()]
    assert metadata.topic_id("orders") == A


def test_many_who_wait_are_told_by_one_answer() -> None:
    world, happened, asked = World(1), list[str](), list[Request]()

    def serve(sender: str, request: Request, answer: Answer) -> None:
        asked.append(request)
        answer(MetadataResponse((), (1,), 1))

    world.network.serve("broker-1", serve)
    metadata = client(world)
    metadata.refresh(lambda: happened.append("first"))
    metadata.refresh(lambda: happened.append("second"))
    world.run()
    assert (happened, len(asked)) == (["first", "second"], 1)
