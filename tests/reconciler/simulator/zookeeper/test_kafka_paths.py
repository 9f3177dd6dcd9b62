"""The paths of Kafka's nodes, with and without namespaces."""

from __future__ import annotations

import pytest

from layout.errors import InvalidNameError
from layout.topic import TopicPartition
from reconciler.simulator.zookeeper import (
    CLUSTER_CONFIG,
    CLUSTER_ID,
    NAMESPACE_ACLS,
    TOPIC_ACLS,
    Session,
    kafka_paths,
    path_below,
)
from tests.reconciler.simulator.admin.admin_bench import remove_below


def test_without_a_namespace_paths_are_kafkas() -> None:  # KIP37-1
    assert kafka_paths.topic_path("orders") == "/brokers/topics/orders"
    assert kafka_paths.state_path(TopicPartition("orders", 3)) == "/brokers/topics/orders/partitions/3/state"
    assert kafka_paths.config_path("orders") == "/config/topics/orders"
    assert kafka_paths.delete_path("orders") == "/admin/delete_topics/orders"
    assert kafka_paths.broker_path(7) == "/brokers/ids/7"


def test_tiers_are_nodes_above_the_topic() -> None:  # KIP37-4
    topic = "org:apache:orders"
    assert kafka_paths.topic_path(topic) == "/brokers/topics/org/apache/orders"
    assert kafka_paths.partition_path(TopicPartition(topic, 0)) == "/brokers/topics/org/apache/orders/partitions/0"
    assert kafka_paths.config_path(topic) == "/config/topics/org/apache/orders"
    assert kafka_paths.delete_path(topic) == "/admin/delete_topics/org/apache/orders"
    assert kafka_paths.name_at(kafka_paths.TOPICS, kafka_paths.topic_path(topic)) == topic
    assert kafka_paths.name_at(kafka_paths.TOPICS, "/brokers/ids/1") is None
    assert kafka_paths.name_at(kafka_paths.TOPICS, kafka_paths.TOPICS) is None


@pytest.mark.parametrize("name", ["org:partitions", "partitions:orders", "a:partitions:b", "a:b c", ":a", "a/b"])
def test_names_that_paths_cannot_tell_apart_are_refused(name: str) -> None:
    with pytest.raises(InvalidNameError):
        kafka_paths.check_name(name)


def test_a_topic_without_a_namespace_may_be_called_partitions() -> None:
    kafka_paths.check_name("partitions")
    kafka_paths.check_name("org:orders")


def test_every_broker_makes_sure_of_the_same_nodes(session: Session) -> None:
    kafka_paths.make_base(session)
    first = session.get(kafka_paths.TOPICS)
    kafka_paths.make_base(session)
    assert session.get(kafka_paths.TOPICS) == first
    assert session.children("/brokers") == ["ids", "seqid", "topics"]


def test_marks_are_the_leaves_and_go_with_the_tiers_that_lead_nowhere_else(session: Session) -> None:
    kafka_paths.make_base(session)
    for topic in ("org:apache:orders", "org:payments", "orders"):
        session.create(kafka_paths.delete_path(topic), parents=True)
    assert kafka_paths.topics_to_delete(session) == ["orders", "org:apache:orders", "org:payments"]
    remove_below(session, kafka_paths.DELETE_TOPICS, "org:apache:orders")
    assert session.children("/admin/delete_topics/org") == ["payments"]
    for topic in ("org:payments", "orders", "never:there"):
        remove_below(session, kafka_paths.DELETE_TOPICS, topic)
    assert session.children(kafka_paths.DELETE_TOPICS) == []


def test_configs_of_the_cluster_and_acls_stand_at_kafkas_paths(session: Session) -> None:  # KIP37-4
    kafka_paths.make_base(session)
    assert (CLUSTER_ID, CLUSTER_CONFIG) == ("/cluster/id", "/config/brokers/<default>")
    assert path_below(TOPIC_ACLS, "org:apache:orders") == "/kafka-acl/Topic/org/apache/orders"
    assert path_below(NAMESPACE_ACLS, "org:apache") == "/kafka-acl/Namespace/org/apache"
    assert [session.children(root) for root in (TOPIC_ACLS, NAMESPACE_ACLS)] == [[], []]
