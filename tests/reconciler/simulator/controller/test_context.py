from __future__ import annotations

from reconciler.simulator.controller.context import ControllerContext, LeaderAndIsr, ReplicaAssignment
from reconciler.simulator.controller.states import AssignedReplica
from reconciler.simulator.kernel import PartitionMode
from tests.reconciler.simulator.controller.cluster import ID, at


def known() -> ControllerContext:
    context = ControllerContext(3, 7)
    context.brokers = {1: 10, 2: 20, 3: 30}
    context.births["orders"], context.topic_ids["orders"] = 5, ID
    for number, replicas in enumerate([(1, 2), (2, 3)]):
        context.assignments[at("orders", number)] = ReplicaAssignment(replicas)
        context.leadership[at("orders", number)] = LeaderAndIsr(replicas[0], 4, replicas, 6, 3)
    return context


def test_the_next_state_is_of_the_next_leader_epoch_and_of_the_same_node() -> None:
    assert LeaderAndIsr(1, 4, (1, 2), 6, 3).next(2, (2,)) == LeaderAndIsr(2, 5, (2,), 6, 3)


def test_a_reassignment_has_the_target_first_and_knows_where_it_came_from() -> None:
    going = ReplicaAssignment((1, 2, 3)).reassigned_to((4, 2, 5))
    assert going == ReplicaAssignment((4, 2, 5, 1, 3), adding=(4, 5), removing=(1, 3))
    assert (going.target, going.origin) == ((4, 2, 5), (2, 1, 3))
    assert going.is_being_reassigned


def test_a_reassignment_to_what_there_is_changes_nothing_but_the_order() -> None:
    going = ReplicaAssignment((1, 2, 3)).reassigned_to((3, 2, 1))
    assert going == ReplicaAssignment((3, 2, 1))
    assert not going.is_being_reassigned


def test_a_reassignment_that_is_changed_on_the_way_still_counts_from_the_origin() -> None:
    going = ReplicaAssignment((1, 2)).reassigned_to((3, 4)).reassigned_to((4, 5))
    assert going == ReplicaAssignment((4, 5, 1, 2), adding=(4, 5), removing=(1, 2))


def test_a_replica_that_is_gone_is_nowhere_in_the_assignment() -> None:
    assert ReplicaAssignment((1, 2, 3), (3,), (1,)).without(3) == ReplicaAssignment((1, 2), (), (1,))


def test_a_replica_serves_while_its_broker_lives_and_its_log_dir_works() -> None:
    context = known()
    assert context.online(at("orders")) == (1, 2)
    context.offline.add(AssignedReplica(at("orders"), 1))
    assert context.online(at("orders")) == (2,)
    del context.brokers[2]
    assert context.online(at("orders")) == ()


def test_a_broker_that_is_about_to_stop_serves_only_for_who_asks_so() -> None:
    context = known()
    context.shutting_down.add(1)
    assert context.online(at("orders")) == (2,)
    assert context.online(at("orders"), though_leaving=True) == (1, 2)


def test_a_partition_without_a_leader_that_serves_is_found_unless_it_is_being_deleted() -> None:
    context = known()
    del context.brokers[1], context.brokers[2]
    assert context.without_leader() == [at("orders", 0), at("orders", 1)]
    context.leaving_partitions.add(at("orders", 1))
    assert context.without_leader() == [at("orders", 0)]
    context.leaving_topics.add("orders")
    assert context.without_leader() == []


# KIP694-1
def test_a_partition_is_read_and_written_unless_it_was_said_otherwise() -> None:
    context = known()
    assert context.mode_of(at("orders")) is PartitionMode.READ_WRITE
    context.modes[at("orders")] = PartitionMode.READ_ONLY
    assert context.mode_of(at("orders")) is PartitionMode.READ_ONLY


def test_nothing_is_left_of_a_topic_that_is_forgotten() -> None:
    context, empty = known(), ControllerContext(3, 7)
    context.modes[at("orders")], context.offline = PartitionMode.NONE, {AssignedReplica(at("orders"), 2)}
    context.leaving_topics.add("orders")
    context.forget_topic("orders")
    empty.brokers = context.brokers
    for name in ("births", "topic_ids", "assignments", "leadership", "modes", "offline", "leaving_topics"):
        assert getattr(context, name) == getattr(empty, name), name


def test_replicas_are_listed_in_a_fixed_order() -> None:
    context = known()
    assert context.replicas_on({3, 2}) == [
        AssignedReplica(at("orders", 0), 2),
        AssignedReplica(at("orders", 1), 2),
        AssignedReplica(at("orders", 1), 3),
    ]
    assert context.replicas_of([at("orders", 1)]) == [
        AssignedReplica(at("orders", 1), 2),
        AssignedReplica(at("orders", 1), 3),
    ]
    assert context.partitions_of("orders") == [at("orders", 0), at("orders", 1)]
