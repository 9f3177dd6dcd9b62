"""Requests to brokers: what is gathered, in which order it is sent, and queues with retries."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from layout.ids import TopicId
from logstore import KafkaError
from reconciler.protocol import (
    LeaderAndIsrRequest,
    RequestType,
    StopReplicaRequest,
    UpdateMetadataRequest,
    UpdateMetadataTopic,
)
from reconciler.simulator.controller import ControllerSettings
from reconciler.simulator.controller.requests import Channels, partition_metadata
from reconciler.simulator.controller.states import AssignedReplica
from reconciler.simulator.kernel import (
    DURING_DELETE,
    Numbered,
    PartitionMode,
    Request,
    Response,
)
from tests.reconciler.simulator.controller.cluster import ID, OTHER_ID, Cluster, HandTimers, at, live

THIRD_ID = TopicId(bytes([3] * 16))


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(3)
    found.create_topic("orders", {0: [1, 2], 1: [2, 3]}, ID)
    found.forget()
    return found


def send(cluster: Cluster) -> None:
    cluster.controller.work.core.batch.send()
    cluster.settle()


def partitions_in(request: LeaderAndIsrRequest) -> list[tuple[str, int]]:
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
    assert (two.type, partitions_in(two)) == (RequestType.FULL, [("orders", 0), ("orders", 1)])
    assert (one.type, partitions_in(one)) == (RequestType.FULL, [("orders", 0)])
    batch.leader_and_isr([2], at("orders", 1))
    send(cluster)
    (again,) = cluster.brokers[2].of(LeaderAndIsrRequest)
    assert (again.type, partitions_in(again)) == (RequestType.INCREMENTAL, [("orders", 1)])


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
    assert (request.type, partitions_in(request)) == (RequestType.INCREMENTAL, [("orders", 0), ("orders", 1)])


def test_without_topic_ids_requests_are_old_way() -> None:
    cluster = Cluster(2, topic_ids=False)
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    cluster.controller.work.core.batch.stop_replica(AssignedReplica(at("orders"), 2), ID, delete=True)
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
    batch.stop_replica(AssignedReplica(at("orders", 1), 2), ID, delete=False)
    batch.update_metadata([at("orders")])
    batch.leader_and_isr([2], at("orders"))
    send(cluster)
    kinds = [type(each) for each in cluster.brokers[2].received]
    assert kinds == [LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest]


# KIP516-7
def test_each_stop_replica_request_has_one_flag_and_one_id_for_each_name(cluster: Cluster) -> None:
    batch = cluster.controller.work.core.batch
    batch.stop_replica(AssignedReplica(at("orders", 0), 2), ID, delete=True, leaving=True)
    batch.stop_replica(AssignedReplica(at("orders", 1), 2), ID, delete=False)
    batch.stop_replica(AssignedReplica(at("orders", 0), 2), OTHER_ID, delete=True, leaving=True)
    batch.stop_replica(AssignedReplica(at("payments", 0), 2), None, delete=True, leaving=True)
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
    batch, replica = cluster.controller.work.core.batch, AssignedReplica(at("orders"), 2)
    batch.stop_replica(replica, ID, delete=False)
    batch.stop_replica(replica, ID, delete=True)
    send(cluster)
    (request,) = cluster.brokers[2].of(StopReplicaRequest)
    assert [each.delete for each in request.topics[0].partitions] == [True]


# KIP516-9
def test_metadata_carries_the_topic_id_and_the_replicas_that_are_away(cluster: Cluster) -> None:
    cluster.controller.context.offline.add(AssignedReplica(at("orders"), 2))
    cluster.controller.work.core.batch.update_metadata([at("orders")], [3])
    send(cluster)
    (request,) = cluster.brokers[3].of(UpdateMetadataRequest)
    (topic,) = request.topics
    assert (topic.topic, topic.topic_id, request.live_brokers) == ("orders", ID, live(1, 2, 3))
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
    assert cluster.brokers[1].of(UpdateMetadataRequest)[0].topics[0].partitions[0].mode == PartitionMode.READ_WRITE
    assert cluster.controller.context.modes == {}


def test_a_partition_that_is_being_deleted_has_the_leader_that_says_so(cluster: Cluster) -> None:
    context = cluster.controller.context
    assert partition_metadata(context, at("orders")).leader == 1
    assert partition_metadata(context, at("orders"), deleted=True).leader == DURING_DELETE
    context.leaving_partitions.add(at("orders"))
    assert partition_metadata(context, at("orders")).leader == DURING_DELETE


def test_a_deleted_topic_is_sent_before_the_topic_that_has_its_name_now(cluster: Cluster) -> None:
    batch = cluster.controller.work.core.batch
    batch.update_metadata([at("orders")])
    batch.gone(UpdateMetadataTopic("orders", OTHER_ID, ()))
    send(cluster)
    ids = [each.topics[0].topic_id for each in cluster.brokers[3].of(UpdateMetadataRequest)]
    assert ids == [OTHER_ID, ID]


def test_topics_of_one_name_that_are_deleted_together_are_sent_apart_in_their_order(cluster: Cluster) -> None:
    batch = cluster.controller.work.core.batch
    for topic, topic_id in (("orders", OTHER_ID), ("clicks", THIRD_ID), ("orders", ID)):
        batch.gone(UpdateMetadataTopic(topic, topic_id, ()))
    send(cluster)
    sent = [[each.topic_id for each in request.topics] for request in cluster.brokers[3].of(UpdateMetadataRequest)]
    assert sent == [[OTHER_ID, THIRD_ID], [ID]]


def test_what_was_sent_is_not_sent_again(cluster: Cluster) -> None:
    cluster.controller.work.core.batch.leader_and_isr([2], at("orders"))
    send(cluster)
    cluster.forget()
    send(cluster)
    assert [each.received for each in cluster.brokers.values()] == [[], [], []]


def test_a_broker_that_lost_its_replica_since_gets_no_leader(cluster: Cluster) -> None:
    context = cluster.controller.context
    cluster.controller.work.core.batch.leader_and_isr([1, 2], at("orders"))
    context.assignments[at("orders")] = context.assignments[at("orders")].without(2)
    send(cluster)
    assert len(cluster.brokers[1].of(LeaderAndIsrRequest)) == 1
    assert cluster.brokers[2].of(LeaderAndIsrRequest) == []


def request(number: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(1, number, (), (), 0)


class Wire:
    """Keeps every call until it is answered by hand."""

    def __init__(self) -> None:
        self.timers = HandTimers()
        self.calls: list[tuple[str, Request, Callable[[Response | None], None]]] = []
        self.answers: list[tuple[int, Response]] = []
        self.steps: list[str] = []
        self.numbers: list[int] = []
        self.channels = Channels(
            1,
            self,
            ControllerSettings(retry_ms=100, most_retry_ms=400),
            later=self.timers.after,
            guarded=lambda act: act(),
            step=self.steps.append,
        )
        self.channels.open(2, 20)

    def serve(self, endpoint: str, server: object) -> None:
        raise AssertionError("nobody listens here")

    def call(self, sender: str, receiver: str, sent: Request, answered: Callable[[Response | None], None]) -> None:
        assert sender == "broker-1"
        assert isinstance(sent, Numbered)
        self.numbers.append(sent.number)
        self.calls.append((receiver, sent.request, answered))

    def send(self, number: int, broker: int = 2) -> None:
        self.channels.send(broker, request(number), lambda response: self.answers.append((number, response)))

    def sent(self) -> list[int]:
        return [each.controller_epoch for _, each, _ in self.calls if isinstance(each, UpdateMetadataRequest)]

    def answer(self, response: Response | None = KafkaError.NONE) -> None:
        self.calls[-1][2](response)


def test_one_request_is_in_flight_and_the_others_follow_in_order() -> None:
    wire = Wire()
    for number in (1, 2, 3):
        wire.send(number)
    assert (wire.sent(), wire.channels.waiting(2)) == ([1], 3)
    wire.answer()
    assert wire.sent() == [1, 2]
    wire.answer()
    wire.answer()
    assert [number for number, _ in wire.answers] == [1, 2, 3]
    assert (wire.sent(), wire.channels.waiting(2)) == ([1, 2, 3], 0)


def test_requests_are_numbered_in_the_order_of_sending_and_keep_their_number_when_sent_again() -> None:
    wire = Wire()
    wire.send(1)
    wire.answer(None)
    wire.timers.pass_time(100)
    wire.answer()
    wire.send(2)
    assert wire.numbers == [1, 1, 2]


def test_a_request_whose_connection_was_lost_is_sent_again_and_again_with_longer_pauses() -> None:
    wire = Wire()
    wire.send(1)
    times = []
    for _ in range(5):
        wire.answer(None)
        before, count = wire.timers.now, len(wire.calls)
        while len(wire.calls) == count:
            wire.timers.pass_time(1)
        times.append(wire.timers.now - before)
    assert times == [100, 200, 400, 400, 400]
    assert set(wire.sent()) == {1}
    assert wire.answers == []
    wire.answer()
    assert wire.answers == [(1, KafkaError.NONE)]


def test_the_pauses_are_short_again_after_an_answer() -> None:
    wire = Wire()
    wire.send(1)
    wire.send(2)
    wire.answer(None)
    wire.timers.pass_time(100)
    wire.answer()
    wire.answer(None)
    wire.timers.pass_time(100)
    assert wire.sent() == [1, 1, 2, 2]


def test_a_broker_that_was_registered_anew_gets_nothing_that_was_meant_for_the_one_before() -> None:
    wire = Wire()
    wire.send(1)
    wire.send(2)
    old = wire.calls[-1][2]
    wire.channels.open(2, 21)
    old(KafkaError.NONE)
    assert (wire.answers, wire.sent(), wire.channels.epoch_of(2)) == ([], [1], 21)
    wire.send(3)
    assert wire.sent() == [1, 3]


def test_nothing_is_sent_again_once_the_queue_is_closed() -> None:
    wire = Wire()
    wire.send(1)
    wire.answer(None)
    wire.channels.close_all()
    wire.timers.pass_time(10_000)
    assert (wire.sent(), wire.channels.brokers()) == ([1], [])


def test_a_request_for_a_broker_that_is_not_there_is_dropped() -> None:
    wire = Wire()
    wire.send(1, broker=9)
    assert (wire.calls, wire.answers, wire.channels.waiting(9)) == ([], [], 0)


def test_brokers_do_not_wait_for_each_other() -> None:
    wire = Wire()
    wire.channels.open(3, 30)
    wire.send(1, broker=2)
    wire.send(2, broker=3)
    assert [receiver for receiver, _, _ in wire.calls] == ["broker-2", "broker-3"]


def test_each_request_is_a_step_when_it_is_sent_first() -> None:
    wire = Wire()
    wire.send(1)
    wire.answer(None)
    wire.timers.pass_time(100)
    assert wire.steps == ["send UpdateMetadata to 2"]
