"""Clients ask one broker after the other; producers and consumers remember records under their topic ID."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from logstore import KafkaError
from reconciler.simulator.kernel import (
    Answer,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    PartitionMode,
    Record,
    Request,
    TopicMetadata,
    World,
)
from reconciler.simulator.machine import AcknowledgedRecord, BelievedPartition, ClientMetadata, Consumer, Producer
from tests.reconciler.simulator.machine.brokers import ORDERS, A, B, Brokers
from tests.reconciler.simulator.machine.clients import metadata_of, tell

ORDERS_METADATA = TopicMetadata("orders", A, (PartitionMetadata(0, 1, 0, (1,), (1,)),))


def client(world: World) -> ClientMetadata:
    return ClientMetadata("client-1", [1, 2], world.network, world.timers("client-1"))


# KIP516-9
def test_it_knows_what_the_broker_said_last() -> None:
    world = World(1)
    answers = [MetadataResponse((ORDERS_METADATA,), (1,), 1), MetadataResponse((), (1,), 1)]
    for endpoint in ("broker-1", "broker-2"):
        world.network.serve(endpoint, lambda sender, request, answer: answer(answers.pop(0)))
    metadata = client(world)
    assert (metadata.topic_id("orders"), metadata.partitions("orders")) == (None, ())
    metadata.refresh()
    world.run()
    assert (metadata.topic_id("orders"), metadata.partitions("orders")) == (A, ORDERS_METADATA.partitions)
    metadata.refresh()
    world.run()
    assert metadata.topics == {}


def test_where_one_broker_is_down_the_next_one_is_asked() -> None:
    world, metadata = World(1), None
    asked: list[Request] = []

    def serve(sender: str, request: Request, answer: Answer) -> None:
        asked.append(request)
        answer(MetadataResponse((ORDERS_METADATA,), (2,), 2))

    world.network.serve("broker-2", serve)
    metadata = client(world)
    metadata.refresh()
    world.run()
    assert asked == [MetadataRequest()]
    assert metadata.topic_id("orders") == A


def test_one_answer_serves_all_waiting_callers() -> None:
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


@pytest.fixture
def producer(brokers: Brokers) -> Producer:
    brokers.lead(1)
    tell(brokers)
    return Producer("client-1", metadata_of(brokers, "client-1"), brokers.world.network, Random(1))


def test_what_is_acknowledged_is_remembered_with_its_topic_id(brokers: Brokers, producer: Producer) -> None:
    called: list[AcknowledgedRecord] = []
    producer.on_acknowledged = called.append
    assert [producer.send("orders") for _ in range(2)] == ["client-1 0", "client-1 1"]
    assert len(producer.unsure) == 2
    brokers.run()
    assert producer.acknowledged == [
        AcknowledgedRecord(ORDERS, A, 0, "client-1 0"),
        AcknowledgedRecord(ORDERS, A, 1, "client-1 1"),
    ]
    assert called == producer.acknowledged
    assert producer.unsure == {}
    assert brokers.values(1) == ["client-1 0", "client-1 1"]


# KIP516-8
def test_a_record_for_a_topic_that_was_made_anew_is_not_written_to_it(brokers: Brokers, producer: Producer) -> None:
    brokers.lead(1, 0, topic_id=B)
    tell(brokers, topic_id=B)
    producer.send("orders")
    brokers.run()
    assert producer.unsure == {"client-1 0": "INCONSISTENT_TOPIC_ID"}
    assert brokers.values(1) == []
    producer.send("orders")
    brokers.run()
    assert producer.acknowledged == [AcknowledgedRecord(ORDERS, B, 0, "client-1 1")]


def test_after_an_error_it_finds_the_new_leader(brokers: Brokers, producer: Producer) -> None:
    brokers.lead(2, 1)
    tell(brokers, 2)
    producer.send("orders")
    brokers.run()
    assert producer.unsure == {"client-1 0": "NOT_LEADER_OR_FOLLOWER"}
    producer.send("orders")
    brokers.run()
    assert [each.value for each in producer.acknowledged] == ["client-1 1"]


def test_without_an_answer_it_is_unsure(brokers: Brokers, producer: Producer) -> None:
    brokers.crash(1)
    producer.send("orders")
    brokers.run()
    assert producer.unsure == {"client-1 0": "no answer"}


# KIP694-1
@pytest.mark.parametrize("mode", [PartitionMode.READ_ONLY, PartitionMode.NONE])
def test_it_passes_over_partitions_that_may_not_be_written_to(brokers: Brokers, mode: PartitionMode) -> None:
    brokers.lead(1)
    tell(brokers, mode=mode)
    producer = Producer("client-1", metadata_of(brokers, "client-1"), brokers.world.network, Random(1))
    assert producer.send("orders") is None
    brokers.run()
    tell(brokers)
    assert producer.send("orders") is None
    brokers.run()
    assert producer.send("orders") == "client-1 0"


# KIP694-1
def test_a_client_of_an_older_release_has_no_leader_for_a_partition_that_is_read_only(
    make_brokers: Callable[..., Brokers],
) -> None:
    brokers = make_brokers(count=1, delete_topic_partition_enable=True)
    brokers.lead(1, to=(1,))
    tell(brokers, mode=PartitionMode.READ_ONLY, to=(1,))
    older = ClientMetadata("client-1", [1], brokers.world.network, brokers.world.timers("client-1"), version=9)
    older.refresh()
    brokers.run(100)
    (found,) = older.partitions("orders")
    assert (found.leader, found.mode, found.error) == (-1, PartitionMode.READ_WRITE, KafkaError.LEADER_NOT_AVAILABLE)
    assert Producer("client-1", older, brokers.world.network, Random(1)).send("orders") is None


def test_it_passes_over_partitions_without_a_leader_and_topics_that_are_not_known(
    brokers: Brokers, producer: Producer
) -> None:
    tell(brokers, -1)
    assert producer.send("payments") is None
    brokers.run()
    assert producer.send("orders") is None


@pytest.fixture
def consumer(brokers: Brokers) -> Consumer:
    brokers.lead(1)
    tell(brokers)
    return Consumer("client-1", metadata_of(brokers, "client-1"), brokers.world.network)


def poll(brokers: Brokers, consumer: Consumer, times: int = 2) -> None:
    for _ in range(times):
        consumer.poll(["orders"])
        brokers.run(2_500)


def seen(consumer: Consumer) -> dict[BelievedPartition, list[str]]:
    return {believed: [record.value for record in records] for believed, records in consumer.seen.items()}


def test_it_reads_from_the_beginning_and_goes_on(brokers: Brokers, consumer: Consumer) -> None:
    called: list[Record] = []
    consumer.on_record = lambda believed, record: called.append(record)
    brokers.produce(1, "a", "b")
    poll(brokers, consumer)
    brokers.produce(1, "c")
    poll(brokers, consumer)
    assert seen(consumer) == {(ORDERS, A): ["a", "b", "c"]}
    assert [record.offset for record in called] == [0, 1, 2]


def test_one_request_at_a_time_for_each_partition(brokers: Brokers, consumer: Consumer) -> None:
    assert [consumer.poll(["orders"]), consumer.poll(["orders"])] == [1, 0]
    brokers.run()
    assert consumer.poll(["orders"]) == 1


# KIP516-8
def test_a_topic_that_was_made_anew_is_another_and_begins_anew(brokers: Brokers, consumer: Consumer) -> None:
    brokers.produce(1, "old", "older")
    poll(brokers, consumer)
    brokers.lead(1, 0, topic_id=B)
    tell(brokers, topic_id=B)
    brokers.produce(1, "new", topic_id=B)
    poll(brokers, consumer, 4)
    assert seen(consumer) == {(ORDERS, A): ["old", "older"], (ORDERS, B): ["new"]}


# KIP516-8
def test_by_name_alone_it_reads_whatever_topic_has_that_name(brokers: Brokers) -> None:
    brokers.lead(1)
    tell(brokers)
    consumer = Consumer("client-1", metadata_of(brokers, "client-1"), brokers.world.network, by_name=True)
    brokers.produce(1, "old")
    poll(brokers, consumer)
    brokers.lead(1, 0, topic_id=B)
    brokers.produce(1, "new", "newer", topic_id=B)
    poll(brokers, consumer)
    assert seen(consumer) == {(ORDERS, A): ["old", "newer"]}
    assert [record.topic_id for record in consumer.seen[ORDERS, A]] == [A, B]


# KIP694-1
def test_it_reads_what_may_only_be_read_and_passes_over_what_nobody_may_use(
    brokers: Brokers, consumer: Consumer
) -> None:
    brokers.produce(1, "a")
    tell(brokers, mode=PartitionMode.NONE)
    none = Consumer("client-2", metadata_of(brokers, "client-2"), brokers.world.network)
    assert none.poll(["orders"]) == 0
    tell(brokers, mode=PartitionMode.READ_ONLY)
    readable = Consumer("client-3", metadata_of(brokers, "client-3"), brokers.world.network)
    poll(brokers, readable)
    assert seen(readable) == {(ORDERS, A): ["a"]}


def test_where_the_log_is_shorter_than_it_was_it_asks_where_to_begin(brokers: Brokers, consumer: Consumer) -> None:
    brokers.produce(1, "a", "b")
    poll(brokers, consumer)
    brokers.lead(2, 1, to=(1, 2), isr=(2,))
    brokers.partition(2).log.truncate(1)
    brokers.partition(2).high_watermark = 1
    tell(brokers, 2)
    poll(brokers, consumer, 4)
    assert seen(consumer) == {(ORDERS, A): ["a", "b", "a"]}


def test_after_an_error_it_asks_for_metadata_and_finds_the_new_leader(brokers: Brokers, consumer: Consumer) -> None:
    brokers.produce(1, "a")
    poll(brokers, consumer)
    brokers.crash(1)
    brokers.lead(2, 1, to=(2, 3), isr=(2, 3))
    tell(brokers, 2, to=(2, 3))
    brokers.produce(2, "b")
    poll(brokers, consumer, 4)
    assert seen(consumer) == {(ORDERS, A): ["a", "b"]}
