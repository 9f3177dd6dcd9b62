"""Altering topics: partitions, factors, replicas and configs, one at a time; warnings of another partition count."""

from __future__ import annotations

from random import Random

import pytest

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin import Admin, AlterTopic, CommandOutcome, CreateTopic, warnings_of
from reconciler.simulator.admin.alter import GROWING, SWITCHED_OFF, UNDER_CHANGE, PartitionCount
from reconciler.simulator.controller import FewerPartitionsSettings, decode_fewer_partitions
from reconciler.simulator.placement import assign
from reconciler.simulator.zookeeper import delete_partitions_path, kafka_paths, own_configs
from reconciler.sources.zookeeper import znodes
from tests.reconciler.simulator.admin.admin_bench import AdminBench

ORDERS = {0: (1, 2), 1: (2, 0)}


@pytest.fixture
def orders(bench: AdminBench) -> AdminBench:
    bench.admin.create_topics([CreateTopic("orders", assignment=ORDERS)])
    return bench


def alter(bench: AdminBench, wanted: AlterTopic) -> CommandOutcome:
    return bench.admin.alter_topics([wanted])[wanted.topic]


def test_growing_keeps_what_there_is_and_goes_on_where_the_first_partition_began(orders: AdminBench) -> None:  # KIP4-3
    topic_id = orders.topic("orders").topic_id
    assert alter(orders, AlterTopic("orders", 5)) == CommandOutcome()
    # Kafka starts at the index of the first partition's leader, with the next number.
    expected = assign([0, 1, 2], 3, 2, fixed_start=1, start_partition=2)
    assert orders.topic("orders").partitions == ORDERS | expected
    assert orders.topic("orders").topic_id == topic_id


def test_growing_by_hand_names_the_new_partitions_only(orders: AdminBench) -> None:  # KIP4-3
    assert alter(orders, AlterTopic("orders", 3, assignment={2: [0, 1]})) == CommandOutcome()
    assert orders.topic("orders").partitions == ORDERS | {2: (0, 1)}


def test_a_greater_factor_keeps_each_partitions_replicas_and_adds_some(orders: AdminBench) -> None:  # KIP4-1
    assert alter(orders, AlterTopic("orders", factor=3)) == CommandOutcome()
    (asked,) = orders.controller.reassigned
    for number, before in ORDERS.items():
        replicas = asked[TopicPartition("orders", number)]
        assert replicas is not None and replicas[:2] == before and sorted(replicas) == [0, 1, 2]


def test_a_smaller_factor_keeps_the_first_replicas(orders: AdminBench) -> None:
    assert alter(orders, AlterTopic("orders", factor=1)) == CommandOutcome()
    assert orders.controller.reassigned == [{TopicPartition("orders", 0): (1,), TopicPartition("orders", 1): (2,)}]


def test_an_assignment_alone_reassigns(orders: AdminBench) -> None:  # KIP4-1
    assert alter(orders, AlterTopic("orders", assignment={1: [0, 1]})) == CommandOutcome()
    assert orders.controller.reassigned == [{TopicPartition("orders", 1): (0, 1)}]


def test_configs_are_set_and_deleted_and_the_others_stay(orders: AdminBench) -> None:  # KIP4-1
    assert alter(orders, AlterTopic("orders", configs={"segment.ms": "5", "retention.ms": "7"})) == CommandOutcome()
    wanted = AlterTopic("orders", configs={"cleanup.policy": "compact,delete"}, deleted_configs=["segment.ms"])
    assert alter(orders, wanted) == CommandOutcome()
    assert own_configs(orders.session, "orders") == {"cleanup.policy": "compact,delete", "retention.ms": "7"}


@pytest.mark.parametrize(
    ("wanted", "error", "reason"),
    [
        (AlterTopic("nothing", 5), 3, "no topic 'nothing'"),
        (AlterTopic("nothing", configs={"segment.ms": "1"}), 3, "no topic"),
        (AlterTopic("orders", 1), 37, "has 2 partitions and cannot be altered to 1"),
        (AlterTopic("orders", 2), 37, "has 2 partitions and cannot be altered to 2"),
        (AlterTopic("orders", 0), 37, "ask for more"),
        (AlterTopic("orders", -7), 37, "ask for more"),
        (AlterTopic("orders", factor=0), 38, "replication factor 0"),
        (AlterTopic("orders", factor=4), 38, "with 3 brokers"),
        (AlterTopic("orders", 3, assignment={2: [0, 0]}), 39, "twice"),
        (AlterTopic("orders", 3, assignment={2: [0]}), 39, "have 2 replicas"),
        (AlterTopic("orders", 3, assignment={2: [0, 9]}), 39, "brokers [9] are not there"),
        (AlterTopic("orders", 4, assignment={2: [0, 1]}), 39, "2 to 3 are new"),
        (AlterTopic("orders", assignment={0: [0, 9]}), 39, "brokers [9] are not there"),
        (AlterTopic("orders", assignment={0: []}), 39, "at least one broker"),
        (AlterTopic("orders", assignment={7: [0]}), 3, "no partition orders-7"),
        (AlterTopic("orders", configs={"retention.ms": "soon"}), 40, "a number of ms"),
        (AlterTopic("orders", deleted_configs=["colour"]), 40, "colour"),
        (AlterTopic("orders", configs={"segment.ms": "1"}, deleted_configs=["segment.ms"]), 40, "at once"),
        (AlterTopic("orders", 3, configs={"segment.ms": "1"}), 42, "partitions and configs"),
        (AlterTopic("orders", factor=1, configs={"segment.ms": "1"}), 42, "replication factor and configs"),
        (AlterTopic("orders", factor=1, assignment={0: [0]}), 42, "one change at a time"),
        (AlterTopic("orders"), 42, "changes nothing"),
    ],
)
def test_each_row_of_the_error_table_for_alteration(
    orders: AdminBench, wanted: AlterTopic, error: int, reason: str
) -> None:  # KIP4-2
    before = orders.zookeeper.dump()
    outcome = alter(orders, wanted)
    assert (outcome.error, reason in outcome.message) == (error, True), outcome.message
    assert orders.zookeeper.dump() == before
    assert orders.controller.reassigned == []


def test_two_instructions_for_one_topic_in_a_batch_are_refused(orders: AdminBench) -> None:  # KIP4-2
    outcome = orders.admin.alter_topics([AlterTopic("orders", 5), AlterTopic("orders", 6)])["orders"]
    assert outcome.error is KafkaError.INVALID_REQUEST
    assert orders.topic("orders").partitions == ORDERS


def test_a_topic_that_is_being_deleted_is_not_altered(orders: AdminBench) -> None:
    orders.admin.delete_topics(["orders"])
    assert alter(orders, AlterTopic("orders", 5)).error is KafkaError.INVALID_TOPIC_EXCEPTION


def test_a_topic_that_is_being_reassigned_does_not_grow(orders: AdminBench) -> None:  # KIP4-2
    data = znodes.encode_topic(None, {0: [1, 2, 0], 1: [2, 0]}, {0: [0]})
    orders.session.set(kafka_paths.topic_path("orders"), data)
    assert alter(orders, AlterTopic("orders", 5)).error is KafkaError.REASSIGNMENT_IN_PROGRESS


def test_a_broker_that_is_not_the_controller_alters_nothing(orders: AdminBench) -> None:
    orders.controller.active = False
    assert alter(orders, AlterTopic("orders", 5)).error is KafkaError.NOT_CONTROLLER


def test_what_the_controller_refuses_is_answered(orders: AdminBench) -> None:
    orders.controller.refusal = KafkaError.REASSIGNMENT_IN_PROGRESS
    assert alter(orders, AlterTopic("orders", factor=1)).error is KafkaError.REASSIGNMENT_IN_PROGRESS


@pytest.fixture
def admin(bench: AdminBench) -> Admin:
    bench.admin.create_topics([CreateTopic("orders", 4, 1)])
    settings = FewerPartitionsSettings(enabled=True)
    return Admin(
        bench.controller,
        lambda: bench.session,
        bench.metadata,
        bench.timers,
        random=Random(1),
        fewer_partitions=settings,
    )


def test_more_partitions_are_added_with_a_warning_of_keys(bench: AdminBench, admin: Admin) -> None:  # KIP694-5
    assert admin.set_partitions("orders", 5) == PartitionCount(CommandOutcome(), (), (GROWING,))
    assert sorted(bench.topic("orders").partitions) == [0, 1, 2, 3, 4]


def test_fewer_partitions_go_with_the_delay_that_was_given(bench: AdminBench, admin: Admin) -> None:  # KIP694-5
    assert admin.set_partitions("orders", 2, 7_000) == PartitionCount(CommandOutcome(), (2, 3), ())
    noted = decode_fewer_partitions(bench.session.get(delete_partitions_path("orders")).data)
    assert noted is not None and (noted.total, noted.delay_ms) == (2, 7_000)


def test_a_topic_under_change_is_refused_with_a_warning_both_ways(admin: Admin) -> None:  # KIP694-5
    admin.set_partitions("orders", 3, 7_000)
    for total in (2, 9):
        found = admin.set_partitions("orders", total)
        assert (found.outcome.error, found.warnings) == (KafkaError.REASSIGNMENT_IN_PROGRESS, (UNDER_CHANGE,))


def test_while_it_is_switched_off_the_warning_says_so(bench: AdminBench, admin: Admin) -> None:  # KIP694-5
    found = bench.admin.set_partitions("orders", 2)
    assert (found.outcome.error, found.going, found.warnings) == (73, (), (SWITCHED_OFF,))


@pytest.mark.parametrize(("topic", "total", "error"), [("orders", 4, 37), ("orders", 0, 37), ("nothing", 2, 3)])
def test_what_is_neither_more_nor_fewer_is_refused(admin: Admin, topic: str, total: int, error: int) -> None:
    found = admin.set_partitions(topic, total)
    assert (found.outcome.error, found.going, found.warnings) == (error, (), ())


def test_a_session_that_is_over_is_reported(bench: AdminBench, admin: Admin) -> None:
    bench.session.expire()
    assert admin.set_partitions("orders", 2).outcome.error is KafkaError.NOT_CONTROLLER


# KIP694-5
def test_an_error_has_the_warning_of_the_proposal_beside_it() -> None:
    assert warnings_of(KafkaError.TOPIC_DELETION_DISABLED) == (SWITCHED_OFF,)
    assert warnings_of(KafkaError.REASSIGNMENT_IN_PROGRESS) == (UNDER_CHANGE,)
    assert warnings_of(KafkaError.NONE) == warnings_of(KafkaError.INVALID_PARTITIONS) == ()
