"""A producer remembers what it was promised, and under which topic ID."""

from __future__ import annotations

from random import Random

import pytest

from reconciler.simulator.kernel import PartitionMode
from reconciler.simulator.machine import AcknowledgedRecord, Producer
from tests.reconciler.simulator.machine.brokers import ORDERS, A, B, Brokers
from tests.reconciler.simulator.machine.clients import metadata_of, tell


@pytest.fixture
def producer(brokers: Brokers) -> Producer:
    brokers.lead(1)
    tell(brokers)
    return Producer("client-1", metadata_of(brokers, "client-1"), brokers.world.network, Random(1))


def test_what_is_acknowledged_is_remembered_with_its_topic_id(brokers: Brokers, producer: Producer) -> None:
    told: list[AcknowledgedRecord] = []
    producer.told = told.append
    assert [producer.send("orders") for _ in range(2)] == ["client-1 0", "client-1 1"]
    assert len(producer.unsure) == 2
    brokers.run()
    assert producer.acknowledged == [
        AcknowledgedRecord(ORDERS, A, 0, "client-1 0"),
        AcknowledgedRecord(ORDERS, A, 1, "client-1 1"),
    ]
    assert told == producer.acknowledged
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


def test_it_passes_over_partitions_without_a_leader_and_topics_that_are_not_known(
    brokers: Brokers, producer: Producer
) -> None:
    tell(brokers, -1)
    assert producer.send("payments") is None
    brokers.run()
    assert producer.send("orders") is None
