from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, RequestType, StopReplicaRequest
from reconciler.simulator.controller.states import Replica, ReplicaState
from reconciler.simulator.zookeeper import kafka_paths
from tests.reconciler.simulator.controller.cluster import ID, OTHER_ID, Cluster, at


def deleted(*, errors: int = 0, **settings: object) -> Cluster:
    """Two brokers; a topic that was deleted at once, of which broker 2 says so."""
    cluster = Cluster(2, deletion_retry_ms=1_000, **settings)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.brokers[2].stop_errors[at("orders")] = errors
    cluster.forget()
    cluster.controller.delete_topics(["orders"])
    cluster.settle()
    return cluster


# KIP516-10
@pytest.mark.parametrize(
    "error",
    [
        KafkaError.NONE,
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.INCONSISTENT_TOPIC_ID,
    ],
)
def test_a_broker_that_has_no_such_replica_any_more_is_done(error: KafkaError) -> None:
    cluster = deleted(errors=error)
    assert cluster.controller.work.garbage.topics() == []
    assert cluster.said_about("is collected")


# KIP516-10
def test_a_replica_that_could_not_be_deleted_is_tried_again_after_a_while_and_the_others_are_not() -> None:
    cluster = deleted(errors=KafkaError.KAFKA_STORAGE_ERROR)
    garbage = cluster.controller.work.garbage
    assert garbage.state_of(ID, Replica(at("orders"), 2)) is ReplicaState.DELETION_INELIGIBLE
    assert garbage.state_of(ID, Replica(at("orders"), 1)) is ReplicaState.NON_EXISTENT
    cluster.forget()
    cluster.timers.pass_time(999)
    assert cluster.brokers[2].received == []
    cluster.timers.pass_time(1)
    assert len(cluster.brokers[2].of(StopReplicaRequest)) == 1
    assert cluster.brokers[1].received == []
    cluster.brokers[2].stop_errors.clear()
    cluster.timers.pass_time(1_999)
    assert garbage.topics() == [("orders", ID)]
    cluster.timers.pass_time(1)
    assert garbage.topics() == []


# KIP516-10
def test_a_replica_that_never_answers_well_is_given_up_and_left_to_the_next_full_request() -> None:
    cluster = deleted(errors=KafkaError.KAFKA_STORAGE_ERROR, collection_attempts=3)
    cluster.timers.pass_time(100_000)
    assert len(cluster.brokers[2].of(StopReplicaRequest)) == 3
    assert cluster.controller.work.garbage.topics() == []
    assert cluster.said_about("given up after 3 attempts: the next FULL request sees to it on brokers [2]")
    cluster.forget()
    cluster.bounce(2)
    request = cluster.brokers[2].of(LeaderAndIsrRequest)[0]
    assert (request.type, request.topics) == (RequestType.FULL, ())


# KIP516-10
def test_a_broker_that_goes_while_it_was_to_delete_is_asked_again_when_it_is_back() -> None:
    cluster = Cluster(2, deletion_retry_ms=1_000)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.brokers[2].silent = True
    cluster.controller.delete_topics(["orders"])
    cluster.settle()
    garbage = cluster.controller.work.garbage
    assert garbage.state_of(ID, Replica(at("orders"), 2)) is ReplicaState.DELETION_STARTED
    cluster.kill(2)
    assert garbage.state_of(ID, Replica(at("orders"), 2)) is ReplicaState.DELETION_INELIGIBLE
    cluster.brokers[2].silent = False
    cluster.register(2)
    cluster.timers.pass_time(1_000)
    assert len(cluster.brokers[2].of(StopReplicaRequest)) == 1
    assert garbage.topics() == []


# KIP516-10
def test_two_topics_of_one_name_are_collected_apart_from_the_third_that_lives() -> None:
    cluster = deleted(errors=KafkaError.KAFKA_STORAGE_ERROR)
    cluster.create_topic("orders", {0: [1, 2]}, OTHER_ID)
    cluster.remove_node(kafka_paths.topic_path("orders"))
    cluster.settle()
    cluster.create_topic("orders", {0: [1, 2]})
    garbage = cluster.controller.work.garbage
    assert garbage.topics() == [("orders", ID), ("orders", OTHER_ID)]
    living = cluster.controller.context.topic_ids["orders"]
    cluster.brokers[2].stop_errors.clear()
    cluster.timers.pass_time(2_000)
    assert garbage.topics() == []
    told = [topic.topic_id for each in cluster.brokers[2].of(StopReplicaRequest) for topic in each.topics]
    assert set(told) == {ID, OTHER_ID} and living not in told
    assert cluster.state(at("orders")).isr == (1, 2)


def test_a_request_that_failed_as_a_whole_failed_for_each_replica() -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.brokers[2].top_level = KafkaError.STALE_BROKER_EPOCH
    cluster.controller.delete_topics(["orders"])
    cluster.settle()
    state = cluster.controller.work.garbage.state_of(ID, Replica(at("orders"), 2))
    assert state is ReplicaState.DELETION_INELIGIBLE


# KIP516-10
def test_the_next_controller_knows_nothing_of_what_is_to_be_collected_and_its_full_requests_see_to_it() -> None:
    cluster = deleted(errors=KafkaError.KAFKA_STORAGE_ERROR)
    cluster.start_controller(2)
    cluster.forget()
    cluster.kill(1)
    assert cluster.controller.node_id == 2
    assert cluster.controller.work.garbage.topics() == []
    request = cluster.brokers[2].of(LeaderAndIsrRequest)[0]
    assert (request.type, request.topics) == (RequestType.FULL, ())


def test_a_deleted_topic_is_forgotten_when_the_controller_resigns_and_nothing_fires_later() -> None:
    cluster = deleted(errors=KafkaError.KAFKA_STORAGE_ERROR)
    cluster.controllers[1].stop()
    cluster.forget()
    cluster.timers.pass_time(100_000)
    assert cluster.brokers[2].received == []


# KIP516-10
def test_brokers_that_come_and_go_do_not_make_the_attempts_more_frequent() -> None:
    cluster = Cluster(4, deletion_retry_ms=1_000, collection_attempts=5)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.kill(2)
    cluster.controller.delete_topics(["orders"])
    cluster.settle()
    for _ in range(3):
        cluster.kill(4)
        cluster.register(4)
        cluster.settle()
    # After 1, 2, 4, 8 and 16 seconds.
    cluster.timers.pass_time(30_999)
    assert cluster.controller.work.garbage.topics() == [("orders", ID)]
    cluster.timers.pass_time(1)
    assert cluster.said_about("given up after 5 attempts")
