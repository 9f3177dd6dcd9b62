"""Elections by cause, and the actions of partitions and replicas between their states."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, StopReplicaRequest
from reconciler.simulator.controller.context import LeaderAndIsr, ReplicaAssignment
from reconciler.simulator.controller.settings import ControllerMovedError, IllegalTransitionError
from reconciler.simulator.controller.state_machines import (
    ElectedLeader,
    Election,
    offline_election,
    preferred_election,
    reassignment_election,
    shutdown_election,
)
from reconciler.simulator.controller.states import AssignedReplica, PartitionState, ReplicaState
from reconciler.simulator.zookeeper import config_change, state_path, topic_path
from reconciler.sources.zookeeper import encode_config, encode_state, encode_topic
from tests.reconciler.simulator.controller.cluster import ID, Cluster, at


@pytest.mark.parametrize(
    ("replicas", "isr", "live", "unclean", "elected"),
    [
        ((1, 2, 3), (1, 2, 3), {2, 3}, False, ElectedLeader(2, (2, 3))),
        ((1, 2, 3), (3, 2), {2, 3}, False, ElectedLeader(2, (3, 2))),
        ((1, 2, 3), (1, 3), {2, 3}, False, ElectedLeader(3, (3,))),
        ((1, 2, 3), (1,), {2, 3}, False, None),
        ((1, 2, 3), (1,), {2, 3}, True, ElectedLeader(2, (2,))),
        ((1, 2, 3), (1, 3), {2, 3}, True, ElectedLeader(3, (3,))),
        ((1, 2, 3), (1, 2, 3), set(), True, None),
    ],
)
def test_when_the_leader_is_away_the_first_live_replica_in_sync_leads(replicas, isr, live, unclean, elected) -> None:
    assert offline_election(replicas, isr, live, unclean=unclean) == elected


@pytest.mark.parametrize(
    ("target", "isr", "live", "elected"),
    [
        ((4, 5), (1, 4, 5), {1, 4, 5}, ElectedLeader(4, (1, 4, 5))),
        ((4, 5), (1, 5), {1, 4, 5}, ElectedLeader(5, (1, 5))),
        ((4, 5), (1, 4, 5), {1, 5}, ElectedLeader(5, (1, 4, 5))),
        ((4, 5), (1,), {1, 4, 5}, None),
    ],
)
def test_a_reassigned_partition_is_led_by_a_replica_that_stays(target, isr, live, elected) -> None:
    assert reassignment_election(target, isr, live) == elected


@pytest.mark.parametrize(
    ("replicas", "isr", "live", "elected"),
    [
        ((1, 2), (2, 1), {1, 2}, ElectedLeader(1, (2, 1))),
        ((1, 2), (2,), {1, 2}, None),
        ((1, 2), (2, 1), {2}, None),
        ((), (), {1}, None),
    ],
)
def test_the_preferred_leader_leads_only_if_it_lives_and_is_in_sync(replicas, isr, live, elected) -> None:
    assert preferred_election(replicas, isr, live) == elected


@pytest.mark.parametrize(
    ("isr", "live", "leaving", "elected"),
    [
        ((1, 2, 3), {1, 2, 3}, {1}, ElectedLeader(2, (2, 3))),
        ((1, 2, 3), {1, 2, 3}, {1, 2}, ElectedLeader(3, (3,))),
        ((1, 2, 3), {1, 3}, {1}, ElectedLeader(3, (2, 3))),
        ((1,), {1, 2, 3}, {1}, None),
    ],
)
def test_before_a_broker_stops_another_in_sync_leads(isr, live, leaving, elected) -> None:
    assert shutdown_election((1, 2, 3), isr, live, leaving) == elected


def make(brokers: int = 3, **settings: object) -> Cluster:
    cluster = Cluster(brokers, **settings)
    cluster.create_topic("orders", {0: [1, 2, 3]}, ID)
    cluster.forget()
    return cluster


# CREATE-4
def test_a_new_partition_is_led_by_its_first_live_replica_and_all_live_ones_are_in_sync() -> None:
    cluster = Cluster(3)
    cluster.kill(2)
    cluster.create_topic("orders", {0: [2, 3, 1]}, ID)
    assert cluster.state(at("orders")) == LeaderAndIsr(3, 0, (3, 1), 0, 1)
    assert cluster.controller.context.partition_states.of(at("orders")) is PartitionState.ONLINE


# CREATE-4
def test_a_leader_is_persisted_before_it_is_sent_to_any_broker() -> None:
    steps: list[str] = []

    def note(step: str) -> bool:
        steps.append(step)
        return False

    cluster = Cluster(2, crash_before=note)
    steps.clear()
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    assert steps[0] == "create state of orders-0"
    assert steps[1:3] == ["send LeaderAndIsr to 1", "send LeaderAndIsr to 2"]


def test_a_new_partition_without_a_live_replica_stays_new_until_one_comes() -> None:
    cluster = Cluster(2)
    cluster.kill(2)
    cluster.create_topic("orders", {0: [2]}, ID)
    assert cluster.controller.context.partition_states.of(at("orders")) is PartitionState.NEW
    assert not cluster.exists(state_path(at("orders")))
    cluster.register(2)
    cluster.settle()
    assert cluster.controller.context.partition_states.of(at("orders")) is PartitionState.ONLINE
    assert cluster.state(at("orders")).leader == 2


def test_a_partition_whose_replicas_in_sync_are_away_has_no_leader() -> None:
    cluster = make()
    cluster.alter_isr(at("orders"), [1])
    cluster.start_controller(2)
    cluster.kill(1)
    found = cluster.state(at("orders"))
    assert (found.leader, found.isr) == (-1, (1,))
    assert cluster.controller.context.partition_states.of(at("orders")) is PartitionState.OFFLINE


def test_an_unclean_election_lets_a_replica_lead_that_is_not_in_sync() -> None:
    cluster = make(unclean_elections=True)
    cluster.start_controller(3)
    cluster.kill(1)
    cluster.register(1)
    cluster.settle()
    cluster.alter_isr(at("orders"), [2])
    cluster.kill(2)
    found = cluster.state(at("orders"))
    assert (found.leader, found.isr) == (1, (1,))


@pytest.mark.parametrize("scope", ["org/apache/orders", "org/apache", "org"])
def test_a_namespace_or_a_topic_allows_unclean_elections_while_it_is_without_a_leader(scope: str) -> None:  # KIP37-5
    cluster, orders = make(), at("org:apache:orders")
    cluster.create_topic("org:apache:orders", {0: [1, 2]})
    cluster.alter_isr(orders, [1])
    cluster.start_controller(3)
    cluster.kill(1)
    assert cluster.state(orders).leader == -1
    configs = encode_config({"unclean.leader.election.enable": "true"})
    cluster.admin.create(f"/config/topics/{scope}", configs, parents=True)
    cluster.settle()
    assert cluster.state(orders).leader == -1, "without a notification nobody looks"
    cluster.admin.multi([config_change(scope.replace("/", ":"))])
    cluster.settle()
    found = cluster.state(orders)
    assert (found.leader, found.isr) == (2, (2,))


def test_the_nearest_scope_forbids_what_the_properties_and_the_tiers_above_allow() -> None:  # KIP37-5
    cluster, orders = make(unclean_elections=True), at("org:orders")
    for path, value in (("org", "true"), ("org/orders", "false")):
        data = encode_config({"unclean.leader.election.enable": value})
        cluster.admin.create(f"/config/topics/{path}", data, parents=True)
    cluster.create_topic("org:orders", {0: [1, 2]})
    cluster.alter_isr(orders, [1])
    cluster.start_controller(3)
    cluster.kill(1)
    assert cluster.state(orders).leader == -1


def test_an_illegal_move_is_refused_before_any_of_the_partitions_moves() -> None:
    cluster = make()
    cluster.create_topic("payments", {0: [1]})
    machine, states = cluster.controller.work.partitions, cluster.controller.context.partition_states
    with pytest.raises(IllegalTransitionError, match="OnlinePartition and cannot go to NewPartition"):
        machine.to_new([at("unknown"), at("orders")])
    assert states.of(at("unknown")) is PartitionState.NON_EXISTENT
    with pytest.raises(IllegalTransitionError, match="NonExistentPartition and cannot go to OnlinePartition"):
        machine.to_online([at("orders"), at("unknown")])
    with pytest.raises(IllegalTransitionError, match="OnlinePartition and cannot go to NonExistentPartition"):
        machine.to_non_existent([at("orders")])
    with pytest.raises(IllegalTransitionError, match="NonExistentPartition and cannot go to OfflinePartition"):
        machine.to_offline([at("unknown")])


def test_each_election_gives_a_new_leader_epoch() -> None:
    cluster = make()
    machine, context = cluster.controller.work.partitions, cluster.controller.context
    assert machine.to_online([at("orders")], Election.PREFERRED) == [at("orders")]
    assert cluster.state(at("orders")) == LeaderAndIsr(1, 1, (1, 2, 3), 1, 1)
    context.assignments[at("orders")] = ReplicaAssignment((1, 2, 3), removing=(1,))
    machine.to_online([at("orders")], Election.REASSIGNMENT)
    assert cluster.state(at("orders")) == LeaderAndIsr(2, 2, (1, 2, 3), 2, 1)
    context.shutting_down.add(2)
    machine.to_online([at("orders")], Election.SHUTDOWN)
    assert cluster.state(at("orders")) == LeaderAndIsr(1, 3, (1, 3), 3, 1) == context.leadership[at("orders")]


def test_a_state_that_another_wrote_in_this_epoch_is_read_again() -> None:
    cluster = make()
    path = state_path(at("orders"))
    cluster.admin.set(path, encode_state(1, 5, (1, 3), 1))
    cluster.controller.work.partitions.to_online([at("orders")], Election.PREFERRED)
    assert cluster.state(at("orders")) == LeaderAndIsr(1, 6, (1, 3), 2, 1)


def test_a_state_of_a_newer_controller_ends_this_one() -> None:
    cluster = make()
    cluster.admin.set(state_path(at("orders")), encode_state(2, 5, (2, 3), 9))
    with pytest.raises(ControllerMovedError, match="newer controller"):
        cluster.controller.work.partitions.to_online([at("orders")], Election.PREFERRED)


def test_a_partition_whose_topic_was_deleted_gets_no_other_leader() -> None:
    cluster = make()
    cluster.remove_node(topic_path("orders"))
    assert cluster.controller.work.partitions.to_online([at("orders")], Election.PREFERRED) == []
    assert cluster.said_about("its topic was deleted")


def test_a_state_that_is_there_before_the_partition_is_new_is_taken_over() -> None:
    cluster = Cluster(3)
    cluster.admin.create(topic_path("orders"), encode_topic(ID, {0: (1, 2, 3)}), parents=True)
    state = encode_state(2, 7, (2, 3), 1)
    cluster.admin.create(state_path(at("orders")), state, parents=True)
    cluster.settle()
    assert cluster.state(at("orders")) == LeaderAndIsr(2, 7, (2, 3), 0, 1)
    (request,) = [each for each in cluster.brokers[3].of(LeaderAndIsrRequest) if each.topics]
    assert request.topics[0].partitions[0].leader_epoch == 7


def put_before(cluster: Cluster, state: bytes) -> None:
    """A topic with a state that nobody expects there."""
    cluster.admin.create(topic_path("orders"), encode_topic(ID, {0: (1, 2, 3)}), parents=True)
    cluster.admin.create(state_path(at("orders")), state, parents=True)
    cluster.settle()


def test_a_state_that_is_there_before_and_whose_leader_is_away_gets_another() -> None:
    cluster = Cluster(3)
    cluster.kill(2)
    put_before(cluster, encode_state(2, 7, (2, 3), 1))
    assert cluster.state(at("orders")) == LeaderAndIsr(3, 8, (3,), 1, 1)


def test_a_state_that_is_there_before_and_cannot_be_read_is_left_alone() -> None:
    cluster = Cluster(3)
    put_before(cluster, b"{torn")
    assert cluster.controller.context.partition_states.of(at("orders")) is PartitionState.NEW
    assert cluster.said_about("its state node cannot be read")
    assert cluster.admin.get(state_path(at("orders"))).data == b"{torn"


def test_a_new_partition_whose_topic_was_deleted_meanwhile_gets_no_leader() -> None:
    cluster = Cluster(2)
    cluster.kill(2)
    cluster.create_topic("orders", {0: [2]}, ID)
    cluster.remove_node(topic_path("orders"))
    cluster.controller.context.brokers[2] = 99
    assert cluster.controller.work.partitions.to_online([at("orders")]) == []
    assert not cluster.exists(topic_path("orders"))


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(4)
    found.create_topic("orders", {0: [1, 2, 3]}, ID)
    found.forget()
    return found


def send(cluster: Cluster) -> None:
    cluster.controller.work.core.batch.send()
    cluster.settle()


def on(broker: int) -> AssignedReplica:
    return AssignedReplica(at("orders"), broker)


# CREATE-3
def test_a_topic_that_was_created_has_all_its_replicas_online(cluster: Cluster) -> None:
    states = cluster.controller.context.replica_states
    assert states.found_in(ReplicaState.ONLINE) == [on(1), on(2), on(3)]


def test_a_new_replica_of_a_partition_that_has_a_leader_gets_it_at_once(cluster: Cluster) -> None:
    context = cluster.controller.context
    context.assignments[at("orders")] = ReplicaAssignment((1, 2, 3, 4), adding=(4,))
    cluster.controller.work.replicas.to_new([on(4)])
    send(cluster)
    (request,) = cluster.brokers[4].of(LeaderAndIsrRequest)
    assert request.topics[0].partitions[0].is_new
    assert request.topics[0].partitions[0].adding == (4,)
    assert context.replica_states.of(on(4)) is ReplicaState.NEW


def test_a_follower_that_goes_offline_is_stopped_and_taken_out_of_sync_and_the_others_get_that(
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
