"""The request for fewer partitions, as it is noted and answered; what becomes of it is in test_fewer_partitions."""

from __future__ import annotations

from random import Random

import pytest

from logstore import KafkaError
from reconciler.simulator.admin import Admin, CommandOutcome, CreateTopic, DeletePartitions
from reconciler.simulator.admin.acls import Acl, AclOperation, Authorizer, set_acls
from reconciler.simulator.admin.delete_partitions import ALL
from reconciler.simulator.controller import FewerPartitionsSettings, decode_request
from reconciler.simulator.kernel import PartitionMode
from reconciler.simulator.zookeeper import delete_partitions_path
from tests.reconciler.simulator.admin.admin_bench import AdminBench


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
    found = admin.delete_partitions([DeletePartitions("orders", 2)], delay_ms)
    assert [(each.topic, each.partition, each.mode, each.outcome) for each in found] == [
        ("orders", 2, mode, CommandOutcome()),
        ("orders", 3, mode, CommandOutcome()),
    ]
    noted = decode_request(bench.session.get(delete_partitions_path("orders")).data)
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
