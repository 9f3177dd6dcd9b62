"""Deleting topics: a mark, by name or by ID, answered at once; and the request for fewer partitions.

``test_fewer_partitions`` tests how the controller carries out the request.
"""

from __future__ import annotations

from random import Random

import pytest

from layout.ids import TopicId
from logstore import KafkaError
from reconciler.simulator.admin import Admin, CommandOutcome, CreateTopic, DeletePartitions
from reconciler.simulator.admin.delete import ALL
from reconciler.simulator.controller import FewerPartitionsSettings, decode_fewer_partitions
from reconciler.simulator.kernel import PartitionMode
from reconciler.simulator.zookeeper import Authorizer, delete_partitions_path, topics_to_delete
from reconciler.sources.zookeeper import Acl, AclOperation
from tests.reconciler.simulator.admin.admin_bench import AdminBench, set_acls


def test_a_topic_is_marked_and_stays_until_the_controller_takes_it(bench: AdminBench) -> None:  # KIP4-1, KIP516-10
    bench.admin.create_topics([CreateTopic("one", 1, 1), CreateTopic("two", 1, 1)])
    assert bench.admin.delete_topics(["one"]) == {"one": CommandOutcome()}
    assert topics_to_delete(bench.session) == ["one"]
    assert bench.admin.list_topics() == ["one", "two"]


def test_a_topic_is_marked_by_its_id(bench: AdminBench) -> None:  # KIP516-10
    bench.admin.create_topics([CreateTopic("one", 1, 1)])
    topic_id = TopicId.parse(bench.topic("one").topic_id or "")
    assert bench.admin.delete_topics([topic_id]) == {topic_id: CommandOutcome()}
    assert topics_to_delete(bench.session) == ["one"]


def test_a_mark_that_is_there_already_is_no_error(bench: AdminBench) -> None:
    bench.admin.create_topics([CreateTopic("one", 1, 1)])
    assert bench.admin.delete_topics(["one"]) == bench.admin.delete_topics(["one"]) == {"one": CommandOutcome()}


def test_what_is_unknown_is_refused_and_the_rest_is_marked(bench: AdminBench) -> None:  # KIP4-2
    bench.admin.create_topics([CreateTopic("one", 1, 1)])
    stranger = TopicId(bytes(range(16)))
    outcomes = bench.admin.delete_topics(["nothing", "one", stranger, "a/b"])
    assert [outcome.error for outcome in outcomes.values()] == [
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError.NONE,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert topics_to_delete(bench.session) == ["one"]


def test_a_topic_that_is_named_twice_even_by_its_id_is_refused(bench: AdminBench) -> None:  # KIP4-2
    bench.admin.create_topics([CreateTopic("one", 1, 1)])
    topic_id = TopicId.parse(bench.topic("one").topic_id or "")
    outcomes = bench.admin.delete_topics(["one", topic_id])
    assert {outcome.error for outcome in outcomes.values()} == {KafkaError.INVALID_REQUEST}
    assert topics_to_delete(bench.session) == []


def test_a_broker_that_is_not_the_controller_marks_nothing(bench: AdminBench) -> None:
    bench.admin.create_topics([CreateTopic("one", 1, 1)])
    bench.controller.active = False
    assert bench.admin.delete_topics(["one"])["one"].error is KafkaError.NOT_CONTROLLER
    assert topics_to_delete(bench.session) == []


@pytest.fixture
def admin(bench: AdminBench) -> Admin:
    bench.admin.create_topics([CreateTopic("orders", 4, 1), CreateTopic("other", 2, 1)])
    return Admin(
        bench.controller,
        lambda: bench.session,
        bench.metadata,
        bench.timers,
        random=Random(1),
        authorizer=lambda: Authorizer(bench.session),
        fewer_partitions=FewerPartitionsSettings(enabled=True),
    )


@pytest.mark.parametrize(("delay_ms", "mode"), [(0, PartitionMode.NONE), (5_000, PartitionMode.READ_ONLY)])
def test_each_partition_that_goes_is_answered_with_its_mode(
    bench: AdminBench, admin: Admin, delay_ms: int, mode: PartitionMode
) -> None:  # KIP694-1, KIP694-2
    found = admin.delete_partitions([DeletePartitions("orders", 2, delay_ms)])
    assert [(each.topic, each.partition, each.mode, each.outcome) for each in found] == [
        ("orders", 2, mode, CommandOutcome()),
        ("orders", 3, mode, CommandOutcome()),
    ]
    noted = decode_fewer_partitions(bench.session.get(delete_partitions_path("orders")).data)
    assert noted is not None
    assert (noted.topic_id, noted.total, noted.mode) == (bench.topic("orders").topic_id, 2, mode)
    assert (noted.created_ms, noted.due_ms) == (bench.timers.now, bench.timers.now + delay_ms)


def test_one_topic_of_a_batch_that_is_refused_stops_no_other(bench: AdminBench, admin: Admin) -> None:  # KIP694-2
    found = admin.delete_partitions([DeletePartitions("orders", 9), DeletePartitions("other", 1)])
    assert [(each.topic, each.partition, each.outcome.error) for each in found] == [
        ("orders", ALL, KafkaError.INVALID_PARTITIONS),
        ("other", 1, KafkaError.NONE),
    ]


def test_who_may_not_delete_is_refused(bench: AdminBench, admin: Admin) -> None:  # KIP37-6
    set_acls(bench.session, [Acl("User:alice", AclOperation.DELETE)], topic="orders")
    (refused,) = admin.delete_partitions([DeletePartitions("orders", 2)], principal="User:bob")
    assert refused.outcome.error is KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert (
        admin.delete_partitions([DeletePartitions("orders", 2)], principal="User:alice")[0].outcome == CommandOutcome()
    )


def test_a_topic_that_is_being_deleted_is_refused(bench: AdminBench, admin: Admin) -> None:
    admin.delete_topics(["orders"])
    (refused,) = admin.delete_partitions([DeletePartitions("orders", 2)])
    assert refused.outcome.error is KafkaError.INVALID_TOPIC_EXCEPTION


def test_a_new_topic_does_not_inherit_a_request_that_was_left_behind(bench: AdminBench, admin: Admin) -> None:
    bench.session.create(delete_partitions_path("new"), b"anything")
    assert admin.create_topics([CreateTopic("new", 2, 1)])["new"] == CommandOutcome()
    assert bench.session.find(delete_partitions_path("new")) is None
