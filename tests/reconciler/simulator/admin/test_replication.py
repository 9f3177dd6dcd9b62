"""Reassigning partitions, and electing their first replicas."""

from __future__ import annotations

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin import CommandOutcome, CreateTopic, GivenPartition, TopicKey
from reconciler.simulator.zookeeper import kafka_paths
from reconciler.sources.zookeeper import znodes
from tests.reconciler.simulator.admin.admin_bench import AdminBench

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
OTHER = TopicId(b"another topic ID")


@pytest.fixture
def orders(bench: AdminBench) -> AdminBench:
    bench.admin.create_topics([CreateTopic("orders", assignment={0: [1, 2], 1: [2, 0]})])
    bench.lead(FIRST, 2, [1, 2])
    bench.lead(SECOND, 2, [2, 0])
    return bench


def test_each_partition_of_a_batch_goes_to_the_controller(orders: AdminBench) -> None:  # KIP4-1
    outcomes = orders.admin.reassign([(FIRST, (0, 1)), (SECOND, (1,))])
    assert outcomes == {FIRST: CommandOutcome(), SECOND: CommandOutcome()}
    assert orders.controller.reassigned == [{FIRST: (0, 1)}, {SECOND: (1,)}]


@pytest.mark.parametrize(
    ("partition", "replicas", "error"),
    [
        (TopicPartition("nothing", 0), (0,), 3),
        (TopicPartition("orders", 9), (0,), 3),
        (FIRST, (), 39),
        (FIRST, (0, 0), 39),
        (FIRST, (0, 7), 39),
        (FIRST, None, 85),
    ],
)
def test_each_row_of_the_error_table_for_reassignment(
    orders: AdminBench, partition: TopicPartition, replicas: tuple[int, ...] | None, error: int
) -> None:  # KIP4-2
    assert orders.admin.reassign([(partition, replicas)])[partition].error == error
    assert orders.controller.reassigned == []


def test_a_partition_that_is_being_reassigned_is_not_begun_again_but_may_be_cancelled(
    orders: AdminBench,
) -> None:  # KIP4-2
    data = znodes.encode_topic(None, {0: [1, 2, 0], 1: [2, 0]}, {0: [0]})
    orders.session.set(kafka_paths.topic_path("orders"), data)
    assert orders.admin.reassign([(FIRST, (0, 1))])[FIRST].error is KafkaError.REASSIGNMENT_IN_PROGRESS
    assert orders.admin.reassign([(FIRST, None)])[FIRST] == CommandOutcome()
    assert orders.controller.reassigned == [{FIRST: None}]


def test_a_topic_is_given_by_its_id_or_by_both(orders: AdminBench) -> None:  # KIP516-8
    topic_id = TopicId.parse(str(orders.topic("orders").topic_id))
    by_id, by_both, by_name = (topic_id, 0), (TopicKey("orders", topic_id), 1), (TopicKey("orders", TopicId.ZERO), 0)
    assert orders.admin.reassign([(by_id, (0, 1)), (by_both, (1,))]) == {
        by_id: CommandOutcome(),
        by_both: CommandOutcome(),
    }
    assert orders.controller.reassigned == [{FIRST: (0, 1)}, {SECOND: (1,)}]
    assert orders.admin.reassign([(by_name, (1, 0))]) == {by_name: CommandOutcome()}
    assert orders.controller.reassigned[-1] == {FIRST: (1, 0)}


@pytest.mark.parametrize(
    ("given", "error", "reason"),
    [
        ((OTHER, 0), 100, f"no topic has the ID {OTHER}"),
        ((TopicKey("nothing", OTHER), 0), 100, f"no topic has the ID {OTHER}"),
        ((TopicKey("orders", OTHER), 0), 103, f"and {OTHER} is given; ask for one of them alone"),
        ((TopicKey("orders", TopicId.ZERO), 9), 3, "there is no partition orders-9"),
        (("orders", 9), 3, "there is no partition orders-9"),
        (("orders", -1), 17, "-1 is no partition of 'orders'"),
        ((TopicId.ZERO, 0), 42, "neither a topic's name nor its ID is given"),
        ((TopicKey(), 0), 42, "neither a topic's name nor its ID is given"),
        (TopicPartition("", 0), 42, "neither a topic's name nor its ID is given"),
    ],
)
def test_a_topic_that_cannot_be_found_is_not_reassigned(
    orders: AdminBench, given: GivenPartition, error: int, reason: str
) -> None:  # KIP516-8
    outcome = orders.admin.reassign([(given, (0,))])[given]
    assert (outcome.error, reason in outcome.message) == (error, True), outcome.message
    assert orders.controller.reassigned == []


def test_an_id_of_another_topic_does_not_fit_a_name(orders: AdminBench) -> None:  # KIP516-8
    orders.admin.create_topics([CreateTopic("secret", 1, 1)])
    given = (TopicKey("nothing", TopicId.parse(str(orders.topic("secret").topic_id))), 0)
    outcome = orders.admin.reassign([(given, (0,))])[given]
    assert outcome.error is KafkaError.INCONSISTENT_TOPIC_ID and "secret" not in outcome.message


def test_a_partition_that_is_given_by_name_and_by_id_is_given_twice(orders: AdminBench) -> None:  # KIP4-2
    by_id = (TopicId.parse(str(orders.topic("orders").topic_id)), 0)
    outcomes = orders.admin.reassign([(FIRST, (0,)), (by_id, (1,)), (SECOND, (1,))])
    assert [(given, outcome.error) for given, outcome in outcomes.items()] == [
        (FIRST, KafkaError.INVALID_REQUEST),
        (by_id, KafkaError.INVALID_REQUEST),
        (SECOND, KafkaError.NONE),
    ]
    assert orders.controller.reassigned == [{SECOND: (1,)}]


def test_a_partition_that_is_named_twice_is_refused(orders: AdminBench) -> None:  # KIP4-2
    assert orders.admin.reassign([(FIRST, (0,)), (FIRST, (1,))])[FIRST].error is KafkaError.INVALID_REQUEST
    assert orders.controller.reassigned == []


def test_the_controllers_own_refusal_is_answered(orders: AdminBench) -> None:
    orders.controller.refusal = KafkaError.NO_REASSIGNMENT_IN_PROGRESS
    assert orders.admin.reassign([(FIRST, (0,))])[FIRST].error is KafkaError.NO_REASSIGNMENT_IN_PROGRESS


def test_an_election_is_noted_at_once_and_carried_out_later(orders: AdminBench) -> None:  # KIP4-1
    assert orders.admin.elect_preferred([FIRST]) == {FIRST: CommandOutcome()}
    assert orders.controller.elected == []
    assert orders.session.find(kafka_paths.PREFERRED_ELECTION) is not None
    orders.timers.run()
    assert orders.controller.elected == [[FIRST]]
    assert orders.session.find(kafka_paths.PREFERRED_ELECTION) is None


def test_no_election_begins_while_another_runs(orders: AdminBench) -> None:  # KIP4-2
    orders.admin.elect_preferred([FIRST])
    outcome = orders.admin.elect_preferred([FIRST])[FIRST]
    assert outcome.error is KafkaError.INVALID_REQUEST and "is running" in outcome.message
    orders.timers.run()
    assert orders.admin.elect_preferred([FIRST])[FIRST] == CommandOutcome()


def test_without_names_all_partitions_are_looked_at(orders: AdminBench) -> None:  # KIP4-1
    outcomes = orders.admin.elect_preferred()
    assert {each: outcome.error for each, outcome in outcomes.items()} == {
        FIRST: KafkaError.NONE,
        SECOND: KafkaError.ELECTION_NOT_NEEDED,
    }
    orders.timers.run()
    assert orders.controller.elected == [[FIRST]]


def test_a_first_replica_that_cannot_lead_is_refused(orders: AdminBench) -> None:
    orders.lead(FIRST, 2, [2])
    assert orders.admin.elect_preferred([FIRST])[FIRST].error is KafkaError.PREFERRED_LEADER_NOT_AVAILABLE
    orders.lead(FIRST, 2, [1, 2])
    orders.others.delete(kafka_paths.broker_path(1))
    assert orders.admin.elect_preferred([FIRST])[FIRST].error is KafkaError.PREFERRED_LEADER_NOT_AVAILABLE
    unknown = TopicPartition("orders", 5)
    assert orders.admin.elect_preferred([unknown])[unknown].error is KafkaError.UNKNOWN_TOPIC_OR_PARTITION


def test_an_election_ends_with_the_controller_that_noted_it(orders: AdminBench) -> None:
    orders.admin.elect_preferred([FIRST])
    orders.session.expire()
    orders.timers.run()
    assert orders.controller.elected == []
    assert orders.others.find(kafka_paths.PREFERRED_ELECTION) is None
