from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, RequestType, StopReplicaRequest
from reconciler.simulator.controller.context import LeaderAndIsr, ReplicaAssignment
from reconciler.simulator.controller.states import AssignedReplica, ReplicaState
from reconciler.simulator.zookeeper import REASSIGN_PARTITIONS, topic_path
from reconciler.sources.zookeeper import znodes
from tests.reconciler.simulator.controller.cluster import ID, Cluster, at

ORDERS = at("orders")


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(5, controllers=(5,))
    found.create_topic("orders", {0: [1, 2]}, ID)
    found.forget()
    return found


def reassign(cluster: Cluster, target: tuple[int, ...] | None) -> KafkaError:
    answers = cluster.controller.reassign({ORDERS: target})
    cluster.settle()
    return answers[ORDERS]


def node(cluster: Cluster) -> ReplicaAssignment:
    found = cluster.topic("orders")
    return ReplicaAssignment(found.partitions[0], found.adding.get(0, ()), found.removing.get(0, ()))


# KIP4-1
def test_replicas_are_added_first_and_the_others_go_when_the_new_ones_are_in_sync(cluster: Cluster) -> None:
    assert reassign(cluster, (3, 4)) is KafkaError.NONE
    going = ReplicaAssignment((3, 4, 1, 2), (3, 4), (1, 2))
    assert node(cluster) == going == cluster.controller.context.assignments[ORDERS]
    assert cluster.state(ORDERS) == LeaderAndIsr(1, 1, (1, 2), 1, 1)
    for number in (1, 2, 3, 4):
        (request,) = cluster.brokers[number].take(LeaderAndIsrRequest)
        state = request.topics[0].partitions[0]
        assert (state.replicas, state.adding, state.removing) == ((3, 4, 1, 2), (3, 4), (1, 2))
        assert state.is_new == (number in (3, 4))
    assert cluster.alter_isr(ORDERS, [1, 2, 3]).error is KafkaError.NONE
    assert node(cluster) == going
    assert cluster.state(ORDERS).leader_epoch == 1
    cluster.alter_isr(ORDERS, [1, 2, 3, 4])
    assert node(cluster) == ReplicaAssignment((3, 4)) == cluster.controller.context.assignments[ORDERS]
    found = cluster.state(ORDERS)
    assert (found.leader, sorted(found.isr)) == (3, [3, 4])
    for number in (1, 2):
        stop = cluster.brokers[number].of(StopReplicaRequest)[-1]
        assert [(each.partition, each.delete) for each in stop.topics[0].partitions] == [(0, True)]
        assert stop.topics[0].topic_id == ID
    states = cluster.controller.context.replica_states
    assert [each.broker for each in states.found_in(ReplicaState.ONLINE)] == [3, 4]


def test_a_leader_that_stays_goes_on_leading(cluster: Cluster) -> None:
    reassign(cluster, (3, 1))
    cluster.alter_isr(ORDERS, [1, 2, 3])
    assert cluster.state(ORDERS).leader == 1
    assert node(cluster) == ReplicaAssignment((3, 1))


def test_only_removing_replicas_is_done_at_once(cluster: Cluster) -> None:
    reassign(cluster, (2,))
    assert node(cluster) == ReplicaAssignment((2,))
    found = cluster.state(ORDERS)
    assert (found.leader, found.isr) == (2, (2,))


def test_a_reassignment_that_is_cancelled_drops_what_was_added(cluster: Cluster) -> None:
    reassign(cluster, (3, 4))
    cluster.forget()
    assert reassign(cluster, None) is KafkaError.NONE
    assert node(cluster) == ReplicaAssignment((1, 2))
    assert cluster.state(ORDERS).isr == (1, 2)
    assert cluster.brokers[3].of(StopReplicaRequest)[-1].topics[0].partitions[0].delete
    assert cluster.controller.context.replica_states.of(AssignedReplica(ORDERS, 3)) is ReplicaState.NON_EXISTENT


def test_a_reassignment_that_is_changed_drops_what_is_not_wanted_any_more(cluster: Cluster) -> None:
    reassign(cluster, (3, 4))
    reassign(cluster, (4, 5))
    assert node(cluster) == ReplicaAssignment((4, 5, 1, 2), (4, 5), (1, 2))
    assert cluster.brokers[3].of(StopReplicaRequest)[-1].topics[0].partitions[0].delete
    cluster.alter_isr(ORDERS, [1, 2, 4, 5])
    assert node(cluster) == ReplicaAssignment((4, 5))


@pytest.mark.parametrize("target", [None, (4,)])
def test_what_would_drop_the_last_replica_in_sync_is_refused(cluster: Cluster, target: tuple[int, ...] | None) -> None:
    reassign(cluster, (3,))
    cluster.alter_isr(ORDERS, [1, 2, 3])
    reassign(cluster, (5, 4))
    cluster.alter_isr(ORDERS, [3, 5])
    cluster.kill(3)
    cluster.settle()
    assert cluster.state(ORDERS).isr == (5,)
    before = cluster.zookeeper.dump()
    assert reassign(cluster, target) is KafkaError.INVALID_REPLICA_ASSIGNMENT
    assert cluster.zookeeper.dump() == before


@pytest.mark.parametrize("target", [(), (1, 1), (-1,), (1, 9)])
def test_an_assignment_that_is_none_is_refused_and_changes_nothing(cluster: Cluster, target: tuple[int, ...]) -> None:
    before = cluster.zookeeper.dump()
    assert reassign(cluster, target) is KafkaError.INVALID_REPLICA_ASSIGNMENT
    assert cluster.zookeeper.dump() == before


def test_what_is_not_there_cannot_be_reassigned_and_what_does_not_move_cannot_be_cancelled(cluster: Cluster) -> None:
    answers = cluster.controller.reassign({at("unknown"): (1,), at("orders", 7): (1,), ORDERS: None})
    assert list(answers.values()) == [
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError.NO_REASSIGNMENT_IN_PROGRESS,
    ]


def test_the_next_controller_goes_on_with_it(cluster: Cluster) -> None:
    cluster.start_controller(4)
    reassign(cluster, (3, 4))
    cluster.kill(5)
    assert cluster.controller.node_id == 4
    assert cluster.controller.context.assignments[ORDERS].adding == (3, 4)
    cluster.alter_isr(ORDERS, [1, 2, 3, 4])
    assert node(cluster) == ReplicaAssignment((3, 4))


# KIP516-5
def test_a_broker_that_was_away_when_its_replica_was_dropped_learns_it_when_it_returns(cluster: Cluster) -> None:
    cluster.kill(2)
    reassign(cluster, (1, 3))
    cluster.alter_isr(ORDERS, [1, 3])
    assert node(cluster) == ReplicaAssignment((1, 3))
    cluster.forget()
    cluster.register(2)
    cluster.settle()
    (request,) = cluster.brokers[2].of(LeaderAndIsrRequest)
    assert (request.type, request.topics) == (RequestType.FULL, ())


def test_a_new_replica_whose_broker_comes_later_is_added_then(cluster: Cluster) -> None:
    reassign(cluster, (1, 3))
    cluster.kill(3)
    cluster.forget()
    cluster.register(3)
    cluster.settle()
    requests = [each for each in cluster.brokers[3].of(LeaderAndIsrRequest) if each.topics]
    assert requests[0].type is RequestType.FULL
    assert requests[0].topics[0].partitions[0].adding == (3,)
    cluster.alter_isr(ORDERS, [1, 2, 3])
    assert node(cluster) == ReplicaAssignment((1, 3))


def test_what_the_old_tool_writes_is_done_and_taken_away(cluster: Cluster) -> None:
    data = znodes.encode_reassignment({ORDERS: (1, 2, 3), at("unknown"): (1,)})
    cluster.admin.create(REASSIGN_PARTITIONS, data)
    cluster.settle()
    assert node(cluster) == ReplicaAssignment((1, 2, 3), (3,))
    assert not cluster.exists(REASSIGN_PARTITIONS)
    assert cluster.said_about("unknown-0 is not reassigned: UNKNOWN_TOPIC_OR_PARTITION")


def test_a_topic_that_was_deleted_meanwhile_is_not_written_again(cluster: Cluster) -> None:
    cluster.remove_node(topic_path("orders"))
    reassign(cluster, (3, 4))
    assert not cluster.exists(topic_path("orders"))
    assert cluster.controller.active


# KIP4-1
def test_the_preferred_leader_leads_when_it_can(cluster: Cluster) -> None:
    assert cluster.controller.elect_preferred([ORDERS, at("unknown")]) == {
        ORDERS: KafkaError.ELECTION_NOT_NEEDED,
        at("unknown"): KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
    }
    cluster.kill(1)
    assert cluster.state(ORDERS).leader == 2
    assert cluster.controller.elect_preferred([ORDERS]) == {ORDERS: KafkaError.PREFERRED_LEADER_NOT_AVAILABLE}
    cluster.register(1)
    cluster.settle()
    assert cluster.controller.elect_preferred([ORDERS]) == {ORDERS: KafkaError.PREFERRED_LEADER_NOT_AVAILABLE}
    cluster.alter_isr(ORDERS, [2, 1])
    assert cluster.controller.elect_preferred([ORDERS]) == {ORDERS: KafkaError.NONE}
    assert cluster.state(ORDERS).leader == 1


def test_a_reassignment_waits_while_no_replica_that_stays_can_lead(cluster: Cluster) -> None:
    reassign(cluster, (3,))
    cluster.alter_isr(ORDERS, [1, 2, 3])
    assert node(cluster) == ReplicaAssignment((3,))
    reassign(cluster, (4, 3))
    cluster.alter_isr(ORDERS, [3, 4])
    assert node(cluster) == ReplicaAssignment((4, 3))
    cluster.kill(4)
    cluster.kill(3)
    assert cluster.state(ORDERS).isr == (3,)
    assert reassign(cluster, (3,)) is KafkaError.NONE
    assert node(cluster) == ReplicaAssignment((3, 4), removing=(4,))
    cluster.register(3)
    cluster.settle()
    assert node(cluster) == ReplicaAssignment((3,))
    assert cluster.state(ORDERS).leader == 3
