"""Topics that are created, deleted, re-created and renamed, and the collection of deleted topics."""

from __future__ import annotations

import pytest

from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, RequestType, StopReplicaRequest, UpdateMetadataRequest
from reconciler.simulator.controller.context import LeaderAndIsr, ReplicaAssignment
from reconciler.simulator.controller.states import (
    AssignedReplica,
    PartitionState,
    PartitionStates,
    ReplicaState,
    ReplicaStates,
)
from reconciler.simulator.kernel import DURING_DELETE
from reconciler.simulator.zookeeper import config_path, delete_path, state_path, topic_path
from reconciler.sources.zookeeper import encode_topic
from tests.reconciler.simulator.controller.cluster import ID, OTHER_ID, Cluster, at


# CREATE-3
def test_a_topic_is_created_in_four_steps(monkeypatch) -> None:
    cluster, moves = Cluster(2), []
    for states in (PartitionStates, ReplicaStates):
        move = states.move

        def noted(self, which, state, move=move) -> None:
            moves.append(state)
            move(self, which, state)

        monkeypatch.setattr(states, "move", noted)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    assert moves == [
        PartitionState.NEW,
        *[ReplicaState.NEW] * 2,
        PartitionState.ONLINE,
        *[ReplicaState.ONLINE] * 2,
    ]


# CREATE-4
def test_a_topic_that_was_created_is_persisted_and_sent_to_its_brokers_alone() -> None:
    cluster = Cluster(3)
    cluster.forget()
    cluster.create_topic("orders", {0: [2, 1]}, ID)
    assert cluster.state(at("orders")) == LeaderAndIsr(2, 0, (2, 1), 0, 1)
    for number in (1, 2):
        (request,) = cluster.brokers[number].of(LeaderAndIsrRequest)
        assert (request.type, request.topics[0].topic_id) == (RequestType.INCREMENTAL, ID)
        assert request.topics[0].partitions[0].is_new
    assert cluster.brokers[3].of(LeaderAndIsrRequest) == []
    (metadata,) = cluster.brokers[3].of(UpdateMetadataRequest)
    assert metadata.topics[0].partitions[0].leader == 2


# KIP516-11
def test_a_topic_without_an_id_gets_one_and_its_node_is_written_as_version_3() -> None:
    cluster = Cluster(2)
    path = topic_path("orders")
    cluster.admin.create(path, b'{"version":1,"partitions":{"0":[1,2]}}')
    cluster.settle()
    topic_id = cluster.controller.context.topic_ids["orders"]
    assert topic_id is not None and str(topic_id) == cluster.topic("orders").topic_id
    assert b'"version":3' in cluster.admin.get(path).data
    assert cluster.brokers[1].of(LeaderAndIsrRequest)[-1].topics[0].topic_id == topic_id


# KIP516-11
def test_the_same_seed_gives_the_same_ids_and_a_topic_created_again_gets_another() -> None:
    def drawn(seed: int) -> list[str]:
        cluster, found = Cluster(1, id_seed=seed), []
        for _ in range(2):
            cluster.create_topic("orders", {0: [1]})
            found.append(cluster.topic("orders").topic_id)
            cluster.controller.delete_topics(["orders"])
            cluster.settle()
        return found

    assert drawn(7) == drawn(7)
    assert len({*drawn(7), *drawn(8)}) == 4


def test_without_topic_ids_a_topic_gets_none() -> None:
    cluster = Cluster(1, topic_ids=False)
    cluster.create_topic("orders", {0: [1]})
    assert cluster.topic("orders").topic_id is None


def test_partitions_that_are_added_are_created_and_the_others_stay() -> None:
    cluster = Cluster(3)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    before = cluster.state(at("orders"))
    cluster.forget()
    cluster.admin.set(topic_path("orders"), encode_topic(ID, {0: [1, 2], 1: [3, 1]}))
    cluster.settle()
    assert cluster.state(at("orders")) == before
    assert cluster.state(at("orders", 1)) == LeaderAndIsr(3, 0, (3, 1), 0, 1)
    (request,) = cluster.brokers[1].of(LeaderAndIsrRequest)
    assert [each.partition for each in request.topics[0].partitions] == [1]


# KIP516-10
def test_a_topic_with_an_id_is_deleted_at_once_and_its_replicas_are_stopped_with_the_id() -> None:
    cluster = Cluster(3)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.admin.create(config_path("orders"), b"{}")
    cluster.forget()
    assert cluster.controller.delete_topics(["orders", "payments"]) == {
        "orders": KafkaError.NONE,
        "payments": KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert not [path for path in cluster.zookeeper.dump() if "orders" in path]
    cluster.settle()
    for number in (1, 2):
        (stop,) = cluster.brokers[number].of(StopReplicaRequest)
        (topic,) = stop.topics
        assert (topic.topic_id, [each.delete for each in topic.partitions]) == (ID, [True])
    (metadata,) = cluster.brokers[3].of(UpdateMetadataRequest)
    assert [each.leader for each in metadata.topics[0].partitions] == [DURING_DELETE]
    assert cluster.controller.work.garbage.topics() == []


# KIP516-10
def test_a_mark_on_a_topic_with_an_id_deletes_it_at_once_too() -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.brokers[2].silent = True
    cluster.admin.create(delete_path("orders"))
    cluster.settle()
    assert not cluster.exists(topic_path("orders"))
    assert not cluster.exists(delete_path("orders"))


# KIP516-10
def test_a_topic_is_created_again_while_a_broker_of_the_old_one_is_down() -> None:
    cluster = Cluster(3)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.kill(2)
    cluster.controller.delete_topics(["orders"])
    cluster.create_topic("orders", {0: [3, 1]}, OTHER_ID)
    assert cluster.state(at("orders")) == LeaderAndIsr(3, 0, (3, 1), 0, 1)
    assert cluster.controller.work.garbage.topics() == [("orders", ID)]
    cluster.forget()
    cluster.register(2)
    cluster.settle()
    (request,) = cluster.brokers[2].of(LeaderAndIsrRequest)
    assert (request.type, request.topics) == (RequestType.FULL, ())


# KIP516-10
def test_a_topic_that_went_and_came_again_before_the_controller_looked_is_another_one() -> None:
    cluster = Cluster(3)
    cluster.create_topic("orders", {0: [1, 2], 1: [2, 1]}, ID)
    cluster.forget()
    cluster.remove_node(topic_path("orders"))
    cluster.create_topic("orders", {0: [2, 3]}, OTHER_ID)
    context = cluster.controller.context
    assert context.topic_ids["orders"] == OTHER_ID
    assert context.assignments == {at("orders"): ReplicaAssignment((2, 3))}
    stops = [topic for each in cluster.brokers[2].of(StopReplicaRequest) for topic in each.topics]
    assert [(each.topic_id, len(each.partitions)) for each in stops] == [(ID, 2)]
    (sent,) = cluster.brokers[2].of(LeaderAndIsrRequest)
    assert sent.topics[0].topic_id == OTHER_ID
    metadata = [topic for each in cluster.brokers[1].of(UpdateMetadataRequest) for topic in each.topics]
    assert [(each.topic_id, each.partitions[0].leader) for each in metadata] == [(ID, DURING_DELETE), (OTHER_ID, 2)]


def test_a_topic_without_an_id_that_vanishes_is_forgotten_and_no_broker_is_asked_to_delete_it() -> None:
    cluster = Cluster(2, topic_ids=False)
    cluster.create_topic("orders", {0: [1, 2]})
    cluster.remove_node(topic_path("orders"))
    cluster.settle()
    assert cluster.controller.context.assignments == {}
    assert cluster.brokers[1].of(StopReplicaRequest) == []


def test_a_mark_of_a_topic_that_is_not_there_is_taken_away() -> None:
    cluster = Cluster(1)
    cluster.admin.create(delete_path("orders"))
    cluster.settle()
    assert not cluster.exists(delete_path("orders"))


def test_a_topic_whose_node_becomes_unreadable_keeps_what_is_known_of_it() -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.admin.set(topic_path("orders"), b"{")
    cluster.settle()
    context = cluster.controller.context
    assert (context.unreadable, list(context.assignments)) == ({"orders"}, [at("orders")])
    cluster.admin.set(topic_path("orders"), encode_topic(ID, {0: [1, 2]}))
    cluster.settle()
    assert context.unreadable == set()


# KIP516-13
def test_a_topic_under_another_name_keeps_its_replicas_its_leader_and_its_epochs() -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.forget()
    state = cluster.admin.get(state_path(at("orders"))).data
    cluster.remove_node(topic_path("orders"))
    cluster.admin.create(topic_path("sales"), encode_topic(ID, {0: [1, 2]}))
    cluster.admin.create(state_path(at("sales")), state, parents=True)
    cluster.settle()
    assert cluster.brokers[2].of(StopReplicaRequest) == []
    assert cluster.state(at("sales")) == LeaderAndIsr(1, 0, (1, 2), 0, 1)
    (request,) = cluster.brokers[2].of(LeaderAndIsrRequest)
    assert (request.topics[0].topic, request.topics[0].topic_id) == ("sales", ID)
    assert list(cluster.controller.context.births) == ["sales"]


# KIP37-4
def test_a_topic_of_a_namespace_is_created_and_deleted_like_any_other() -> None:
    cluster = Cluster(2)
    cluster.create_topic("org:apache:orders", {0: [1, 2]}, ID)
    assert cluster.state(at("org:apache:orders")).leader == 1
    assert cluster.brokers[2].of(LeaderAndIsrRequest)[-1].topics[0].topic == "org:apache:orders"
    cluster.controller.delete_topics(["org:apache:orders"])
    cluster.settle()
    assert cluster.brokers[2].of(StopReplicaRequest)[-1].topics[0].topic == "org:apache:orders"


# KIP37-2
@pytest.mark.parametrize("above", ["", "org/apache/"])
def test_a_partition_whose_directory_is_a_namespaces_is_not_created_until_that_is_gone(above: str) -> None:
    cluster, topic = Cluster(2), f"{above}orders".replace("/", ":")
    cluster.admin.create(f"/brokers/topics/{above}orders-1", parents=True)
    cluster.create_topic(topic, {0: [1, 2], 1: [1, 2]}, ID)
    assert cluster.exists(state_path(at(topic)))
    assert not cluster.exists(state_path(at(topic, 1)))
    said = cluster.said_about("is not created")[0]
    assert f"partition 1 of topic {topic} and namespace {topic}-1 would be one directory, {above}orders-1" in said
    cluster.remove_node(f"/brokers/topics/{above}orders-1")
    cluster.settle()
    assert cluster.state(at(topic, 1)).leader == 1


def test_a_partition_that_was_there_before_the_namespace_of_its_name_stays() -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1, 2], 1: [1, 2]}, ID)
    cluster.admin.create("/brokers/topics/orders-1")
    cluster.settle()
    cluster.start_controller(2)
    cluster.kill(1)
    assert cluster.controller.node_id == 2
    assert cluster.said_about("is not created") == []
    assert cluster.state(at("orders", 1)).leader == 2


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
    assert garbage.state_of(ID, AssignedReplica(at("orders"), 2)) is ReplicaState.DELETION_INELIGIBLE
    assert garbage.state_of(ID, AssignedReplica(at("orders"), 1)) is ReplicaState.NON_EXISTENT
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
    assert garbage.state_of(ID, AssignedReplica(at("orders"), 2)) is ReplicaState.DELETION_STARTED
    cluster.kill(2)
    assert garbage.state_of(ID, AssignedReplica(at("orders"), 2)) is ReplicaState.DELETION_INELIGIBLE
    cluster.brokers[2].silent = False
    cluster.register(2)
    cluster.timers.pass_time(1_000)
    assert len(cluster.brokers[2].of(StopReplicaRequest)) == 1
    assert garbage.topics() == []


# KIP516-10
def test_two_topics_of_one_name_are_collected_apart_from_the_third_that_lives() -> None:
    cluster = deleted(errors=KafkaError.KAFKA_STORAGE_ERROR)
    cluster.create_topic("orders", {0: [1, 2]}, OTHER_ID)
    cluster.remove_node(topic_path("orders"))
    cluster.settle()
    cluster.create_topic("orders", {0: [1, 2]})
    garbage = cluster.controller.work.garbage
    assert garbage.topics() == [("orders", ID), ("orders", OTHER_ID)]
    living = cluster.controller.context.topic_ids["orders"]
    cluster.brokers[2].stop_errors.clear()
    cluster.timers.pass_time(2_000)
    assert garbage.topics() == []
    sent = [topic.topic_id for each in cluster.brokers[2].of(StopReplicaRequest) for topic in each.topics]
    assert set(sent) == {ID, OTHER_ID} and living not in sent
    assert cluster.state(at("orders")).isr == (1, 2)


def test_a_request_that_failed_as_a_whole_failed_for_each_replica() -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.brokers[2].top_level = KafkaError.STALE_BROKER_EPOCH
    cluster.controller.delete_topics(["orders"])
    cluster.settle()
    state = cluster.controller.work.garbage.state_of(ID, AssignedReplica(at("orders"), 2))
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


@pytest.mark.parametrize("name", ["orders", "clicks"])
def test_a_topic_that_was_moved_away_and_back_before_anybody_looked_keeps_its_replicas(name: str) -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.create_topic("clicks", {0: [2, 1]}, OTHER_ID)
    cluster.forget()
    for topic in ("orders", "clicks"):
        cluster.remove_node(topic_path(topic))
    ids = {name: ID, "clicks" if name == "orders" else "orders": OTHER_ID}
    for topic, topic_id in ids.items():
        cluster.admin.create(topic_path(topic), encode_topic(topic_id, {0: [1, 2]}))
    cluster.settle()
    assert [request for number in (1, 2) for request in cluster.brokers[number].of(StopReplicaRequest)] == []
    (request,) = cluster.brokers[1].of(LeaderAndIsrRequest)
    assert {topic.topic: topic.topic_id for topic in request.topics} == ids
