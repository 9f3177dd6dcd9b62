"""Kafka's own test cases of a whole cluster and of its admin, in the simulator (FACTS §10.1, §10.7).

Upstream runs rows 14 and 15 in KRaft; the simulated cluster has a ZooKeeper, and its brokers stage what is stale.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from layout import partition_metadata
from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import KafkaError
from logstore.fs import Directory
from reconciler.simulator.admin import CommandOutcome, CreateTopic
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.zookeeper import kafka_paths
from reconciler.sources.zookeeper import znodes
from tests.reconciler.simulator.admin.admin_bench import AdminBench
from tests.reconciler.simulator.conftest import NewCluster

FOO = TopicPartition("foo", 0)
AWAY = 2


def metadata_file(cluster: Cluster) -> Path:
    """The ``partition.metadata`` of foo-0 on the broker that is away."""
    (found,) = [
        path
        for log_dir in cluster.members[AWAY].disks.log_dirs
        for path in Path(log_dir).glob(f"foo-0/{partition_metadata.FILE_NAME}")
    ]
    return found


def in_sync(cluster: Cluster) -> list[int]:
    state = znodes.decode_state(cluster.zookeeper.session("test").get(kafka_paths.state_path(FOO)).data)
    assert state is not None
    return sorted(state.isr)


def stopped(cluster: Cluster) -> tuple[TopicId, list[str]]:
    """Create foo on three brokers, write to it, and stop one of them."""
    topic_id = cluster.create_topic("foo", 1, 3)
    values = cluster.produce("foo", 3)
    cluster.stop_broker(AWAY)
    cluster.run_until("its replica is out of sync", lambda: AWAY not in in_sync(cluster))
    return topic_id, values


def whole_again(cluster: Cluster, topic_id: TopicId, values: list[str]) -> None:
    cluster.start_broker(AWAY)
    cluster.run_until("all are in sync", lambda: in_sync(cluster) == [1, 2, 3])
    assert cluster.members[AWAY].broker.store.get(FOO).topic_id == topic_id
    assert partition_metadata.parse(metadata_file(cluster).read_bytes()).topic_id == topic_id
    values += cluster.produce("foo", 1)
    assert cluster.consume("foo") == values


def test_LogManagerIntegrationTest_testRestartBrokerNoErrorIfMissingPartitionMetadata(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    topic_id, values = stopped(cluster)
    disk, file = cluster.members[AWAY].disks.disk, metadata_file(cluster)
    with Directory.open(str(file.parent)) as replica:  # by the simulated disk, which knows of every change
        disk.unlink(replica.descriptor, file.name)
        disk.sync(replica.descriptor)
    assert not file.exists()
    whole_again(cluster, topic_id, values)
    assert cluster.members[AWAY].broker.store.staged() == []


def test_KRaftClusterTest_testTopicDeletedAndRecreatedWhileBrokerIsDown(new_cluster: NewCluster) -> None:
    cluster = new_cluster()
    topic_id, values = stopped(cluster)
    old = TopicId.parse("AAAAAAAAAAAAA7SrBWaJ7g")
    metadata_file(cluster).write_bytes(b"version: 0\ntopic_id: AAAAAAAAAAAAA7SrBWaJ7g\n")
    whole_again(cluster, topic_id, values)
    (staged,) = cluster.members[AWAY].broker.store.staged()
    assert (staged.topic_id, staged.partition) == (old, FOO)


def test_AdminZkClientTest_testTopicCreationWithCollision() -> None:
    bench = AdminBench()
    bench.admin.create_topics([CreateTopic("test.topic", 3, 1)])
    outcome = bench.admin.create_topics([CreateTopic("test_topic", 3, 1)])["test_topic"]
    assert outcome.error is KafkaError.INVALID_TOPIC_EXCEPTION
    assert bench.admin.list_topics() == ["test.topic"]


def test_AdminZkClientTest_testMarkedDeletionTopicCreation() -> None:
    bench = AdminBench()
    bench.session.create(kafka_paths.delete_path("orders"), b"")
    outcome = bench.admin.create_topics([CreateTopic("orders", 3, 1)])["orders"]
    assert outcome.error is KafkaError.TOPIC_ALREADY_EXISTS
    assert bench.admin.list_topics() == []


@pytest.mark.parametrize("topic", ["orders", "test.topic"])
def test_AdminZkClientTest_testMockedConcurrentTopicCreation(monkeypatch: pytest.MonkeyPatch, topic: str) -> None:
    bench = AdminBench()
    assert bench.admin.create_topics([CreateTopic(topic, 3, 1)]) == {topic: CommandOutcome()}
    before, find = bench.zookeeper.dump(), bench.session.find
    unseen = [kafka_paths.topic_path(topic)]

    def find_late(path: str) -> object:
        """Another broker creates the topic just after it was looked for."""
        if path in unseen:
            unseen.remove(path)
            return None
        return find(path)

    monkeypatch.setattr(bench.session, "find", find_late)
    assert bench.admin.create_topics([CreateTopic(topic, 3, 1)])[topic].error is KafkaError.TOPIC_ALREADY_EXISTS
    assert unseen == []
    assert bench.zookeeper.dump() == before
