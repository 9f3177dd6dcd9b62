from __future__ import annotations

import pytest

from reconciler.protocol import LeaderAndIsrRequest, RequestType, StopReplicaRequest
from reconciler.simulator.controller.requests import partition_metadata
from reconciler.simulator.controller.states import Replica
from reconciler.simulator.kernel import DURING_DELETE, PartitionMode, TopicMetadata, UpdateMetadataRequest
from tests.reconciler.simulator.controller.cluster import ID, OTHER_ID, Cluster, at


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(3)
    found.create_topic("orders", {0: [1, 2], 1: [2, 3]}, ID)
    found.forget()
    return found


def send(cluster: Cluster) -> None:
    cluster.controller.work.core.batch.send()
    cluster.settle()


def told(request: LeaderAndIsrRequest) -> list[tuple[str, int]]:
    return [(topic.topic, each.partition) for topic in request.topics for each in topic.partitions]


# KIP516-4
def test_a_request_carries_the_topic_id_the_epochs_and_what_the_state_node_holds(cluster: Cluster) -> None:
    cluster.controller.work.core.batch.leader_and_isr([2], at("orders"), is_new=True)
    send(cluster)
    (request,) = cluster.brokers[2].of(LeaderAndIsrRequest)
    (topic,) = request.topics
    (state,) = topic.partitions
    assert (topic.topic, topic.topic_id) == ("orders", ID)
    assert (request.controller_epoch, request.broker_epoch) == (1, cluster.epoch_of(2))
    assert request.type is RequestType.INCREMENTAL
    assert (state.leader, state.leader_epoch, state.isr, state.replicas) == (1, 0, (1, 2), (1, 2))
    assert (state.partition_epoch, state.controller_epoch, state.is_new) == (0, 1, True)


# KIP516-5
def test_a_full_request_has_every_partition_of_the_broker_whatever_was_gathered(cluster: Cluster) -> None:
    batch = cluster.controller.work.core.batch
    batch.full([2, 1])
    batch.leader_and_isr([2], at("orders", 1))
    send(cluster)
    (two,), (one,) = (cluster.brokers[each].take(LeaderAndIsrRequest) for each in (2, 1))
    assert (two.type, told(two)) == (RequestType.FULL, [("orders", 0), ("orders", 1)])
    assert (one.type, told(one)) == (RequestType.FULL, [("orders", 0)])
    batch.leader_and_isr([2], at("orders", 1))
    send(cluster)
    (again,) = cluster.brokers[2].of(LeaderAndIsrRequest)
    assert (again.type, told(again)) == (RequestType.INCREMENTAL, [("orders", 1)])


# KIP516-5
def test_a_full_request_is_sent_to_a_broker_that_should_have_nothing() -> None:
    cluster = Cluster(2)
    cluster.create_topic("orders", {0: [1]}, ID)
    cluster.forget()
    cluster.controller.work.core.batch.full([2])
    send(cluster)
    (request,) = cluster.brokers[2].of(LeaderAndIsrRequest)
    assert (request.type, request.topics) == (RequestType.FULL, ())


def test_no_request_is_full_while_a_topic_cannot_be_read(cluster: Cluster) -> None:
    cluster.controller.context.unreadable.add("payments")
    cluster.controller.work.core.batch.full([2])
    send(cluster)
    (request,) = cluster.brokers[2].of(LeaderAndIsrRequest)
    assert (request.type, told(request)) == (RequestType.INCREMENTAL, [("orders", 0), ("orders", 1)])


def test_without_topic_ids_requests_are_as_before() -> None:
    cluster = Cluster(2, topic_ids=False)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.controller.work.core.batch.stop_replica(Replica(at("orders"), 2), ID, delete=True)
    send(cluster)
    requests = cluster.brokers[2].of(LeaderAndIsrRequest)
    assert {each.type for each in requests} == {RequestType.UNSPECIFIED}
    assert {topic.topic_id for each in requests for topic in each.topics} == {None}
    (stop,) = cluster.brokers[2].of(StopReplicaRequest)
    assert stop.topics[0].topic_id is None
    metadata = cluster.brokers[2].of(UpdateMetadataRequest)
    assert {topic.topic_id for each in metadata for topic in each.topics} == {None}


def test_to_one_broker_leader_and_isr_goes_first_then_metadata_then_stop_replica(cluster: Cluster) -> None:
    batch = cluster.controller.work.core.batch
    batch.stop_replica(Replica(at("orders", 1), 2), ID, delete=False)
    batch.update_metadata([at("orders")])
    batch.leader_and_isr([2], at("orders"))
    send(cluster)
    kinds = [type(each) for each in cluster.brokers[2].received]
    assert kinds == [LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest]


# KIP516-7
def test_each_stop_replica_request_has_one_flag_and_one_id_for_each_name(cluster: Cluster) -> None:
    batch = cluster.controller.work.core.batch
    batch.stop_replica(Replica(at("orders", 0), 2), ID, delete=True, leaving=True)
    batch.stop_replica(Replica(at("orders", 1), 2), ID, delete=False)
    batch.stop_replica(Replica(at("orders", 0), 2), OTHER_ID, delete=True, leaving=True)
    batch.stop_replica(Replica(at("payments", 0), 2), None, delete=True, leaving=True)
    send(cluster)
    found = [
        [(topic.topic, topic.topic_id, each.partition, each.leader_epoch, each.delete)]
        if len(request.topics) == 1
        else [
            (
                one.topic,
                one.topic_id,
                one.partitions[0].partition,
                one.partitions[0].leader_epoch,
                one.partitions[0].delete,
            )
            for one in request.topics
        ]
        for request in cluster.brokers[2].of(StopReplicaRequest)
        for topic in request.topics[:1]
        for each in topic.partitions
    ]
    assert found == [
        [("orders", ID, 0, -2, True)],
        [("orders", ID, 1, 0, False)],
        [("orders", OTHER_ID, 0, -2, True), ("payments", None, 0, -2, True)],
    ]


def test_a_replica_that_is_deleted_is_not_stopped_besides(cluster: Cluster) -> None:
    batch, replica = cluster.controller.work.core.batch, Replica(at("orders"), 2)
    batch.stop_replica(replica, ID, delete=False)
    batch.stop_replica(replica, ID, delete=True)
    send(cluster)
    (request,) = cluster.brokers[2].of(StopReplicaRequest)
    assert [each.delete for each in request.topics[0].partitions] == [True]


# KIP516-9
def test_metadata_carries_the_topic_id_and_the_replicas_that_are_away(cluster: Cluster) -> None:
    cluster.controller.context.offline.add(Replica(at("orders"), 2))
    cluster.controller.work.core.batch.update_metadata([at("orders")], [3])
    send(cluster)
    (request,) = cluster.brokers[3].of(UpdateMetadataRequest)
    (topic,) = request.topics
    assert (topic.topic, topic.topic_id, request.live_brokers) == ("orders", ID, (1, 2, 3))
    assert (topic.partitions[0].leader, topic.partitions[0].offline) == (1, (2,))
    assert cluster.brokers[1].received == []


# KIP694-1
def test_metadata_carries_the_mode_of_each_partition(cluster: Cluster) -> None:
    cluster.controller.work.set_modes([at("orders", 1)], PartitionMode.READ_ONLY)
    cluster.settle()
    for broker in cluster.brokers.values():
        (request,) = broker.take(UpdateMetadataRequest)
        assert [each.mode for each in request.topics[0].partitions] == [PartitionMode.READ_ONLY]
    cluster.controller.work.set_modes([at("orders", 1)], PartitionMode.READ_WRITE)
    cluster.settle()
    assert cluster.brokers[1].of(UpdateMetadataRequest)[0].topics[0].partitions[0].mode is PartitionMode.READ_WRITE
    assert cluster.controller.context.modes == {}


def test_a_partition_that_is_being_deleted_has_the_leader_that_says_so(cluster: Cluster) -> None:
    context = cluster.controller.context
    assert partition_metadata(context, at("orders")).leader == 1
    assert partition_metadata(context, at("orders"), deleted=True).leader == DURING_DELETE
    context.leaving_partitions.add(at("orders"))
    assert partition_metadata(context, at("orders")).leader == DURING_DELETE


def test_that_a_topic_is_gone_is_told_before_what_has_its_name_now(cluster: Cluster) -> None:
    batch = cluster.controller.work.core.batch
    batch.update_metadata([at("orders")])
    batch.gone(TopicMetadata("orders", OTHER_ID, ()))
    send(cluster)
    ids = [each.topics[0].topic_id for each in cluster.brokers[3].of(UpdateMetadataRequest)]
    assert ids == [OTHER_ID, ID]


def test_what_was_sent_is_not_sent_again(cluster: Cluster) -> None:
    cluster.controller.work.core.batch.leader_and_isr([2], at("orders"))
    send(cluster)
    cluster.forget()
    send(cluster)
    assert [each.received for each in cluster.brokers.values()] == [[], [], []]


def test_a_broker_that_lost_its_replica_since_is_not_told_who_leads(cluster: Cluster) -> None:
    context = cluster.controller.context
    cluster.controller.work.core.batch.leader_and_isr([1, 2], at("orders"))
    context.assignments[at("orders")] = context.assignments[at("orders")].without(2)
    send(cluster)
    assert len(cluster.brokers[1].of(LeaderAndIsrRequest)) == 1
    assert cluster.brokers[2].of(LeaderAndIsrRequest) == []
