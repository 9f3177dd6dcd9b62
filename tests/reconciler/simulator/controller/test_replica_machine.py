from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, StopReplicaRequest
from reconciler.simulator.controller.context import LeaderAndIsr, ReplicaAssignment
from reconciler.simulator.controller.settings import IllegalTransitionError
from reconciler.simulator.controller.states import Replica, ReplicaState
from tests.reconciler.simulator.controller.cluster import ID, Cluster, at


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(4)
    found.create_topic("orders", {0: [1, 2, 3]}, ID)
    found.forget()
    return found


def send(cluster: Cluster) -> None:
    cluster.controller.work.core.batch.send()
    cluster.settle()


def on(broker: int) -> Replica:
    return Replica(at("orders"), broker)


# CREATE-3
def test_a_topic_that_was_created_has_all_its_replicas_online(cluster: Cluster) -> None:
    states = cluster.controller.context.replica_states
    assert states.found_in(ReplicaState.ONLINE) == [on(1), on(2), on(3)]


def test_a_new_replica_of_a_partition_that_has_a_leader_is_told_at_once(cluster: Cluster) -> None:
    context = cluster.controller.context
    context.assignments[at("orders")] = ReplicaAssignment((1, 2, 3, 4), adding=(4,))
    cluster.controller.work.replicas.to_new([on(4)])
    send(cluster)
    (request,) = cluster.brokers[4].of(LeaderAndIsrRequest)
    assert request.topics[0].partitions[0].is_new
    assert request.topics[0].partitions[0].adding == (4,)
    assert context.replica_states.of(on(4)) is ReplicaState.NEW


def test_a_follower_that_goes_offline_is_stopped_and_taken_out_of_sync_and_the_others_are_told(
    cluster: Cluster,
) -> None:
    cluster.controller.work.replicas.to_offline([on(3)])
    send(cluster)
    assert cluster.state(at("orders")) == LeaderAndIsr(1, 1, (1, 2), 1, 1)
    (stop,) = cluster.brokers[3].of(StopReplicaRequest)
    assert [each.delete for each in stop.topics[0].partitions] == [False]
    for number in (1, 2):
        (request,) = cluster.brokers[number].of(LeaderAndIsrRequest)
        assert request.topics[0].partitions[0].isr == (1, 2)
    assert cluster.brokers[3].of(LeaderAndIsrRequest) == []


def test_a_leader_that_goes_offline_leaves_the_partition_without_one(cluster: Cluster) -> None:
    cluster.controller.work.replicas.to_offline([on(1)])
    assert cluster.state(at("orders")) == LeaderAndIsr(-1, 1, (2, 3), 1, 1)


def test_the_last_replica_in_sync_stays_in_sync_though_it_is_away(cluster: Cluster) -> None:
    cluster.alter_isr(at("orders"), [1])
    cluster.controller.work.replicas.to_offline([on(1)])
    first = cluster.state(at("orders"))
    assert (first.leader, first.isr) == (-1, (1,))
    cluster.controller.work.replicas.to_offline([on(1)])
    assert cluster.state(at("orders")) == first


def test_a_replica_that_was_not_in_sync_changes_nothing_in_the_state(cluster: Cluster) -> None:
    cluster.alter_isr(at("orders"), [1, 2])
    before = cluster.state(at("orders"))
    cluster.controller.work.replicas.to_offline([on(3)])
    assert cluster.state(at("orders")) == before


def test_a_replica_goes_through_its_deletion_and_leaves_the_assignment(cluster: Cluster) -> None:
    machine, context = cluster.controller.work.replicas, cluster.controller.context
    cluster.brokers[3].stop_errors[at("orders")] = KafkaError.KAFKA_STORAGE_ERROR
    machine.to_offline([on(3)])
    machine.to_deletion_started([on(3)])
    send(cluster)
    (stop,) = cluster.brokers[3].of(StopReplicaRequest)
    assert [(each.partition, each.delete) for each in stop.topics[0].partitions] == [(0, True)]
    assert context.replica_states.of(on(3)) is ReplicaState.DELETION_INELIGIBLE
    machine.to_offline([on(3)])
    machine.to_deletion_started([on(3)])
    machine.to_deletion_successful([on(3)])
    machine.to_non_existent([on(3)])
    assert context.assignments[at("orders")] == ReplicaAssignment((1, 2))
    assert context.replica_states.of(on(3)) is ReplicaState.NON_EXISTENT


# CREATE-3
def test_an_illegal_move_is_refused_before_anything_is_done(cluster: Cluster) -> None:
    machine, before = cluster.controller.work.replicas, cluster.zookeeper.dump()
    with pytest.raises(IllegalTransitionError, match="NonExistentReplica and cannot go to OfflineReplica"):
        machine.to_offline([on(3), on(4)])
    with pytest.raises(IllegalTransitionError, match="OnlineReplica and cannot go to NewReplica"):
        machine.to_new([on(3)])
    with pytest.raises(IllegalTransitionError, match="NonExistentReplica and cannot go to OnlineReplica"):
        machine.to_online([on(4)])
    with pytest.raises(IllegalTransitionError, match="OnlineReplica and cannot go to ReplicaDeletionStarted"):
        machine.to_deletion_started([on(3)])
    with pytest.raises(IllegalTransitionError, match="OnlineReplica and cannot go to ReplicaDeletionIneligible"):
        machine.to_deletion_ineligible([on(3)])
    with pytest.raises(IllegalTransitionError, match="OnlineReplica and cannot go to ReplicaDeletionSuccessful"):
        machine.to_deletion_successful([on(3)])
    with pytest.raises(IllegalTransitionError, match="OnlineReplica and cannot go to NonExistentReplica"):
        machine.to_non_existent([on(3)])
    send(cluster)
    assert cluster.zookeeper.dump() == before
    assert [each.received for each in cluster.brokers.values()] == [[], [], [], []]
