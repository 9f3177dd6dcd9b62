"""Describing topics, which shows the end of each command, and subscriptions, which match whole full names."""

from __future__ import annotations

import pytest

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.errors import UsageError
from reconciler.simulator.admin import CreateTopic, is_created
from reconciler.simulator.admin.commands import TopicDescription
from reconciler.simulator.admin.describe import describe, subscribed_topics
from reconciler.simulator.kernel import (
    DURING_DELETE,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from reconciler.simulator.zookeeper import kafka_paths
from reconciler.sources.zookeeper import znodes
from tests.reconciler.simulator.admin.admin_bench import AdminBench, is_deleted, is_preferred, is_reassigned


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


def test_a_topic_is_deleted_once_it_is_unknown(bench: AdminBench) -> None:  # KIP4-1
    bench.admin.create_topics([CreateTopic("orders", 1, 1)])
    assert not is_deleted(only(bench, "orders"))
    bench.session.delete(kafka_paths.topic_path("orders"), recursive=True)
    assert is_deleted(only(bench, "orders"))


def test_a_topic_that_clients_see_going_is_deleted(bench: AdminBench) -> None:  # KIP4-1
    gone = TopicMetadata("late", None, (PartitionMetadata(0, DURING_DELETE, 4, (), (1,)),))
    answer = MetadataResponse((gone,), (0,), 0)
    (found,) = describe(bench.session, lambda request: answer, ["late"], "User:a")
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
    (found,) = describe(bench.session, lambda request: answer, ["orders"], "User:a")
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
