"""A consumer remembers what it saw, and under which topic ID."""

from __future__ import annotations

import pytest

from reconciler.simulator.kernel import PartitionMode, Record
from reconciler.simulator.machine import BelievedPartition, Consumer
from tests.reconciler.simulator.machine.brokers import ORDERS, A, B, Brokers
from tests.reconciler.simulator.machine.clients import metadata_of, tell


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
    told: list[Record] = []
    consumer.told = lambda believed, record: told.append(record)
    brokers.produce(1, "a", "b")
    poll(brokers, consumer)
    brokers.produce(1, "c")
    poll(brokers, consumer)
    assert seen(consumer) == {(ORDERS, A): ["a", "b", "c"]}
    assert [record.offset for record in told] == [0, 1, 2]


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
