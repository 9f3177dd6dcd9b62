"""Topics and partitions deleted the old way, and replicas that reassignments dropped."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, RequestType, StopReplicaRequest, UpdateMetadataRequest
from reconciler.simulator.controller.states import AssignedReplica, PartitionState, ReplicaState
from reconciler.simulator.kernel import DURING_DELETE
from reconciler.simulator.zookeeper import config_path, delete_path, partition_path, topic_path
from tests.reconciler.simulator.controller.cluster import ID, Cluster, Notes, at


def old_way(**settings: object) -> Cluster:
    """Two brokers and a topic without an ID, as before KIP-516."""
    cluster = Cluster(2, topic_ids=False, deletion_retry_ms=1_000, **settings)
    cluster.create_topic("orders", {0: [1, 2], 1: [2, 1]})
    cluster.forget()
    return cluster


def mark(cluster: Cluster, topic: str = "orders") -> None:
    cluster.admin.create(delete_path(topic))
    cluster.settle()


def state(cluster: Cluster, broker: int, partition: int = 0) -> ReplicaState:
    return cluster.controller.context.replica_states.of(AssignedReplica(at("orders", partition), broker))


# KIP516-10
def test_a_marked_topic_without_an_id_goes_when_all_its_replicas_are_deleted() -> None:
    cluster = old_way()
    cluster.admin.create(config_path("orders"), b"{}")
    mark(cluster)
    assert not [path for path in cluster.zookeeper.dump() if "orders" in path]
    for broker in cluster.brokers.values():
        (stop,) = broker.of(StopReplicaRequest)
        (topic,) = stop.topics
        assert topic.topic_id is None
        assert [(each.partition, each.delete, each.leader_epoch) for each in topic.partitions] == [
            (0, True, -2),
            (1, True, -2),
        ]
        metadata = broker.of(UpdateMetadataRequest)[0]
        assert {each.leader for each in metadata.topics[0].partitions} == {DURING_DELETE}
    assert cluster.controller.context.assignments == {}
    assert cluster.controller.context.leaving_topics == set()


def test_the_mark_goes_last_so_that_the_next_controller_would_find_it() -> None:
    cluster, changed = old_way(), list[str]()
    for path in (topic_path("orders"), delete_path("orders")):
        cluster.admin.watch(path, changed.append)
    mark(cluster)
    gone = [path for path in changed if path in (topic_path("orders"), delete_path("orders"))]
    assert gone[-2:] == [topic_path("orders"), delete_path("orders")]


# KIP516-10
def test_the_name_is_taken_until_the_broker_that_is_away_has_deleted_its_replicas() -> None:
    cluster = old_way()
    cluster.kill(2)
    mark(cluster)
    cluster.timers.pass_time(60_000)
    assert cluster.exists(topic_path("orders"))
    assert cluster.exists(delete_path("orders"))
    assert (state(cluster, 1), state(cluster, 2)) == (
        ReplicaState.DELETION_SUCCESSFUL,
        ReplicaState.DELETION_INELIGIBLE,
    )
    cluster.register(2)
    cluster.settle()
    assert not cluster.exists(topic_path("orders"))
    assert not cluster.exists(delete_path("orders"))


def test_partitions_that_are_being_deleted_do_not_exist_and_are_led_by_nobody() -> None:
    cluster = old_way()
    cluster.kill(2)
    mark(cluster)
    states = cluster.controller.context.partition_states
    assert states.of(at("orders")) is PartitionState.NON_EXISTENT
    before = cluster.state(at("orders"))
    cluster.register(2)
    cluster.brokers[2].stop_errors[at("orders")] = KafkaError.KAFKA_STORAGE_ERROR
    cluster.settle()
    assert cluster.state(at("orders")) == before


def test_a_replica_that_could_not_be_deleted_is_tried_again_until_it_is() -> None:
    cluster = old_way()
    cluster.brokers[2].stop_errors[at("orders")] = KafkaError.KAFKA_STORAGE_ERROR
    mark(cluster)
    assert (state(cluster, 2, 0), state(cluster, 2, 1)) == (
        ReplicaState.DELETION_INELIGIBLE,
        ReplicaState.DELETION_SUCCESSFUL,
    )
    cluster.forget()
    cluster.timers.pass_time(3_000)
    tried = [each.partition for sent in cluster.brokers[2].of(StopReplicaRequest) for each in sent.topics[0].partitions]
    assert tried == [0, 0, 0]
    cluster.brokers[2].stop_errors.clear()
    cluster.timers.pass_time(1_000)
    assert not cluster.exists(topic_path("orders"))


# KIP516-10
@pytest.mark.parametrize("answered", [False, True])
def test_the_next_controller_finishes_what_was_marked(answered: bool) -> None:
    cluster = old_way()
    cluster.start_controller(2)
    cluster.brokers[1].silent, cluster.brokers[2].silent = True, not answered
    mark(cluster)
    cluster.brokers[1].silent = cluster.brokers[2].silent = False
    cluster.kill(1)
    cluster.register(1)
    cluster.timers.pass_time(5_000)
    assert cluster.controller.node_id == 2
    assert not [path for path in cluster.zookeeper.dump() if "orders" in path]


# KIP516-10
def test_a_topic_that_was_marked_before_topic_ids_came_goes_the_old_way_and_gets_none() -> None:
    cluster = old_way()
    cluster.kill(2)
    mark(cluster)
    cluster.controllers[1].stop()
    cluster.sessions[1].expire()
    cluster.register(1)
    cluster.start_controller(1, topic_ids=True)
    cluster.settle()
    assert cluster.topic("orders").topic_id is None
    cluster.forget()
    cluster.register(2)
    cluster.settle()
    stops = [topic for each in cluster.brokers[2].of(StopReplicaRequest) for topic in each.topics]
    assert {topic.topic_id for topic in stops} == {None}
    assert not cluster.exists(topic_path("orders"))


# KIP516-10
def test_a_topic_with_an_id_that_was_marked_under_another_controller_goes_at_once() -> None:
    cluster = Cluster(2, topic_ids=False)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.kill(2)
    mark(cluster)
    assert cluster.exists(topic_path("orders"))
    cluster.controllers[1].stop()
    cluster.sessions[1].expire()
    cluster.register(1)
    cluster.start_controller(1, topic_ids=True)
    cluster.settle()
    assert not [path for path in cluster.zookeeper.dump() if "orders" in path]


def test_a_topic_that_is_being_deleted_is_not_changed_any_more() -> None:
    cluster = old_way()
    cluster.kill(2)
    mark(cluster)
    assert cluster.controller.reassign({at("orders"): (2,)}) == {at("orders"): KafkaError.UNKNOWN_TOPIC_OR_PARTITION}
    assert cluster.controller.elect_preferred([at("orders")]) == {at("orders"): KafkaError.UNKNOWN_TOPIC_OR_PARTITION}
    assert cluster.alter_isr(at("orders"), [1]).error is not KafkaError.NONE


# KIP694-3
def test_some_partitions_of_a_topic_go_and_the_others_stay() -> None:
    cluster = Cluster(3, extensions=(Notes,))
    cluster.create_topic("orders", {0: [1, 2], 1: [2, 3], 2: [3, 1]}, ID)
    kept = cluster.state(at("orders"))
    cluster.forget()
    cluster.controller.work.deletions.begin_partitions([at("orders", 1), at("orders", 2)])
    cluster.settle()
    stopped = {
        number: [each.partition for sent in broker.of(StopReplicaRequest) for each in sent.topics[0].partitions]
        for number, broker in cluster.brokers.items()
    }
    assert stopped == {1: [2], 2: [1], 3: [1, 2]}
    assert {topic.topic_id for each in cluster.brokers[3].of(StopReplicaRequest) for topic in each.topics} == {ID}
    assert list(cluster.topic("orders").partitions) == [0]
    assert cluster.state(at("orders")) == kept
    assert not cluster.exists(partition_path(at("orders", 1)))
    assert list(cluster.controller.context.assignments) == [at("orders")]
    assert cluster.controller.extensions[0].calls == ["loaded", "started", (at("orders", 1), at("orders", 2))]


# KIP694-3
def test_a_partition_that_cannot_be_deleted_is_ineligible_and_tried_again_while_the_topic_serves() -> None:
    cluster = Cluster(2, deletion_retry_ms=1_000)
    cluster.create_topic("orders", {0: [1, 2], 1: [2, 1]}, ID)
    cluster.brokers[1].stop_errors[at("orders", 1)] = KafkaError.KAFKA_STORAGE_ERROR
    cluster.controller.work.deletions.begin_partitions([at("orders", 1)])
    cluster.settle()
    assert state(cluster, 1, 1) is ReplicaState.DELETION_INELIGIBLE
    assert cluster.controller.context.leaving_partitions == {at("orders", 1)}
    assert cluster.alter_isr(at("orders"), [1]).error is KafkaError.NONE
    cluster.brokers[1].stop_errors.clear()
    cluster.timers.pass_time(1_000)
    assert list(cluster.topic("orders").partitions) == [0]


# KIP694-3
def test_a_partition_can_come_again_after_it_went() -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1, 2], 1: [2, 1]}, ID)
    cluster.controller.work.deletions.begin_partitions([at("orders", 1)])
    cluster.settle()
    nodes = cluster.controller.work.core.nodes
    path = topic_path("orders")
    grown = cluster.admin.get(path).data.replace(b'"partitions":{"0":[1,2]}', b'"partitions":{"0":[1,2],"1":[1,2]}')
    cluster.admin.set(path, grown)
    cluster.settle()
    assert nodes.state(at("orders", 1)) == cluster.state(at("orders", 1))
    assert cluster.state(at("orders", 1)).leader_epoch == 0
    assert cluster.controller.context.partition_states.of(at("orders", 1)) is PartitionState.ONLINE


def test_a_topic_that_goes_takes_the_partitions_along_that_were_going() -> None:
    cluster = Cluster(2, deletion_retry_ms=1_000)
    cluster.create_topic("orders", {0: [1, 2], 1: [2, 1]}, ID)
    cluster.brokers[1].stop_errors[at("orders", 1)] = KafkaError.KAFKA_STORAGE_ERROR
    cluster.controller.work.deletions.begin_partitions([at("orders", 1)])
    cluster.settle()
    cluster.controller.delete_topics(["orders"])
    cluster.settle()
    assert cluster.controller.context.leaving_partitions == set()
    assert cluster.controller.work.garbage.topics() == [("orders", ID)]
    cluster.brokers[1].stop_errors.clear()
    cluster.timers.pass_time(2_000)
    assert cluster.controller.work.garbage.topics() == []


def test_a_node_that_somebody_else_deleted_is_not_missed() -> None:
    cluster = old_way()
    cluster.brokers[1].silent = True
    mark(cluster)
    cluster.brokers[1].silent = False
    cluster.timers.pass_time(99)
    cluster.remove_node(topic_path("orders"))
    broker = cluster.brokers[1]
    state = {0: 0, 1: 0}
    cluster.controller.work.deletions.stopped("orders", 1, state)
    cluster.settle()
    assert broker.of(StopReplicaRequest) == []
    assert cluster.said_about("was deleted by somebody else")
    assert cluster.controller.context.assignments == {}
    assert not cluster.exists(delete_path("orders"))


# KIP694-3
def test_partitions_of_a_topic_that_somebody_else_deleted_are_forgotten() -> None:
    cluster = Cluster(1, extensions=(Notes,))
    cluster.create_topic("orders", {0: [1], 1: [1]}, ID)
    cluster.brokers[1].silent = True
    cluster.controller.work.deletions.begin_partitions([at("orders", 1)])
    cluster.remove_node(topic_path("orders"))
    cluster.controller.work.deletions.stopped("orders", 1, {1: 0})
    assert list(cluster.controller.context.assignments) == [at("orders")]
    assert cluster.controller.extensions[0].calls[-1] == (at("orders", 1),)
    assert not cluster.exists(topic_path("orders"))


def test_a_delete_request_for_a_topic_without_an_id_marks_it() -> None:
    cluster = old_way()
    cluster.kill(2)
    assert cluster.controller.delete_topics(["orders"]) == {"orders": KafkaError.NONE}
    assert cluster.exists(delete_path("orders"))
    assert cluster.controller.delete_topics(["orders"]) == {"orders": KafkaError.NONE}
    cluster.register(2)
    cluster.settle()
    assert not [path for path in cluster.zookeeper.dump() if "orders" in path]


ORDERS = at("orders")


@pytest.fixture
def cluster() -> Cluster:
    """Broker 2 could not delete the replica that a reassignment dropped."""
    found = Cluster(3, deletion_retry_ms=1_000, collection_attempts=4)
    found.create_topic("orders", {0: [1, 2]}, ID)
    found.brokers[2].stop_errors[ORDERS] = KafkaError.KAFKA_STORAGE_ERROR
    found.controller.reassign({ORDERS: (1,)})
    found.settle()
    found.forget()
    return found


def orders(cluster: Cluster) -> list[bool]:
    return [each.delete for sent in cluster.brokers[2].of(StopReplicaRequest) for each in sent.topics[0].partitions]


def test_a_dropped_replica_that_could_not_be_deleted_is_tried_again_until_it_is(cluster: Cluster) -> None:
    assert cluster.controller.work.dropped.waiting() == [AssignedReplica(ORDERS, 2)]
    cluster.timers.pass_time(1_000)
    assert orders(cluster) == [True]
    cluster.brokers[2].stop_errors.clear()
    cluster.timers.pass_time(2_000)
    assert orders(cluster) == [True, True]
    assert cluster.controller.work.dropped.waiting() == []
    cluster.timers.pass_time(100_000)
    assert len(orders(cluster)) == 2


def test_it_is_given_up_after_some_attempts_and_left_to_the_next_full_request(cluster: Cluster) -> None:
    cluster.timers.pass_time(100_000)
    assert len(orders(cluster)) == 3
    assert cluster.said_about("the next FULL request sees to it")
    assert cluster.controller.work.dropped.waiting() == []


def test_a_replica_that_is_assigned_again_is_not_deleted(cluster: Cluster) -> None:
    cluster.controller.reassign({ORDERS: (1, 2)})
    cluster.timers.pass_time(100_000)
    assert orders(cluster) == []
    assert cluster.said_about("it is assigned again")


# KIP516-5
def test_a_broker_that_went_is_left_to_its_full_request(cluster: Cluster) -> None:
    cluster.kill(2)
    cluster.timers.pass_time(100_000)
    cluster.register(2)
    cluster.settle()
    assert orders(cluster) == []
    assert cluster.brokers[2].of(LeaderAndIsrRequest)[0].type is RequestType.FULL


# KIP516-7
def test_it_is_deleted_by_the_id_of_its_topic_though_another_has_the_name_now(cluster: Cluster) -> None:
    cluster.controller.delete_topics(["orders"])
    cluster.create_topic("orders", {0: [2, 1]})
    cluster.timers.pass_time(1_000)
    stopped = [topic.topic_id for sent in cluster.brokers[2].of(StopReplicaRequest) for topic in sent.topics]
    assert set(stopped) == {ID}


def test_without_topic_ids_nothing_is_tried_again() -> None:
    cluster = Cluster(2, topic_ids=False)
    cluster.create_topic("orders", {0: [1, 2]})
    cluster.brokers[2].stop_errors[ORDERS] = KafkaError.KAFKA_STORAGE_ERROR
    cluster.controller.reassign({ORDERS: (1,)})
    cluster.timers.pass_time(100_000)
    assert orders(cluster) == [True]
