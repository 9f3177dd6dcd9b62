"""A request under a new name, or in a new namespace, finds its replica."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.namespaces import list_namespaces
from reconciler.protocol import LeaderAndIsrResponse, PartitionError, TopicErrors
from reconciler.simulator.kernel import FetchRequest
from reconciler.simulator.machine.renaming import merged
from tests.reconciler.simulator.machine.brokers import FULL, INCREMENTAL, ORDERS, A, B, Brokers, values

MOVED = TopicPartition("org:apache:orders", 0)
PURCHASES = TopicPartition("purchases", 0)


# KIP37-3
def test_a_topic_in_a_namespace_is_made_together_with_its_tiers(make_brokers: Callable[..., Brokers]) -> None:
    brokers = make_brokers(count=1, scheme="namespaced")
    assert brokers.lead(1, at=MOVED, to=(1,), isr=(1,)) == {1: 0}
    assert list_namespaces(brokers.of[1].store) == ["org", "org:apache"]
    assert Path(brokers.disks[1].log_dirs[0], "org", "apache", "orders-0").is_dir()
    assert brokers.lead(1, at=TopicPartition("org:apache:more", 0), topic_id=B, to=(1,), isr=(1,)) == {1: 0}


# KIP516-13, KIP37-3
@pytest.mark.parametrize(
    ("scheme", "name", "folder"),
    [
        ("flat", PURCHASES, "purchases-0"),
        ("namespaced", PURCHASES, "purchases-0"),
        ("namespaced", MOVED, "org/apache/orders-0"),
        ("by-topic-id", MOVED, f"{A.hex[:2]}/{A.hex}_0"),
    ],
)
@pytest.mark.parametrize("kind", [FULL, INCREMENTAL])
def test_a_topic_under_another_name_keeps_its_records(
    make_brokers: Callable[..., Brokers], scheme: str, name: TopicPartition, folder: str, kind: int
) -> None:
    brokers = make_brokers(count=1, scheme=scheme)
    brokers.lead(1, to=(1,), isr=(1,))
    assert brokers.produce(1, "a", "b") == [0, 1]
    assert brokers.lead(1, 1, at=name, to=(1,), isr=(1,), kind=kind) == {1: 0}  # type: ignore[arg-type]
    assert brokers.of[1].replicas.get(ORDERS) is None
    assert values(brokers.ask(1, FetchRequest(-1, name, A, -1, 0)).records) == ["a", "b"]
    assert brokers.ask(1, FetchRequest(-1, ORDERS, None, -1, 0)).error is KafkaError.UNKNOWN_TOPIC_OR_PARTITION
    assert Path(brokers.disks[1].log_dirs[0], folder, "00000000000000000000.log").is_file()
    brokers.crash(1)
    brokers.of[1].start()
    assert [str(each.partition) for each in brokers.of[1].store.replicas()] == [str(name)]


def test_what_stands_in_the_way_for_another_reason_stays_as_it_was_answered(brokers: Brokers) -> None:
    brokers.lead(1)
    assert brokers.lead(1, at=MOVED, topic_id=B, to=(1,)) == {1: KafkaError.INVALID_TOPIC_EXCEPTION}
    assert brokers.lead(1, 1, topic_id=B, to=(1,), kind=0) == {1: KafkaError.INCONSISTENT_TOPIC_ID}  # type: ignore[arg-type]
    assert brokers.partition(1).topic_id == A


def test_a_disk_that_refuses_leaves_the_topic_under_its_old_name(brokers: Brokers) -> None:
    brokers.lead(1, to=(1,), isr=(1,))
    brokers.produce(1, "a")
    brokers.disks[1].fill(0)
    assert brokers.lead(1, 1, at=PURCHASES, to=(1,), isr=(1,)) == {1: KafkaError.INCONSISTENT_TOPIC_ID}
    assert brokers.of[1].store.get(ORDERS).topic_id == A
    brokers.disks[1].make_room(0)
    assert brokers.lead(1, 1, at=PURCHASES, to=(1,), isr=(1,)) == {1: 0}


def test_second_answers_stand_in_the_place_of_the_first() -> None:
    def answer(topic: str, *errors: int) -> TopicErrors:
        return TopicErrors(topic, A, tuple(PartitionError(number, error) for number, error in enumerate(errors)))

    first = LeaderAndIsrResponse(0, (answer("a", 0, 103), answer("b", 103)))
    second = LeaderAndIsrResponse(0, (TopicErrors("a", A, (PartitionError(1, 0),)),))
    assert merged(first, second) == LeaderAndIsrResponse(0, (answer("a", 0, 0), answer("b", 103)))
