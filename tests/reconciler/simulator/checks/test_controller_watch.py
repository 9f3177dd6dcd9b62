"""A controller that takes for done what is not: planted in its own code, and told by the nodes and the stores."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.broker.carry_out import StoreExecutor
from reconciler.broker.decision import ActionResult, DecidedAction
from reconciler.simulator.checks import BrokenInvariantError, Invariants
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.controller import deletion
from reconciler.simulator.controller.reassignment import Reassignments
from tests.reconciler.simulator.conftest import NewCluster

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def cluster(new_cluster: NewCluster) -> Cluster:
    made = new_cluster(3, seed=6)
    Invariants(made)
    made.create_topic("orders", assignment={0: [1, 2], 1: [1, 2]})
    made.produce("orders", 3)
    return made


def reassign(cluster: Cluster) -> None:
    active = cluster.active
    assert active is not None
    assert active.admin.reassign([(ORDERS, (2, 3))])[ORDERS].error is KafkaError.NONE
    cluster.run(for_ms=30_000)
    assert [each.node_id for each in cluster.oracle.wanted()[ORDERS]] == [2, 3]


def test_a_reassignment_that_waits_for_its_new_replicas_is_in_order(cluster: Cluster) -> None:
    reassign(cluster)


def test_old_replicas_that_are_dropped_before_a_new_one_is_in_sync_are_told(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reassignments, "_is_complete", lambda reassignments, partition: True)
    with pytest.raises(BrokenInvariantError, match=r"orders-0 is reassigned, and \[3\] of its new replicas"):
        reassign(cluster)


def test_a_partition_that_is_forgotten_while_its_disk_is_away_is_told(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "GONE", frozenset(KafkaError))
    member = cluster.members[2]
    lies_in = member.broker.store.get(TopicPartition("orders", 1)).log_dir
    member.disks.fail(member.disks.log_dirs.index(lies_in), Random(1))
    with pytest.raises(BrokenInvariantError, match="orders-1 is deleted, and broker-2 has its replica still"):
        cluster.delete_partitions("orders", 1)
        cluster.run(for_ms=90_000)


def test_a_partition_that_is_forgotten_while_a_broker_has_it_is_told(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(executor: StoreExecutor, actions: Sequence[DecidedAction], delay: str) -> list[ActionResult]:
        return [each.failed(KafkaError.KAFKA_STORAGE_ERROR, "planted") for each in actions]

    monkeypatch.setattr(StoreExecutor, "stage", refuses)
    monkeypatch.setattr(deletion, "GONE", frozenset(KafkaError))
    with pytest.raises(BrokenInvariantError, match=r"orders-1 is deleted, and broker-[12] has its replica still"):
        cluster.delete_partitions("orders", 1)
        cluster.run(for_ms=30_000)
