"""What is promised about partitions that are leaving can be broken on purpose, and the check reports it."""

from __future__ import annotations

import pytest

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.simulator.admin import AlterTopic, DeletePartitions
from reconciler.simulator.checks import BrokenInvariantError, Invariants
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.controller import Controller
from reconciler.simulator.controller.fewer_partitions import FewerPartitions
from reconciler.simulator.kernel import PartitionMode, ProduceRequest, ProduceResponse
from tests.reconciler.simulator.conftest import NewCluster

LAST = TopicPartition("orders", 1)


def controller_of(cluster: Cluster) -> Controller:
    active = cluster.active
    assert active is not None
    return active.controller


def leaving(new_cluster: NewCluster, delay_ms: int) -> Cluster:
    """A cluster whose topic loses its last partition; broker 2 leads it, and it has one record."""
    cluster = new_cluster()
    Invariants(cluster)
    cluster.create_topic("orders", assignment={0: [1, 3], 1: [2, 3]})
    cluster.run(for_ms=1_000)
    assert write(cluster, 2) is KafkaError.NONE
    active = cluster.active
    assert active is not None
    active.admin.delete_partitions([DeletePartitions("orders", 1, delay_ms)])
    cluster.run(for_ms=1_000)
    return cluster


def write(cluster: Cluster, broker: int) -> KafkaError | None:
    """Write to the last partition at a broker, as a producer would that does not know its mode."""
    answers: list[object] = []
    topic_id = cluster.oracle.topic_id("orders")
    request = ProduceRequest(LAST, topic_id, f"record at {cluster.world.now_ms}")
    cluster.world.network.call("client-3", f"broker-{broker}", request, answers.append)
    cluster.run_until("an answer", lambda: bool(answers))
    return answers[0].error if isinstance(answers[0], ProduceResponse) else None


# KIP694-1, KIP694-3
def test_every_promise_is_kept_from_the_request_to_the_end_and_when_the_topic_grows_again(
    new_cluster: NewCluster,
) -> None:
    cluster = leaving(new_cluster, 20_000)
    assert write(cluster, 2) is KafkaError.LEADER_NOT_AVAILABLE
    cluster.crash_broker(2)
    cluster.run_until("another leader", lambda: cluster.oracle.wanted()[LAST][0].leader == 3)
    cluster.run(for_ms=500)
    assert write(cluster, 3) is KafkaError.LEADER_NOT_AVAILABLE
    assert len(cluster.consume("orders", 5_000)) == 1
    cluster.start_broker(2)
    cluster.run_until("it is gone", lambda: not cluster.oracle.leaving())
    active = cluster.active
    assert active is not None
    active.admin.alter_topics([AlterTopic("orders", 2, assignment={1: [2, 1]})])
    cluster.run_until(
        "it grows", lambda: LAST in cluster.oracle.wanted() and cluster.oracle.wanted()[LAST][0].leader == 2
    )
    cluster.run(for_ms=1_000)
    assert write(cluster, 2) is KafkaError.NONE


# KIP694-1
def test_a_leader_that_does_not_go_by_the_mode_is_reported(new_cluster: NewCluster) -> None:
    cluster = leaving(new_cluster, 20_000)
    cluster.members[2].broker._living.serving.may_write = lambda partition: True
    with pytest.raises(BrokenInvariantError) as broken:
        write(cluster, 2)
    assert "broker-2 acknowledged 'record at " in str(broken.value)
    assert str(broken.value).endswith(
        " at offset 1 of orders-1, in leader epoch 0, after it was made READ_ONLY in leader epoch 0"
    )


# KIP694-1
def test_a_new_leader_that_does_not_go_by_the_mode_is_reported(new_cluster: NewCluster) -> None:
    cluster = leaving(new_cluster, 60_000)
    cluster.members[3].broker._living.serving.may_write = lambda partition: True
    cluster.stop_broker(2)
    with pytest.raises(
        BrokenInvariantError, match=r"broker-3 acknowledged .* after it was made READ_ONLY in leader epoch \d+"
    ):
        for _ in range(20):
            write(cluster, 3)


# KIP694-3
def test_a_controller_that_does_not_wait_for_the_delay_is_reported(
    new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = leaving(new_cluster, 60_000)
    work = controller_of(cluster).work
    assert work is not None
    (fewer,) = [each for each in work.extensions if isinstance(each, FewerPartitions)]
    monkeypatch.setattr(fewer, "_now_ms", lambda: cluster.world.now_ms + 3_600_000)
    with pytest.raises(
        BrokenInvariantError, match=r"ended the last partitions of orders, \d+ ms too early: they can be"
    ):
        cluster.run(for_ms=10_000)


# KIP694-4
def test_a_controller_that_has_a_partition_deleted_before_its_time_is_reported(new_cluster: NewCluster) -> None:
    cluster = leaving(new_cluster, 60_000)
    work = controller_of(cluster).work
    assert work is not None and cluster.oracle.fewer_partitions()["orders"].mode is PartitionMode.READ_ONLY
    work.deletions.begin_partitions([LAST])
    with pytest.raises(BrokenInvariantError, match=r"broker-\d was asked to delete orders-1, which can still be read"):
        cluster.run(for_ms=10_000)
