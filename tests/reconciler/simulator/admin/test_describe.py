"""Describing topics, which shows the end of each command, and subscriptions, which match whole full names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.errors import UsageError
from reconciler.simulator.admin import CreateTopic, GivenTopic, TopicDescription, TopicKey, is_created, with_lags
from reconciler.simulator.admin.describe import describe, subscribed_topics
from reconciler.simulator.kernel import (
    DURING_DELETE,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from reconciler.simulator.zookeeper import Authorizer, kafka_paths
from reconciler.sources.zookeeper import Acl, AclOperation, znodes
from tests.reconciler.simulator.admin.admin_bench import AdminBench, is_deleted, is_preferred, is_reassigned, set_acls

OTHER = TopicId(b"another topic ID")


def only(bench: AdminBench, topic: str) -> TopicDescription:
    (found,) = bench.admin.describe_topics([topic])
    return found


def test_a_topic_is_created_once_all_its_partitions_have_leaders(bench: AdminBench) -> None:  # KIP4-1
    bench.admin.create_topics([CreateTopic("orders", assignment={0: [1, 2], 1: [2, 0]}, configs={"segment.ms": "5"})])
    assert not is_created(only(bench, "orders"), 2)
    bench.lead(TopicPartition("orders", 0), 1, [1, 2])
    assert not is_created(only(bench, "orders"), 2)
    bench.lead(TopicPartition("orders", 1), 0, [0])
    found = only(bench, "orders")
    assert is_created(found, 2)
    assert (found.error, str(found.topic_id)) == (KafkaError.NONE, bench.topic("orders").topic_id)  # KIP516-9
    assert found.configs == {"segment.ms": "5"}
    assert [(each.partition, each.leader, each.isr, each.replicas) for each in found.partitions] == [
        (0, 1, (1, 2), (1, 2)),
        (1, 0, (0,), (2, 0)),
    ]


def test_each_replicas_lag_is_what_the_leader_says(bench: AdminBench) -> None:  # KIP4-1
    bench.admin.create_topics([CreateTopic("orders", assignment={0: [1, 2], 1: [2, 0]})])
    bench.lead(TopicPartition("orders", 0), 1, [1])
    bench.lead(TopicPartition("orders", 1), 2, [2])
    bench.lags = {TopicPartition("orders", 0): {1: 0, 2: 7}}
    assert [each.lags for each in only(bench, "orders").partitions] == [{1: 0, 2: 7}, {}]


def test_the_lags_of_all_leaders_are_put_together(bench: AdminBench) -> None:  # KIP4-1
    bench.admin.create_topics([CreateTopic("orders", assignment={0: [1, 2], 1: [2, 0], 2: [0, 1]})])
    for number, leader in enumerate((1, 2, 0)):
        bench.lead(TopicPartition("orders", number), leader, [leader])
    found = only(bench, "orders")
    # Broker 2 leads partition 1 alone, and what it thinks of others does not count; broker 0 does not answer.
    thinks = {1: {0: {1: 0, 2: 3}}, 2: {0: {2: 9}, 1: {2: 0, 0: -1}}}

    def ask(node_id: int, topic: str) -> TopicDescription | None:
        if node_id not in thinks:
            return None
        return replace(
            found, partitions=tuple(replace(p, lags=thinks[node_id].get(p.partition, {})) for p in found.partitions)
        )

    assert [each.lags for each in with_lags(found, ask).partitions] == [{1: 0, 2: 3}, {2: 0, 0: -1}, {}]

    def of_another_topic(node_id: int, topic: str) -> TopicDescription | None:
        answer = ask(node_id, topic)
        return None if answer is None else replace(answer, topic_id=TopicId(b"another topic ID"))

    assert [each.lags for each in with_lags(found, of_another_topic).partitions] == [{}, {}, {}]


def test_brokers_are_described_with_host_and_port(bench: AdminBench) -> None:  # KIP4-1
    assert [(each.node_id, each.host, each.port) for each in bench.admin.describe_brokers()] == [
        (0, "broker-0", 9092),
        (1, "broker-1", 9092),
        (2, "broker-2", 9092),
    ]


def test_a_partition_without_a_leader_that_lives_is_answered_with_5(bench: AdminBench) -> None:  # KIP4-1
    bench.admin.create_topics([CreateTopic("orders", assignment={0: [1], 1: [2], 2: [0]})])
    bench.lead(TopicPartition("orders", 0), 1, [1])
    bench.lead(TopicPartition("orders", 1), 2, [2])
    bench.live = bench.live[:2]
    found = only(bench, "orders")
    assert found.error is KafkaError.NONE
    assert [(each.leader, each.error) for each in found.partitions] == [
        (1, KafkaError.NONE),
        (-1, KafkaError.LEADER_NOT_AVAILABLE),
        (-1, KafkaError.LEADER_NOT_AVAILABLE),
    ]
    assert not is_created(found, 3)


def test_topics_that_brokers_create_for_themselves_are_internal(bench: AdminBench) -> None:  # KIP516-9
    bench.admin.create_topics([CreateTopic("__consumer_offsets", 1, 1), CreateTopic("orders", 1, 1)])
    found = bench.admin.describe_topics(["__consumer_offsets", "orders", "__transaction_state"])
    assert [each.is_internal for each in found] == [True, False, True]
    assert found[2].error is KafkaError.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("topic", "error", "reason"),
    [("nothing", 3, "there is no topic 'nothing'"), ("a b", 17, "a character other than"), ("..", 17, "directory")],
)
def test_what_cannot_be_described_is_answered_with_its_own_error(
    bench: AdminBench, topic: str, error: int, reason: str
) -> None:  # KIP4-2
    found = only(bench, topic)
    assert (found.error, found.partitions, found.authorized_operations) == (error, (), -(1 << 31))
    assert reason in found.message


def test_a_topic_is_described_by_its_id_or_by_both_as_by_its_name(bench: AdminBench) -> None:  # KIP516-8, KIP516-9
    bench.admin.create_topics([CreateTopic("orders", assignment={0: [1, 2]}), CreateTopic("clicks", 1, 1)])
    by_name = only(bench, "orders")
    topic_id = by_name.topic_id
    assert topic_id is not None
    given = [topic_id, TopicKey("orders", topic_id), TopicKey("orders", TopicId.ZERO), TopicKey("orders")]
    assert bench.admin.describe_topics(given) == [by_name] * 4


@pytest.mark.parametrize(
    ("given", "error", "topic", "topic_id"),
    [
        (OTHER, 100, "", OTHER),
        (TopicKey("", OTHER), 100, "", OTHER),
        (TopicKey("nothing", OTHER), 100, "nothing", OTHER),
        (TopicKey("orders", OTHER), 103, "orders", OTHER),
        (TopicKey("nothing", TopicId.ZERO), 3, "nothing", None),
        (TopicId.ZERO, 42, "", None),
        (TopicKey(), 42, "", None),
        ("", 42, "", None),
    ],
)
def test_a_topic_that_is_not_found_by_what_is_given_is_answered_with_that(
    bench: AdminBench, given: GivenTopic, error: int, topic: str, topic_id: TopicId | None
) -> None:  # KIP516-8
    bench.admin.create_topics([CreateTopic("orders", 1, 1)])
    (found,) = bench.admin.describe_topics([given])
    assert (found.error, found.topic, found.topic_id, found.partitions) == (error, topic, topic_id, ())
    assert found.message


def test_an_id_tells_nothing_of_a_topic_that_may_not_be_described(bench: AdminBench) -> None:  # KIP37-6
    bench.admin.create_topics([CreateTopic("secret", 1, 1)])
    topic_id = only(bench, "secret").topic_id
    assert topic_id is not None
    set_acls(bench.session, [Acl("User:bob", AclOperation.READ)], topic="secret")
    bench.authorize(Authorizer(bench.session))
    found = bench.admin.describe_topics([topic_id, TopicKey("mine", topic_id)], "User:alice")
    assert [(each.topic, each.topic_id, each.error) for each in found] == [("", topic_id, 29), ("mine", topic_id, 103)]
    assert not any("secret" in each.message for each in found)


def test_without_an_authorizer_all_operations_are_authorized(bench: AdminBench) -> None:  # KIP516-9
    bench.admin.create_topics([CreateTopic("orders", 1, 1)])
    # Read, Write, Create, Delete, Alter, Describe, DescribeConfigs and AlterConfigs: bits 3 to 8, 10 and 11.
    assert only(bench, "orders").authorized_operations == 0b1101_1111_1000 == 3576


def test_an_authorizer_says_which_operations_are_authorized(bench: AdminBench) -> None:  # KIP37-6
    bench.admin.create_topics([CreateTopic("orders", 1, 1), CreateTopic("secret", 1, 1)])
    set_acls(bench.session, [Acl("User:alice", AclOperation.READ)], topic="orders")
    set_acls(bench.session, [Acl("User:bob", AclOperation.ALTER_CONFIGS)], topic="secret")
    bench.authorize(Authorizer(bench.session))
    (found,) = bench.admin.describe_topics(principal="User:alice")
    assert (found.topic, found.authorized_operations) == ("orders", 1 << 3 | 1 << 8)
    (refused,) = bench.admin.describe_topics(["secret"], principal="User:bob")
    assert (refused.error, refused.message) == (29, "User:bob may not describe secret")
    assert (refused.topic_id, refused.partitions, refused.authorized_operations) == (None, (), -(1 << 31))


def test_a_topic_is_deleted_once_it_is_unknown(bench: AdminBench) -> None:  # KIP4-1
    bench.admin.create_topics([CreateTopic("orders", 1, 1)])
    assert not is_deleted(only(bench, "orders"))
    bench.session.delete(kafka_paths.topic_path("orders"), recursive=True)
    assert is_deleted(only(bench, "orders"))


def test_a_topic_that_clients_see_going_is_deleted(bench: AdminBench) -> None:  # KIP4-1
    gone = TopicMetadata("late", None, (PartitionMetadata(0, DURING_DELETE, 4, (), (1,)),))
    answer = MetadataResponse((gone,), bench.live, 0)
    (found,) = describe(bench.session, lambda request: answer, lambda at: {}, ["late"], "User:a")
    assert is_deleted(found)


def test_a_reassignment_is_done_when_the_replicas_are_those_and_in_sync(bench: AdminBench) -> None:  # KIP4-1
    bench.admin.create_topics([CreateTopic("orders", assignment={0: [1, 2]})])
    bench.lead(TopicPartition("orders", 0), 1, [1, 2])
    assert not is_reassigned(only(bench, "orders"), {0: (1, 0)})
    path = kafka_paths.topic_path("orders")
    bench.session.set(path, znodes.encode_topic(None, {0: [1, 0]}))
    assert not is_reassigned(only(bench, "orders"), {0: (1, 0)})
    bench.lead(TopicPartition("orders", 0), 1, [0, 1])
    assert is_reassigned(only(bench, "orders"), {0: (1, 0)})
    assert not is_reassigned(only(bench, "orders"), {3: (1, 0)})


def test_an_election_is_done_when_the_first_replica_leads(bench: AdminBench) -> None:  # KIP4-1
    bench.admin.create_topics([CreateTopic("orders", assignment={0: [1, 2]})])
    bench.lead(TopicPartition("orders", 0), 2, [1, 2])
    assert not is_preferred(only(bench, "orders"))
    bench.lead(TopicPartition("orders", 0), 1, [1, 2])
    assert is_preferred(only(bench, "orders"))


@pytest.mark.parametrize("active", [True, False])
def test_every_broker_describes_and_lists(bench: AdminBench, active: bool) -> None:  # KIP4-1
    bench.admin.create_topics([CreateTopic("two", 1, 1), CreateTopic("one", 1, 1)])
    bench.controller.active = active
    assert [found.topic for found in bench.admin.describe_topics()] == ["one", "two"]
    assert bench.admin.list_topics() == ["one", "two"]


def test_a_broker_whose_session_is_over_answers_from_its_cache(bench: AdminBench) -> None:
    bench.admin.create_topics([CreateTopic("orders", 1, 1, configs={"segment.ms": "5"})])
    answer = bench.metadata(MetadataRequest())
    bench.session.expire()
    (found,) = describe(bench.session, lambda request: answer, lambda at: {}, ["orders"], "User:a")
    assert (found.error, len(found.partitions), found.configs) == (KafkaError.NONE, 1, {})


TOPICS = ["bla", "black", "bla:orders", "org:apache:orders", "org:bla", "__consumer_offsets"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (".*", ["bla", "bla:orders", "black", "org:apache:orders", "org:bla"]),
        ("bla.*", ["bla", "bla:orders", "black"]),
        ("bla[^:]*", ["bla", "black"]),
        ("bla", ["bla"]),
        ("org:.*", ["org:apache:orders", "org:bla"]),
        (".*:orders", ["bla:orders", "org:apache:orders"]),
        ("orders", []),
    ],
)
def test_a_pattern_meets_whole_full_names(pattern: str, found: list[str]) -> None:  # KIP37-7
    assert subscribed_topics(pattern, TOPICS) == found


def test_a_pattern_that_is_no_regular_expression_is_refused() -> None:
    with pytest.raises(UsageError, match="no regular expression"):
        subscribed_topics("(", TOPICS)
