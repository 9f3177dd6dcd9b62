"""What clients are told: the newest of each topic, with IDs and modes."""

from __future__ import annotations

from layout.ids import TopicId
from reconciler.simulator.kernel import (
    DURING_DELETE,
    MetadataRequest,
    PartitionMetadata,
    PartitionMode,
    TopicMetadata,
    UpdateMetadataRequest,
)
from reconciler.simulator.machine.metadata_cache import MetadataCache
from tests.reconciler.simulator.machine.brokers import A, B


def partition(number: int, leader: int = 1, mode: PartitionMode = PartitionMode.READ_WRITE) -> PartitionMetadata:
    return PartitionMetadata(number, leader, 0, (1,), (1, 2), (), mode)


def cache(*updates: tuple[str, TopicId | None, list[PartitionMetadata]]) -> MetadataCache:
    found = MetadataCache()
    for name, topic_id, partitions in updates:
        topics = (TopicMetadata(name, topic_id, tuple(partitions)),)
        found.update(UpdateMetadataRequest(9, 1, -1, topics, (1, 2)))
    return found


# KIP516-9
def test_a_topic_is_told_with_its_id() -> None:
    answer = cache(("orders", A, [partition(1), partition(0)])).answer(MetadataRequest())
    assert answer.topics == (TopicMetadata("orders", A, (partition(0), partition(1))),)
    assert (answer.live_brokers, answer.controller_id, answer.unknown) == ((1, 2), 9, ())


def test_partitions_that_an_update_does_not_name_stay_as_they_were() -> None:
    found = cache(("orders", A, [partition(0), partition(1)]), ("orders", A, [partition(1, leader=2)]))
    assert found.answer(MetadataRequest()).topics[0].partitions == (partition(0), partition(1, leader=2))


# KIP516-9
def test_under_another_id_nothing_of_the_old_topic_is_told() -> None:
    found = cache(("orders", A, [partition(0), partition(1)]), ("orders", B, [partition(0, leader=2)]))
    assert found.answer(MetadataRequest()).topics == (TopicMetadata("orders", B, (partition(0, leader=2),)),)


def test_what_is_being_deleted_is_told_no_more() -> None:
    found = cache(("orders", A, [partition(0), partition(1)]), ("orders", A, [partition(1, leader=DURING_DELETE)]))
    assert found.answer(MetadataRequest()).topics[0].partitions == (partition(0),)
    found = cache(("orders", A, [partition(0)]), ("orders", A, [partition(0, leader=DURING_DELETE)]))
    assert found.answer(MetadataRequest()).topics == ()


# KIP694-1
def test_modes_are_told() -> None:
    modes = [partition(0, mode=PartitionMode.NONE), partition(1, mode=PartitionMode.READ_ONLY), partition(2)]
    told = cache(("orders", A, modes)).answer(MetadataRequest()).topics[0].partitions
    assert [each.mode for each in told] == [-1, 1, 0]


def test_who_asks_for_some_topics_hears_of_these_and_which_are_not_known() -> None:
    found = cache(("b", B, [partition(0)]), ("a", A, [partition(0)]))
    answer = found.answer(MetadataRequest(("b", "c")))
    assert ([topic.topic for topic in answer.topics], answer.unknown) == (["b"], ("c",))
    assert [topic.topic for topic in found.answer(MetadataRequest()).topics] == ["a", "b"]
