"""The topics, namespaces and brokers of a cluster, read from its nodes."""

from __future__ import annotations

from layout.ids import TopicId
from layout.topic import TopicPartition
from reconciler.simulator.zookeeper import Session, ZooKeeper, kafka_nodes, kafka_paths
from reconciler.sources.zookeeper import znodes

ID = TopicId.parse("cxBT72dK4si8Ied1iP4wBA")


def test_topics_and_namespaces_are_distinguished(session: Session) -> None:  # KIP37-4
    kafka_paths.make_base(session)
    for tier in ("org", "org:apache", "empty"):
        session.create(kafka_paths.topic_path(tier))
    for topic in ("orders", "org:orders", "org:apache:orders"):
        session.create(kafka_paths.topic_path(topic), znodes.encode_topic(ID, {0: (1,)}))
        session.create(kafka_paths.state_path(TopicPartition(topic, 0)), b"{}", parents=True)
    assert list(kafka_nodes.read_topics(session)) == ["orders", "org:apache:orders", "org:orders"]
    assert kafka_nodes.read_namespaces(session) == ["empty", "org", "org:apache"]


def test_the_source_for_real_clusters_reads_the_same_topics(session: Session, server: ZooKeeper) -> None:  # KIP37-4
    kafka_paths.make_base(session)
    for topic in ("orders", "org:apache:orders"):
        data = znodes.encode_topic(ID, {0: (1,)})
        session.create(kafka_paths.topic_path(topic), data, parents=True)
        state = znodes.encode_state(1, 0, [1], 1)
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
    assert found[2] == kafka_nodes.BrokerNode(2, "r1", session.get(kafka_paths.broker_path(2)).czxid, "broker-2", 9092)
    assert found[10].rack is None and found[10].epoch > found[2].epoch


def test_the_partitions_of_a_topic_whose_node_is_empty_are_no_namespaces(session: Session) -> None:
    session.create(kafka_paths.state_path(TopicPartition("broken", 0)), parents=True)
    assert kafka_nodes.read_topics(session) == {}
    assert kafka_nodes.read_namespaces(session) == ["broken"]
