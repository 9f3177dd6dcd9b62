"""What configs forbid is reported when it happens: each guard is broken on purpose. What they allow is not.

# KIP37-2 KIP37-5
"""

from __future__ import annotations

import pytest

from layout.topic import TopicPartition
from reconciler.simulator.admin import AlterTopic, CommandOutcome
from reconciler.simulator.checks import BrokenInvariantError, Invariants, check_converged
from reconciler.simulator.cluster import Cluster
from reconciler.simulator.controller import state_machines
from reconciler.simulator.machine.configs import BrokerConfigs
from reconciler.simulator.machine.partition import HostedPartition
from reconciler.simulator.machine.serving import LeaderRequests
from tests.reconciler.simulator.conftest import NewCluster

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def cluster(new_cluster: NewCluster) -> Cluster:
    """Watched, with a topic whose replicas are on brokers 1 and 2, and three records in it."""
    made = new_cluster(flush_records=1)
    Invariants(made)
    made.create_topic("orders", assignment={0: [1, 2]})
    made.produce("orders", 3)
    made.run(for_ms=5_000)
    return made


def configure(cluster: Cluster, **configs: str) -> None:
    """Set configs of the topic, with ``_`` for ``.`` in their names, and let brokers hear of it."""
    assert cluster.active is not None
    wanted = AlterTopic("orders", configs={name.replace("_", "."): value for name, value in configs.items()})
    assert cluster.active.admin.alter_topics([wanted]) == {"orders": CommandOutcome()}
    cluster.run(for_ms=15_000)


def let_only_the_other_live(cluster: Cluster) -> None:
    """Take broker 2 out of sync, and leave it alone with what it has."""
    cluster.stop_broker(2)
    cluster.run(for_ms=20_000)
    cluster.stop_broker(1)
    cluster.start_broker(2)
    cluster.run(for_ms=20_000)


def test_an_unclean_election_that_nobody_allowed_is_reported(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    elect = state_machines.offline_election
    monkeypatch.setattr(
        state_machines,
        "offline_election",
        lambda replicas, isr, live, unclean: elect(replicas, isr, live, unclean=True),
    )
    with pytest.raises(BrokenInvariantError, match=r"2 leads orders-0, though only \[1\] were in sync: an unclean"):
        let_only_the_other_live(cluster)


def test_an_unclean_election_that_was_allowed_is_not(cluster: Cluster) -> None:
    configure(cluster, unclean_leader_election_enable="true")
    let_only_the_other_live(cluster)
    assert cluster.oracle.wanted()[ORDERS][0].leader == 2


def test_a_record_that_too_few_replicas_have_and_that_is_acknowledged_is_reported(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(cluster, min_insync_replicas="2")
    cluster.stop_broker(2)
    cluster.run(for_ms=20_000)
    monkeypatch.setattr(LeaderRequests, "_has_too_few", lambda requests, partition: False)
    with pytest.raises(BrokenInvariantError, match=r"acknowledged 'client-1 3' with \[1\] in sync, of 2 demanded"):
        cluster.produce("orders")


@pytest.mark.parametrize("retention_ms", ["3600000", "-1"])
def test_a_record_that_is_deleted_too_early_is_reported(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, retention_ms: str
) -> None:
    configure(cluster, retention_ms=retention_ms)
    monkeypatch.setattr(BrokerConfigs, "retention_ms", lambda configs, topic: 0)
    with pytest.raises(BrokenInvariantError, match=rf"deleted offset 0 of orders-0 after \d+ of {retention_ms} ms"):
        cluster.run(for_ms=100_000)


def test_records_that_are_old_go_on_one_broker_after_the_other_and_nothing_is_reported(cluster: Cluster) -> None:
    configure(cluster, retention_ms="30000")
    cluster.world.jump("broker-1", 60_000)
    cluster.run(for_ms=150_000)
    hosted = [cluster.members[node_id].broker.replicas.get(ORDERS) for node_id in (1, 2)]
    assert [each is not None and each.log.start for each in hosted] == [3, 3]
    check_converged(cluster, durable=True)


def test_followers_that_delete_what_their_leader_deleted_are_not_reported(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(cluster, retention_ms="30000")
    monkeypatch.setattr(HostedPartition, "delete_old", _by_leaders_alone(HostedPartition.delete_old))
    cluster.run(for_ms=150_000)
    hosted = cluster.members[2].broker.replicas.get(ORDERS)
    assert hosted is not None and hosted.log.start == 3


def _by_leaders_alone(delete_old):  # type: ignore[no-untyped-def]
    return lambda partition, retention_ms, now_ms: partition.leads and delete_old(partition, retention_ms, now_ms)


def test_a_partition_and_a_namespace_of_one_directory_are_reported(cluster: Cluster) -> None:
    session = cluster.zookeeper.session("another tool")
    session.create("/brokers/topics/orders-0")
    with pytest.raises(BrokenInvariantError, match="orders-0 is a partition and a namespace: both have one directory"):
        cluster.run(for_ms=1_000)


def test_a_broker_that_goes_by_other_delays_than_those_in_force_is_reported_at_rest(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BrokerConfigs, "_changed", lambda configs: None)
    configure(cluster, file_delete_delay_ms="5s")
    reason = "broker-1 goes by a file.delete.delay.ms of 60000 for orders, and not by 5000"
    with pytest.raises(BrokenInvariantError, match=reason):
        check_converged(cluster)
