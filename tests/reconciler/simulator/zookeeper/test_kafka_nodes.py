"""The contents of Kafka's nodes: as Kafka writes them, and read back."""

from __future__ import annotations

import json

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.simulator.zookeeper import Session, ZooKeeper, kafka_nodes, kafka_paths
from reconciler.sources.zookeeper import znodes

ID = TopicId.parse("cxBT72dK4si8Ied1iP4wBA")


def test_a_topic_is_written_as_version_3(session: Session) -> None:  # KIP516-11, FACTS §8
    data = kafka_nodes.encode_topic(ID, {1: (2, 3), 0: (1, 2)}, {0: (2,), 1: ()}, {0: (1,)})
    assert json.loads(data) == {
        "version": 3,
        "topic_id": str(ID),
        "partitions": {"0": [1, 2], "1": [2, 3]},
        "adding_replicas": {"0": [2]},
        "removing_replicas": {"0": [1]},
    }
    node = kafka_nodes.decode_topic(data)
    assert (node.partitions, node.adding, node.removing) == ({0: (1, 2), 1: (2, 3)}, {0: (2,)}, {0: (1,)})
    assert kafka_nodes.topic_id_of(node) == ID


def test_a_topic_without_an_id_has_no_key_for_it() -> None:  # KIP516-11
    data = kafka_nodes.encode_topic(None, {0: (1,)})
    assert json.loads(data) == {"version": 3, "partitions": {"0": [1]}, "adding_replicas": {}, "removing_replicas": {}}
    assert kafka_nodes.topic_id_of(kafka_nodes.decode_topic(data)) is None


def test_a_state_is_written_as_kafka_writes_it() -> None:  # CREATE-4, FACTS §8
    data = kafka_nodes.encode_state(1, 4, [1, 2], 7)
    assert data == b'{"controller_epoch":7,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2]}'
    assert kafka_nodes.decode_state(data) == kafka_nodes.PartitionStateNode(1, 4, (1, 2), 7)
    assert kafka_nodes.decode_state(b'{"leader":1,"leader_epoch":4,"isr":[1]}') == kafka_nodes.PartitionStateNode(
        1, 4, (1,), -1
    )
    assert kafka_nodes.decode_state(b"{") is None


def test_topics_and_namespaces_are_distinguished(session: Session) -> None:  # KIP37-4
    kafka_paths.make_base(session)
    for tier in ("org", "org:apache", "empty"):
        session.create(kafka_paths.topic_path(tier))
    for topic in ("orders", "org:orders", "org:apache:orders"):
        session.create(kafka_paths.topic_path(topic), kafka_nodes.encode_topic(ID, {0: (1,)}))
        session.create(kafka_paths.state_path(TopicPartition(topic, 0)), b"{}", parents=True)
    assert list(kafka_nodes.read_topics(session)) == ["orders", "org:apache:orders", "org:orders"]
    assert kafka_nodes.read_namespaces(session) == ["empty", "org", "org:apache"]


def test_the_source_for_real_clusters_reads_the_same_topics(session: Session, server: ZooKeeper) -> None:  # KIP37-4
    kafka_paths.make_base(session)
    for topic in ("orders", "org:apache:orders"):
        data = kafka_nodes.encode_topic(ID, {0: (1,)})
        session.create(kafka_paths.topic_path(topic), data, parents=True)
        state = kafka_nodes.encode_state(1, 0, [1], 1)
        session.create(kafka_paths.state_path(TopicPartition(topic, 0)), state, parents=True)
    prefix = f"{kafka_paths.TOPICS}/"
    kept = {path: data for path, data in server.dump().items() if path.startswith(prefix) and znodes.keep(path)}
    topics, states = znodes.split_topics({path.removeprefix(prefix): data for path, data in kept.items()})
    assert topics == kafka_nodes.read_topics(session)
    assert {TopicPartition(*key) for key in states} == {TopicPartition(topic, 0) for topic in topics}


def test_a_brokers_epoch_is_the_transaction_that_registered_it(session: Session) -> None:  # FACTS §8
    kafka_paths.make_base(session)
    session.create(kafka_paths.broker_path(2), kafka_nodes.encode_broker(2, rack="r1"), ephemeral=True)
    session.create(kafka_paths.broker_path(10), kafka_nodes.encode_broker(10), ephemeral=True)
    session.create(f"{kafka_paths.BROKERS}/nobody")
    found = kafka_nodes.read_brokers(session)
    assert list(found) == [2, 10]
    assert found[2] == kafka_nodes.BrokerNode(2, "r1", session.get(kafka_paths.broker_path(2)).czxid)
    assert found[10].rack is None and found[10].epoch > found[2].epoch


def test_other_nodes_come_back_as_they_were_written() -> None:
    partitions = [TopicPartition("orders", 1), TopicPartition("org:x", 0)]
    wanted = {partitions[0]: (1, 2), partitions[1]: (3,)}
    assert kafka_nodes.decode_controller(kafka_nodes.encode_controller(3, 17)) == 3
    assert kafka_nodes.decode_config(kafka_nodes.encode_config({"b": "2", "a": "1"})) == {"a": "1", "b": "2"}
    assert kafka_nodes.decode_log_dir_event(kafka_nodes.encode_log_dir_event(4)) == 4
    assert kafka_nodes.decode_partitions(kafka_nodes.encode_partitions(partitions)) == partitions
    assert kafka_nodes.decode_reassignment(kafka_nodes.encode_reassignment(wanted)) == wanted
    assert znodes.decode_cluster_id(kafka_nodes.encode_cluster_id("abc")) == "abc"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'"x"', b"{}", b'{"partitions":7,"config":[],"brokerid":"1"}'])
def test_what_cannot_be_read_is_empty_and_no_error(data: bytes) -> None:
    assert kafka_nodes.decode_controller(data) is None
    assert kafka_nodes.decode_config(data) == {}
    assert kafka_nodes.decode_log_dir_event(data) is None
    assert kafka_nodes.decode_partitions(data) == []
    assert kafka_nodes.decode_reassignment(data) == {}
    assert kafka_nodes.decode_state(data) is None


def test_the_partitions_of_a_topic_whose_node_is_empty_are_no_namespaces(session: Session) -> None:
    session.create(kafka_paths.state_path(TopicPartition("broken", 0)), parents=True)
    assert kafka_nodes.read_topics(session) == {}
    assert kafka_nodes.read_namespaces(session) == ["broken"]
