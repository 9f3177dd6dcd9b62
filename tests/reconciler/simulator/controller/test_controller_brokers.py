"""Brokers that come, go, restart, stop in order, lose log dirs, and change their in-sync sets."""

from __future__ import annotations

from typing import Any

import pytest

from layout.topic import TopicPartition
from logstore import KafkaError
from reconciler.protocol import LeaderAndIsrRequest, RequestType, StopReplicaRequest, UpdateMetadataRequest
from reconciler.simulator.controller.context import LeaderAndIsr
from reconciler.simulator.controller.states import AssignedReplica, PartitionState, ReplicaState
from reconciler.simulator.kernel import AlterIsrRequest, AlterIsrResponse
from reconciler.simulator.zookeeper import LOG_DIR_EVENTS, state_path
from reconciler.sources.zookeeper import encode_log_dir_event, encode_state
from tests.reconciler.simulator.controller.cluster import ID, OTHER_ID, Cluster, at, live

ORDERS = at("orders")


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(4, controllers=(4,))
    found.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1]}, ID)
    found.forget()
    return found


def fail_log_dir(cluster: Cluster, broker: int, *partitions: int) -> None:
    """A broker finds that the disk with some partitions failed, and says so."""
    for partition in partitions:
        cluster.brokers[broker].leader_errors[at("orders", partition)] = KafkaError.KAFKA_STORAGE_ERROR
    path = f"{LOG_DIR_EVENTS}/log_dir_event_"
    cluster.admin.create(path, encode_log_dir_event(broker), sequence=True)
    cluster.settle()


def test_a_broker_that_goes_leads_nothing_and_is_in_sync_nowhere(cluster: Cluster) -> None:
    cluster.kill(1)
    assert cluster.state(ORDERS) == LeaderAndIsr(2, 1, (2, 3), 1, 1)
    assert cluster.state(at("orders", 1)) == LeaderAndIsr(2, 1, (2, 3), 1, 1)
    assert cluster.controller.context.replica_states.of(AssignedReplica(ORDERS, 1)) is ReplicaState.OFFLINE
    assert cluster.brokers[4].of(UpdateMetadataRequest)[-1].live_brokers == live(2, 3, 4)


# KIP516-5
def test_a_broker_that_registers_gets_all_metadata_and_a_full_request_with_all_its_partitions(
    cluster: Cluster,
) -> None:
    cluster.kill(1)
    cluster.forget()
    epoch = cluster.register(1)
    cluster.settle()
    first, second = cluster.brokers[1].received[:2]
    assert isinstance(first, LeaderAndIsrRequest)
    assert isinstance(second, UpdateMetadataRequest)
    assert (first.type, first.broker_epoch) == (RequestType.FULL, epoch)
    assert [(topic.topic_id, len(topic.partitions)) for topic in first.topics] == [(ID, 2)]
    assert [len(topic.partitions) for topic in second.topics] == [2]
    assert [each.type for each in cluster.brokers[1].of(LeaderAndIsrRequest)].count(RequestType.FULL) == 1
    assert cluster.brokers[2].of(UpdateMetadataRequest)[0].live_brokers == live(1, 2, 3, 4)


def test_a_broker_that_was_restarted_unseen_goes_out_of_sync_and_gets_a_full_request(cluster: Cluster) -> None:
    cluster.bounce(1)
    assert cluster.state(ORDERS) == LeaderAndIsr(2, 1, (2, 3), 1, 1)
    assert 1 not in cluster.state(at("orders", 1)).isr
    request = cluster.brokers[1].of(LeaderAndIsrRequest)[0]
    assert (request.type, request.broker_epoch) == (RequestType.FULL, cluster.epoch_of(1))


def test_a_request_that_was_in_flight_to_the_broker_before_its_restart_is_not_sent_again(cluster: Cluster) -> None:
    cluster.brokers[1].silent = True
    cluster.controller.work.core.batch.leader_and_isr([1], ORDERS)
    cluster.controller.work.core.batch.send()
    cluster.settle()
    cluster.brokers[1].silent = False
    cluster.bounce(1)
    cluster.timers.pass_time(10_000)
    assert {each.broker_epoch for each in cluster.brokers[1].received} == {cluster.epoch_of(1)}


def test_a_partition_whose_last_replica_in_sync_returns_is_led_again(cluster: Cluster) -> None:
    cluster.kill(2)
    cluster.kill(3)
    cluster.kill(1)
    states = cluster.controller.context.partition_states
    assert states.of(ORDERS) is PartitionState.OFFLINE
    assert (cluster.state(ORDERS).leader, cluster.state(ORDERS).isr) == (-1, (1,))
    cluster.register(3)
    cluster.settle()
    assert cluster.state(ORDERS).leader == -1
    cluster.register(1)
    cluster.settle()
    assert (cluster.state(ORDERS).leader, cluster.state(ORDERS).isr) == (1, (1,))
    assert states.of(ORDERS) is PartitionState.ONLINE


def test_replicas_on_a_log_dir_that_failed_are_offline_and_others_lead(cluster: Cluster) -> None:
    fail_log_dir(cluster, 1, 0)
    assert cluster.controller.context.offline == {AssignedReplica(ORDERS, 1)}
    assert cluster.state(ORDERS) == LeaderAndIsr(2, 1, (2, 3), 1, 1)
    assert cluster.state(at("orders", 1)).isr == (2, 3, 1)
    assert cluster.admin.children(LOG_DIR_EVENTS) == []
    asked = cluster.brokers[1].of(LeaderAndIsrRequest)[0]
    assert asked.type is RequestType.INCREMENTAL
    metadata = [each for sent in cluster.brokers[4].of(UpdateMetadataRequest) for each in sent.topics[0].partitions]
    assert [each.offline for each in metadata if each.partition == 0][-1] == (1,)
    stops = cluster.brokers[1].of(StopReplicaRequest)
    assert [each.delete for each in stops[-1].topics[0].partitions] == [False]


def test_a_replica_that_a_broker_cannot_make_is_offline_from_the_beginning() -> None:
    cluster = Cluster(2)
    cluster.brokers[1].leader_errors[ORDERS] = KafkaError.KAFKA_STORAGE_ERROR
    cluster.create_topic("orders", {0: [1, 2]}, ID)
    assert cluster.state(ORDERS) == LeaderAndIsr(2, 1, (2,), 1, 1)


def test_an_answer_that_a_later_request_may_correct_makes_no_replica_offline(cluster: Cluster) -> None:
    """A disk was full, and is not any more: a replica that is made by then would be stopped again, for good."""

    class Once(dict[TopicPartition, int]):
        def get(self, key: TopicPartition, default: Any = None) -> Any:
            return self.pop(key, default)

    cluster.brokers[1].leader_errors = Once({ORDERS: KafkaError.KAFKA_STORAGE_ERROR})
    work = cluster.controller.work
    assert work is not None
    for _ in range(2):
        work.core.batch.leader_and_isr([1], ORDERS)
        work.core.batch.send()
    cluster.settle()
    assert [len(each.topics) for each in cluster.brokers[1].of(LeaderAndIsrRequest)] == [1, 1]
    assert (cluster.brokers[1].of(StopReplicaRequest), cluster.controller.context.offline) == ([], set())


def test_a_replica_that_the_broker_has_again_is_online_and_may_lead(cluster: Cluster) -> None:
    fail_log_dir(cluster, 1, 0)
    cluster.brokers[1].leader_errors.clear()
    fail_log_dir(cluster, 1)
    assert cluster.controller.context.offline == set()
    assert cluster.controller.context.replica_states.of(AssignedReplica(ORDERS, 1)) is ReplicaState.ONLINE


def test_a_restart_brings_the_log_dirs_of_a_broker_back(cluster: Cluster) -> None:
    fail_log_dir(cluster, 1, 0)
    cluster.brokers[1].leader_errors.clear()
    cluster.bounce(1)
    assert cluster.controller.context.offline == set()
    assert cluster.controller.context.online(ORDERS) == (1, 2, 3)


def test_after_a_restart_no_log_dir_counts_as_failed_until_the_broker_says_so(cluster: Cluster) -> None:
    fail_log_dir(cluster, 1, 0)
    cluster.brokers[1].top_level = KafkaError.STALE_BROKER_EPOCH
    cluster.bounce(1)
    assert cluster.controller.context.offline == set()


@pytest.mark.parametrize("error", [KafkaError.STALE_BROKER_EPOCH, KafkaError.STALE_CONTROLLER_EPOCH])
def test_an_answer_that_refuses_the_whole_request_says_nothing_of_replicas(cluster: Cluster, error) -> None:
    cluster.brokers[1].top_level = error
    fail_log_dir(cluster, 1, 0)
    assert cluster.controller.context.offline == set()
    assert cluster.state(ORDERS).leader == 1


def test_an_answer_by_names_or_without_ids_finds_its_partitions_too() -> None:
    cluster = Cluster(2, topic_ids=False)
    cluster.create_topic("orders", {0: [1, 2]})
    cluster.create_topic("payments", {0: [1, 2], 1: [2, 1]})
    cluster.brokers[1].leader_errors[at("payments", 1)] = KafkaError.KAFKA_STORAGE_ERROR
    cluster.admin.create(f"{LOG_DIR_EVENTS}/log_dir_event_", encode_log_dir_event(1), sequence=True)
    cluster.settle()
    assert cluster.controller.context.offline == {AssignedReplica(at("payments", 1), 1)}


def test_other_errors_are_in_the_history(cluster: Cluster) -> None:
    cluster.brokers[1].leader_errors[ORDERS] = KafkaError.INCONSISTENT_TOPIC_ID
    cluster.bounce(1)
    assert cluster.said_about("broker 1 refuses orders-0 with error 103")


def test_a_replica_whose_namespace_the_broker_could_not_have_is_sent_again_after_a_while() -> None:  # KIP37-2
    cluster = Cluster(2, most_deletion_retry_ms=5_000)
    cluster.brokers[1].leader_errors[ORDERS] = KafkaError.INVALID_TOPIC_EXCEPTION
    cluster.create_topic("orders", {0: [1, 2]})
    cluster.forget()
    cluster.timers.pass_time(4_999)
    assert cluster.brokers[1].of(LeaderAndIsrRequest) == []
    cluster.brokers[1].leader_errors.clear()
    cluster.timers.pass_time(1)
    assert [each.topics[0].topic for each in cluster.brokers[1].of(LeaderAndIsrRequest)] == ["orders"]
    cluster.forget()
    cluster.timers.pass_time(10_000)
    assert cluster.brokers[1].of(LeaderAndIsrRequest) == []


def test_brokers_that_come_and_go_at_once_are_all_seen(cluster: Cluster) -> None:
    cluster.sessions[1].expire()
    cluster.sessions[2].expire()
    cluster.register(2)
    cluster.brokers[1].up = False
    cluster.settle()
    assert list(cluster.controller.context.brokers) == [2, 3, 4]
    found = cluster.state(ORDERS)
    assert (found.leader, found.isr) == (3, (3,))


@pytest.fixture
def three_partitions() -> Cluster:
    found = Cluster(4, controllers=(4,))
    found.create_topic("orders", {0: [1, 2, 3], 1: [2, 1, 3], 2: [1]}, ID)
    found.forget()
    return found


def stop(three_partitions: Cluster, broker: int) -> tuple[KafkaError, list[object]]:
    answer = three_partitions.controller.prepare_shutdown(broker, three_partitions.epoch_of(broker))
    three_partitions.settle()
    return answer


def test_others_lead_before_a_broker_stops_and_it_is_in_sync_nowhere(three_partitions: Cluster) -> None:
    assert stop(three_partitions, 1) == (KafkaError.NONE, [])
    assert (three_partitions.state(at("orders")).leader, three_partitions.state(at("orders")).isr) == (2, (2, 3))
    assert (three_partitions.state(at("orders", 1)).leader, three_partitions.state(at("orders", 1)).isr) == (2, (2, 3))
    assert three_partitions.state(at("orders", 2)).leader == 1
    stops = [each for sent in three_partitions.brokers[1].of(StopReplicaRequest) for each in sent.topics[0].partitions]
    assert [(each.partition, each.delete) for each in stops] == [(1, False)]
    assert three_partitions.brokers[1].of(LeaderAndIsrRequest)[0].topics[0].partitions[0].leader == 2


def test_a_partition_that_nobody_else_can_lead_is_reported(three_partitions: Cluster) -> None:
    three_partitions.alter_isr(at("orders"), [1])
    assert stop(three_partitions, 1) == (KafkaError.NONE, [at("orders")])
    assert three_partitions.state(at("orders")).leader == 1


def test_two_brokers_that_stop_do_not_hand_over_to_each_other(three_partitions: Cluster) -> None:
    three_partitions.alter_isr(at("orders"), [1, 2])
    stop(three_partitions, 2)
    assert stop(three_partitions, 1) == (KafkaError.NONE, [at("orders")])


def test_a_broker_that_comes_back_serves_again(three_partitions: Cluster) -> None:
    stop(three_partitions, 1)
    three_partitions.kill(1)
    three_partitions.register(1)
    three_partitions.settle()
    assert three_partitions.controller.context.shutting_down == set()
    assert three_partitions.controller.context.online(at("orders")) == (1, 2, 3)


def test_only_the_broker_that_is_registered_may_ask_and_only_the_controller_answers(three_partitions: Cluster) -> None:
    assert three_partitions.controller.prepare_shutdown(1, 3)[0] is KafkaError.STALE_BROKER_EPOCH
    assert (
        three_partitions.start_controller(3).prepare_shutdown(1, three_partitions.epoch_of(1))[0]
        is KafkaError.NOT_CONTROLLER
    )


@pytest.fixture
def one_partition() -> Cluster:
    found = Cluster(4)
    found.create_topic("orders", {0: [1, 2, 3]}, ID)
    found.forget()
    return found


def test_a_leader_gets_the_set_it_asks_for_in_the_same_leader_epoch(one_partition: Cluster) -> None:
    answer = one_partition.alter_isr(ORDERS, [1, 2], topic_id=ID)
    assert answer == AlterIsrResponse(KafkaError.NONE, 0, (1, 2), 1)
    assert (
        one_partition.state(ORDERS)
        == LeaderAndIsr(1, 0, (1, 2), 1, 1)
        == one_partition.controller.context.leadership[ORDERS]
    )
    assert one_partition.brokers[2].of(LeaderAndIsrRequest) == []
    (metadata,) = one_partition.brokers[4].of(UpdateMetadataRequest)
    assert metadata.topics[0].partitions[0].isr == (1, 2)
    assert one_partition.alter_isr(ORDERS, [1, 2, 3]) == AlterIsrResponse(KafkaError.NONE, 0, (1, 2, 3), 2)


def test_the_set_that_is_in_force_is_granted_without_a_write(one_partition: Cluster) -> None:
    one_partition.alter_isr(ORDERS, [1, 2])
    before = one_partition.zookeeper.dump()
    answer = one_partition.alter_isr(ORDERS, [1, 2], partition_epoch=0)
    assert answer == AlterIsrResponse(KafkaError.NONE, 0, (1, 2), 1)
    assert one_partition.zookeeper.dump() == before


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"broker_epoch": 1}, KafkaError.STALE_BROKER_EPOCH),
        ({"broker_id": 9}, KafkaError.STALE_BROKER_EPOCH),
        ({"partition": at("unknown")}, KafkaError.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": at("orders", 5)}, KafkaError.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic_id": OTHER_ID}, KafkaError.INCONSISTENT_TOPIC_ID),
        ({"leader_epoch": -1}, KafkaError.FENCED_LEADER_EPOCH),
        ({"leader_epoch": 1}, KafkaError.UNKNOWN_LEADER_EPOCH),
        ({"partition_epoch": 4}, KafkaError.INVALID_UPDATE_VERSION),
        ({"isr": (2, 3)}, KafkaError.INVALID_REQUEST),
        ({"isr": (1, 4)}, KafkaError.INVALID_REQUEST),
        ({"isr": (1, 2, 2)}, KafkaError.INVALID_REQUEST),
    ],
)
def test_each_request_that_does_not_count_has_its_error_and_changes_nothing(one_partition, changes, error) -> None:
    before = one_partition.zookeeper.dump()
    assert one_partition.alter_isr(ORDERS, [1, 2], **changes) == AlterIsrResponse(error)
    assert one_partition.zookeeper.dump() == before


def test_a_follower_may_not_ask(one_partition: Cluster) -> None:
    answer = one_partition.alter_isr(ORDERS, [1, 2], broker_id=2, broker_epoch=one_partition.epoch_of(2))
    assert answer.error is KafkaError.INVALID_REQUEST


def test_nobody_joins_whose_broker_is_away_or_about_to_stop_or_whose_log_dir_failed(one_partition: Cluster) -> None:
    one_partition.alter_isr(ORDERS, [1])
    context = one_partition.controller.context
    context.offline.add(AssignedReplica(ORDERS, 2))
    assert one_partition.alter_isr(ORDERS, [1, 2]).error is KafkaError.INVALID_REQUEST
    context.offline.clear()
    context.shutting_down.add(2)
    assert one_partition.alter_isr(ORDERS, [1, 2]).error is KafkaError.INVALID_REQUEST
    one_partition.kill(3)
    assert one_partition.alter_isr(ORDERS, [1, 3]).error is KafkaError.INVALID_REQUEST


def test_a_request_after_the_topic_was_deleted_is_refused(one_partition: Cluster) -> None:
    answers: list[object] = []
    request = AlterIsrRequest(1, one_partition.epoch_of(1), ORDERS, ID, 0, 0, (1,))
    one_partition.remove_node("/brokers/topics/orders")
    one_partition.controller.handle("broker-1", request, answers.append)
    assert answers == [AlterIsrResponse(KafkaError.INVALID_UPDATE_VERSION)]
    one_partition.settle()
    one_partition.controller.handle("broker-1", request, answers.append)
    assert answers[1:] == [AlterIsrResponse(KafkaError.UNKNOWN_TOPIC_OR_PARTITION)]


def test_a_request_that_lost_a_race_with_another_change_is_refused(one_partition: Cluster) -> None:
    data = encode_state(1, 0, (1, 3), 1)
    one_partition.admin.set(state_path(ORDERS), data)
    answer = one_partition.alter_isr(ORDERS, [1, 2], partition_epoch=0)
    assert answer == AlterIsrResponse(KafkaError.INVALID_UPDATE_VERSION)
    assert one_partition.state(ORDERS).isr == (1, 3)


def test_a_broker_that_was_restarted_does_not_stay_in_sync_by_a_request_that_comes_before_the_news(
    one_partition,
) -> None:
    one_partition.sessions[2].expire()
    one_partition.register(2)
    before = one_partition.state(ORDERS)
    answer = one_partition.alter_isr(ORDERS, [1, 2])
    assert answer == AlterIsrResponse(KafkaError.FENCED_LEADER_EPOCH)
    assert before.isr == (1, 2, 3)
    assert one_partition.state(ORDERS).isr == (1, 3)
