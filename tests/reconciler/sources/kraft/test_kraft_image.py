"""Play records in order: FACTS §7.6, one rule after the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from layout.ids import DirectoryId, TopicId
from reconciler.errors import MetadataError
from reconciler.protocol import MalformedMessageError
from reconciler.sources.kraft import record
from reconciler.sources.kraft.image import BrokerRegistration, MetadataImage, PartitionRegistration, ReplayError
from tools.writers import (
    feature_level_record,
    no_op_record,
    partition_change_record,
    partition_record,
    register_broker_record,
    remove_topic_record,
    topic_record,
)
from tools.writers.kraft_writer import abort_transaction, begin_transaction, end_transaction

ORDERS = TopicId.parse("cxBT72dK4si8Ied1iP4wBA")
OTHERS = TopicId.parse("s33AdXtkR8Gf_xRO-R_dpA")
LEFT = DirectoryId.parse("s33AdXtkR8Gf_xRO-R_dpA")
RIGHT = DirectoryId.parse("oTM53yT_SbSfzlvkh_PfVA")
MIGRATING = DirectoryId.MIGRATING


def _play(*values: bytes) -> MetadataImage:
    image = MetadataImage()
    for offset, value in enumerate(values):
        image.play(offset, value)
    return image


def _orders(*values: bytes) -> PartitionRegistration:
    """Partition 0 of orders on brokers 1 and 2, leader epoch 5, partition epoch 7, and what follows."""
    created = partition_record(ORDERS, 0, [1, 2], leader_epoch=5, partition_epoch=7)
    return _play(topic_record("orders", ORDERS), created, *values).topics[ORDERS.to_bytes()].partitions[0]


def test_a_topic_is_created_without_partitions() -> None:
    created = _play(topic_record("orders", ORDERS)).topics[ORDERS.to_bytes()]
    assert (created.name, created.partitions) == ("orders", {})


def test_a_partition_has_all_that_its_record_says() -> None:
    image = _play(
        topic_record("orders", ORDERS),
        partition_record(
            ORDERS, 3, [1, 2], isr=[2], removing=[1], adding=[2], leader=2, leader_epoch=5, partition_epoch=7,
            directories=[LEFT, RIGHT],
        ),
    )  # fmt: skip
    expected = PartitionRegistration((1, 2), (2,), (1,), (2,), 2, 5, 7, (LEFT.to_bytes(), RIGHT.to_bytes()))
    assert image.topics[ORDERS.to_bytes()].partitions == {3: expected}


def test_a_partition_record_replaces_the_partition() -> None:
    assert _orders(partition_record(ORDERS, 0, [3])).replicas == (3,)


def test_removing_a_topic_takes_its_partitions_with_it() -> None:
    image = _play(topic_record("orders", ORDERS), partition_record(ORDERS, 0, [1]), remove_topic_record(ORDERS))
    assert image.topics == {}
    assert image.removed_topics == {ORDERS.to_bytes(): "orders"}


def test_a_topic_can_be_created_again_under_its_name() -> None:
    image = _play(topic_record("orders", ORDERS), remove_topic_record(ORDERS), topic_record("orders", OTHERS))
    image.check()
    assert [TopicId(topic_id) for topic_id in image.topics] == [OTHERS]


def test_a_change_leaves_what_it_does_not_name() -> None:
    changed = _orders(partition_change_record(ORDERS, 0))
    assert changed == PartitionRegistration((1, 2), (1, 2), (), (), 1, 5, 8, ())


@pytest.mark.parametrize("leader", [2, 1, -1])
def test_a_change_that_names_a_leader_raises_the_leader_epoch_even_when_it_is_the_same(leader: int) -> None:
    changed = _orders(partition_change_record(ORDERS, 0, leader=leader))
    assert (changed.leader, changed.leader_epoch, changed.partition_epoch) == (leader, 6, 8)


def test_a_change_sets_every_list_that_it_names() -> None:
    change = partition_change_record(ORDERS, 0, isr=[3], replicas=[3, 4], removingReplicas=[3], addingReplicas=[4])
    changed = _orders(change)
    assert (changed.isr, changed.replicas, changed.removing, changed.adding) == ((3,), (3, 4), (3,), (4,))


def _change(**lists: list[int]) -> bytes:
    return partition_change_record(ORDERS, 0, version=2, **lists)


def test_an_eligible_leader_counts_once_the_isr_is_empty_and_the_last_leader_after_it() -> None:
    # Controllers of 4.3.1 write this when the last broker in the ISR stops, and when it comes back from a crash.
    stopped = _change(isr=[], eligibleLeaderReplicas=[2], lastKnownElr=[1])
    crashed = _change(eligibleLeaderReplicas=[])
    elected = _change(isr=[1], lastKnownElr=[])
    assert _orders(_change(eligibleLeaderReplicas=[3])).in_sync == (1, 2)
    assert _orders(stopped).in_sync == (2,)
    assert _orders(stopped, partition_change_record(ORDERS, 0, leader=-1)).in_sync == (2,)
    assert _orders(stopped, crashed).in_sync == (1,)
    assert _orders(stopped, crashed, elected).in_sync == (1,)
    assert _orders(stopped, crashed, elected, _change(isr=[])).in_sync == ()


def test_a_partition_record_names_those_that_may_lead() -> None:
    created = {"partitionId": 1, "topicId": ORDERS, "replicas": [1, 2, 3], "isr": []}
    value = record("PartitionRecord", 2, **created, eligibleLeaderReplicas=[2, 3], lastKnownElr=[1])
    partition = _play(topic_record("orders", ORDERS), value).topics[ORDERS.to_bytes()].partitions[1]
    assert (partition.eligible, partition.last_known, partition.in_sync) == ((2, 3), (1,), (2, 3))


def test_those_that_may_lead_are_cleared_for_one_topic_or_for_all() -> None:
    stopped = _change(isr=[], eligibleLeaderReplicas=[2], lastKnownElr=[1])
    others = topic_record("others", OTHERS)
    for name, left in (("orders", ()), ("others", (2,)), ("", ())):
        assert _orders(stopped, others, record("ClearElrRecord", topicName=name)).in_sync == left
    with pytest.raises(ReplayError, match="replicas of 'gone' are cleared, but there is no such topic"):
        _orders(stopped, record("ClearElrRecord", topicName="gone"))


def test_an_empty_list_is_a_change_and_null_is_none() -> None:
    changed = _orders(
        partition_change_record(ORDERS, 0, addingReplicas=[4], removingReplicas=[1]),
        partition_change_record(ORDERS, 0, addingReplicas=[]),
    )
    assert (changed.adding, changed.removing) == ((), (1,))


def test_a_change_ends_a_reassignment_by_empty_lists() -> None:
    begun = partition_change_record(ORDERS, 0, addingReplicas=[4], removingReplicas=[1])
    changed = _orders(begun, partition_change_record(ORDERS, 0, addingReplicas=[], removingReplicas=[]))
    assert (changed.adding, changed.removing) == ((), ())


def test_directories_are_set_kept_and_forgotten() -> None:
    both = (LEFT.to_bytes(), RIGHT.to_bytes())
    assigned = partition_change_record(ORDERS, 0, directories=[LEFT, RIGHT])
    assert _orders(assigned).directories == both
    assert _orders(assigned, partition_change_record(ORDERS, 0, leader=2)).directories == both
    assert _orders(assigned, partition_change_record(ORDERS, 0, directories=[])).directories == ()
    assert _orders(assigned, partition_change_record(ORDERS, 0, directories=[MIGRATING, MIGRATING])).directories == ()


def test_directories_that_are_all_migrating_follow_the_number_of_replicas() -> None:
    created = partition_record(ORDERS, 0, [1, 2], directories=[MIGRATING, MIGRATING])
    image = _play(topic_record("orders", ORDERS), created, partition_change_record(ORDERS, 0, replicas=[1, 2, 3]))
    assert image.topics[ORDERS.to_bytes()].partitions[0].directories == ()


def test_a_list_of_directories_of_another_length_than_the_replicas_is_an_error() -> None:
    with pytest.raises(ReplayError, match="orders-0 has 2 replicas and 1 directory"):
        _play(topic_record("orders", ORDERS), partition_record(ORDERS, 0, [1, 2], directories=[LEFT]))
    with pytest.raises(ReplayError, match="orders-0 has 3 replicas and 2 directories"):
        _orders(
            partition_change_record(ORDERS, 0, directories=[LEFT, RIGHT]),
            partition_change_record(ORDERS, 0, replicas=[1, 2, 3]),
        )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((remove_topic_record(ORDERS),), "removed, but there is no such topic"),
        ((partition_record(ORDERS, 0, [1]),), "no such topic"),
        ((partition_change_record(ORDERS, 0),), "no such topic"),
        (
            (topic_record("orders", ORDERS), partition_change_record(ORDERS, 4)),
            "orders-4 is changed, but there is no such partition",
        ),
        ((topic_record("orders", ORDERS), partition_record(ORDERS, -1, [1])), "partition -1"),
        ((topic_record("orders", ORDERS), topic_record("orders", ORDERS)), "created again"),
        ((topic_record("orders", TopicId.ZERO),), "zero topic ID"),
        ((end_transaction(),), "never began"),
        ((abort_transaction(),), "never began"),
        ((begin_transaction(), begin_transaction()), "begins inside the one that began at offset 0"),
        ((record("FenceBrokerRecord", id=1, epoch=1),), "broker 1 is changed, but it is not registered"),
        ((register_broker_record(1, 4), record("UnfenceBrokerRecord", id=1, epoch=5)), "registered with 4"),
        (
            (
                register_broker_record(1, 4),
                record("BrokerRegistrationChangeRecord", brokerId=1, brokerEpoch=4, fenced=2),
            ),
            "fenced 2",
        ),
    ],
)
def test_a_record_that_cannot_be_true_is_an_error(values: tuple[bytes, ...], said: str) -> None:
    with pytest.raises(ReplayError, match=said):
        _play(*values)


def test_two_topics_of_one_name_are_an_error_at_the_end_only() -> None:
    image = _play(topic_record("orders", ORDERS), topic_record("orders", OTHERS))
    with pytest.raises(ReplayError, match=f"two topics are named orders: {ORDERS} and {OTHERS}"):
        image.check()
    image.play(2, remove_topic_record(ORDERS))
    image.check()


@pytest.mark.parametrize("name", ["", "..", "a/b", "../../etc", "a" * 250])
def test_a_topic_whose_name_could_be_no_directory_is_an_error(name: str) -> None:
    with pytest.raises(ReplayError, match="is no topic name"):
        _play(topic_record(name, ORDERS)).check()


def test_a_transaction_takes_effect_when_it_ends() -> None:
    values = (begin_transaction("create"), topic_record("orders", ORDERS), end_transaction())
    begun, ended = _play(*values[:2]), _play(*values)
    assert (begun.topics, begun.open_transaction) == ({}, (0, 1))
    assert (list(ended.topics), ended.open_transaction) == ([ORDERS.to_bytes()], None)


def test_a_transaction_that_is_aborted_never_was() -> None:
    image = _play(
        begin_transaction(), topic_record("orders", ORDERS), abort_transaction("no"), topic_record("orders", OTHERS)
    )
    image.check()
    assert list(image.topics) == [OTHERS.to_bytes()]


def test_an_error_inside_a_transaction_names_its_own_record() -> None:
    with pytest.raises(ReplayError, match="the record at offset 1 of its transaction"):
        _play(begin_transaction(), remove_topic_record(ORDERS), end_transaction())


def test_a_feature_is_set_and_removed_but_the_metadata_version_stays() -> None:
    image = _play(
        feature_level_record("metadata.version", 21),
        feature_level_record("group.version", 1),
        feature_level_record("group.version", 0),
    )
    assert image.features == {"metadata.version": 21}
    image.play(3, feature_level_record("metadata.version", 0))
    assert image.features == {"metadata.version": 0}


def test_a_broker_is_registered_again_fenced_unfenced_and_unregistered() -> None:
    steps = [
        register_broker_record(1, 10, fenced=True, directory_ids=[LEFT]),
        record("UnfenceBrokerRecord", id=1, epoch=10),
        record("FenceBrokerRecord", id=1, epoch=10),
        register_broker_record(1, 11, directory_ids=[RIGHT]),
        record("UnregisterBrokerRecord", brokerId=1, brokerEpoch=11),
    ]
    after = [_play(*steps[: count + 1]).brokers.get(1) for count in range(len(steps))]
    left, right = (LEFT.to_bytes(),), (RIGHT.to_bytes(),)
    assert after == [
        BrokerRegistration(10, True, False, left),
        BrokerRegistration(10, False, False, left),
        BrokerRegistration(10, True, False, left),
        BrokerRegistration(11, False, False, right),
        None,
    ]


def _changed_broker(**changes: object) -> MetadataImage:
    change = record("BrokerRegistrationChangeRecord", 2, brokerId=1, brokerEpoch=10, **changes)
    return _play(register_broker_record(1, 10, fenced=False, directory_ids=[LEFT]), change)


def test_the_change_of_a_registration_has_three_values_and_an_empty_list_is_none() -> None:
    assert _changed_broker(fenced=1).brokers[1].fenced
    assert not _changed_broker(fenced=0).brokers[1].fenced
    assert not _changed_broker(fenced=-1).brokers[1].fenced
    assert _changed_broker(inControlledShutdown=1).brokers[1].in_controlled_shutdown
    assert not _changed_broker().brokers[1].in_controlled_shutdown
    assert _changed_broker(logDirs=[]).brokers[1].directories == (LEFT.to_bytes(),)
    assert _changed_broker(logDirs=[RIGHT]).brokers[1].directories == (RIGHT.to_bytes(),)


def test_an_unknown_record_type_is_counted_and_changes_nothing() -> None:
    image = _play(topic_record("orders", ORDERS), bytes.fromhex("01638000"), bytes.fromhex("01630000"))
    assert image.unknown_types == {99: 2}
    assert len(image.topics) == 1


def test_a_record_that_cannot_change_the_answer_is_not_looked_into() -> None:
    # A UserScramCredentialRecord whose body no released Kafka can read; its layout changed before it was first used.
    assert _play(bytes.fromhex("010b00ffff"), no_op_record()).unknown_types == {}


@pytest.mark.parametrize(
    "cut", [lambda value: value[:-1], lambda value: value + b"\0", lambda value: b"\0" + value[1:]]
)
def test_a_value_that_cannot_be_decoded_is_an_error(cut: Callable[[bytes], bytes]) -> None:
    with pytest.raises(MalformedMessageError):
        _play(cut(topic_record("orders", ORDERS)))
    with pytest.raises(MetadataError):
        _play(begin_transaction(), cut(topic_record("orders", ORDERS)), end_transaction())
