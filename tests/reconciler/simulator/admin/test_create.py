"""Creating topics: by counts, by assignment, and each way of being refused."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.simulator.admin import CommandOutcome, CreateTopic
from reconciler.simulator.zookeeper import kafka_paths
from reconciler.sources.zookeeper import znodes
from tests.reconciler.simulator.admin.admin_bench import AdminBench


def test_a_topic_by_counts_gets_an_id_replicas_and_configs_in_one_transaction(bench: AdminBench) -> None:  # KIP4-3
    wanted = CreateTopic("orders", 4, 2, configs={"min.insync.replicas": "2"})
    assert bench.admin.create_topics([wanted]) == {"orders": CommandOutcome()}
    topic = bench.topic("orders")
    assert topic.topic_id is not None and topic.problem is None
    assert sorted(topic.partitions) == [0, 1, 2, 3]
    assert {len(set(replicas)) for replicas in topic.partitions.values()} == {2}
    config = bench.session.get(kafka_paths.config_path("orders"))
    assert znodes.decode_config(config.data) == {"min.insync.replicas": "2"}
    assert config.czxid == bench.session.get(kafka_paths.topic_path("orders")).czxid


def test_a_topic_by_assignment_gets_just_that_whatever_the_counts_say(bench: AdminBench) -> None:  # KIP4-3
    wanted = CreateTopic("orders", 9, 9, assignment={0: [2, 0], 1: [0, 1]})
    assert bench.admin.create_topics([wanted])["orders"].error is KafkaError.NONE
    assert bench.topic("orders").partitions == {0: (2, 0), 1: (0, 1)}


def test_as_with_kafkas_tools_a_broker_that_is_away_may_be_named_by_hand(bench: AdminBench) -> None:  # CREATE-2
    assert bench.admin.create_topics([CreateTopic("orders", assignment={0: [0, 9]})])["orders"] == CommandOutcome()


def test_racks_of_the_brokers_count() -> None:  # CREATE-2
    bench = AdminBench({0: "a", 1: "a", 2: "b"})
    bench.admin.create_topics([CreateTopic("orders", 12, 2)])
    racks = {0: "a", 1: "a", 2: "b"}
    assert all(
        {racks[each] for each in replicas} == {"a", "b"} for replicas in bench.topic("orders").partitions.values()
    )


def test_every_topic_of_a_batch_has_its_own_outcome(bench: AdminBench) -> None:  # KIP4-1
    bench.admin.create_topics([CreateTopic("old", 1, 1)])
    outcomes = bench.admin.create_topics([CreateTopic("one", 1, 1), CreateTopic("old", 1, 1), CreateTopic("two", 1, 3)])
    assert [(topic, outcome.error.name) for topic, outcome in outcomes.items()] == [
        ("one", "NONE"),
        ("old", "TOPIC_ALREADY_EXISTS"),
        ("two", "NONE"),
    ]
    assert bench.admin.list_topics() == ["old", "one", "two"]


@pytest.mark.parametrize(
    ("wanted", "error", "reason"),
    [
        (CreateTopic("old", 1, 1), 36, "old exists already"),
        (CreateTopic("a b", 1, 1), 17, "a character other than"),
        (CreateTopic("", 1, 1), 17, "empty"),
        (CreateTopic("..", 1, 1), 17, "directory"),
        (CreateTopic("x" * 250, 1, 1), 17, "249"),
        (CreateTopic("__cluster_metadata", 1, 1), 17, "controllers' own"),
        (CreateTopic("o_ld.x", 1, 1), 17, "o.ld_x"),
        (CreateTopic("new", -5, 1), 37, "-5 partitions"),
        (CreateTopic("new", 0, 1), 37, "0 partitions"),
        (CreateTopic("new", factor=1), 37, "give the number of partitions"),
        (CreateTopic("new"), 37, "give the number of partitions"),
        (CreateTopic("new", 1), 38, "give a replication factor"),
        (CreateTopic("new", 1, 0), 38, "replication factor 0"),
        (CreateTopic("new", 1, 4), 38, "with 3 brokers"),
        (CreateTopic("new", assignment={0: [1, 1]}), 39, "twice"),
        (CreateTopic("new", assignment={1: [1, 2]}), 39, "0, 1, 2"),
        (CreateTopic("new", assignment={0: [1, 2], 1: [1]}), 39, "same number"),
        (CreateTopic("new", 1, 1, configs={"min.insync.replicas": "0"}), 40, "1 or more"),
        (CreateTopic("new", 1, 1, configs={"colour": "red"}), 40, "'colour' is not among them"),
        (CreateTopic("org:new", 1, 1), 17, "no namespace 'org'"),
    ],
)
def test_each_row_of_the_error_table_for_creation(
    bench: AdminBench, wanted: CreateTopic, error: int, reason: str
) -> None:  # KIP4-2
    bench.admin.create_topics([CreateTopic("old", 1, 1), CreateTopic("o.ld_x", 1, 1)])
    before = bench.zookeeper.dump()
    outcome = bench.admin.create_topics([wanted])[wanted.topic]
    assert (outcome.error, reason in outcome.message) == (error, True), outcome.message
    assert bench.zookeeper.dump() == before


def test_two_instructions_for_one_topic_in_a_batch_are_refused_and_the_others_carried_out(
    bench: AdminBench,
) -> None:  # KIP4-2
    batch = [CreateTopic("twice", 1, 1), CreateTopic("once", 1, 1), CreateTopic("twice", 2, 1)]
    outcomes = bench.admin.create_topics(batch)
    assert outcomes["twice"].error is KafkaError.INVALID_REQUEST and "2 instructions" in outcomes["twice"].message
    assert outcomes["once"] == CommandOutcome()
    assert bench.admin.list_topics() == ["once"]


def test_a_broker_that_is_not_the_controller_refuses_with_41(bench: AdminBench) -> None:  # KIP4-1
    bench.controller.active = False
    assert bench.admin.create_topics([CreateTopic("new", 1, 1)])["new"].error is KafkaError.NOT_CONTROLLER
    assert bench.admin.list_topics() == []


def test_a_controller_that_does_not_know_yet_that_it_was_replaced_changes_nothing(bench: AdminBench) -> None:
    bench.others.set(kafka_paths.CONTROLLER_EPOCH, b"2")
    assert bench.admin.create_topics([CreateTopic("new", 1, 1)])["new"].error is KafkaError.NOT_CONTROLLER
    assert bench.admin.list_topics() == []


def test_a_controller_whose_session_expired_refuses_with_41(bench: AdminBench) -> None:
    bench.session.expire()
    assert bench.admin.create_topics([CreateTopic("new", 1, 1)])["new"].error is KafkaError.NOT_CONTROLLER


def test_a_topic_that_is_being_deleted_is_not_created_anew(bench: AdminBench) -> None:
    bench.admin.create_topics([CreateTopic("orders", 1, 1)])
    bench.admin.delete_topics(["orders"])
    bench.session.delete(kafka_paths.topic_path("orders"))
    outcome = bench.admin.create_topics([CreateTopic("orders", 1, 1)])["orders"]
    assert outcome.error is KafkaError.TOPIC_ALREADY_EXISTS and "being deleted" in outcome.message


def test_configs_that_an_older_topic_left_do_not_count(bench: AdminBench) -> None:
    data = znodes.encode_config({"retention.ms": "5"})
    bench.session.create(kafka_paths.config_path("orders"), data)
    bench.admin.create_topics([CreateTopic("orders", 1, 1, configs={"segment.ms": "9"})])
    found = bench.session.get(kafka_paths.config_path("orders")).data
    assert znodes.decode_config(found) == {"segment.ms": "9"}


def test_the_same_seed_gives_the_same_topics() -> None:
    first, second = AdminBench(), AdminBench()
    for bench in (first, second):
        bench.admin.create_topics([CreateTopic("one", 5, 2), CreateTopic("two", 5, 3)])
    assert first.zookeeper.dump() == second.zookeeper.dump()
